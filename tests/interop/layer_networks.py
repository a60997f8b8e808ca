# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's side of layer_models.cc: under the same names the same networks, as functions of
TensorFlow that give what is minimised, and what they are fed with in each step."""
import warnings

import numpy as np
import tensorflow.compat.v1 as tf

warnings.simplefilter("ignore")  # that the functions of version 1 are old
cells, nn, keras = tf.nn.rnn_cell, tf.nn, tf.keras


def x(*shape, name="x"):
    return tf.placeholder(tf.float32, shape, name=name)


def ids(*shape, name="ids"):
    return tf.placeholder(tf.int32, shape, name=name)


def regularized(loss, factor):
    tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, factor * loss)


def dense_layers():
    a, b = x(None, 6), x(None, 6, name="y")
    shared = tf.layers.Dense(5, activation=tf.tanh)
    h = shared(a) * shared(b)
    first = tf.layers.dense(h, 4, activation=tf.sigmoid, use_bias=False)
    out = tf.layers.Dense(2, activation=nn.softplus, name="out")
    last = out(h)
    regularized(tf.reduce_sum(shared.kernel ** 2), 0.01)
    regularized(tf.reduce_sum(tf.abs(out.kernel)), 0.01)
    regularized(tf.reduce_sum(out.kernel ** 2), 0.02)
    regularized(tf.reduce_sum(tf.abs(out.bias)), 0.03)
    return [first, last]


def dense_over_time():
    return [tf.layers.dense(x(None, None, 3), 4, activation=tf.tanh)]


def convolutions():
    h = tf.layers.conv2d(x(None, 9, 8, 3), 4, 3, strides=(2, 1), padding="same", activation=nn.elu)
    h = tf.layers.conv2d(h, 3, (3, 2), dilation_rate=(1, 2), use_bias=False)
    return [tf.layers.dense(tf.layers.flatten(nn.relu(h)), 2)]


def convolutions_1d():
    h = tf.layers.conv1d(x(None, 9, 3), 4, 3, padding="same", activation=tf.tanh)
    return [tf.layers.conv1d(h, 2, 2, dilation_rate=2), tf.layers.conv1d(h, 2, 3, strides=2)]


def convolutions_3d():
    return [tf.layers.conv3d(x(None, 4, 5, 4, 2), 2, (2, 3, 2), activation=tf.tanh)]


def transposed():
    image = x(None, 4, 5, 3)
    return [tf.layers.conv2d_transpose(image, 2, 3, strides=2, activation=tf.tanh),
            tf.layers.conv2d_transpose(image, 4, (2, 3), strides=(3, 1), padding="same")]


def by_separate_channels():
    image = x(None, 6, 7, 3)
    depthwise = keras.layers.DepthwiseConv2D(3, depth_multiplier=2, activation="tanh")
    return [depthwise(image),
            tf.layers.separable_conv2d(image, 4, (2, 3), depth_multiplier=2, strides=2,
                                       padding="same")]


def poolings():
    image = tf.layers.dense(x(None, 7, 6, 2), 3)
    line, solid = image[:, :, 0], tf.reshape(image, [-1, 7, 3, 2, 3])
    # Scaled, so that training does not make all of an image equal, of which any is the largest.
    pooled = [
        tf.layers.max_pooling2d(image, 2, 2),
        tf.layers.max_pooling2d(image, (3, 2), (2, 1), padding="same"),
        tf.layers.average_pooling2d(image, 3, 2, padding="same"),
        tf.layers.average_pooling2d(image, (2, 1), (2, 1)),
        tf.layers.max_pooling1d(line, 2, 2),
        tf.layers.average_pooling1d(line, 3, 1),
        tf.layers.max_pooling3d(solid, (2, 3, 1), (2, 3, 1)),
        tf.layers.average_pooling3d(solid, 2, 1),
        tf.reduce_mean(image, axis=[1, 2]),
        tf.reduce_max(image, axis=[1, 2])]
    return [0.1 * y for y in pooled]


def batch_normalized():
    h = tf.layers.conv2d(x(None, 4, 4, 3), 5, 3)
    h = tf.layers.batch_normalization(h, momentum=0.8, training=True)
    h = tf.layers.dense(tf.layers.flatten(tf.tanh(h)), 4)
    return [tf.layers.batch_normalization(h, momentum=0.9, scale=False, training=True)]


def batch_normalized_sometimes():
    training = tf.placeholder(tf.bool, [], name="training")
    h = tf.layers.conv2d(x(None, 4, 4, 3), 5, 3)
    h = tf.layers.batch_normalization(h, momentum=0.7, epsilon=0.01, training=training)
    h = tf.layers.dense(tf.layers.flatten(tf.tanh(h)), 4)
    return [tf.layers.batch_normalization(h, momentum=0.6, center=False, training=training)]


def batch_renormalized():
    h = tf.layers.conv2d(x(None, 4, 4, 3), 5, 3)
    h = tf.layers.batch_normalization(
        h, momentum=0.8, training=True, renorm=True, renorm_momentum=0.7,
        renorm_clipping={"rmin": 0.8, "rmax": 1.1, "dmax": 0.3})
    h = tf.layers.dense(tf.layers.flatten(tf.tanh(h)), 4)
    return [tf.layers.batch_normalization(h, momentum=0.9, scale=False, training=True,
                                          renorm=True)]


def batch_renormalized_sometimes():
    training = tf.placeholder(tf.bool, [], name="training")
    widest = x(name="widest")
    h = tf.layers.conv2d(x(None, 4, 4, 3), 5, 3)
    h = tf.layers.batch_normalization(
        h, axis=1, momentum=0.7, epsilon=0.01, training=training, renorm=True, renorm_momentum=0.6,
        moving_variance_initializer=tf.constant_initializer(0.5),
        renorm_clipping={"rmax": widest, "dmax": widest})
    h = tf.layers.dense(tf.layers.flatten(tf.tanh(h)), 4)
    return [tf.layers.batch_normalization(h, momentum=0.6, center=False, training=training,
                                          renorm=True)]


def layer_normalized():
    return [keras.layers.LayerNormalization()(tf.layers.dense(x(None, 3, 4), 5)),
            keras.layers.LayerNormalization(axis=[1, 2], scale=False)(
                tf.layers.dense(x(None, 3, 4, name="y"), 5))]


def dropped_out():
    tf.set_random_seed(7)
    h = tf.layers.dense(x(5, 6), 8)
    training = tf.placeholder(tf.bool, [], name="training")
    return [nn.dropout(h, rate=0.4, seed=3),
            tf.layers.dropout(h, rate=0.2, seed=4, training=training),
            nn.dropout(h, rate=0.5, seed=5, noise_shape=[5, 1])]


def parts(name, count):
    partitioner = tf.fixed_size_partitioner(count) if count > 1 else None
    with tf.variable_scope(name, partitioner=partitioner):
        return tf.get_variable("w", [11, 3])


def embedded():
    which = ids(None, 4)
    table = keras.layers.Embedding(11, 3)
    return [tf.tanh(table(which)),
            tf.tanh(nn.embedding_lookup(parts("mod", 3), which)),
            tf.tanh(nn.embedding_lookup(parts("div", 3), which, partition_strategy="div"))]


def embedded_within_norm():
    which, indices = ids(None, 4), tf.placeholder(tf.int64, [None, 2], name="indices")
    entries, weights = ids(None, name="entries"), x(None, name="weights")
    shape = tf.constant([5, 4], tf.int64)
    sparse = tf.SparseTensor(indices, entries, shape)
    weighted = tf.SparseTensor(indices, weights, shape)
    mod = parts("mod", 3)
    with tf.variable_scope("vector"):
        partitioner = tf.fixed_size_partitioner(1)
        vector = tf.get_variable("w", [11], partitioner=partitioner)
    with tf.variable_scope("embedding"):
        table = tf.get_variable("embeddings", [11, 3])
    return [nn.embedding_lookup(table, which, max_norm=0.6),
            nn.embedding_lookup(mod, which, max_norm=0.5),
            nn.embedding_lookup(vector, which, max_norm=0.2),
            nn.embedding_lookup_sparse(mod, sparse, weighted, combiner="sqrtn", max_norm=0.4),
            nn.safe_embedding_lookup_sparse(mod, sparse, combiner="mean", max_norm=0.3,
                                            partition_strategy="div")]


def embedded_sparse():
    indices = tf.placeholder(tf.int64, [None, 2], name="indices")
    which, weights = ids(None), x(None, name="weights")
    shape = tf.constant([5, 4], tf.int64)
    sparse, weighted = tf.SparseTensor(indices, which, shape), tf.SparseTensor(indices, weights, shape)
    some = tf.SparseTensor(indices, which - 2, [6, 4])
    lower = tf.SparseTensor(indices, weights - 0.6, [6, 4])
    whole, several = parts("whole", 1), parts("parts", 3)
    ys = []
    for combiner in ["sum", "mean", "sqrtn"]:
        ys.append(nn.embedding_lookup_sparse(whole, sparse, None, combiner=combiner))
        ys.append(nn.embedding_lookup_sparse(several, sparse, weighted, combiner=combiner))
        ys.append(nn.safe_embedding_lookup_sparse(several, some, combiner=combiner,
                                                  partition_strategy="div"))
        ys.append(nn.safe_embedding_lookup_sparse(several, some, lower, combiner, default_id=2,
                                                  partition_strategy="div"))
    return ys


def lengths():
    return ids(None, name="lengths")


def all_of(outputs, state):
    return tf.nest.flatten(outputs) + tf.nest.flatten(state)


def static_basic_rnn():
    steps = tf.unstack(x(None, 3, 4), 3, axis=1)
    return all_of(*nn.static_rnn(cells.BasicRNNCell(3), steps, dtype=tf.float32,
                                 sequence_length=lengths()))


def static_lstm():
    steps = tf.unstack(x(2, 3, 4), 3, axis=1)
    outputs, state = nn.static_rnn(cells.BasicLSTMCell(3), steps, dtype=tf.float32)
    return all_of([outputs[0], outputs[2]], state)


def dynamic_lstm():
    cell = cells.LSTMCell(3, activation=nn.softsign, forget_bias=0.5)
    return all_of(*nn.dynamic_rnn(cell, x(None, None, 4), lengths(), dtype=tf.float32))


def peephole_lstm():
    cell = cells.LSTMCell(4, use_peepholes=True, cell_clip=0.3, num_proj=3, proj_clip=0.1)
    return all_of(*nn.dynamic_rnn(cell, x(3, 5, 4), dtype=tf.float32))


def dynamic_gru():
    steps = x(None, None, 4)
    begin = tf.layers.dense(steps[0], 3, name="begin")
    return all_of(*nn.dynamic_rnn(cells.GRUCell(3), steps, lengths(), begin, time_major=True))


def several_layers():
    several = cells.MultiRNNCell([cells.LSTMCell(3), cells.GRUCell(4), cells.BasicRNNCell(2)])
    return all_of(*nn.dynamic_rnn(several, x(None, 5, 4), lengths(), dtype=tf.float32))


def wrapped_cells():
    several = cells.MultiRNNCell([
        cells.ResidualWrapper(cells.LSTMCell(4)),
        cells.ResidualWrapper(cells.GRUCell(4), lambda a, b: (a + b) / 2),
        cells.DeviceWrapper(cells.BasicRNNCell(2), "/device:CPU:0")])
    return all_of(*nn.dynamic_rnn(several, x(None, 5, 4), lengths(), dtype=tf.float32))


def dropped_out_cells():
    tf.set_random_seed(5)
    within = cells.MultiRNNCell([cells.LSTMCell(4), cells.GRUCell(3)])
    cell = cells.DropoutWrapper(within, input_keep_prob=0.8, output_keep_prob=x(name="keep"),
                                state_keep_prob=0.7, seed=3)
    return all_of(*nn.dynamic_rnn(cell, x(2, 5, 4), dtype=tf.float32, parallel_iterations=1))


def variational_cells():
    tf.set_random_seed(5)
    within = cells.DropoutWrapper(cells.GRUCell(3), output_keep_prob=0.5, seed=4,
                                  variational_recurrent=True, dtype=tf.float32)
    cell = cells.DropoutWrapper(
        cells.MultiRNNCell([cells.LSTMCell(4), within]), input_keep_prob=0.6,
        output_keep_prob=x(name="keep"), state_keep_prob=0.7, seed=9, variational_recurrent=True,
        input_size=tf.TensorShape([4]), dtype=tf.float32)
    return all_of(*nn.dynamic_rnn(cell, x(None, 5, 4), lengths(), dtype=tf.float32))


def both_directions():
    (forward, backward), (first, second) = nn.bidirectional_dynamic_rnn(
        cells.LSTMCell(3), cells.GRUCell(2), x(None, None, 4), lengths(), dtype=tf.float32)
    return all_of(forward, first) + all_of(backward, second)


def in_branches_and_loops():
    a, training = x(None, 4), tf.placeholder(tf.bool, [], name="training")

    def dense(h):
        return tf.layers.dense(h, 4, activation=tf.tanh)

    h = tf.cond(training, lambda: dense(a),
                lambda: tf.layers.dense(a, 4, use_bias=False, name="other"))
    with tf.variable_scope("tower"):
        h = tf.case([(training, lambda: dense(h))], lambda: tf.cond(
            tf.reduce_mean(a) > 0, lambda: dense(h), lambda: h * tf.get_variable("gain", [4])))
    h = tf.while_loop(lambda i, _: i < 3, lambda i, h: (i + 1, dense(h)), (0, h))[1]
    return [h, dense(h)]


def multi_head():
    a, b = x(None, 4, 6), x(None, 5, 3, name="y")
    mask = tf.placeholder(tf.bool, [None, 4, 5], name="mask")
    output, weights = keras.layers.MultiHeadAttention(2, 3, value_dim=4)(
        a, b, b, attention_mask=mask, return_attention_scores=True)
    other = keras.layers.MultiHeadAttention(3, 2, output_shape=5, use_bias=False)
    return [output, weights, other(a, a, a)]


def attentions():
    a = tf.layers.dense(x(None, 4, 6), 3)
    b = tf.layers.dense(x(None, 5, 3, name="y"), 3)
    output, weights = keras.layers.AdditiveAttention()([a, b], return_attention_scores=True)
    scores = tf.matmul(a, b, transpose_b=True) / np.sqrt(3)
    return [output, weights, tf.matmul(nn.softmax(scores), b)]


def initialized():
    tf.set_random_seed(11)

    def made(name, shape, initializer):
        tf.get_variable(name, shape, initializer=initializer, trainable=False)

    made("zeros", [2, 3], tf.zeros_initializer())
    made("ones", [2, 3], tf.ones_initializer())
    made("constant", [2, 3], tf.constant_initializer(2.5))
    made("elements", [2, 2], tf.constant_initializer([1, 2, 3, 4]))
    made("random_uniform", [3, 4], tf.random_uniform_initializer(-2, 3, seed=1))
    made("random_normal", [3, 4], tf.random_normal_initializer(1, 2, seed=2))
    made("truncated_normal", [3, 4], tf.truncated_normal_initializer(1, 2, seed=3))
    made("glorot_uniform", [3, 4], tf.glorot_uniform_initializer(seed=4))
    made("glorot_normal", [2, 3, 4, 5], tf.glorot_normal_initializer(seed=5))
    made("he_uniform", [3, 4], tf.initializers.he_uniform(seed=6))
    made("he_normal", [3, 2, 4], tf.initializers.he_normal(seed=7))
    made("lecun_uniform", [3, 4], tf.initializers.lecun_uniform(seed=8))
    made("lecun_normal", [7], tf.initializers.lecun_normal(seed=9))
    made("orthogonal", [5, 3], tf.orthogonal_initializer(seed=10))
    made("orthogonal_wide", [2, 2, 6], tf.orthogonal_initializer(1.5, seed=11))
    made("identity", [3, 5], tf.initializers.identity(2))
    made("variance_scaling", [3, 4],
         tf.variance_scaling_initializer(3, "fan_out", "untruncated_normal", seed=12))
    tf.get_variable("parts", [7, 3], initializer=tf.glorot_uniform_initializer(seed=13),
                    trainable=False, partitioner=tf.fixed_size_partitioner(2))
    return []


def floats(*shape):
    return np.random.uniform(-1, 1, shape).astype(np.float32)


ENTRIES = [[0, 0], [0, 3], [1, 1], [3, 0], [3, 1], [3, 2], [4, 2]]
# What a step is fed with: new values in each.
FEEDS = {
    "dense_layers": lambda step: {"x": floats(3, 6), "y": floats(3, 6)},
    "dense_over_time": lambda step: {"x": floats(2, 4, 3)},
    "convolutions": lambda step: {"x": floats(2, 9, 8, 3)},
    "convolutions_1d": lambda step: {"x": floats(2, 9, 3)},
    "convolutions_3d": lambda step: {"x": floats(2, 4, 5, 4, 2)},
    "transposed": lambda step: {"x": floats(2, 4, 5, 3)},
    "by_separate_channels": lambda step: {"x": floats(2, 6, 7, 3)},
    "poolings": lambda step: {"x": floats(2, 7, 6, 2)},
    "batch_normalized": lambda step: {"x": floats(6, 4, 4, 3)},
    "batch_normalized_sometimes": lambda step: {"x": floats(6, 4, 4, 3), "training": step % 3 < 2},
    "batch_renormalized": lambda step: {"x": floats(6, 4, 4, 3)},
    "batch_renormalized_sometimes": lambda step: {"x": floats(6, 4, 4, 3), "training": step % 3 < 2,
                                                  "widest": 1 + step / 10},
    "layer_normalized": lambda step: {"x": floats(2, 3, 4), "y": floats(2, 3, 4)},
    "dropped_out": lambda step: {"x": floats(5, 6), "training": step % 3 < 2},
    "embedded": lambda step: {"ids": np.random.randint(0, 11, [3, 4])},
    "embedded_within_norm": lambda step: {
        "ids": np.random.randint(0, 11, [3, 4]), "indices": ENTRIES,
        "entries": np.random.randint(0, 11, [7]), "weights": np.abs(floats(7)) + 0.1},
    "embedded_sparse": lambda step: {"indices": ENTRIES, "ids": np.random.randint(0, 11, [7]),
                                     "weights": np.abs(floats(7)) + 0.1},
    "static_basic_rnn": lambda step: {"x": floats(4, 3, 4), "lengths": [3, 0, 2, 1]},
    "static_lstm": lambda step: {"x": floats(2, 3, 4)},
    "dynamic_lstm": lambda step: {"x": floats(3, 6, 4), "lengths": np.random.randint(0, 6, [3])},
    "peephole_lstm": lambda step: {"x": floats(3, 5, 4)},
    "dynamic_gru": lambda step: {"x": floats(6, 3, 4), "lengths": [6, 2, 4]},
    "several_layers": lambda step: {"x": floats(2, 5, 4), "lengths": [4, 3]},
    "wrapped_cells": lambda step: {"x": floats(2, 5, 4), "lengths": [4, 3]},
    "dropped_out_cells": lambda step: {"x": floats(2, 5, 4), "keep": 0.5 + step / 40},
    "variational_cells": lambda step: {"x": floats(2, 5, 4), "lengths": [4, 3],
                                       "keep": 0.5 + step / 40},
    "both_directions": lambda step: {"x": floats(3, 5, 4), "lengths": np.random.randint(1, 6, [3])},
    "in_branches_and_loops": lambda step: {"x": floats(3, 4), "training": step % 3 < 1},
    "multi_head": lambda step: {"x": floats(2, 4, 6), "y": floats(2, 5, 3),
                                "mask": np.random.uniform(size=[2, 4, 5]) < 0.8},
    "attentions": lambda step: {"x": floats(2, 4, 6), "y": floats(2, 5, 3)},
}
