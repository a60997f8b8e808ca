# SPDX-License-Identifier: Apache-2.0
"""How the ops of characters, n-grams and segments of texts are used; see op_hints.py."""
import numpy as np
import tensorflow.compat.v1 as tf

from op_cases import Fixed as F, Use, with_attrs

NO_TEXTS = np.zeros(0, object)
UTF8 = [b"a\xff\xc3\xa4\xed\xa0\x80z", b"\xf0\x9f\x98\x80\x00\x1f\n", b"\xe4\xb8", b"\xe4\xb8a\xf8\x88\x80\x80\x80",
        b"\xc0\x80\xf4\x90\x80\x80", b"\xed\xa0", b"\xf0\x80\x80\x80", b"\xef\xbb\xbfx", b""]
UTF16 = [b"\x00a\xd8\x3d\xde\x00", b"\xd8\x3d\x00a", b"\x00a\x00", b"\xde\x00\x00b", b"\xd8\x3d", b"\xfe\xff\x00a"]
UTF32 = [b"\x00\x00\x00a\x00\x01\xf6\x00", b"\x00\x11\x00\x00\x00\x00\x00b", b"\x00\x00\xd8\x00", b"\x00\x00"]
ENCODED = [("UTF-8", UTF8), ("UTF-16-BE", UTF16), ("UTF-32-BE", UTF32), ("US-ASCII", UTF8), ("ISO-8859-1", UTF8),
           ("latin1", UTF8), ("utf8", UTF8), ("no such", UTF8), ("UTF-8", [[b"a"], [b"b"]]), ("UTF-8", NO_TEXTS),
           ("UTF-8", b"abc")]
READ = [dict(input_encoding=e, errors=h, replace_control_characters=c, replacement_char=r) for e in ("UTF-8",)
        for h, c, r in (("replace", True, 65533), ("ignore", True, 65533), ("strict", True, 63), ("replace", True, 63),
                        ("replace", False, 0x110000), ("replace", False, -1))]
DECODE = [Use(F(t), input_encoding=e, errors=h) for e, t in ENCODED for h in ("replace", "ignore")] + [
    Use(F([t]), input_encoding=e, errors="strict") for e, ts in ENCODED[:3] for t in ts] + [
    Use(F(UTF8[1:2]), **attrs) for attrs in READ]
POINTS = [97, 0x1F600, 228, 0x10FFFD, 0, 0x7FF]
NGRAMS = [dict(separator=s, ngram_widths=w, left_pad="<", right_pad=">", pad_width=p, preserve_short_sequences=k)
          for s, w, p, k in (("|", [1, 2], -1, False), (" ", [3], 1, False), ("", [2, 5], 0, True), (" ", [4], 1, True),
                             (" ", [], 0, True), (" ", [], 1, True), (" ", [], -1, True), (" ", [0], 0, False), (" ", [2], 7, False),
                             (" ", [7], 0, True))]

STRING_HINTS = {
    "UnicodeDecode": DECODE,
    # With splits of int32 TensorFlow crashes.
    "UnicodeDecodeWithOffsets": with_attrs(DECODE, Tsplits=tf.int64),
    "UnicodeTranscode": [Use(F(t), input_encoding=e, output_encoding=o, errors=h) for e, t in ENCODED
                         for o in ("UTF-8", "UTF-16-BE", "UTF-32-BE") for h in ("replace", "ignore")] + [
        Use(F(UTF8[1:2]), output_encoding="UTF-8", **attrs) for attrs in READ],
    "UnicodeEncode": [Use(F(v), F(s), output_encoding=o, errors=h) for o in ("UTF-8", "UTF-16-BE", "UTF-32-BE")
                      for h in ("replace", "ignore", "strict") for v, s in (
                          (POINTS, [0, 2, 2, 6]), ([97, 0x110000, 98], [0, 3]), ([97, -1], [0, 2]), ([97, 0xFFFE], [0, 2]),
                          (POINTS, [0, 5]), (POINTS, [1, 6]), (POINTS, [0, 7]), (POINTS, [0, 4, 3, 6]), (POINTS, []),
                          ([], [0]), ([], [0, 0, 0]))],
    "StringNGrams": [Use(F(d), F(s), **attrs) for attrs in NGRAMS for d, s in (
        ([b"a", b"b", b"", b"d", b"e", b"f"], [0, 3, 3, 4, 6]), ([b"a"], [0, 1]), (NO_TEXTS, []), (NO_TEXTS, [0, 0]),
        ([b"a", b"b"], [0, 1]), ([b"a", b"b"], [0, 3]), ([b"a", b"b"], [1, 2]), ([b"a", b"b"], [0, 2, 1, 2]))],
    "UnsortedSegmentJoin": [Use(F(d), F(i), F(n), separator=s) for s in ("", ", ") for d, i, n in (
        ([b"a", b"b", b"c"], [1, 0, 1], 3), ([[b"a", b"b"], [b"c", b"d"]], [1, 1], 2), ([[b"a", b"b"], [b"c", b"d"]], [[0, 1], [1, 0]], 2),
        ([b"a", b""], [0, 0], 1), ([b"a", b"b"], [-1, 0], 1), ([b"a", b"b"], [0, 2], 2), ([b"a", b"b"], [0, 1], -1),
        ([b"a", b"b"], [0], 1), ([b"a"], [0], [1]), (NO_TEXTS, [], 2), ([[b"a", b"b"]], [[0]], 1), ([b"a"], [0], 0))],
    "Fingerprint": [Use(s, F(b"farmhash64")) for s in ((3,), (2, 3), (0, 2), (), (2, 3, 2), (40, 33))] + [
        Use((1, 2), F(b"no such")), Use((1, 2), F([b"farmhash64"] * 2))],
}
