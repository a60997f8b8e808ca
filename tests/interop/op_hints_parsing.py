# SPDX-License-Identifier: Apache-2.0
"""How the ops that parse bytes are used; see op_hints.py."""
import gzip
import zlib

import numpy as np
import tensorflow.compat.v1 as tf

from op_cases import Each, Fixed as F, Use, both


def features(values):
    """Features of lists of bytes, floats or integers; None is a feature without any."""
    made = tf.train.Features()
    for name, value in values.items():
        feature = made.feature[name]
        if value is None:
            continue
        if value and isinstance(value[0], bytes):
            feature.bytes_list.value.extend(value)
        elif value and isinstance(value[0], float):
            feature.float_list.value.extend(value)
        else:
            feature.int64_list.value.extend(value)
    return made


def example(**values):
    return tf.train.Example(features=features(values)).SerializeToString(deterministic=True)


def sequence(context, **lists):
    made = tf.train.SequenceExample(context=features(context))
    for name, steps in lists.items():
        made.feature_lists.feature_list[name].feature.extend(
            features({"x": step}).feature["x"] for step in steps)
    return made.SerializeToString(deterministic=True)


# TensorFlow shows messages in errors, which must then be UTF-8: no bytes above 127 in those to be damaged.
FULL = example(i=[1, 2, 100], f=[2.0], s=[b"x", b"", b"long\0text"])
# Numbers that are not packed, a field that nobody knows, and a key that comes twice.
UNPACKED = bytes.fromhex("0a0d0a0b0a016912061a0408050806")
LARGE = example(i=[1, -2, 1 << 40], f=[1.5, -1e30, 0.0], s=[b"\xff" * 300])
UNKNOWN = LARGE + bytes.fromhex("9a06026869") + bytes.fromhex("080528012d00000000")
TWICE = FULL + example(i=[7])
BAD = [FULL[:n] for n in range(3, len(FULL), 3)] + [b"\n\x08\n\x06\n\x01i\x12\x01\x7f", b"\n\n\n\x08\n\x01i\x12\x03\x1a\x01\n"]

NO_TEXTS = np.zeros(0, object)
INTS, FLOATS, TEXTS = tf.int64, tf.float32, tf.string


def parse_v2(serialized, sparse=(), dense=(), ragged=(), names=NO_TEXTS):
    """sparse: key and dtype; dense: key, dtype, shape and default; ragged: key, dtype, splits."""
    return Use(F(serialized), F(names), F([k for k, _ in sparse]), F([d[0] for d in dense]),
               F([r[0] for r in ragged]), Each([F(d[3]) for d in dense]), num_sparse=len(sparse),
               sparse_types=[t for _, t in sparse], Tdense=[d[1] for d in dense],
               dense_shapes=[tf.TensorShape(d[2]) for d in dense],
               ragged_value_types=[r[1] for r in ragged], ragged_split_types=[r[2] for r in ragged],
               plain=True)


def parse_v1(serialized, sparse=(), dense=(), names=NO_TEXTS):
    return Use(F(serialized), F(names), Each([F(k) for k, _ in sparse]), Each([F(d[0]) for d in dense]),
               Each([F(d[3]) for d in dense]), sparse_types=[t for _, t in sparse],
               Tdense=[d[1] for d in dense], dense_shapes=[tf.TensorShape(d[2]) for d in dense],
               plain=True)


def parse_single(serialized, sparse=(), dense=()):
    return Use(F(serialized), Each([F(d[3]) for d in dense]), num_sparse=len(sparse),
               sparse_keys=[k for k, _ in sparse], dense_keys=[d[0] for d in dense],
               sparse_types=[t for _, t in sparse], Tdense=[d[1] for d in dense],
               dense_shapes=[tf.TensorShape(d[2]) for d in dense], plain=True)


