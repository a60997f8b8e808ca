#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tensors of more elements than a vector, a piece or a cache has: what kernels do in vectors, in pieces and on several threads, beside
TensorFlow. Random numbers are the same bit for bit, and go on alike from step to step; the rest within rounding, NaN where TensorFlow
has NaN."""
from tensorflow_environment import Servers, main_with_tensorflow

LENGTHS = (1, 4, 5, 63, 255, 256, 257, 1000, 4095, 100003, 300001)
WIDTHS = (1, 3, 7, 8, 9, 15, 31, 32, 33, 64, 65, 100, 257, 5000)


def random_numbers(tf):
    found = {}
    for n in LENGTHS:
        for dtype in (tf.float32, tf.float64, tf.float16, tf.bfloat16):
            for draw in (tf.random.uniform, tf.random.normal, tf.random.truncated_normal):
                found[f"{draw.__name__} {n} {dtype.name}"] = draw([n], dtype=dtype, seed=n + 7)
            for draw in (tf.random.stateless_uniform, tf.random.stateless_normal):
                found[f"{draw.__name__} {n} {dtype.name}"] = draw([n], seed=[n, 3], dtype=dtype)
        for dtype in (tf.int32, tf.int64):
            found[f"between {n} {dtype.name}"] = tf.random.uniform([n], -5, 1000, dtype=dtype, seed=n)
            found[f"any {n} {dtype.name}"] = tf.random.stateless_uniform([n], seed=[1, n], minval=None, maxval=None, dtype=dtype)
    # Classes of more rows depend on TensorFlow's threads.
    for rows, samples in ((1, 1), (1, 100), (7, 3)):
        logits = tf.reshape(tf.cast(tf.range(rows * 10) * 7919 % 13, tf.float32), [rows, 10])
        found[f"classes {rows} {samples}"] = tf.multinomial(logits, samples, seed=3)
    # The counter's lower half ends within these.
    generator = tf.constant([2**64 - 40, 5], tf.uint64)
    found["over the counter"] = tf.raw_ops.StatelessRandomUniformV2(shape=[3000], key=tf.constant([7], tf.uint64), counter=generator, alg=1)
    return found


def rows_of(np, random, rows, width, dtype):
    values = random.uniform(-9, 9, [rows, width]).astype(dtype)
    values[random.randint(rows), random.randint(width)] = np.nan
    values[random.randint(rows), random.randint(width)] = np.inf
    values[random.randint(rows), random.randint(width)] = -np.inf
    return values


def of_rows(tf, x):
    """What is computed of a matrix."""
    found = {"softmax": tf.nn.softmax(x), "log_softmax": tf.nn.log_softmax(x), "reverse": tf.reverse(x, [1]), "reverse all": tf.reverse(x, [0, 1]),
             "where": tf.where(x > 0, x, -x), "where first": tf.where(x > 0, -x, x),
             "where first of rows": tf.where_v2(x > 0, -x, x[:1]), "where row": tf.where_v2(x > 0, x, x[:1]), "where number": tf.where_v2(x > 0, tf.zeros([], x.dtype), x),
             "where column": tf.raw_ops.SelectV2(condition=x[:, :1] > 0, t=x, e=x + x), "bias": tf.raw_ops.BiasAddGrad(out_backprop=x)}
    for name in ("sum", "mean", "max", "min", "prod", "euclidean_norm"):
        reduce = getattr(tf, "reduce_" + name, None) or getattr(tf.math, "reduce_" + name)
        scaled = x / 9 if name == "prod" else x
        for axis in (0, 1, None):
            found[f"{name} {axis}"] = reduce(scaled, axis)
        found[f"{name} of planes"] = reduce(tf.stack([scaled, scaled + 1]), [0, 2])
    if x.dtype == tf.float32:
        image = tf.reshape(x, [1, 1, -1, x.shape[1]])
        for radius, beta in ((5, 0.5), (2, 0.75), (40, 1.0), (1, 0.6)):
            found[f"lrn {radius}"], = [tf.nn.local_response_normalization(image, radius, 1.5, 0.1, beta)]
            found[f"lrn gradient {radius}"], = tf.gradients(found[f"lrn {radius}"], image)
        found["cross entropy"] = tf.nn.softmax_cross_entropy_with_logits_v2(labels=tf.nn.softmax(x[::-1]), logits=x)
    return found


def choices(tf):
    """What picks elements, and gives them as they are."""
    found = {}
    for dims in ([100003], [1], [300, 7], [3, 50, 11, 5], [4, 0], [0], [70000, 1], [1, 2, 1]):
        size = 1
        for d in dims:
            size *= d
        values = tf.reshape(tf.range(size) * 7919 % 5 - 2, dims)
        for dtype in (tf.float32, tf.float64, tf.int32, tf.int64, tf.uint8, tf.complex64, tf.bool):
            x = tf.cast(values, dtype)
            found[f"where {dims} {dtype.name}"] = tf.where(x)
            found[f"mask {dims} {dtype.name}"] = tf.boolean_mask(x, values > 0)
            found[f"reverse {dims} {dtype.name}"] = tf.reverse(x, [len(dims) - 1])
        texts = tf.as_string(values)
        found[f"texts {dims}"] = tf.boolean_mask(texts, values > 0)
        found[f"slice {dims}"] = values[..., -3:]
        if size > 0:
            rows = tf.range(100003) * 7919 % dims[0]
            for x in (values, texts):
                found[f"gather {dims} {x.dtype.name}"] = tf.gather(x, tf.cast(rows[:100000 * dims[0] // size + 1], tf.int64))
                few = rows[:100000 * dims[-1] // size + 1]
                found[f"gather last {dims} {x.dtype.name}"] = tf.gather(x, few % dims[-1], axis=-1)
                found[f"gather_nd {dims} {x.dtype.name}"] = tf.gather_nd(x, tf.expand_dims(few, 1))
    return found


def moved(np, tf, random):
    """Transposed, joined and taken apart, where neither side's or only few elements are neighbours."""
    found = {}
    for dims in ([300, 71], [8, 8], [5, 5000], [17000, 3], [3, 17000], [7, 30, 20, 3], [7, 3, 30, 20], [2, 20, 18, 64], [3, 64, 10, 9], [9, 1, 40, 2], [2, 3, 4, 5, 6]):
        for dtype in (np.uint8, np.float16, np.float32, np.int64, np.complex128, np.bool_, np.str_):
            if dtype == np.str_ and np.prod(dims) > 3000:
                continue
            x = tf.constant(random.randint(0, 200, dims).astype(dtype))
            rank = len(dims)
            for order in {(*range(rank - 1, -1, -1),), (0, rank - 1, *range(1, rank - 1)), (0, *range(2, rank), 1), (rank - 1, *range(rank - 1)), (1, 0, *range(2, rank))}:
                found[f"transposed {dims} {x.dtype.name} {order}"] = tf.transpose(x, order)
            parts = tf.unstack(x, axis=1) if dims[1] < 100 else tf.split(x, [1, 2, 0, dims[1] - 3], 1)
            for i in (0, len(parts) - 1):
                found[f"part {i} {dims} {x.dtype.name}"] = parts[i]
            for count in (2, 3, 4, 5, 9):
                some = [x[..., ::-1] if k % 2 else x for k in range(count)]
                found[f"stacked {count} {dims} {x.dtype.name}"] = tf.stack(some, -1)
                found[f"joined {count} {dims} {x.dtype.name}"] = tf.concat([s[..., :k] for k, s in enumerate(some)], -1)
    return found


