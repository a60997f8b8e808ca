#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pipelines that are divided among workers and replicas, as tf.distribute's strategies divide them, and those whose
batches and filters run in parallel: the same elements, or the same kind of error, as in TensorFlow's own session.

Runs itself again under the TensorFlow environment (TENON_TF_VENV). Arguments: parts of names of cases.
"""
import os
import sys
import tempfile

from tensorflow_environment import Servers, main_with_tensorflow

AUTO, FILE, DATA, HINT, OFF = 0, 1, 2, 3, -1


def line_files(tf, folder):
    """Five files of lines, of different lengths."""
    paths = [os.path.join(folder, f"part{i}.txt") for i in range(5)]
    for i, path in enumerate(paths):
        with open(path, "w") as f:
            f.writelines(f"{i}.{j}\n" for j in range(i + 2))
    return paths


def divided(tf, folder):
    """All shares of pipelines one after the other, by each policy."""
    from tensorflow.python.data.experimental.ops import distribute
    from tensorflow.python.ops import gen_experimental_dataset_ops as ops
    data = tf.data.Dataset
    paths = line_files(tf, folder)
    ten = data.range(10)
    lines = tf.data.TextLineDataset

    def shares(dataset, policy, workers, replicas):
        def share(index):
            options = tf.data.Options()
            options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy(policy)
            return distribute._AutoShardDataset(dataset.with_options(options), workers, index, replicas)
        return share

    def texts(dataset):
        """Elements as vectors of texts, so that shares can stand one behind the other."""
        return dataset.map(lambda *x: tf.strings.as_string(tf.reshape(x[0], [-1]))
                           if x[0].dtype != tf.string else tf.reshape(x[0], [-1]))

    def files():
        return data.from_tensor_slices(paths).flat_map(lines)

    sources = {
        "range": ten, "batches": ten.batch(3), "no_remainder": ten.batch(3, drop_remainder=True),
        "names": lines(paths),
        "map_of_names": data.from_tensor_slices(paths).map(tf.strings.length),
        "flat_map": files(),
        "interleave": data.from_tensor_slices(paths).interleave(lines, cycle_length=2, block_length=2),
        "in_parallel": data.from_tensor_slices(paths).interleave(
            lambda p: lines(p).skip(1), cycle_length=3, num_parallel_calls=2),
        "several_readers": lines(paths, num_parallel_reads=2),
        "shuffled_names": data.from_tensor_slices(paths).shuffle(5, seed=3).flat_map(lines),
        "shuffled_twice": data.from_tensor_slices(paths).shuffle(2, seed=3).map(tf.identity).shuffle(5, seed=4)
                              .flat_map(lines).shuffle(3, seed=1),
        "after": files().filter(lambda t: tf.not_equal(t, "2.0")).map(lambda t: t + "!").cache().repeat(2).skip(1)
                        .take(20).batch(4).prefetch(2),
        "unbatched": files().batch(4).unbatch(),
        "window": files().window(3).flat_map(lambda w: w.batch(3)),
        "zip": data.zip((files(), files())),
        "zip_with_numbers": data.zip((files(), ten)),
        "concatenate": data.from_tensor_slices(paths[:2]).flat_map(lines)
                           .concatenate(data.from_tensor_slices(paths[2:]).flat_map(lines)),
        "too_few": ten.take(1), "none": ten.take(0), "too_few_files": data.from_tensor_slices(paths[:1]).flat_map(lines),
        "rebatched": ten.batch(4).rebatch([1, 3]).prefetch(1),
        "counted": files().apply(tf.data.experimental.assert_cardinality(20)),
        "hint": ten.shard(tf.data.experimental.SHARD_HINT, tf.data.experimental.SHARD_HINT).map(lambda n: n * n),
        "sharded_before": ten.shard(2, 1),
        "padded": files().padded_batch(3), "in_parallel_batches": files().batch(3, num_parallel_calls=2),
        "taken_while": files().take_while(lambda t: tf.not_equal(t, "2.0")), "unique": files().unique(),
        "scanned": files().scan(0, lambda s, t: (s + 1, t)), "numbered": files().enumerate().map(lambda i, t: t),
        "without_errors": files().apply(tf.data.experimental.ignore_errors()),
        "in_groups": files().group_by_window(lambda t: tf.constant(0, tf.int64), lambda _, w: w.batch(2), 2),
        "map_and_batch": files().apply(tf.data.experimental.map_and_batch(tf.identity, 3)),
        "shuffle_and_repeat": files().apply(tf.data.experimental.shuffle_and_repeat(3, 2, seed=1)),
        "chosen": tf.data.Dataset.choose_from_datasets([files(), files()], data.range(4).map(lambda n: n % 2)),
        "datasets": data.from_tensor_slices(paths).map(lines).interleave(lambda d: d, cycle_length=2),
        "lines_in_pairs": lines(paths).window(2).flat_map(lambda w: w.batch(2)),
        "made_twice": files().flat_map(lambda t: data.from_tensors(t).repeat(2)),
        "shuffled_and_made": data.from_tensor_slices(paths).shuffle(3, seed=2).flat_map(lines)
                                 .shuffle(2, seed=5).interleave(lambda t: data.from_tensors(t + "?"), cycle_length=2),
        "numbers_made": ten.flat_map(lambda n: data.range(n)),
    }
    cases = {}
    for name, source in sources.items():
        policies = (AUTO, FILE, DATA) + ((HINT, OFF) if name in ("range", "hint", "sharded_before") else ())
        for policy in policies:
            for workers in (1, 2, 3) if name in ("range", "shuffled_names", "hint") else (2,):
                share = shares(texts(source) if name != "rebatched" else source, policy, workers, 2 * workers)
                for index in range(workers):
                    cases[f"{name}_by_{policy}_{index}_of_{workers}"] = share(index)
    # Rebatching and prefetching stand last here, where the map of texts stands behind the sources above.
    for policy in (AUTO, DATA):
        cases[f"end_rebatched_{policy}"] = shares(ten.batch(6).rebatch(3).prefetch(2), policy, 2, 3)(1)
        cases[f"end_prefetch_{policy}"] = shares(ten.prefetch(2), policy, 2, 2)(1)
    for replicas in (1, 2, 3, 5):
        cases[f"legacy_rebatch_{replicas}"] = distribute._LegacyRebatchDataset(ten.batch(4), replicas)
        cases[f"legacy_rebatch_pairs_{replicas}"] = distribute._LegacyRebatchDataset(
            data.zip((ten.batch(4), ten.map(tf.as_string).batch(2))), replicas)
    batches = {
        "batch": ten.batch(4), "parallel_batch": ten.batch(4, num_parallel_calls=2), "no_batch": ten,
        "padded": ten.padded_batch(3), "map_and_batch": ten.apply(tf.data.experimental.map_and_batch(tf.identity, 5)),
        "map": ten.batch(4).map(tf.identity), "filter": ten.batch(4).filter(lambda x: x[0] > 1),
        "cache": ten.batch(4).cache(), "repeat": ten.batch(4).repeat(), "prefetch": ten.batch(4).prefetch(1),
        "shuffle": ten.batch(4).shuffle(2), "take": ten.batch(4).take(1), "skip": ten.batch(4).skip(1),
        "shard": ten.batch(4).shard(2, 0), "zip": data.zip((ten.batch(4), ten.batch(4))),
        "zip_of_others": data.zip((ten.batch(4), ten.batch(3))), "concatenate": ten.batch(4).concatenate(ten.batch(4)),
        "concatenate_others": ten.batch(4).concatenate(ten.batch(2)), "twice": ten.batch(4).batch(2),
        "unbatch": ten.batch(4).unbatch(), "window": ten.batch(4).window(2), "rebatch": ten.batch(4).rebatch(2),
        "take_while": ten.batch(4).take_while(lambda x: x[0] < 5), "enumerate": ten.batch(4).enumerate(),
        "flat_map": ten.flat_map(lambda n: data.range(n).batch(2)),
        "unique": ten.batch(4).map(lambda x: x[0]).unique(),
        "counted": ten.batch(4).apply(tf.data.experimental.assert_cardinality(3)),
        "ignore_errors": ten.batch(4).apply(tf.data.experimental.ignore_errors()),
        "scan": ten.batch(4).scan(0, lambda s, x: (s, x)),
    }
    for name, dataset in batches.items():
        cases[f"batch_size_of_{name}"] = data.from_tensors(ops.compute_batch_size(dataset._variant_tensor))
    cases["batch_in_parallel"] = ten.batch(4, num_parallel_calls=2, drop_remainder=True)
    cases["batch_in_parallel_auto"] = ten.batch(4, num_parallel_calls=tf.data.AUTOTUNE)
    return cases


def walk(tf, session, iterator):
    """The elements, and the name of the error that ends them."""
    initializer, element = iterator
    found = []
    try:
        session.run(initializer)
        while True:
            found.append(tf.nest.map_structure(lambda x: x.tolist() if hasattr(x, "tolist") else x, session.run(element)))
    except tf.errors.OutOfRangeError:
        return found
    except tf.errors.OpError as e:
        return found + [type(e).__name__]


def run_all():
    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    failed = 0
    with Servers({"worker": 1}) as servers, tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():
        iterators = {}
        for name, dataset in divided(tf, folder).items():
            if sys.argv[1:] and not any(a in name for a in sys.argv[1:]):
                continue
            iterator = tf.data.make_initializable_iterator(dataset)
            iterators[name] = (iterator.initializer, iterator.get_next())
        sessions = tf.Session(), tf.Session(servers.target("worker"))
        for name, iterator in iterators.items():
            wanted, found = (walk(tf, session, iterator) for session in sessions)
            if name.startswith("zip_with_numbers_by_0"):
                # TensorFlow divides the files, finds none for the numbers, and divides the pairs once more.
                wanted = [[f"{i}.{j}".encode()] for i in range(4) for j in range(i + 2)][int(name[-6])::2][:5]
            if found != wanted:
                failed += 1
                print(f"{name}: {found}, wanted {wanted}")
    assert iterators
    # TensorFlow takes minutes to close a session with so many iterators.
    sys.stdout.flush()
    os._exit(1 if failed else 0)


if __name__ == "__main__":
    main_with_tensorflow(run_all)
