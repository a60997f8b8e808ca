#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Input pipelines (tf.data) of an unmodified TensorFlow client.

Each pipeline runs on TensorFlow's own session and on Tenon servers and gives the same elements in the
same order, the same random ones included, and ends with the same error. Runs itself again under the
TensorFlow environment (TENON_TF_VENV).
"""
import gzip
import os
import tempfile

from csv_pipelines import csv_files
from tensorflow_environment import Servers, main_with_tensorflow


def sources(tf, folder):
    """What pipelines begin with."""
    data = tf.data
    paths = [os.path.join(folder, name) for name in ("a.txt", "b.txt")]
    for path, lines in zip(paths, (["one", "two", ""], ["three\r", "four"])):
        with open(path, "w", newline="") as f:
            f.write("\n".join(lines))
    packed = os.path.join(folder, "c.txt.gz")
    with gzip.open(packed, "wt") as f:
        f.write("five\nsix\n")
    records = os.path.join(folder, "records")
    with tf.io.TFRecordWriter(records) as writer:
        for i in range(5):
            writer.write(str(i) * i)
    fixed = os.path.join(folder, "fixed")
    with open(fixed, "wb") as f:
        f.write(b"HEabcdefghiF")
    return {
        "range": data.Dataset.range(5),
        "range_down": data.Dataset.range(10, 0, -3),
        "range_float": data.Dataset.range(1, 4, output_type=tf.float32),
        "tensors": data.Dataset.from_tensors((tf.ones([2, 2]), "a")),
        "slices": data.Dataset.from_tensor_slices({"x": [[1., 2.], [3., 4.]], "s": ["p", "q"]}),
        "lines": data.TextLineDataset(paths),
        "gzip_lines": data.TextLineDataset(packed, compression_type="GZIP"),
        "no_file": data.TextLineDataset([paths[0], os.path.join(folder, "none")]),
        "records": data.TFRecordDataset(records),
        "damaged_files": data.TFRecordDataset(fixed),
        "records_in_parallel": data.TFRecordDataset([records, records], num_parallel_reads=2),
        "fixed": data.FixedLengthRecordDataset(fixed, 3, header_bytes=2, footer_bytes=1),
        "fixed_excess_in_files": data.FixedLengthRecordDataset(fixed, 4, header_bytes=2, footer_bytes=1),
    }


def elements(tf, folder):
    """Datasets that pass elements on, put them together and take them apart."""
    data = tf.data.Dataset
    ten = data.range(10)
    ragged = data.range(6).map(lambda n: tf.fill([n % 4], n))
    nested = data.from_tensor_slices(tf.reshape(tf.range(24), [6, 4]))
    return {
        "take": ten.take(3), "take_all": ten.take(-1), "skip": ten.skip(7), "skip_all": ten.skip(-1),
        "repeat": ten.take(2).repeat(3), "repeat_none": ten.repeat(0),
        "empty_for_ever": ten.take(0).repeat(), "for_ever": ten.repeat().skip(25).take(3),
        "concatenate": ten.take(2).concatenate(ten.skip(8)),
        "zip": data.zip((ten, ten.map(lambda n: n * n), nested)),
        "shard": ten.shard(3, 1), "batch": ten.batch(4), "batch_drop": ten.batch(4, drop_remainder=True),
        "batch_of_different": ragged.batch(3),
        "padded": ragged.padded_batch(4, padded_shapes=[None], padding_values=tf.constant(-1, tf.int64)),
        "padded_to": ragged.padded_batch(4, padded_shapes=[5]),
        "padded_too_small": ragged.padded_batch(4, padded_shapes=[2]),
        "unbatch": nested.unbatch(),
        "window": ten.window(3, shift=2).flat_map(lambda w: w.batch(3)),
        "window_stride": ten.window(3, shift=4, stride=2, drop_remainder=True).flat_map(lambda w: w.batch(3)),
        "window_gaps": ten.window(2, shift=5).flat_map(lambda w: w.batch(3)),
        "cache": ten.take(3).map(lambda n: n + 1).cache().repeat(2),
        "cache_in_files": data.zip((ten.take(3), ten.map(tf.as_string))).cache(
            os.path.join(folder, "cache")).repeat(2),
        "errors_left_out": ten.map(lambda n: tf.debugging.check_numerics(1. / tf.cast(n - 3, tf.float32), "no"))
                           .apply(tf.data.experimental.ignore_errors()),
        "prefetch": ten.prefetch(2), "prefetch_auto": ten.prefetch(tf.data.AUTOTUNE),
        "prefetch_of_errors": ten.map(lambda n: tf.debugging.check_numerics(
            1. / tf.cast(n - 3, tf.float32), "no")).prefetch(4),
    }


def functions(tf, _):
    """Functions of elements, with captured tensors, in several threads, within each other."""
    data = tf.data.Dataset
    ten = data.range(10)
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(tf.range(5, dtype=tf.int64), tf.range(5) * 100), -1)
    captured = tf.constant(7, tf.int64)

    def loop(n):
        return tf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s + i), [tf.constant(0, tf.int64)] * 2)[1]

    def branch(n):
        return tf.cond(n > 4, lambda: -n, lambda: n * 10)

    def pairs(n):
        return data.from_tensors(n).repeat(3)

    def files(n):
        return data.range(n).map(lambda m: m * 100 + n)

    return {
        "map": ten.map(lambda n: (n, n * captured, tf.as_string(n))),
        "map_parallel": ten.map(loop, num_parallel_calls=4),
        "map_branch": ten.map(branch, num_parallel_calls=tf.data.AUTOTUNE),
        "map_table": ten.map(table.lookup),
        "map_error": ten.map(lambda n: tf.gather(tf.range(4), tf.cast(n, tf.int32))),
        "map_error_parallel": ten.map(lambda n: tf.gather(tf.range(4), tf.cast(n, tf.int32)),
                                      num_parallel_calls=3),
        "map_and_batch": ten.apply(tf.data.experimental.map_and_batch(loop, 4)),
        "filter": ten.filter(lambda n: tf.equal(n % 3, 0)),
        "take_while": ten.apply(tf.data.experimental.take_while(lambda n: n < 4)),
        "flat_map": data.range(4).flat_map(files),
        "interleave": data.range(1, 6).interleave(pairs, cycle_length=2, block_length=2),
        "interleave_uneven": data.range(6).interleave(files, cycle_length=3),
        "interleave_parallel": data.range(6).interleave(files, cycle_length=3, num_parallel_calls=2),
        "interleave_parallel_blocks": data.range(1, 6).interleave(pairs, cycle_length=4, block_length=2,
                                                                  num_parallel_calls=4),
        "parallel_interleave": data.range(1, 6).apply(
            tf.data.experimental.parallel_interleave(pairs, cycle_length=2, block_length=1)),
    }


def groups(tf, _):
    """Elements that depend on each other: collected by key, carried on, chosen."""
    data = tf.data.Dataset
    ten = data.range(10)

    def total(key, window):
        return data.from_tensors((key, window.reduce(tf.constant(0, tf.int64), lambda s, n: s + n)))

    def numbered(state, n):
        return (state[0] + 1, state[1] + n), (state[0], n * 10)

    zeros = (tf.constant(0), tf.constant(0, tf.int64))
    thirds = [data.range(n, 30, 3) for n in range(3)]
    return {
        "group_by_window": ten.group_by_window(lambda n: n % 3, lambda k, d: d.batch(2), window_size=2),
        "group_left_over": ten.group_by_window(lambda n: -(n % 4), total, window_size=100),
        "group_sizes": ten.repeat(2).group_by_window(lambda n: n % 3, total, window_size_func=lambda k: k + 1),
        "group_size_0": ten.group_by_window(lambda n: n % 3, total, window_size_func=lambda k: k),
        "buckets": ten.map(lambda n: tf.fill([n], n)).bucket_by_sequence_length(tf.size, [3, 6], [2, 2, 2]),
        "scan": ten.scan(zeros, numbered), "scan_repeat": ten.scan(zeros, numbered).repeat(2),
        "scan_error": ten.scan(tf.constant(0), lambda s, n: (s, tf.gather(tf.range(4), tf.cast(n, tf.int32)))),
        "choose": data.choose_from_datasets(thirds, data.range(3).repeat(12)),
        "choose_to_empty": data.choose_from_datasets(thirds, data.range(3).repeat(12), stop_on_empty_dataset=True),
        "choose_wrong": data.choose_from_datasets(thirds, data.range(5)),
        "sample": data.sample_from_datasets(thirds, weights=[.2, .5, .3], seed=3),
        "random": data.random(seed=4).take(5).repeat(2),
    }


def regrouped(tf, _):
    """Elements that are left out, counted, batched again; sparse ones."""
    data, more = tf.data.Dataset, tf.data.experimental
    ten = data.range(10)
    uneven = data.range(1, 7).map(lambda n: tf.fill([n % 4, 2], n))
    lengths = data.range(5).map(lambda n: tf.range(n % 3 + 1))
    three = tf.SparseTensor([[0, 1, 0], [0, 1, 2], [3, 0, 0]], ["a", "b", "c"], [5, 2, 3])
    zero = tf.constant(0, tf.int64)
    mean = more.Reducer(lambda key: (zero, key * 100), lambda s, n: (s[0] + 1, s[1] + n), lambda n, s: (s, n))
    dense = lambda batches: batches.map(lambda s: (tf.sparse.to_dense(s), s.indices, s.dense_shape))
    return {
        "unique": ten.map(lambda n: n * n % 7).unique(),
        "unique_strings": data.from_tensor_slices(["a", "", "b", "a", "ab", ""]).unique().repeat(2),
        "unique_of_shapes": data.range(6).map(lambda n: tf.zeros([n % 2, n // 3], tf.int32)).unique(),
        "cardinality": ten.apply(more.assert_cardinality(10)),
        "cardinality_low": ten.apply(more.assert_cardinality(9)),
        "cardinality_high": ten.apply(more.assert_cardinality(11)),
        "rebatch": ten.batch(4).rebatch(3), "rebatch_turns": ten.batch(4).rebatch([2, 3]),
        "rebatch_drop": ten.batch(4).rebatch([2, 3], drop_remainder=True),
        "rebatch_empty": ten.batch(4).rebatch([3, 0, 1]), "rebatch_uneven": uneven.rebatch(4),
        "rebatch_pairs": data.zip((ten.batch(4), ten.map(tf.as_string).batch(4))).rebatch([1, 6]),
        "sparse_batches": dense(lengths.apply(more.dense_to_sparse_batch(2, [4]))),
        "sparse_batches_open": dense(lengths.apply(more.dense_to_sparse_batch(2, [None]))),
        "sparse_batches_of_matrices": dense(uneven.apply(more.dense_to_sparse_batch(4, [None, 3]))),
        "sparse_batches_too_small": dense(lengths.apply(more.dense_to_sparse_batch(2, [2]))),
        "sparse_slices": data.from_sparse_tensor_slices(three),
        "reduced": ten.apply(more.group_by_reducer(lambda n: -(n % 3), mean)).repeat(2),
        "reduced_error": ten.apply(more.group_by_reducer(
            lambda n: n % 3, more.Reducer(lambda k: zero, lambda s, n: tf.gather([s], n), lambda s: s))),
    }


def examples(tf, _):
    """Serialized Example messages, parsed by a dataset or in a map: dense and sparse components."""
    def message(n):
        features = {"length": tf.train.Feature(int64_list=tf.train.Int64List(value=[n])),
                    "values": tf.train.Feature(float_list=tf.train.FloatList(value=[.5] * n)),
                    "words": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"x"] * (n % 3)))}
        if n % 2:
            features["pair"] = tf.train.Feature(float_list=tf.train.FloatList(value=[n, -n]))
        return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()

    batches = tf.data.Dataset.from_tensor_slices([message(n) for n in range(7)]).batch(3)
    wanted = {"words": tf.VarLenFeature(tf.string), "length": tf.FixedLenFeature([], tf.int64),
              "pair": tf.FixedLenFeature([2], tf.float32, [7., 8.]), "values": tf.VarLenFeature(tf.float32),
              "padded": tf.FixedLenSequenceFeature([], tf.string, allow_missing=True)}
    parse = tf.data.experimental.parse_example_dataset
    return {
        "parsed": batches.apply(parse(wanted, num_parallel_calls=2)),
        "parsed_in_map": batches.map(lambda text: tf.parse_example(text, wanted)),
        "parsed_missing": batches.apply(parse({"pair": tf.FixedLenFeature([2], tf.float32)})),
        "parsed_type": batches.apply(parse({"words": tf.VarLenFeature(tf.int64)})),
        "parsed_size": batches.apply(parse({"values": tf.FixedLenFeature([2], tf.float32)})),
    }


def random(tf, _):
    """From the same seeds the same order as TensorFlow's."""
    data = tf.data.Dataset
    ten = data.range(10)
    return {
        "shuffle": ten.shuffle(4, seed=3), "shuffle_all": ten.shuffle(100, seed=5),
        "shuffle_twice": ten.shuffle(4, seed=3).repeat(2),
        "shuffle_same": ten.shuffle(4, seed=3, reshuffle_each_iteration=False).repeat(2),
        "shuffle_and_repeat": ten.apply(tf.data.experimental.shuffle_and_repeat(6, 3, seed=8)),
        "shuffle_small_inputs": data.range(2).apply(tf.data.experimental.shuffle_and_repeat(50, 7, seed=8)),
        "random_in_map": ten.map(lambda n: tf.random.uniform([2], seed=4)).repeat(2),
    }