SPARSE = [("i", INTS), ("s", TEXTS), ("f", FLOATS), ("none", INTS)]
DENSE = [("i", INTS, [3], [7, 8, 9]), ("f", FLOATS, [], 0.5), ("s", TEXTS, [3, 1], [[b"a"], [b"b"], [b"c"]])]
VARIABLE = [("i", INTS, [None], 7), ("s", TEXTS, [None], b"pad"), ("f", FLOATS, [None, 1], [[2]])]
# Messages, and the features of each form that are asked for.
WANTED = [
    ([FULL, example(), UNKNOWN, LARGE], SPARSE, ()), ([FULL, example(), TWICE[:0]], (), DENSE), ([TWICE], SPARSE[:1], ()),
    ([UNPACKED, FULL], SPARSE[:1], DENSE[1:2]), ([FULL, UNPACKED, example()], (), VARIABLE),
    (NO_TEXTS, SPARSE[3:], DENSE), (NO_TEXTS, (), VARIABLE), ([FULL], (), ()),
    ([example(i=None, f=None)], SPARSE[:1], [("f", FLOATS, [], 2)]),
    ([FULL, example()], (), [("i", INTS, [3], [])]), ([FULL], (), [("i", INTS, [3], [])]),
    ([FULL], (), [("i", INTS, [2], [1, 2])]), ([FULL], (), [("i", INTS, [3, 0], np.zeros((3, 0)))]),
    ([FULL], (), [("i", INTS, [None, 2], 1)]), ([FULL], (), [("i", INTS, [None], [])]),
    ([FULL], (), [("i", INTS, [None], [1, 2])]), ([FULL], (), [("i", INTS, [3], 1)]),
    ([FULL], (), [("i", FLOATS, [3], [1, 2, 3])]), ([FULL], [("i", FLOATS)], ()), ([FULL], [("f", TEXTS)], ()),
    ([[FULL]], SPARSE, ())] + [([bad], SPARSE, ()) for bad in BAD] + [([bad], (), DENSE) for bad in BAD]

RAGGED = [("i", INTS, tf.int32), ("s", TEXTS, tf.int64), ("none", FLOATS, tf.int32)]


def parse_sequences(version, serialized, context_sparse=(), context_dense=(), sparse=(), dense=(), ragged=(),
                    lacking=(), context_ragged=()):
    """dense: key, dtype, shape and default (of the context); lacking: which dense lists may lack."""
    keys = {"context_sparse": [k for k, _ in context_sparse], "context_dense": [d[0] for d in context_dense],
            "feature_list_sparse": [k for k, _ in sparse], "feature_list_dense": [d[0] for d in dense]}
    attrs = {"context_sparse_types": [t for _, t in context_sparse],
             "Tcontext_dense": [d[1] for d in context_dense],
             "context_dense_shapes": [tf.TensorShape(d[2]) for d in context_dense],
             "feature_list_sparse_types": [t for _, t in sparse],
             "feature_list_dense_types": [d[1] for d in dense],
             "feature_list_dense_shapes": [tf.TensorShape(d[2]) for d in dense],
             "Ncontext_sparse": len(context_sparse), "Nfeature_list_sparse": len(sparse),
             "Nfeature_list_dense": len(dense), "plain": True}
    defaults = Each([F(d[3]) for d in context_dense])
    if version == 2:
        attrs.update({"context_ragged_value_types": [r[1] for r in context_ragged],
                      "context_ragged_split_types": [r[2] for r in context_ragged],
                      "feature_list_ragged_value_types": [r[1] for r in ragged],
                      "feature_list_ragged_split_types": [r[2] for r in ragged]})
        return Use(F(serialized), F(NO_TEXTS), F(keys["context_sparse"]), F(keys["context_dense"]),
                   F([r[0] for r in context_ragged]), F(keys["feature_list_sparse"]),
                   F(keys["feature_list_dense"]), F([r[0] for r in ragged]),
                   F([d[0] in lacking for d in dense]), defaults, **attrs)
    if version == 1:
        attrs.update({f"{name}_keys": k for name, k in keys.items()})
        attrs["Ncontext_dense"] = len(context_dense)
        return Use(F(serialized), F(NO_TEXTS), defaults,
                   feature_list_dense_missing_assumed_empty=list(lacking), **attrs)
    each = {name: Each([F(k) for k in ks]) for name, ks in keys.items()}
    return Use(F(serialized), F(list(lacking)), each["context_sparse"], each["context_dense"],
               each["feature_list_sparse"], each["feature_list_dense"], defaults, F(b"name"), **attrs)


LISTS = [sequence({"c": [1, 2], "d": [1.0]}, l=[[1, 2], [3], None], m=[[1.0, 2.0], [3.0, 4.0]]),
         sequence({"d": [2.0]}, l=[]), sequence({"c": [4]}, m=[[5.0, 6.0]], l=[[9]])]
CONTEXT = {"context_sparse": [("c", INTS)], "context_dense": [("d", FLOATS, [1], [3])]}
STEPS = {"sparse": [("l", INTS)], "dense": [("m", FLOATS, [2])]}
SEQUENCES = [
    (LISTS, {**CONTEXT, **STEPS, "lacking": ["m"]}), (LISTS, {**CONTEXT, **STEPS}), (LISTS, CONTEXT),
    ([LISTS[0], LISTS[2]], {**CONTEXT, **STEPS}), (LISTS[1:2], {"sparse": [("l", INTS), ("q", TEXTS)]}),
    (LISTS, {"context_dense": [("d", FLOATS, [1], [])]}), (LISTS, {"context_dense": [("d", FLOATS, [2], [1, 2])]}),
    (LISTS, {"sparse": [("m", INTS)]}), (LISTS[:1], {"dense": [("m", FLOATS, [3])]}),
    (LISTS[:1], {"dense": [("m", INTS, [2])]}), (LISTS[:1], {"dense": [("l", INTS, [2])]}),
    (LISTS[:1], {"dense": [("m", FLOATS, [None])]}), (LISTS[:1], {"context_dense": [("c", INTS, [None], 0)]})] + [
    ([LISTS[0][:n]], {**CONTEXT, **STEPS}) for n in range(0, len(LISTS[0]), 4)]
