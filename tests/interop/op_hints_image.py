# SPDX-License-Identifier: Apache-2.0
"""How the ops on images are used; see op_hints.py."""
import numpy as np
import tensorflow.compat.v1 as tf

from gif_files import GIFS, WRONG_GIFS
from op_cases import Fixed as F, Use, both

raw = tf.raw_ops


def picture(height, width, channels, kind=np.uint8):
    y, x, c = np.mgrid[:height, :width, :channels]
    values = 128 + 90 * np.sin(y / 3 + c) * np.cos(x / 4 - c)
    return (values * (257 if kind == np.uint16 else 1)).astype(kind)


def encoded():
    """Image files by name."""
    made = {}
    for channels in (1, 2, 3, 4):
        made[f"png {channels}"] = raw.EncodePng(image=picture(7, 5, channels))
        made[f"wide png {channels}"] = raw.EncodePng(image=picture(7, 5, channels, np.uint16))
    for channels in (1, 3):
        image = picture(37, 50, channels)
        made[f"jpeg {channels}"] = raw.EncodeJpeg(image=image)
        made[f"progressive {channels}"] = raw.EncodeJpeg(image=image, progressive=True, quality=60)
    made["plain colors"] = raw.EncodeJpeg(image=picture(16, 17, 3), chroma_downsampling=False)
    with tf.Session() as session:
        return session.run(made)


with tf.Graph().as_default():
    FILES = encoded()


def bmp(height, width, channels, upside_down=False):
    rows = picture(height, width, channels)
    number = lambda n, size: int(n).to_bytes(size, "little", signed=True)
    head = b"BM" + bytes(8) + number(54, 4) + number(40, 4) + number(width, 4)
    head += number(-height if upside_down else height, 4) + number(1, 2) + number(8 * channels, 2) + bytes(24)
    return head + b"".join(row.tobytes() + bytes(-row.size % 4) for row in rows)


BMPS = [bmp(3, 5, 1), bmp(4, 5, 3), bmp(4, 3, 4), bmp(4, 5, 3, True)]
PNG, JPEG = FILES["png 3"], FILES["jpeg 3"]
BAD = [b"", b"abc", PNG[:20], PNG[:-30], PNG[:30] + b"\x40" + PNG[31:], JPEG[:10], JPEG[:300], BMPS[1][:60], BMPS[1][:20]]
ALL = list(FILES.values())
ANIMATED = list(GIFS.values()) + WRONG_GIFS
DECODED = [Use(F(f), channels=c) for f in ALL + BMPS + BAD for c in (0, 1, 3, 4)] + [
    Use(F(f), channels=c) for f in ANIMATED for c in (0, 3)] + [Use(F(ANIMATED[0]), channels=1)] + [
    Use(F([PNG])), Use(F(PNG), channels=2), Use(F(PNG), channels=5), Use(F(PNG), channels=-1)]
JPEG_ATTRS = [dict(ratio=2), dict(ratio=4), dict(ratio=8), dict(ratio=3), dict(dct_method="INTEGER_ACCURATE"), dict(dct_method="INTEGER_FAST"),
              dict(dct_method="x"), dict(fancy_upscaling=False)]

WAYS = [dict(align_corners=a, half_pixel_centers=h) for a, h in ((False, False), (True, False), (False, True), (True, True))]
SIZES = [((1, 4, 6, 1), [2, 3]), ((2, 3, 5, 3), [7, 4]), ((1, 1, 1, 2), [3, 2]), ((1, 5, 4, 1), [1, 1]), ((1, 3, 3, 2), [3, 3]),
         ((0, 3, 3, 1), [2, 2]), ((1, 3, 3, 0), [2, 2]), ((1, 0, 3, 1), [2, 2]), ((3, 3, 1), [2, 2]), ((1, 3, 3, 1), [0, 2]),
         ((1, 3, 3, 1), [2, -1]), ((1, 3, 3, 1), [2]), ((1, 3, 3, 1), [[2, 2]]), ((1, 13, 17, 2), [29, 8])]