def other_names(tf, folder):
    """Ops that TensorFlow's client of today does not make, or only in eager mode."""
    from tensorflow.python.data.ops import dataset_ops, structured_function
    from tensorflow.python.ops import gen_dataset_ops as ops, gen_experimental_dataset_ops as more
    ten = tf.data.Dataset.range(10)
    scalar = tf.TensorSpec([], tf.int64)
    spec = {"output_types": [tf.int64], "output_shapes": [[]]}
    v = ten._variant_tensor

    def number(n):
        return tf.constant(n, tf.int64)

    def dataset(variant, element=scalar):
        return dataset_ops.DatasetV1Adapter(dataset_ops._VariantDataset(variant, element))

    def function(f, of=ten):
        return structured_function.StructuredFunctionWrapper(f, "test", dataset=of).function

    def pairs(n):
        return tf.data.Dataset.from_tensors(n).repeat(2)

    seeds, _ = ops.anonymous_seed_generator(number(1), number(8), tf.constant(True))
    interleave = (v, [], number(3), number(1))
    result = {
        "interleave_v2": dataset(ops.parallel_interleave_dataset_v2(*interleave, number(2), f=function(pairs), **spec)),
        "interleave_v3": dataset(ops.parallel_interleave_dataset_v3(*interleave, number(2), f=function(pairs), **spec)),
        "map_parallel_v1": dataset(ops.parallel_map_dataset(v, [], tf.constant(3), f=function(lambda n: n * 2), **spec)),
        "shuffle_v2": dataset(ops.shuffle_dataset_v2(v, number(4), seeds, **spec)),
        "shuffle_v3": dataset(ops.shuffle_dataset_v3(v, number(4), number(1), number(8),
                                                     ops.dummy_seed_generator(), **spec)),
    }
    files = os.path.join(folder, "old.csv")
    with open(files, "w", encoding="utf-8") as f:
        f.write("1,x\n2,y\n")
    texts = tf.data.Dataset.from_tensors(tf.constant([tf.train.Example().SerializeToString()]))
    result["csv_v1"] = dataset(more.csv_dataset(
        files, "", number(9), False, ",", True, "", tf.constant([1], tf.int64), [tf.constant(["z"])], [[]]),
                               tf.TensorSpec([], tf.string))
    result["parse_v1"] = dataset(more.parse_example_dataset(
        texts._variant_tensor, number(1), [tf.constant([3], tf.int64)], [], ["k"], [], [[1]], [tf.int64], [[None, 1]]),
                                 tf.TensorSpec([None, 1], tf.int64))
    for again in (False, True):
        result[f"random_v2_{again}"] = dataset(more.random_dataset_v2(
            number(3), number(4), ops.dummy_seed_generator(), rerandomize_each_iteration=again, **spec)).take(3).repeat(2)
    for name, passed in {
            "model": ops.model_dataset(v, **spec),
            "optimize": ops.optimize_dataset(v, tf.constant([], tf.string), **spec),
            "optimize_v2": ops.optimize_dataset_v2(v, *[tf.constant([], tf.string)] * 3, **spec),
            "options": ops.options_dataset(v, serialized_options=b"", **spec),
            "non_serializable": more.non_serializable_dataset(v, **spec),
            "intra_op": more.max_intra_op_parallelism_dataset(v, number(1), **spec),
            "private_pool": more.private_thread_pool_dataset(v, number(1), **spec),
            "rewrite": ops.rewrite_dataset(v, "noop_elimination", **spec)}.items():
        result[name] = dataset(passed)
    return result