def places_of_extremes(np, tf, random):
    """Along each axis: ties, NaN, infinities, and the first of them where none is better than nothing."""
    found = {}
    for dims in ([5], [33], [700], [3, 64], [7, 10], [130, 5], [3, 50, 3], [2, 40, 130], [4, 1, 9], [2, 70, 2, 3]):
        for dtype in (np.float32, np.float64, np.float16, np.int32, np.int64, np.uint8, np.int8):
            values = random.randint(-100, 100, dims).astype(dtype)
            if np.issubdtype(dtype, np.floating):
                values = np.where(random.randint(0, 9, dims) == 0, np.nan, values).astype(dtype)
                values = np.where(random.randint(0, 99, dims) == 0, np.inf, values).astype(dtype)
            for kind, x in (("mixed", values), ("least", np.full(dims, -np.inf if np.issubdtype(dtype, np.floating) else np.iinfo(dtype).min, dtype))):
                for axis in range(len(dims)):
                    for output in (tf.int64, tf.int32):
                        name = f"{kind} {dims} {values.dtype.name} {axis} {output.name}"
                        found["largest " + name] = tf.argmax(tf.constant(x), axis, output_type=output)
                        found["smallest " + name] = tf.argmin(tf.constant(x), axis, output_type=output)
    return found