RAGGED_LISTS = {"ragged": [("l", INTS, tf.int32), ("m", FLOATS, tf.int64), ("none", TEXTS, tf.int32)],
                "context_ragged": [("c", INTS, tf.int32), ("none", TEXTS, tf.int64)]}

CSV = [  # lines, defaults, attributes
    ([b"1,2.5,abc", b'-3,1e3,"a,""b"""', b"4,.5,"], [[0], [0.5], [b"x"]], {}),
    ([b"1,2,", b",,x", b"NA,NA,NA"], [[7], [0.5], [b"x"]], {"na_value": "NA"}), ([b",1,a"], [[], [1], [b""]], {}),
    ([b"1,,a"], [[1], [], [b""]], {}), ([b"1,2,"], [[1], [2], []], {}), ([b"1,2"], [[1], [2], [b""]], {}),
    ([b"1,2,3,4"], [[1], [2], [b""]], {}), ([b"", b"1,2,3"], [[1], [2], [b""]], {}),
    ([b"a,2,3"], [[1], [2], [b""]], {}), ([b"1,b,3"], [[1], [2], [b""]], {}), ([b"1.5,2,3"], [[1], [2], [b""]], {}),
    ([b"99999999999,2,3"], [[1], [2], [b""]], {}), ([b"+1,2,3"], [[1], [2], [b""]], {}),
    ([b" 1 , 2 , 3 "], [[1], [2], [b""]], {}), ([b"1\t2\t3"], [[1], [2], [b""]], {"field_delim": "\t"}),
    ([b"1,2,3"], [[1], [2], [b""]], {"field_delim": ",,"}), ([b"1,2,3"], [[1], [2], [b""]], {"field_delim": ""}),
    ([b'1,2,"a" '], [[1], [2], [b""]], {}), ([b'1,2,"a""'], [[1], [2], [b""]], {}), ([b'1,2,a"b'], [[1], [2], [b""]], {}),
    ([b'1,2,"a"b"'], [[1], [2], [b""]], {}), ([b'1,2,"'], [[1], [2], [b""]], {}), ([b'1,2,""'], [[1], [2], [b"x"]], {}),
    ([b'1,2,"""'], [[1], [2], [b"x"]], {}), ([b'1,2,"a\nb"', b'"1","2","3"'], [[1], [2], [b"x"]], {}),
    ([b'1,2,a"b', b'1,2,"a"'], [[1], [2], [b""]], {"use_quote_delim": False}), ([b"1,2,3\r\n"], [[1], [2], [b""]], {}),
    ([b"\n1,2,3"], [[1], [2], [b""]], {}), ([b"1,2\n,3"], [[1], [2], [b""]], {}), ([b"0,1,2,3,4,5"], [[1], [2], [b""]], {"select_cols": [1, 3, 5]}),
    ([b"0,1,2,3,4,"], [[1], [2], [b"x"]], {"select_cols": [1, 3, 5]}), ([b"0,1,2,3"], [[1], [2], [b""]], {"select_cols": [1, 3, 5]}),
    ([b'0,1,"a""b"c,3'], [[1], [2], [b""]], {"select_cols": [0, 1, 3]}), ([b"0,1,2"], [[1], [2], [b""]], {"select_cols": [0, 1]}),
    ([b"0,1,2"], [[1], [2], [b""]], {"select_cols": [0, 2, 1]}), ([b"0,1,2"], [[1], [2], [b""]], {"select_cols": [-1, 0, 1]}),
    ([b"1,2,3"], [[1, 2], [2], [b""]], {}), ([b"1,2,3"], [[[1]], [2], [b""]], {}), ([b"1,2,3"], [1, 2, b""], {}),
    ([[b"1,2,3"], [b"4,5,6"]], [[1], [2], [b""]], {}), (b"1,2,3", [[1], [2], [b""]], {}),
    (NO_TEXTS, [[1], [2], [b""]], {}), ([b"nan,inf,-0", b"1,NaN,2"], [[0.0], [0.0], [b""]], {"OUT_TYPE": [FLOATS, tf.float64, TEXTS]})]

RAW = [[b"abcdefghABCDEFGH", b"0123456789abcdef"], [b""], [b"", b""], [b"abc"], [b"abcdefgh", b"abcd"], NO_TEXTS,
       [[b"\x00" * 16], [b"\xff" * 16]], b"abcdefghABCDEFGH"]