def run(tf, make, name, folder, target):
    """The elements of one pipeline and the error it ends with, of two walks through it."""
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        iterator = tf.data.make_initializable_iterator(make(tf, folder)[name])
        element = iterator.get_next()
        found = []
        with tf.Session(target) as session:
            session.run(tf.tables_initializer())
            for _ in range(2):
                session.run(iterator.initializer)
                for _ in range(100):
                    try:
                        found.append(session.run(element))
                    except tf.errors.OpError as e:
                        found.append(type(e))
                        # Tenon goes on with the next of several files; TensorFlow fails with the same one again.
                        if isinstance(e, (tf.errors.OutOfRangeError, tf.errors.NotFoundError)) or "files" in name:
                            break
        return found


def compare(tf, make, name, folder, target):
    wanted, found = (run(tf, make, name, folder, t) for t in ("", target))
    assert len(found) == len(wanted), f"{found}, wanted {wanted}"
    for w, f in zip(wanted, found):
        tf.nest.map_structure(lambda a, b: check(a, b, w, f), w, f)


def check(a, b, wanted, found):
    import numpy as np
    same = a is b if isinstance(a, type) else np.asarray(a).dtype == np.asarray(b).dtype and np.array_equal(a, b)
    assert same, f"{found}, wanted {wanted}"