def scans(np, tf, random):
    """What is exact, and what is rounded."""
    found, rounded = {}, {}
    for dims in ([5], [700], [7, 10], [130, 5], [3, 50, 300], [4, 1, 9], [2, 70, 2, 3]):
        for dtype in (np.float32, np.float64, np.int32, np.complex64):
            x = tf.constant(random.randint(-3, 4, dims).astype(dtype))
            factors = tf.constant(random.choice([-1, 1, 1, 1, -1, 1, 1, 1, -1, 2], dims).astype(dtype))
            for axis in range(len(dims)):
                for exclusive, reverse in ((False, False), (True, False), (False, True), (True, True)):
                    name = f"{dims} {x.dtype.name} {axis} {exclusive} {reverse}"
                    found["sums " + name] = tf.cumsum(x, axis, exclusive, reverse)
                    found["products " + name] = tf.math.cumprod(factors, axis, exclusive, reverse)
                    if dtype in (np.float32, np.float64):
                        rounded["log-sums " + name] = tf.math.cumulative_logsumexp(x, axis, exclusive, reverse)
    return found, rounded


def narrow(np, tf, random):
    """Short rows with a row, a column or both repeated."""
    found = {}
    for width in (1, 2, 3, 7, 15, 16, 17):
        for dtype in (np.float32, np.float64, np.int32, np.uint8, np.complex128, np.float16):
            x, row, column = (tf.constant(random.randint(1, 99, dims).astype(dtype)) for dims in ([701, width], [1, width], [701, 1]))
            for name in ("add", "sub", "mul", "div", "equal", "less"):
                if name == "less" and dtype == np.complex128:
                    continue
                op = getattr(tf.math, {"div": "divide", "sub": "subtract", "mul": "multiply"}.get(name, name))
                for i, (a, b) in enumerate(((x, row), (row, x), (x, column), (column, x), (row, column), (column, row))):
                    found[f"{name} {i} {width} {x.dtype.name}"] = op(a, b)
            # Operands of more dimensions, one of them repeated or both.
            parts = [tf.constant(random.randint(1, 99, dims + [last]).astype(dtype)) for last in (1, width)
                     for dims in ([3, 1, 40], [1, 5, 40], [3, 5, 1], [1, 1, 40], [3, 1, 1], [3, 5, 40], [40])]
            for i, a in enumerate(parts):
                for k, b in enumerate(parts):
                    found[f"minus {i} {k} {width} {x.dtype.name}"] = a - b
    return found


