# SPDX-License-Identifier: Apache-2.0
"""Small graphs for the ops on what holds tensors: barriers, maps, ragged variants, vocabularies; see op_programs.py."""
import tensorflow.compat.v1 as tf

raw = tf.raw_ops


def barriers(_):
    barrier = raw.Barrier(component_types=[tf.float32, tf.string], shapes=[[2], []], shared_name="barrier")

    def insert(keys, values, component):
        return [raw.BarrierInsertMany(handle=barrier, keys=keys, values=values, component_index=component)]

    def take(n, less=False):
        return list(tf.nest.flatten(raw.BarrierTakeMany(
            handle=barrier, num_elements=n, component_types=[tf.float32, tf.string], allow_small_batch=less)))

    sizes = [raw.BarrierReadySize(handle=barrier), raw.BarrierIncompleteSize(handle=barrier)]
    return [insert(["a", "b"], [[1.0, 2.0], [3.0, 4.0]], 0), sizes, insert(["c"], ["of c"], 1), insert(["b"], ["of b"], 1),
            sizes, insert(["b", "c"], [[0.0, 1.0], [5.0, 6.0]], 0), insert(["c"], ["again"], 1), take(1), take(0), sizes,
            insert(["a"], ["of a"], 1), insert([], tf.zeros([0, 2]), 0),
            [raw.BarrierClose(handle=barrier)], [raw.BarrierClose(handle=barrier)],
            insert(["b"], ["of b"], 1), insert(["e"], ["of e"], 1), take(9), take(2), take(1, True),
            [raw.BarrierClose(handle=barrier, cancel_pending_enqueues=True)], sizes]


def maps_of_tensors(_):
    empty = raw.EmptyTensorMap()

    def put(handle, key, value):
        return raw.TensorMapInsert(input_handle=handle, key=key, value=value)

    one = put(empty, tf.constant([1, 2]), tf.constant([0.5, 1.5]))
    two = put(put(one, tf.constant([3, 4]), tf.constant("text")), tf.constant([1, 2]), tf.constant(7.0))
    words = put(empty, tf.constant("a"), tf.constant(1))

    def get(handle, key, kind):
        return [raw.TensorMapLookup(input_handle=handle, key=key, value_dtype=kind)]

    return [[raw.TensorMapSize(input_handle=m) for m in (empty, one, two, words)],
            get(one, tf.constant([1, 2]), tf.float32), get(two, tf.constant([1, 2]), tf.float32),
            get(two, tf.constant([3, 4]), tf.string), get(one, tf.constant([3, 4]), tf.string),
            get(words, tf.constant("a"), tf.int32), get(one, tf.constant([1, 2], tf.int64), tf.float32),
            [raw.TensorMapHasKey(input_handle=one, key=tf.constant(k)) for k in ([1, 2], [2, 1], [1, 2, 3])],
            [raw.TensorMapSize(input_handle=raw.TensorMapErase(
                input_handle=two, key=tf.constant(k), value_dtype=tf.float32))
             for k in ([1, 2], [3, 4])],
            [raw.TensorMapErase(input_handle=one, key=tf.constant([9]), value_dtype=tf.float32)],
            [tf.sort(raw.TensorMapStackKeys(input_handle=two, key_dtype=tf.int32)[:, 0])],
            [raw.TensorMapStackKeys(input_handle=empty, key_dtype=tf.int32)],
            [raw.TensorMapStackKeys(input_handle=words, key_dtype=tf.int32)]]