def one_shot(tf, target):
    """A one-shot iterator goes on from step to step; sessions have their own."""
    with tf.Graph().as_default():
        data = tf.data.Dataset.range(3).map(lambda n: n + 1)
        element = tf.data.make_one_shot_iterator(data).get_next()
        for _ in range(2):
            with tf.Session(target) as session:
                assert [session.run(element) for _ in range(3)] == [1, 2, 3]
                for _ in range(2):
                    try:
                        session.run(element)
                    except tf.errors.OutOfRangeError as e:
                        assert "End of sequence" in e.message, e.message
                    else:
                        raise AssertionError("no end")


def several_at_once(tf, target):
    """Iterators whose datasets are made by functions in one step, more than the server has threads."""
    with tf.Graph().as_default():
        data = tf.data.Dataset
        both = data.zip((data.range(100), data.range(100).skip(5)))
        drawn = tf.data.experimental.sample_from_datasets(
            [data.range(5).repeat(), data.range(50, 60).repeat()], [.3, .7], seed=4)
        elements = [tf.data.make_one_shot_iterator(d).get_next() for d in [both, drawn] * 6]
        with tf.Session(target) as session:
            found = session.run(elements, options=tf.RunOptions(timeout_in_ms=60000))
            assert found[::2] == [(0, 5)] * 6 and len(set(found[1::2])) == 1, found