RESIZES = [Use(s, F(n), **w) for w in WAYS for s, n in SIZES]
# Boxes alike in several ways, some with corners in another order or without area, and their scores.
BOXES = [[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [1, 11.1, 0, 10.1], [0, 100, 1, 101], [3, 3, 3, 4], [0, 0, 0.5, 1]]
SCORES = [0.9, 0.75, 0.6, 0.95, 0.5, 0.3, 0.8, 0.9]
OVERLAPS = [[0.0 if i == j else 1 / (1 + abs(i - j)) for i in range(8)] for j in range(8)]
LIMITS = [(3, 0.5, 0.0), (30, 0.5, 0.0), (8, 0.0, 0.4), (8, 1.0, 0.75), (0, 0.5, 0.0), (3, 0.5, 2.0), (8, 0.3, -5.0)]
BAD_LIMITS = [(-1, 0.5, 0.0), (3, -0.5, 0.0), (3, 1.5, 0.0), (3, [0.5], 0.0), ([3], 0.5, 0.0)]


def suppressions(boxes, inputs, limits=LIMITS + BAD_LIMITS, **attrs):
    made = [Use(F(boxes), F(SCORES), *(F(v) for v in values[:inputs - 2]), plain=True, **attrs) for values in limits]
    few = [F(v) for v in LIMITS[0][:inputs - 2]]
    return made + [Use(F(b), F(s), *few, plain=True, **attrs) for b, s in (
        (BOXES, SCORES[:3]), ([b[:3] for b in BOXES], SCORES), (BOXES[0], SCORES), (BOXES, [SCORES]))] + [
        Use((0, len(boxes[0]) if len(boxes[0]) == 4 else 0), (0,), *few, plain=True, **attrs)]


SOFT = [Use(F(BOXES), F(SCORES), *(F(v) for v in (*values, sigma)), pad_to_max_output_size=p, plain=True, dtypes=["float32"])
        for values in LIMITS + BAD_LIMITS[:3] for sigma in (0.0, 0.5, -1.0) for p in (False, True)]

IMAGE_HINTS = {
    # The largest integers cancel each other but for rounding.
    "ResizeBilinear": [Use(*u.inputs, plain=True, **u.attrs) for u in RESIZES],
    "ResizeNearestNeighbor": RESIZES, "ResizeNearestNeighborGrad": RESIZES,
    # In other dtypes the rounding of float shows, which differs.
    "ResizeBilinearGrad": [Use((s[0], *n, s[3]), s, dtypes=["float32"], **w) for w in WAYS[:3] for s, n in SIZES[:5] + SIZES[-1:]] + [
        Use(a, b) for a, b in (((1, 3, 3, 1), (2, 3, 3, 1)), ((1, 3, 3, 1), (1, 3, 3, 2)), ((3, 3, 1), (1, 3, 3, 1)), ((1, 3, 3, 1), (3, 3, 1)))],
    "NonMaxSuppression": [u for t in (0.5, 0.2) for u in suppressions(BOXES, 3, iou_threshold=t)],
    "NonMaxSuppressionV2": suppressions(BOXES, 4), "NonMaxSuppressionV3": suppressions(BOXES, 5),
    "NonMaxSuppressionV4": both(suppressions(BOXES, 5), "pad_to_max_output_size"), "NonMaxSuppressionV5": SOFT,
    "NonMaxSuppressionWithOverlaps": suppressions(OVERLAPS, 5),
    "DecodePng": DECODED,
    # TensorFlow crashes on a BMP file that is cut short.
    "DecodeImage": [Use(F(f), channels=c) for f in ALL + BAD[:-2] for c in (0, 1, 3, 4)] + [
        Use(F(f), channels=c, dtype=tf.uint8) for f in BMPS for c in (0, 3, 4)] + [
        Use(F(f), expand_animations=e) for f in ANIMATED for e in (False, True)] + [
        Use(F(ANIMATED[0]), channels=c) for c in (1, 3, 4)],
    "DecodeGif": [Use(F(f)) for f in ANIMATED + [PNG, JPEG, FILES["png 1"], FILES["png 4"], FILES["jpeg 1"], BMPS[1], b"", b"abc", b"GIF8"]] + [
        Use(F([ANIMATED[0]]))],
    "DecodeBmp": [Use(F(f), channels=c) for f in BMPS + BAD + [PNG] for c in (0, 1, 3, 4)],
    "DecodeJpeg": DECODED + [Use(F(f), **a) for f in (JPEG, FILES["progressive 3"], FILES["jpeg 1"]) for a in JPEG_ATTRS],
    "ExtractJpegShape": [Use(F(f)) for f in ALL + BAD],
    "DecodeAndCropJpeg": [Use(F(f), F(w), **a) for f in (FILES["jpeg 1"], FILES["plain colors"], PNG) for a in ({}, {"channels": 1})
                          for w in ([0, 0, 16, 16], [0, 0, 16, 0], [-1, 0, 3, 3], [0, 0, 99, 9], [0, 0, 1], [3, 0, 5, 16])],
}