def ragged_variants(_):
    splits, inner = tf.constant([0, 2, 2, 3], tf.int64), tf.constant([0, 1, 3, 6], tf.int64)
    values = tf.constant([[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]])

    def encode(nested, dense, batched):
        return raw.RaggedTensorToVariant(rt_nested_splits=nested, rt_dense_values=dense, batched_input=batched)

    def decode(encoded, rank, of_elements=-1, kind=tf.float32, split=tf.int64):
        return tf.nest.flatten(raw.RaggedTensorFromVariant(
            encoded_ragged=encoded, input_ragged_rank=of_elements, output_ragged_rank=rank, Tvalues=kind, Tsplits=split))

    rows, whole = encode([splits, inner], values, True), encode([splits, inner], values, False)
    plain = encode([inner], values, True)
    scaled = decode(encode([splits, inner], values * values, True), 2)[-1]
    part = decode(tf.gather(rows, [2, 0]), 2)
    return [decode(rows, 2), decode(whole, 2), decode(plain, 1), decode(rows[0], 1), part, decode(tf.reshape(rows, [3, 1]), 3),
            decode(rows, 1), decode(rows, 2, kind=tf.int32), decode(rows, 2, split=tf.int32),
            decode(rows[:0], 2), decode(encode([], values, False), 0),
            tf.gradients(scaled, values)]


def vocabularies(folder):
    new, old = f"{folder}/new", f"{folder}/old"
    files = [raw.WriteFile(filename=new, contents="a\nb\nc\nd\n"), raw.WriteFile(filename=old, contents="c\nx\na\ny")]

    def remap(offset, count, size=-1, path=new):
        return list(raw.GenerateVocabRemapping(new_vocab_file=path, old_vocab_file=old, new_vocab_offset=offset,
                                               num_new_vocab=count, old_vocab_size=size))

    matrix = tf.reshape(tf.range(12.0), [4, 3])
    saved = raw.SaveV2(prefix=f"{folder}/model", tensor_names=["w", "v"], shape_and_slices=["", ""],
                       tensors=[matrix, tf.constant([1.0])])

    def load(rows, columns, fill, width=3, name="w", most=-1):
        return [raw.LoadAndRemapMatrix(
            ckpt_path=f"{folder}/model", old_tensor_name=name, row_remapping=tf.constant(rows, tf.int64),
            col_remapping=tf.constant(columns, tf.int64), initializing_values=tf.constant(fill, tf.float32),
            num_rows=len(rows), num_cols=width, max_rows_in_memory=most)]

    return [files, remap(0, 4), remap(1, 2), remap(0, 4, 2), remap(2, 3), remap(0, 4, 9), remap(0, 0), remap(0, 4, path=new + "-"),
            [saved], load([2, 0], [], []), load([3, -1, 1], [], [7, 8, 9]), load([3, -1, 1], [2, -1], [7, 8, 9, 10], width=2),
            load([3, 0, 1], [], [], most=2), load([3, 0, 1], [], [1]), load([3, -1], [], []), load([2, 2], [], []),
            load([2], [], [], width=2), load([2], [1], [], width=1, name="v"),
            load([2], [], [], name="u")]


def chosen_references(_):
    one, two = (raw.VariableV2(shape=[], dtype=tf.float32, shared_name=name) for name in ("one", "two"))

    def add(index):
        chosen = raw.RefIdentity(input=raw.RefSelect(index=index, inputs=[one, two]))
        return [raw.AssignAdd(ref=chosen, value=1.0)]

    return [[raw.Assign(ref=one, value=10.0).op, raw.Assign(ref=two, value=20.0).op], add(1), add(0), add(2), [one, two]]


def the_time(_):
    return [[tf.greater(raw.Timestamp(), 1.6e9)]]


STORE_PROGRAMS = [barriers, maps_of_tensors, ragged_variants, vocabularies, chosen_references, the_time]
STORE_OPS = {
    "RefIdentity", "RefSelect",
    "EmptyTensorMap", *("TensorMap" + name for name in ("Erase", "HasKey", "Insert", "Lookup", "Size", "StackKeys")),
    "BarrierClose", "BarrierIncompleteSize", "BarrierInsertMany", "BarrierReadySize", "BarrierTakeMany",
    "RaggedTensorToVariant", "RaggedTensorFromVariant", "RaggedTensorToVariantGradient", "GenerateVocabRemapping"}