TENSORS = [tf.make_tensor_proto(v).SerializeToString() for v in (
    [1.5, 2.5], 3.5, [[1, 2], [3, 4]], [b"a", b"bc"], np.zeros((0, 3), np.float32), [True, False])]

PARSING_HINTS = {
    "DecodeRaw": both([Use(F(v)) for v in RAW], "little_endian"),
    "DecodePaddedRaw": both([Use(F(v), F(n)) for v in RAW for n in (8, 24, 0, -8, 3, [8])], "little_endian"),
    "DecodeCSV": [Use(F(lines), Each([F(d) for d in defaults]),
                      **{"OUT_TYPE": [tf.int32, FLOATS, TEXTS], **attrs}) for lines, defaults, attrs in CSV] + [
        Use(F([text]), Each([F([0])]), OUT_TYPE=[t]) for t in (tf.int32, INTS, FLOATS, tf.float64)
        for text in (b"1", b"-1", b"", b" 2", b"0x10", b"1e2", b"2147483648", b"9223372036854775808", b"1_0", b"\x00",
                     b"1e999", b"-", b"nan")],
    "DecodeCompressed": [Use(F(v), compression_type=t) for t, v in (
        ("", [b"abc"]), ("NONE", [b"abc"]), ("foo", [b"abc"]), ("ZLIB", [zlib.compress(b"abc" * 2000), zlib.compress(b"")]),
        ("GZIP", [[gzip.compress(b"abc" * 2000)]]), ("ZLIB", [b"abc"]), ("GZIP", [b"abc"]), ("ZLIB", NO_TEXTS))],
    "DecodeJSONExample": [Use(F(v)) for v in (
        [b"{}", b' { "features" : { } } '], [b"{"], [b""], [b"[]"],
        [b'{"unknown": 1}'], [b'{"features": {"feature": {"a": {"bytesList": {"value": ["YWI="]}}}}}'], NO_TEXTS)],
    "ParseTensor": [Use(F(v), out_type=t) for v in TENSORS + [b"", b"\n", b"abc"] for t in (FLOATS, tf.int32, TEXTS)] + [
        Use(F([TENSORS[0]]), out_type=FLOATS), Use(F([TENSORS[0]] * 2), out_type=FLOATS)],
    "SerializeTensor": [Use(s) for s in ((), (0,), (5,), (2, 3))],
    "ParseExample": [parse_v1(*wanted) for wanted in WANTED] + [
        parse_v1(FULL, SPARSE), parse_v1([FULL], SPARSE, names=[b"a"]), parse_v1([FULL], SPARSE, names=[b"a", b"b"])],
    "ParseExampleV2": [parse_v2(*wanted) for wanted in WANTED] + [
        parse_v2([FULL, example(), UNPACKED], ragged=RAGGED), parse_v2(FULL, ragged=RAGGED),
        parse_v2(FULL, SPARSE[1:2], DENSE[:2]), parse_v2(FULL, (), VARIABLE), parse_v2(example(), SPARSE[1:2], DENSE[:2]),
        parse_v2(NO_TEXTS, SPARSE[3:], VARIABLE[:1], RAGGED[1:2]), parse_v2([FULL], ragged=[("i", FLOATS, tf.int32)]),
        parse_v2([FULL], SPARSE, names=[b"a", b"b"]), parse_v2(b"\n", SPARSE)],
    "ParseSingleExample": [parse_single(m[0], s, d) for m, s, d in WANTED if len(m) and isinstance(m[0], bytes)] + [
        parse_single([FULL], SPARSE), parse_single(FULL, (), VARIABLE), parse_single(example(), SPARSE[3:], VARIABLE)],
    "ParseSequenceExample": [parse_sequences(1, m, **w) for m, w in SEQUENCES] + [
        parse_sequences(1, NO_TEXTS, **CONTEXT, **STEPS), parse_sequences(1, LISTS[0], **CONTEXT)],
    "ParseSequenceExampleV2": [parse_sequences(2, m, **w) for m, w in SEQUENCES] + [
        parse_sequences(2, LISTS, **RAGGED_LISTS), parse_sequences(2, LISTS, **RAGGED_LISTS, **CONTEXT, **STEPS, lacking=["m"]),
        parse_sequences(2, NO_TEXTS, **RAGGED_LISTS, **CONTEXT, **STEPS), parse_sequences(2, LISTS[0], **CONTEXT, **STEPS),
        parse_sequences(2, LISTS, ragged=[("l", FLOATS, tf.int32)])],
    "ParseSingleSequenceExample": [parse_sequences(0, m[0], **w) for m, w in SEQUENCES] + [
        parse_sequences(0, LISTS, **CONTEXT)],
}