def feedable(tf, target):
    """Iterators that are chosen by a handle, or begin another dataset."""
    with tf.Graph().as_default():
        first, second = tf.data.Dataset.range(5), tf.data.Dataset.range(100, 103)
        handle = tf.placeholder(tf.string, [])
        chosen = tf.data.Iterator.from_string_handle(handle, tf.int64, []).get_next()
        a, b = (tf.data.make_initializable_iterator(d) for d in (first, second))
        either = tf.data.Iterator.from_structure(tf.int64, [])
        begin = [either.make_initializer(d) for d in (first, second)]
        element = either.get_next()
        with tf.Session(target) as session:
            try:
                session.run(element)
            except tf.errors.FailedPreconditionError as e:
                assert "has not been initialized" in e.message, e.message
            else:
                raise AssertionError("an element before the initializer")
            session.run([a.initializer, b.initializer])
            handles = session.run([a.string_handle(), b.string_handle()])
            got = [session.run(chosen, {handle: handles[i]}) for i in (0, 1, 1, 0)]
            assert got == [0, 100, 101, 1], got
            for i, wanted in ((0, 0), (1, 100), (0, 0)):
                session.run(begin[i])
                assert session.run(element) == wanted


def single_values(tf, target):
    """What can be asked of datasets and optionals without an iterator."""
    def ask(address):
        with tf.Graph().as_default(), tf.Session(address) as session:
            data = tf.data.Dataset
            ten = data.range(10)
            sizes = [tf.data.experimental.cardinality(d) for d in (
                ten, ten.repeat(), ten.filter(lambda n: n > 3), ten.batch(3), ten.batch(3, drop_remainder=True),
                ten.skip(4), ten.skip(40), ten.take(3), ten.take(3).repeat(4), ten.concatenate(ten),
                data.zip((ten, ten.repeat())), ten.shard(3, 1), ten.shuffle(3), ten.prefetch(2), ten.cache())]
            one = tf.data.experimental.get_single_element(ten.skip(9))
            iterator = tf.data.make_one_shot_iterator(ten.take(1))
            optional = tf.data.experimental.get_next_as_optional(iterator)
            some = tf.data.experimental.Optional.from_value((tf.constant(3), "x"))
            none = tf.data.experimental.Optional.empty(tf.TensorSpec([], tf.int64))
            total = ten.reduce(tf.constant(0, tf.int64), lambda s, n: s + n)
            none_left = ten.skip(20).reduce((tf.constant(7), tf.constant("x")), lambda s, n: s)
            found = session.run([sizes, one, total, *none_left, some.get_value(), some.has_value(), none.has_value()])
            found += [session.run(optional.has_value()) for _ in range(2)]
            for wrong in (none.get_value(), tf.data.experimental.get_single_element(ten),
                          tf.data.experimental.get_single_element(ten.skip(20)),
                          ten.reduce(0., lambda s, n: tf.debugging.check_numerics(s / 0., "no"))):
                try:
                    session.run(wrong)
                except tf.errors.InvalidArgumentError:
                    found.append("refused")
            return found

    wanted, found = ask(""), ask(target)
    assert str(found) == str(wanted), f"{found}, wanted {wanted}"


