# SPDX-License-Identifier: Apache-2.0
"""Small graphs for the ops that make and use tables; see op_programs.py."""
import tensorflow.compat.v1 as tf

raw = tf.raw_ops


def after(operations, value):
    with tf.control_dependencies(operations):
        return tf.identity(value)


def dense_tables(_):
    steps = []
    tables = [
        # Many keys of one bucket, so that the order in which buckets are searched is seen.
        (tf.int64, tf.int64, -1, -2, [3, 11, 19, 4, 27, -5, 1 << 40, 35], []),
        (tf.int32, tf.float32, -1, -2, [7, 2, 5, 1, -9, 15, 23, 31], []),
        (tf.string, tf.int64, "", "-", ["a", "bc", "a longer key", "12345678", "x" * 17, "d", "e", "f"], []),
        (tf.int64, tf.float32, [-1, 0], [-2, 0], [[1, 2], [2, 1], [0, 0], [7, -7], [1 << 33, 3], [5, 5], [5, 6], [6, 5]],
         [2])]
    for number, (keys_of, values_of, empty, deleted, keys, width) in enumerate(tables):
        table = raw.MutableDenseHashTableV2(
            empty_key=tf.constant(empty, keys_of), deleted_key=tf.constant(deleted, keys_of), value_dtype=values_of,
            value_shape=width, initial_num_buckets=8, max_load_factor=0.7, shared_name=f"dense{number}")
        keys = tf.constant(keys, keys_of)
        values = tf.reshape(tf.range(1, 8 * (width or [1])[0] + 1), [8] + width)
        values = tf.as_string(values) if values_of == tf.string else tf.cast(values, values_of)

        def insert(begin, end, of=table, k=keys, v=values):
            return [raw.LookupTableInsertV2(table_handle=of, keys=k[begin:end], values=v[begin:end])]

        def export(of=table, k=keys_of, v=values_of):
            return list(raw.LookupTableExportV2(table_handle=of, Tkeys=k, Tvalues=v))

        def find(k, of=table, v=values):
            return [raw.LookupTableFindV2(table_handle=of, keys=k, default_value=tf.zeros_like(v[0]) if v.dtype != tf.string
                                          else tf.constant("none"))]

        size = [raw.LookupTableSizeV2(table_handle=table)]
        bucket_keys, bucket_values = export()
        again = raw.LookupTableImportV2(table_handle=table, keys=bucket_keys, values=bucket_values)
        steps += [size, insert(0, 4), export(), find(keys), insert(2, 6), export(), size,
                  [raw.LookupTableRemoveV2(table_handle=table, keys=keys[1:3])], export(), find(keys), size,
                  [raw.LookupTableRemoveV2(table_handle=table, keys=keys[1:3])], insert(6, 8), export(), find(keys), [again],
                  size, find(keys), find(tf.constant([empty], keys_of)), find(tf.constant([deleted], keys_of)),
                  [raw.LookupTableInsertV2(table_handle=table, keys=tf.constant([empty], keys_of), values=values[:1])],
                  [raw.LookupTableInsertV2(table_handle=table, keys=keys[:2], values=values[:1])]]
    return steps


def dense_tables_that_cannot_be(_):
    def size(empty=1, deleted=2, values=tf.int64, **attrs):
        # The shape is unknown, so that the kernel decides.
        empty = tf.placeholder_with_default(tf.constant(empty, tf.int64), None)
        return [raw.LookupTableSizeV2(table_handle=raw.MutableDenseHashTableV2(
            empty_key=empty, deleted_key=tf.constant(deleted, tf.int64), value_dtype=values, **attrs))]

    return [size(), size(deleted=1), size(deleted=[1, 2]), size(empty=[[1]], deleted=[[2]]), size(initial_num_buckets=12),
            size(initial_num_buckets=2), size(initial_num_buckets=-8), size(max_load_factor=0.0), size(max_load_factor=1.0),
            size(value_shape=[2, 2]), size(empty=[1, 2, 3], deleted=[1, 2, 3])]


def anonymous_tables(_):
    one = raw.AnonymousHashTable(key_dtype=tf.string, value_dtype=tf.int64)
    filled = raw.InitializeTableV2(table_handle=one, keys=["a", "b"], values=tf.constant([1, 2], tf.int64))
    none = tf.constant(-1, tf.int64)
    steps = [[raw.LookupTableSizeV2(table_handle=after([filled], one)),
              raw.LookupTableFindV2(table_handle=after([filled], one), keys=["b", "c"], default_value=none)],
             [raw.LookupTableFindV2(table_handle=one, keys=["b"], default_value=none)]]
    for table, values, fallback in [
            (raw.AnonymousMutableHashTable(key_dtype=tf.int64, value_dtype=tf.float32), [1.5, 2.5], 0.0),
            (raw.AnonymousMutableHashTableOfTensors(key_dtype=tf.int64, value_dtype=tf.float32, value_shape=[2]),
             [[1.0, 2.0], [3.0, 4.0]], [0.0, 0.0]),
            (raw.AnonymousMutableDenseHashTable(empty_key=tf.constant(0, tf.int64), deleted_key=tf.constant(-1, tf.int64),
                                                value_dtype=tf.float32, initial_num_buckets=4), [5.0, 6.0], 1.0)]:
        keys = tf.constant([4, 9], tf.int64)
        inserted = raw.LookupTableInsertV2(table_handle=table, keys=keys, values=values)
        full = after([inserted], table)
        found = raw.LookupTableFindV2(table_handle=full, keys=tf.constant([9, 3], tf.int64), default_value=fallback)
        steps += [[raw.LookupTableSizeV2(table_handle=full), found], [raw.LookupTableSizeV2(table_handle=table)]]
    return steps


def a_pipeline_keeps_its_table(_):
    table = raw.AnonymousMutableHashTable(key_dtype=tf.int64, value_dtype=tf.string)
    filled = raw.LookupTableInsertV2(table_handle=table, keys=tf.constant([0, 2], tf.int64), values=["zero", "two"])
    full = after([filled], table)
    pipeline = tf.data.Dataset.range(3).map(lambda i: raw.LookupTableFindV2(
        table_handle=full, keys=i, default_value=tf.constant("none")))
    iterator = tf.data.make_initializable_iterator(pipeline)
    element = iterator.get_next()
    return [[iterator.initializer]] + [[element]] * 4


TABLE_PROGRAMS = [dense_tables, dense_tables_that_cannot_be, anonymous_tables, a_pipeline_keeps_its_table]