def sums_and_counts(np, tf, random):
    """Of segments, of sparse rows and of equal numbers; images that change their size."""
    found = {}
    for width in (1, 5, 31, 32, 33, 64, 100, 300):
        for dtype in (np.float32, np.float64, np.int32, np.float16):
            x = tf.constant(random.randint(-9, 9, [500, width]).astype(dtype))
            ids = random.randint(-1, 20, [500])
            for name in ("sum", "max", "min", "prod"):
                scaled = x if name != "prod" else tf.sign(x)
                found[f"{name} {width} {x.dtype.name}"] = getattr(tf.math, "unsorted_segment_" + name)(scaled, ids, 20)
            found[f"sorted {width} {x.dtype.name}"] = tf.math.segment_sum(x, np.sort(ids + 1))
            if dtype != np.int32:
                found[f"mean {width} {x.dtype.name}"] = tf.math.segment_mean(x, np.sort(ids + 1))
            if dtype in (np.float32, np.float64):
                places = np.unique(np.stack([random.randint(0, 40, 900), random.randint(0, 500, 900)], 1), axis=0)
                sparse = tf.SparseTensor(places, random.uniform(-1, 1, len(places)).astype(dtype), [40, 500])
                found[f"sparse {width} {x.dtype.name}"] = tf.sparse_tensor_dense_matmul(sparse, x)
    for dtype in (np.int32, np.int64, np.uint8, np.int16):
        for most in (3, 200, 30000):
            numbers = random.randint(0, min(most, np.iinfo(dtype).max), 20001).astype(dtype)
            values = np.where(numbers % 3 == 0, -numbers, numbers).astype(dtype)
            for i, part in enumerate(tf.unique_with_counts(tf.constant(values))):
                found[f"unique {i} {numbers.dtype.name} {most}"] = part
            if dtype == np.int32:
                found[f"counts {most}"] = tf.math.bincount(tf.constant(numbers), minlength=5, maxlength=most // 2)
    for delta in (0, 0.1, -0.4, 0.9, 37.3):
        found[f"hue {delta}"] = tf.image.adjust_hue(tf.constant(random.uniform(0, 1, [40, 50, 3]).astype(np.float32)), delta)
    for channels in (1, 2, 3, 4, 7):
        for dtype in (np.float32, np.uint8):
            image = random.randint(0, 255, [2, 17, 23, channels]).astype(dtype)
            for size in ([34, 46], [17, 23], [5, 60], [1, 1], [40, 9]):
                for align, half in ((False, False), (True, False), (False, True)):
                    found[f"resized {channels} {image.dtype.name} {size} {align} {half}"] = tf.raw_ops.ResizeBilinear(
                        images=tf.constant(image), size=size, align_corners=align, half_pixel_centers=half)
    return found


def texts(np, tf, random):
    found = {}
    lines = tf.constant(["".join(random.choice(list("ab, ;-\u00e9"), random.randint(0, 300))) for _ in range(300)])
    for delimiter in (" ", ",", ",;", "-", "", "xyz"):
        for skip in (True, False):
            parts = tf.string_split(lines, delimiter, skip_empty=skip)
            found[f"parts {delimiter!r} {skip}"], found[f"places {delimiter!r} {skip}"] = parts.values, parts.indices
    for dtype in (np.int8, np.uint8, np.int32, np.int64, np.float32, np.float64, np.complex64, np.bool_):
        least = np.iinfo(dtype).min if np.issubdtype(dtype, np.integer) else -1e5
        most = np.iinfo(dtype).max if np.issubdtype(dtype, np.integer) else 1e5
        numbers = tf.constant(np.append(random.uniform(least, most, 500).astype(dtype), np.array([least, most, 0]).astype(dtype)))
        found[f"text of {numbers.dtype.name}"] = tf.as_string(numbers)
        found[f"wide text of {numbers.dtype.name}"] = tf.as_string(numbers, width=200, fill="0" if dtype != np.bool_ else "")
    return found


def recurrent_cells(np, tf, random):
    found = {}
    for batch, inputs, cells in ((3, 5, 37), (1, 2, 16), (9, 20, 70)):
        def tensor(*dims):
            return tf.constant(random.uniform(-1, 1, dims).astype(np.float32))
        for peepholes in (False, True):
            step = dict(cs_prev=tensor(batch, cells), h_prev=tensor(batch, cells), w=tensor(inputs + cells, 4 * cells), wci=tensor(cells), wcf=tensor(cells),
                        wco=tensor(cells), b=tensor(4 * cells), use_peephole=peepholes, cell_clip=0.7)
            block = tf.raw_ops.BlockLSTM(seq_len_max=np.int64(6), x=tensor(6, batch, inputs), **step)
            for i, made in enumerate(block):
                found[f"block {i} {cells} {peepholes}"] = made
            for i, made in enumerate(tf.raw_ops.LSTMBlockCell(x=tensor(batch, inputs), **step)):
                found[f"cell {i} {cells} {peepholes}"] = made
        gru = tf.raw_ops.GRUBlockCell(x=tensor(batch, inputs), h_prev=tensor(batch, cells), w_ru=tensor(inputs + cells, 2 * cells),
                                      w_c=tensor(inputs + cells, cells), b_ru=tensor(2 * cells), b_c=tensor(cells))
        for i, made in enumerate(gru):
            found[f"gru {i} {cells}"] = made
    return found


def functions_of_doubles(np, tf, random):
    x = tf.constant(np.concatenate([random.uniform(-30, 30, 20003), random.normal(size=20000), [0, -0.0, np.inf, -np.inf, np.nan, 1e-300, 709.5, -745]]))
    functions = ("exp", "expm1", "log", "log1p", "sin", "cos", "tan", "tanh", "erf", "sigmoid", "softplus")
    return {f"{name} of doubles": getattr(tf.math, name)(x) for name in functions}


def one_hots(tf):
    found = {}
    for indices, depth, axis in (([3, -1, 2, 9], 5, -1), (list(range(2000)), 700, -1), ([[1, 2], [0, 7]], 3, 0), ([[1, 2], [0, 7]], 3, 1),
                                 ([list(range(300))] * 20, 290, 1), ([], 4, -1), ([1], 0, -1)):
        for dtype in (tf.int32, tf.int64, tf.uint8):
            chosen = tf.cast(tf.constant(indices, tf.int32), dtype)
            for on, off in ((1.5, -2.0), (True, False), ("on", "off")):
                found[f"one_hot {len(found)} {depth} {axis}"] = tf.one_hot(chosen, depth, on, off, axis)
    return found


def main():
    import numpy as np
    import tensorflow.compat.v1 as tf
    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.disable_v2_behavior()
    random = np.random.RandomState(1)
    # Constants are folded by both; what is fed is not.
    whole = tf.ConfigProto(graph_options=tf.GraphOptions(rewrite_options=dict(disable_meta_optimizer=True)))

    with Servers({"worker": 1}) as servers:
        def compare(found, feed, exact, steps=1):
            with tf.Session(config=whole) as theirs, tf.Session(servers.target("worker"), config=whole) as ours:
                for _ in range(steps):
                    for name, a, b in zip(found, theirs.run(list(found.values()), feed), ours.run(list(found.values()), feed)):
                        assert a.dtype == b.dtype and np.shape(a) == np.shape(b), f"{name}: {np.shape(b)}, wanted {np.shape(a)}"
                        if exact or a.dtype == object or a.dtype == bool:
                            assert a.tobytes() == b.tobytes() if a.dtype != object else (a == b).all(), f"{name} differs in {np.sum(a != b)}"
                            continue
                        assert (np.isnan(a) == np.isnan(b)).all(), f"{name}: NaN in other places"
                        # TensorFlow adds up floats in float. Sums may be near 0; exponentials are all positive.
                        near = 2e-4 if a.dtype == np.float32 else 1e-9
                        least = 1e-35 if name.startswith(("softmax", "exp")) else near * np.nanmax(np.abs(a[np.isfinite(a)]), initial=1e-30)
                        assert np.allclose(a, b, rtol=near, atol=least, equal_nan=True), \
                            f"{name}: {np.nanmax(np.abs(a - b))} apart"

        with tf.Graph().as_default():
            compare(random_numbers(tf), {}, True, steps=2)
        with tf.Graph().as_default():
            compare({**one_hots(tf), **choices(tf)}, {}, True)
        with tf.Graph().as_default():
            compare(moved(np, tf, random), {}, True)
        with tf.Graph().as_default():
            exact_scans, rounded_scans = scans(np, tf, random)
            compare(exact_scans, {}, True)
            compare(rounded_scans, {}, False)
        with tf.Graph().as_default():
            compare({**narrow(np, tf, random), **places_of_extremes(np, tf, random), **texts(np, tf, random)}, {}, True)
        with tf.Graph().as_default():
            compare({**sums_and_counts(np, tf, random), **recurrent_cells(np, tf, random), **functions_of_doubles(np, tf, random)}, {}, False)
        for width in WIDTHS:
            for dtype in (np.float32, np.float64):
                rows = 40000 // width + 3
                with tf.Graph().as_default():
                    x = tf.placeholder(dtype, [rows, width])
                    found = of_rows(tf, x)
                    compare(found, {x: random.uniform(-9, 9, [rows, width])}, False)
                    # Whether a long product is 0 before it meets an infinity depends on the order.
                    compare({k: v for k, v in found.items() if not k.startswith(("lrn", "cross", "prod"))},
                            {x: rows_of(np, random, rows, width, dtype)}, False)


if __name__ == "__main__":
    main_with_tensorflow(main)
