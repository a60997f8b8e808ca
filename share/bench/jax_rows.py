# SPDX-License-Identifier: Apache-2.0
"""The rows of jax_peer.py. Each is a function that is compiled once and whose results, all of them, are waited for in
every measurement. What a training changes is donated, so that it is changed in its place."""
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from peer_batches import frozen_network, median_call, mnist_batch, scattered, time_calls

IMAGES = [32, 28, 28, 32]


def call_time(function, *arguments, warm_up=5, count=50):
    """The median seconds of a call."""
    compiled = jax.jit(function)

    def call():
        jax.block_until_ready(compiled(*arguments))
    time_calls(warm_up, call)
    return median_call(count, call)


def training_time(step, state, batch, warm_up, count):
    """The median seconds of `state, loss = step(state, *batch)`; the batch comes from NumPy each time."""
    compiled = jax.jit(step, donate_argnums=0)

    def call():
        nonlocal state
        state, loss = compiled(state, *batch)
        jax.block_until_ready((state, loss))
    time_calls(warm_up, call)
    return median_call(count, call)


def keys(count):
    return iter(jax.random.split(jax.random.key(1), count))


def glorot(key, *shape):
    return jax.nn.initializers.glorot_uniform()(key, shape)


def cross_entropy(logits, labels):
    return -jnp.mean(jnp.sum(labels * jax.nn.log_softmax(logits), -1))


def clip_by_global_norm(gradients, limit):
    norm = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(gradients)))
    return jax.tree.map(lambda g: g * (limit / jnp.maximum(norm, limit)), gradients)


def adam_state(parameters):
    zeros = functools.partial(jax.tree.map, jnp.zeros_like)
    return {"step": jnp.zeros([], jnp.int32), "parameters": parameters, "m": zeros(parameters), "v": zeros(parameters)}


def adam(state, gradients, rate):
    step = state["step"] + 1
    m = jax.tree.map(lambda m, g: .9 * m + .1 * g, state["m"], gradients)
    v = jax.tree.map(lambda v, g: .999 * v + .001 * g * g, state["v"], gradients)
    rate = rate * jnp.sqrt(1 - .999 ** step) / (1 - .9 ** step)
    parameters = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), state["parameters"], m, v)
    return {"step": step, "parameters": parameters, "m": m, "v": v}


def adagrad_rows(table, sums, ids, gradients, rate):
    """Changes the rows `ids` of a table and of its sums of squares; the gradients of one row are added up before."""
    rows, places = jnp.unique(ids, return_inverse=True, size=len(ids), fill_value=len(table))
    gradients = jax.ops.segment_sum(gradients, places, num_segments=len(ids))
    sums = sums.at[rows].add(gradients * gradients, mode="drop", indices_are_sorted=True)
    change = rate * gradients / jnp.sqrt(sums.at[rows].get(mode="fill", fill_value=1))
    return table.at[rows].add(-change, mode="drop", indices_are_sorted=True), sums


def mnist_step():
    def loss_of(parameters, images, labels):
        hidden = jax.nn.sigmoid(images @ parameters["w1"] + parameters["b1"])
        y = jax.nn.softmax(hidden @ parameters["w2"] + parameters["b2"])
        return jnp.mean(-jnp.sum(labels * jnp.log(y), axis=1))

    def step(state, images, labels):
        loss, gradients = jax.value_and_grad(loss_of)(state["parameters"], images, labels)
        parameters = jax.tree.map(lambda p, g: p - .001 * g, state["parameters"], gradients)
        return {"step": state["step"] + 1, "parameters": parameters}, loss

    key = keys(2)
    parameters = {"w1": jax.random.normal(next(key), [784, 100]), "b1": jnp.zeros(100),
                  "w2": jax.random.normal(next(key), [100, 10]), "b2": jnp.zeros(10)}
    state = {"step": jnp.zeros([], jnp.int32), "parameters": parameters}
    return training_time(step, state, mnist_batch(), 50, 1000) * 1e6


def convolve(images, filters):
    return lax.conv_general_dilated(images, filters, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def pool(images, size):
    """The largest of each window, with strides of 2. Apart, windows are axes: the gradient of a `reduce_window` takes
    ten times as long."""
    n, height, width, channels = images.shape
    if size == 2 and height % 2 == width % 2 == 0:
        return images.reshape(n, height // 2, 2, width // 2, 2, channels).max((2, 4))
    return lax.reduce_window(images, -jnp.inf, lax.max, (1, size, size, 1), (1, 2, 2, 1), "SAME")


def image_features(layers, images):
    """What two convolutions and a dense layer make of images of [n, 784]."""
    h = images.reshape(-1, 28, 28, 1)
    for filters, bias in layers[:2]:
        h = pool(jax.nn.relu(convolve(h, filters) + bias), 2)
    return jax.nn.relu(h.reshape(-1, 7 * 7 * 64) @ layers[2][0] + layers[2][1])


def conv_step():
    def loss_of(layers, key, images, labels):
        h = image_features(layers, images)
        h = jnp.where(jax.random.bernoulli(key, .6, h.shape), h / .6, 0)
        return cross_entropy(h @ layers[3][0] + layers[3][1], labels)

    def step(state, images, labels):
        key, used = jax.random.split(state["key"])
        loss, gradients = jax.value_and_grad(loss_of)(state["adam"]["parameters"], used, images, labels)
        return {"key": key, "adam": adam(state["adam"], gradients, .001)}, loss

    layers = [(glorot(key, *shape), jnp.zeros(shape[-1])) for key, shape in
              zip(keys(4), [(3, 3, 1, 32), (3, 3, 32, 64), (7 * 7 * 64, 128), (128, 10)])]
    state = {"key": jax.random.key(2), "adam": adam_state(layers)}
    return training_time(step, state, mnist_batch(), 10, 50) * 1e3


def char_lstm_step(vocabulary=64, units=128):
    def loss_of(parameters, ids, following):
        def cell(state, x):
            c, h = state
            gates = jnp.concatenate([x, h], 1) @ parameters["kernel"] + parameters["bias"]
            i, j, f, o = jnp.split(gates, 4, axis=1)
            c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(j)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (c, h), h

        start = jnp.zeros([len(ids), units])
        _, outputs = lax.scan(cell, (start, start), parameters["embeddings"][ids.T])
        logits = outputs @ parameters["dense"] + parameters["dense_bias"]
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), following.T[:, :, None], -1)
        return -jnp.mean(chosen)

    def step(state, ids, following):
        loss, gradients = jax.value_and_grad(loss_of)(state["parameters"], ids, following)
        return adam(state, clip_by_global_norm(gradients, 5.), .003), loss

    key = keys(3)
    parameters = {"embeddings": glorot(next(key), vocabulary, 32),
                  "kernel": glorot(next(key), 32 + units, 4 * units), "bias": jnp.zeros(4 * units),
                  "dense": glorot(next(key), units, vocabulary), "dense_bias": jnp.zeros(vocabulary)}
    text = scattered([32, 50], np.int32, vocabulary)
    return training_time(step, adam_state(parameters), (text, text), 10, 50) * 1e3


