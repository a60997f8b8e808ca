# SPDX-License-Identifier: Apache-2.0
"""The examples char_lstm and word2vec as programs of TensorFlow: the same batches, since what orders
data is repeated here, and the same initial values, since both systems draw them from the same seeds."""
import collections
import itertools

MASK = (1 << 64) - 1


class RandomSequence:
    """That of data/batch/random_sequence.h (SplitMix64)."""

    def __init__(self, seed):
        self.state = seed & MASK

    def next(self):
        self.state = (self.state + 0x9e3779b97f4a7c15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xbf58476d1ce4e5b9) & MASK
        z = ((z ^ (z >> 27)) * 0x94d049bb133111eb) & MASK
        return z ^ (z >> 31)

    def below(self, limit):
        return (self.next() * limit) >> 64


def shuffled(elements, buffer_size, seed, repetition):
    """The order of InputPipeline::Shuffle."""
    random = RandomSequence(seed)
    for _ in range(2):
        random = RandomSequence(random.next() ^ repetition)
    elements, held = iter(elements), []
    while True:
        held += itertools.islice(elements, buffer_size - len(held))
        if not held:
            return
        i = random.below(len(held))
        held[i], held[-1] = held[-1], held[i]
        yield held.pop()


def window_batches(np, text, batch, length):
    """The windows of char_lstm, with the windows that begin a character later."""
    number = {c: i for i, c in enumerate(dict.fromkeys(text))}
    ids = np.array([number[c] for c in text], np.int32)
    starts = range(0, len(ids) - length, length // 2)
    order = itertools.chain.from_iterable(shuffled(starts, 10000, 1, i) for i in itertools.count())
    while True:
        windows = np.stack([ids[at:at + length + 1] for at in itertools.islice(order, batch)])
        yield windows[:, :-1], windows[:, 1:]


def char_lstm(tf, np, text, steps, units=128, batch=32, length=50):
    """The losses of all steps."""
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        size = len(set(text))
        ids, following = (tf.placeholder(tf.int32, [None, None]) for _ in range(2))
        table = tf.get_variable("embeddings", [size, 32],
                                initializer=tf.random_uniform_initializer(-.05, .05))
        outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(units),
                                       tf.nn.embedding_lookup(table, ids), dtype=tf.float32)
        logits = tf.layers.dense(outputs, size)
        loss = tf.losses.sparse_softmax_cross_entropy(following, logits)
        adam = tf.train.AdamOptimizer(.003)
        gradients, variables = zip(*adam.compute_gradients(loss))
        clipped, _ = tf.clip_by_global_norm(gradients, 5.)
        train = adam.apply_gradients(zip(clipped, variables))
        batches = itertools.islice(window_batches(np, text, batch, length), steps)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            step = session.make_callable([loss, train], feed_list=[ids, following])
            return [step(*pair)[0] for pair in batches]


def word_ids(text, most):
    """The words as numbers in the order of their frequency, from 1 on, and how many numbers."""
    words = text.split()
    counts = collections.Counter(words)
    order = sorted(counts, key=lambda word: (-counts[word], word))[:most - 1]
    number = {word: i + 1 for i, word in enumerate(order)}
    return [number.get(word, 0) for word in words], len(order) + 1


def skip_grams(ids, window):
    random, count = RandomSequence(1), len(ids)
    while True:
        at = near = random.below(count)
        while near == at:
            near = at - window + random.below(2 * window + 1)
            near = min(max(near, 0), count - 1)
            if near == at and at in (0, count - 1):
                near = 1 if at == 0 else at - 1
        yield ids[at], ids[near]


def word2vec(tf, np, text, steps, vocabulary=5000, width=64, batch=128, window=2, negatives=64):
    """The losses of all steps."""
    ids, size = word_ids(text, vocabulary)
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        center, context = tf.placeholder(tf.int32, [batch]), tf.placeholder(tf.int64, [batch])
        vectors = tf.Variable(tf.random_uniform([size, width]) * 2 - 1)
        weights = tf.Variable(tf.random_normal([size, width]) * .1)
        biases = tf.Variable(tf.zeros([size]))
        v = tf.gather(vectors, center)
        right = tf.reduce_sum(v * tf.gather(weights, context), 1) + tf.gather(biases, context)
        sampled, _, _ = tf.random.log_uniform_candidate_sampler(tf.expand_dims(context, 1), 1,
                                                                negatives, True, size)
        wrong = tf.matmul(v, tf.gather(weights, sampled), transpose_b=True)
        wrong += tf.gather(biases, sampled)
        loss = tf.reduce_mean(tf.nn.softplus(-right) + tf.reduce_sum(tf.nn.softplus(wrong), 1))
        train = tf.train.AdagradOptimizer(.5).minimize(loss)
        pairs, losses = skip_grams(ids, window), []
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            step = session.make_callable([loss, train], feed_list=[center, context])
            for _ in range(steps):
                now = np.array(list(itertools.islice(pairs, batch)), np.int64)
                losses.append(step(now[:, 0].astype(np.int32), now[:, 1])[0])
        return losses