def caches_in_files(tf, target):
    """What one system keeps in files, the other reads."""
    def walk(address, prefix, count):
        with tf.Graph().as_default(), tf.Session(address) as session:
            data = tf.data.Dataset.range(count).map(lambda n: (n, tf.as_string(n), tf.fill([n], 0.5))).cache(prefix)
            element = tf.data.make_one_shot_iterator(data).get_next()
            found = []
            while True:
                try:
                    found.append([x.tolist() if hasattr(x, "tolist") else x for x in session.run(element)])
                except tf.errors.OutOfRangeError:
                    return found

    with tempfile.TemporaryDirectory() as folder:
        for writer, reader in ((target, ""), ("", target)):
            prefix = os.path.join(folder, writer[-4:] + "cache")
            wanted = [[n, str(n).encode(), [0.5] * n] for n in range(12)]
            assert walk(writer, prefix, 12) == wanted
            assert walk(reader, prefix, 1) == wanted


def endless_walks_end(tf, servers):
    """A walk that never gives an element ends with its step, and the next one goes on."""
    target = servers.target("worker")
    with tf.Graph().as_default():
        queue = tf.FIFOQueue(5, tf.int64, shapes=[[]], shared_name="slow")
        put = queue.enqueue(tf.constant(3, tf.int64))
        data = tf.data.Dataset.from_tensors(0).repeat().map(lambda _: queue.dequeue()).prefetch(1)
        iterator = tf.data.make_initializable_iterator(data)
        element = iterator.get_next()
        with tf.Session(target) as session:
            session.run(iterator.initializer)
            try:
                session.run(element, options=tf.RunOptions(timeout_in_ms=200))
            except tf.errors.DeadlineExceededError:
                pass
            else:
                raise AssertionError("an element came from an empty queue")
            # The client gives up by itself; the server may hear of it later.
            servers.await_status(lambda status: "step runs" not in status and "steps: 0;" in status, "worker")
            session.run(put)
            assert session.run(element, options=tf.RunOptions(timeout_in_ms=60000)) == 3


def run_all():
    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    failed = 0
    with Servers({"worker": 1}) as servers, tempfile.TemporaryDirectory() as folder:
        target = servers.target("worker")
        cases = [(f.__name__, lambda f=f: f(tf, target))
                 for f in (one_shot, several_at_once, feedable, single_values, caches_in_files)]
        cases.append(("endless_walks_end", lambda: endless_walks_end(tf, servers)))
        for make in (sources, elements, functions, groups, regrouped, examples, csv_files, random,
                     other_names):
            with tf.Graph().as_default():
                names = list(make(tf, folder))
            cases += [(name, lambda make=make, name=name: compare(tf, make, name, folder, target))
                      for name in names]
        for name, case in cases:
            try:
                case()
            except Exception as e:  # pylint: disable=broad-except
                failed += 1
                print(f"{name}: {type(e).__name__}: {str(e)[:1500]}")
    return 1 if failed else 0


if __name__ == "__main__":
    main_with_tensorflow(run_all)