def word2vec_step(vocabulary=5000, width=64, batch=128, negatives=64):
    """A gradient is that of the rows that a step looks at."""
    ranks = np.arange(vocabulary)
    # Drawing without putting back, each ID of the log-uniform distribution, is that sampler of TensorFlow's.
    likely = jnp.log(jnp.log((ranks + 2.) / (ranks + 1.)))

    def loss_of(v, weights, biases):
        right = jnp.sum(v * weights[:batch], 1) + biases[:batch]
        wrong = v @ weights[batch:].T + biases[batch:]
        return jnp.mean(jax.nn.softplus(-right) + jnp.sum(jax.nn.softplus(wrong), 1))

    def step(state, center, context):
        key, used = jax.random.split(state["key"])
        sampled = lax.top_k(likely + jax.random.gumbel(used, [vocabulary]), negatives)[1]
        others = jnp.concatenate([context, sampled])
        tables, sums = state["tables"], state["sums"]
        loss, gradients = jax.value_and_grad(loss_of, argnums=(0, 1, 2))(
            tables[0][center], tables[1][others], tables[2][others])
        changed = [adagrad_rows(t, s, ids, g, .5) for t, s, ids, g in
                   zip(tables, sums, [center, others, others], gradients)]
        return {"key": key, "tables": [t for t, _ in changed], "sums": [s for _, s in changed]}, loss

    key = keys(2)
    tables = [jax.random.uniform(next(key), [vocabulary, width], minval=-1, maxval=1),
              jax.random.normal(next(key), [vocabulary, width]) * .1, jnp.zeros(vocabulary)]
    state = {"key": jax.random.key(2), "tables": tables, "sums": [jnp.full_like(t, .1) for t in tables]}
    ids = scattered([batch], np.int32, vocabulary)
    return training_time(step, state, (ids, ids), 10, 500) * 1e3


def frozen_probabilities(images):
    layers = frozen_network()
    return jax.nn.softmax(image_features(layers, images) @ layers[3][0] + layers[3][1])


def inference(batch, count):
    return call_time(frozen_probabilities, mnist_batch(batch)[0], warm_up=20, count=count) * 1e6


def inference_1():
    return inference(1, 1000)


def inference_100():
    return inference(100, 100)


# The results of the rows that follow are whole, since JAX computes no more of them than is asked for.

def uniform(*shape):
    return jax.random.uniform(jax.random.key(1), shape)


def gradients_time(function, *arguments):
    """The median milliseconds of the gradients of the sum of squares, halved."""
    def loss(*values):
        return jnp.sum(jnp.square(function(*values))) / 2
    return call_time(jax.grad(loss, argnums=range(len(arguments))), *arguments) * 1e3


def convolution():
    return gradients_time(lambda x, w: jax.nn.relu(convolve(x, w)), uniform(*IMAGES), uniform(3, 3, 32, 64))


def max_pooling():
    return gradients_time(lambda x: pool(x, 2), uniform(*IMAGES))


def overlapping_pooling():
    return gradients_time(lambda x: pool(x, 3), uniform(*IMAGES))


def batch_norm():
    def normalise(images, scale, offset):
        mean, variance = jnp.mean(images, (0, 1, 2)), jnp.var(images, (0, 1, 2))
        return (images - mean) * lax.rsqrt(variance + .001) * scale + offset
    return gradients_time(normalise, uniform(*IMAGES), uniform(32), uniform(32))


def embedding(words=100000, count=4096):
    def step(state):
        key, used = jax.random.split(state["key"])
        ids = jax.random.randint(used, [count], 0, words)
        gradients = jax.grad(lambda rows: jnp.sum(rows * rows) / 2)(state["table"][ids])
        table, sums = adagrad_rows(state["table"], state["sums"], ids, gradients, .01)
        return {"key": key, "table": table, "sums": sums}, gradients[0, 0]

    table = uniform(words, 64)
    state = {"key": jax.random.key(2), "table": table, "sums": jnp.full_like(table, .1)}
    return training_time(step, state, (), 5, 50) * 1e3


def top_k():
    return call_time(functools.partial(lax.top_k, k=100), uniform(64, 50000)) * 1e3


def sort():
    return call_time(jnp.sort, uniform(1 << 20)) * 1e3
