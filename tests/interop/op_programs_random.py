# SPDX-License-Identifier: Apache-2.0
"""Small graphs of ops that go on from run to run: random streams, generators, samplers, and of ops that
change their input in TensorFlow."""
import tensorflow.compat.v1 as tf

raw = tf.raw_ops
SEEDS = {"seed": 3, "seed2": 5}


def random_streams(_):
    fetches = []
    for dtype in (tf.float32, tf.float64, tf.float16):
        for alpha in ([0.5, 1.0, 20.0], 3.0, [[0.1, 2.0]]):
            values = tf.constant(alpha, dtype)
            fetches.append(raw.RandomGamma(shape=[20, 2], alpha=values, **SEEDS))
            for out in (tf.int64, tf.float32):
                fetches.append(raw.RandomPoissonV2(shape=[9], rate=values * 30, dtype=out, **SEEDS))
    for dtype in (tf.float32, tf.float64):
        for shape, parameters in [
                ([150], (0, 1, -2, 1)), ([2, 5], ([0, 3], [1, 2], [-1, 4], [0.5, 9])), ([50], (0, 1, 3, 9)),
                ([20], (0, 1, 0.2, 0.4)), ([20], (5, 1, -2, 1)), ([20], (0, 1, -float("inf"), 1))]:
            means, stdevs, minvals, maxvals = [tf.constant(p, dtype) for p in parameters]
            fetches.append(raw.ParameterizedTruncatedNormal(
                shape=shape, means=means, stdevs=stdevs, minvals=minvals, maxvals=maxvals, **SEEDS))
    return [fetches, fetches] + [[raw.ParameterizedTruncatedNormal(
        shape=[20], means=0.0, stdevs=d, minvals=a, maxvals=b, **SEEDS)] for d, a, b in [(1.0, 1.0, -1.0), (-1.0, 0.0, 1.0)]
    ]


def candidate_samplers(_):
    steps = []
    for op in (raw.UniformCandidateSampler, raw.LogUniformCandidateSampler, raw.LearnedUnigramCandidateSampler,
               raw.ThreadUnsafeUnigramCandidateSampler):
        for classes, count, unique, range_max in [
                ([[0], [2]], 3, True, 5), ([[0, 1], [2, 2]], 4, False, 10), ([[7]], 5, True, 1000), ([[0]], 1, True, 1),
                ([[1]], 5, True, 4), ([[5]], 2, False, 5), ([[-1]], 2, False, 5)]:
            sampled = op(true_classes=tf.constant(classes, tf.int64), num_true=len(classes[0]), num_sampled=count,
                         unique=unique, range_max=range_max, **SEEDS)
            steps += [list(sampled)] * 3
    for classes, unique, range_max, more in [
            ([[0], [2]], False, 4, {}), ([[0]], True, 4, {}), ([[1]], False, 5, {"num_reserved_ids": 1, "distortion": 0.5}),
            ([[1]], False, 2, {"num_shards": 2, "shard": 1}), ([[0]], False, 3, {})]:
        sampled = raw.FixedUnigramCandidateSampler(
            true_classes=tf.constant(classes, tf.int64), num_true=1, num_sampled=3, unique=unique, range_max=range_max,
            unigrams=[1.0, 2.0, 3.0, 4.0], **SEEDS, **more)
        steps += [list(sampled)] * 2
    return steps + [list(raw.AllCandidateSampler(true_classes=[[0], [2]], num_true=1, num_sampled=3, unique=True))]


def generators(_):
    def variable(name, values):
        handle = raw.VarHandleOp(dtype=tf.int64, shape=[len(values)], shared_name=name)
        return handle, raw.AssignVariableOp(resource=handle, value=tf.constant(values, tf.int64))

    handle, start = variable("generator", [1, 2, 3])
    short, start_short = variable("short", [1, 2])
    steps = [[start, start_short]]
    alg = tf.constant(1, tf.int64)
    for dtype in (tf.float32, tf.float64, tf.float16):
        steps += [[op(resource=handle, algorithm=alg, shape=[5, 3], dtype=dtype)] for op in (
            raw.StatefulUniform, raw.StatefulStandardNormalV2, raw.StatefulTruncatedNormal)]
    for dtype in (tf.int32, tf.int64, tf.uint32, tf.uint64):
        steps.append([raw.StatefulUniformFullInt(resource=handle, algorithm=alg, shape=[6], dtype=dtype)])
    steps.append([raw.StatefulUniformInt(resource=handle, algorithm=alg, shape=[6], minval=tf.constant(-3, tf.int64),
                                         maxval=tf.constant(9, tf.int64))])
    for counts, probs in [([5.0, 40.0, 1000.0], 0.3), (3.0, [0.0, 0.9, 1.0])]:
        steps.append([raw.StatefulRandomBinomial(resource=handle, algorithm=alg, shape=[20, 3], counts=counts,
                                                 probs=probs, dtype=tf.int64)])
    steps.append([raw.RngSkip(resource=handle, algorithm=alg, delta=tf.constant(7, tf.int64))])
    steps.append([raw.RngReadAndSkip(resource=handle, alg=1, delta=tf.constant(3, tf.uint64))])
    steps.append([raw.ReadVariableOp(resource=handle, dtype=tf.int64)])
    steps.append([raw.StatefulUniform(resource=short, algorithm=alg, shape=[2])])
    steps.append([raw.StatefulUniform(resource=handle, algorithm=tf.constant(9, tf.int64), shape=[2])])
    steps.append([raw.Sub(x=x, y=x) for x in [raw.NonDeterministicInts(shape=[4])]])
    return steps


def rows_in_place(_):
    steps = []
    for dtype in (tf.float32, tf.int64, tf.float16):
        for op in (raw.InplaceAdd, raw.InplaceSub, raw.InplaceUpdate):
            for shape, rows, v in [((3, 2), [0, 2], (2, 2)), ((3, 2), [-1, 4], (2, 2)), ((3,), [1], (1,)),
                                   ((3, 2), [1, 1], (2, 2)), ((3, 2), [], (0, 2)), ((3, 2), 1, (2,)), ((3, 2), [0], (1, 3)),
                                   ((3, 2), [0, 1], (1, 2)), ((3, 2), [0], (2,))]:
                fresh = tf.cast(tf.fill(shape, tf.placeholder_with_default(5.0, [])), dtype)
                steps.append([op(x=fresh, i=tf.constant(rows, tf.int32), v=tf.fill(v, tf.constant(2, dtype)))])
    return steps


def guards(_):
    x = tf.placeholder_with_default([1.0, 2.0], [2])
    zero = tf.placeholder_with_default(0.0, [])
    bad = tf.stack([1 / zero, -1 / zero, zero / zero])
    guarded = raw.CheckNumericsV2(tensor=x, message="here")
    return [[raw.GuaranteeConst(input=x)], [guarded]] + [
        [raw.CheckNumericsV2(tensor=bad[i:j], message="here")] for i, j in ((0, 1), (0, 2), (1, 3), (0, 3))]


RANDOM_PROGRAMS = [random_streams, candidate_samplers, generators, rows_in_place, guards]
