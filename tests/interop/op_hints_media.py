# SPDX-License-Identifier: Apache-2.0
"""How the ops that change images and sounds, or show them, are used; see op_hints.py."""
import numpy as np
import tensorflow.compat.v1 as tf

from op_cases import Each, Fixed as F, Use, both
from op_hints_image import BOXES, RESIZES, SCORES, SIZES, WAYS


def plain(uses, dtypes=None):
    return [Use(*u.inputs, plain=True, dtypes=dtypes, **u.attrs) for u in uses]


CROPS = [[0, 0, 1, 1], [0.2, 0.1, 0.8, 0.9], [-0.3, 0.1, 0.5, 1.4], [1, 1, 0, 0], [0.5, 0.5, 0.5, 0.5]]
OF = [0, 1, 1, 0, 1]
CROPPED = plain([Use((2, 5, 6, 3), F(CROPS), F(OF), F(n), method=m, extrapolation_value=v)
                 for n in ([4, 3], [1, 1], [1, 5], [7, 2]) for m in ("bilinear", "nearest") for v in (0.0, -2.5)] + [
    Use(s, F(b), F(i), F(n)) for s, b, i, n in [
        ((2, 5, 6, 3), CROPS[:1], [2], [2, 2]), ((2, 5, 6, 3), CROPS[:1], [-1], [2, 2]), ((2, 5, 6, 3), CROPS, [0], [2, 2]),
        ((2, 5, 6, 3), [c[:3] for c in CROPS], OF, [2, 2]), ((2, 5, 6, 3), CROPS[0], [0], [2, 2]),
        ((2, 5, 6, 3), CROPS[:1], [0], [0, 2]), ((2, 5, 6, 3), CROPS[:1], [0], [2]), ((5, 6, 3), CROPS[:1], [0], [2, 2]),
        ((2, 0, 6, 3), CROPS[:1], [0], [2, 2]), ((2, 5, 6, 3), [[0, 0, float("inf"), 1]], [0], [2, 2]),
        ((2, 5, 6, 0), CROPS[:1], [0], [2, 2]), ((1, 1, 1, 1), CROPS[:1], [0], [2, 2])]] + [
    Use((2, 5, 6, 3), (0, 4), (0,), F([2, 2]))])
CROP_IMAGES = plain([Use((5, *n, 2), F(CROPS), F(OF), F([2, 5, 6, 2]), method=m)
                     for n in ([4, 3], [1, 1]) for m in ("bilinear", "nearest")] + [
    Use(s, F(CROPS), F(OF), F(n)) for s, n in [
        ((5, 2, 2, 2), [1, 5, 6, 2]), ((5, 2, 2, 2), [2, 5, 6, 3]), ((5, 2, 2, 2), [2, 0, 6, 2]), ((5, 2, 2, 2), [2, 5, 6]),
        ((4, 2, 2, 2), [2, 5, 6, 2]), ((5, 0, 2, 2), [2, 5, 6, 2]), ((5, 2, 2), [2, 5, 6, 2])]])
CROP_BOXES = plain([Use((5, *n, 2), s, F(CROPS), F(OF)) for n, s in [
    ([4, 3], (2, 5, 6, 2)), ([1, 1], (2, 5, 6, 2)), ([2, 2], (1, 5, 6, 2)), ([2, 2], (2, 5, 6, 3)), ([2, 2], (2, 0, 6, 2)),
    ([0, 2], (2, 5, 6, 2))]])

FILTERS = ["lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic"]
PLACES = [([7, 4], [1.6, 0.8], [0.0, 0.0]), ([3, 9], [0.4, 1.5], [0.7, -1.2]), ([4, 4], [1.0, 1.0], [9.0, 0.0])]
SCALED = plain([Use((2, 5, 6, 2), F(n), F(s), F(t), kernel_type=k, antialias=a)
                for k in FILTERS for n, s, t in PLACES for a in (False, True)] + [
    Use(i, F(n), F(s), F(t), **a) for i, n, s, t, a in [
        ((2, 5, 6, 2), [2, 2], [1, 1], [0, 0], {"kernel_type": "x"}), ((2, 5, 6, 2), [2, 0], [1, 1], [0, 0], {}),
        ((2, 5, 6, 2), [2, 2], [0, 1], [0, 0], {}), ((2, 5, 6, 2), [2, 2], [1], [0, 0], {}),
        ((2, 5, 6, 2), [2, 2], [1, 1], [[0, 0]], {}), ((5, 6, 2), [2, 2], [1, 1], [0, 0], {}),
        ((0, 5, 6, 2), [2, 2], [1, 1], [0, 0], {}), ((2, 0, 6, 2), [2, 2], [1, 1], [0, 0], {})]])
SCALED_BACK = plain([Use((2, *n, 2), (2, 5, 6, 2), F(s), F(t), kernel_type=k, antialias=a)
                     for k in FILTERS for n, s, t in PLACES for a in (False, True)])

PICTURES = [(2, 4, 5, 3), (4, 5, 3), (1, 1, 1, 3), (2, 2, 4, 5, 3), (0, 4, 5, 3), (2, 4, 0, 3)]
COLORS = np.random.default_rng(3).uniform(0, 1, (4, 5, 3))
COLORS[0, 0], COLORS[0, 1], COLORS[0, 2], COLORS[1] = 0, [1, 1, 0], [0.5, 0.5, 0.5], COLORS[1, :1]
SPACES = plain([Use(F(COLORS)), Use(F(COLORS[0, 0])), Use((2, 3)), Use((0, 3)), Use((2, 4)), Use(())])


def adjusted(values, channels=3):
    wrong = [] if channels == 0 else [(2, 4, 5, 2)]
    return plain([Use(F(COLORS), F(v)) for v in values] + [Use(s, F(values[0])) for s in PICTURES + wrong + [(5, 3)]] + [
        Use((4, 5, 3), F([values[0]]))])


WINDOWS = [dict(ksizes=k, strides=s, rates=r) for k, s, r in [
    ([1, 2, 3, 1], [1, 1, 1, 1], [1, 1, 1, 1]), ([1, 3, 2, 1], [1, 2, 1, 1], [1, 1, 2, 1]), ([1, 1, 1, 1], [1, 3, 3, 1], [1, 1, 1, 1]),
    ([1, 2, 2, 1], [1, 5, 5, 1], [1, 3, 1, 1])]]
IMAGE_PATCHES = [Use(s, padding=p, **w) for w in WINDOWS for p in ("SAME", "VALID") for s in [
    (2, 5, 6, 2), (1, 9, 4, 1), (0, 5, 6, 2), (1, 5, 6, 0)]] + [
    Use((1, 2, 2, 1), padding="VALID", ksizes=[1, 3, 3, 1], strides=[1, 1, 1, 1], rates=[1, 1, 1, 1]),
    Use((5, 6, 2), padding="SAME", **WINDOWS[0])]
VOLUME_PATCHES = [Use(s, padding=p, ksizes=k, strides=n) for p in ("SAME", "VALID") for k, n in [
    ([1, 2, 3, 1, 1], [1, 1, 1, 1, 1]), ([1, 1, 2, 2, 1], [1, 2, 1, 3, 1])] for s in [(2, 3, 4, 5, 2), (0, 3, 4, 5, 2)]]

# TensorFlow crashes on images of another rank.
DRAWN = [[[0, 0.1, 0.9, 0.8], [0.2, 0.3, 0.7, 0.5]], [[-0.5, 0.2, 0.5, 1.5], [0.6, 0.2, 0.2, 0.4]]]
DRAWINGS = [Use(s, F(DRAWN[:s[0]])) for s in [(2, 6, 7, 3), (2, 6, 7, 1), (2, 6, 7, 4), (1, 1, 1, 3), (2, 6, 7, 2), (3, 6, 7, 3)]] + [
    Use((2, 6, 7, 3), F(DRAWN[0])), Use((2, 6, 7, 3), (2, 0, 4)), Use((2, 6, 7, 3), (2, 2, 3))]
COLORED = [Use(*u.inputs, F(c)) for u in DRAWINGS[:4] for c in ([[0.1, 0.2, 0.3, 0.4], [1, 0, 0, 0]], [[]])] + [
    Use((2, 6, 7, 3), F(DRAWN), F([[1, 2]])), Use((2, 6, 7, 3), F(DRAWN), F([1, 2, 3]))]

TURNS = [[1, 0, 0, 0, 1, 0, 0, 0], [0.8, 0.3, 0.5, -0.3, 0.9, 1, 0.01, 0.02], [1.7, 0, -6, 0, 1.3, 8, 0, 0], [-1, 0, 4, 0, -1, 3, 0, 0]]
FILLED = [dict(interpolation=i, fill_mode=m) for i in ("NEAREST", "BILINEAR") for m in ("CONSTANT", "REFLECT", "WRAP", "NEAREST")]
PROJECTED = plain([Use(s, F(t), F(n), **a) for a in FILLED for s, t, n in [
    ((1, 6, 7, 2), TURNS[1:2], [5, 4]), ((4, 6, 7, 2), TURNS, [9, 11]), ((2, 1, 1, 1), TURNS[2:3], [3, 3])]] + [
    Use(s, F(t), F(n), **FILLED[0]) for s, t, n in [
        ((3, 6, 7, 2), TURNS[:2], [5, 4]), ((1, 6, 7, 2), TURNS[0], [5, 4]), ((1, 6, 7, 2), [TURNS[0][:7]], [5, 4]),
        ((1, 6, 7, 2), TURNS[:1], [0, 4]), ((1, 6, 7, 2), TURNS[:1], [4]), ((6, 7, 2), TURNS[:1], [4, 4])]])
FILLED_BY = [Use(*u.inputs, F(3.0), plain=True, **u.attrs) for u in PROJECTED] + [
    Use((1, 6, 7, 2), F(TURNS[:1]), F([4, 4]), F([3.0]), **FILLED[0])]

LOOKS = [[0.1, -0.2], [0.3, 0.0], [-0.9, 0.9], [3.0, 3.0]]
GLIMPSES = plain([Use((4, 6, 8, 2), F(n), F(LOOKS), noise="zero", uniform_noise=False, centered=c, normalized=m)
                  for n in ([2, 3], [6, 8], [9, 10]) for c in (False, True) for m in (False, True)] + [
    Use((4, 6, 8, 2), F(n), F(o), noise="zero", uniform_noise=u) for n, o, u in [
        ([2], LOOKS, False), ([2, -1], LOOKS, False), ([2, 2], LOOKS[:2], False), ([2, 2], [[1], [1], [1], [1]], False),
        ([2, 2], LOOKS, True)]] + [Use((4, 6, 8, 2), F([2, 2]), F(LOOKS), noise="x", uniform_noise=False)])

OBJECTS = [[[0, 0.1, 0.9, 0.8], [0.2, 0.3, 0.7, 0.5]]]
SAMPLED = [([60, 70, 3], OBJECTS, 0.2), ([60, 70, 3], OBJECTS, 0.9), ([5, 1000, 1], OBJECTS, 0.1), ([60, 70], OBJECTS, 0.1),
           ([60, 70, 3], OBJECTS, -0.5), ([60, 70, 3], OBJECTS[0], 0.1), ([60, 70, 3], [[[0, 0, 1, 1.5]]], 0.1)]
LIMITED = [{}, {"area_range": [0.3, 0.4], "aspect_ratio_range": [0.5, 2.0]}, {"max_attempts": 1}, {"area_range": [0.5]},
           {"area_range": [0.5, 1.5]}, {"aspect_ratio_range": [-1.0, 1.0]}, {"max_attempts": 0}]
SAMPLES = [Use(F(s), F(b), F(c), dtypes=["int32", "int64"], **a) for a in LIMITED for s, b, c in SAMPLED] + [
    Use(F([60, 70, 3]), (0, 0, 4), F(0.1), use_image_if_no_bounding_boxes=u) for u in (False, True)]

DETECTED = plain([Use(F([[[b] for b in BOXES]]), F([[[s + i / 1000, 1.01 - s + i / 700] for i, s in enumerate(SCORES)]]), F(n), F(m), F(t), F(low),
                      pad_per_class=p, clip_boxes=c) for n, m, t, low in [
    (3, 5, 0.5, 0.1), (1, 9, 0.2, 0.3), (8, 20, 0.9, -1.0), (0, 5, 0.5, 0.1), (3, 0, 0.5, 0.1), (3, 5, 1.5, 0.1)]
                  for p in (False, True) for c in (False, True)] + [
    Use(b, s, F(3), F(5), F(0.5), F(0.0)) for b, s in [
        ((2, 3, 2, 4), (2, 3, 2)), ((2, 3, 3, 4), (2, 3, 2)), ((2, 3, 1, 3), (2, 3, 2)), ((2, 3, 1, 4), (2, 2, 2)),
        ((0, 3, 1, 4), (0, 3, 2))]])


def wav(channels, frames, head=b"", bits=16):
    number = lambda n, size: int(n).to_bytes(size, "little")
    data = (np.arange(channels * frames) * 977 % 65536).astype("<u2").tobytes()
    kind = b"fmt " + number(16, 4) + number(1, 2) + number(channels, 2) + number(8000, 4)
    kind += number(16000 * channels, 4) + number(2 * channels, 2) + number(bits, 2)
    body = b"WAVE" + head + kind + b"LIST" + number(2, 4) + b"ab" + b"data" + number(len(data), 4) + data
    return b"RIFF" + number(len(body), 4) + body


WAVS = [wav(1, 5), wav(2, 7), wav(3, 0), wav(1, 4, b"JUNK\x02\0\0\0xx"), wav(1, 4, b"XXXX\x02\0\0\0xx"), wav(1, 5, bits=8),
        wav(1, 5)[:-3], wav(1, 5)[:20], b"", b"RIFF"]

HEARD = [(2, 5), (1, 5, 2), (5, 3, 1), (0, 5), (2, 0), (5,)]

MEDIA_HINTS = {
    "CropAndResize": CROPPED, "CropAndResizeGradImage": CROP_IMAGES, "CropAndResizeGradBoxes": CROP_BOXES,
    # The largest integers cancel each other but for rounding.
    "ResizeBicubic": plain(RESIZES), "ResizeArea": plain([Use(s, F(n), align_corners=a) for s, n in SIZES for a in (False, True)]),
    "ResizeBicubicGrad": [Use((s[0], *n, s[3]), s, **w) for w in WAYS for s, n in SIZES[:5] + SIZES[-1:]] + [
        Use(a, b) for a, b in (((1, 3, 3, 1), (2, 3, 3, 1)), ((3, 3, 1), (1, 3, 3, 1)), ((1, 3, 3, 1), (3, 3, 1)))],
    "ScaleAndTranslate": SCALED, "ScaleAndTranslateGrad": SCALED_BACK,
    # In 16 bits the rounding of each step shows, which differs.
    **{name: plain(SPACES, ["float32", "float64"]) for name in ("RGBToHSV", "HSVToRGB")},
    "AdjustHue": adjusted([0.3, -0.7, 0.0, 1.0, 5.4]), "AdjustSaturation": adjusted([1.5, 0.0, -1.0, 0.3]),
    "AdjustContrastv2": adjusted([1.5, 0.0, -1.0], 0),
    "ExtractImagePatches": IMAGE_PATCHES, "ExtractVolumePatches": VOLUME_PATCHES,
    "DrawBoundingBoxes": plain(DRAWINGS), "DrawBoundingBoxesV2": plain(COLORED),
    "ImageProjectiveTransformV2": PROJECTED, "ImageProjectiveTransformV3": FILLED_BY,
    "ExtractGlimpse": GLIMPSES, "ExtractGlimpseV2": GLIMPSES,
    "StatelessSampleDistortedBoundingBox": [Use(*u.inputs, F([3, 7]), dtypes=u.dtypes, **u.attrs) for u in SAMPLES] + [
        Use(F([60, 70, 3]), F(OBJECTS), F(0.1), F([3]))],
    "CombinedNonMaxSuppression": DETECTED,
    "DecodeWav": [Use(F(w), desired_channels=c, desired_samples=n) for w in WAVS for c, n in ((-1, -1), (2, 9), (1, 3), (0, 0))] + [
        Use(F([WAVS[0]]))],
    "EncodeWav": [Use(s, F(r)) for s, r in [((5, 2), 8000), ((0, 1), 8000), ((5, 0), 8000), ((5, 1), 0), ((5, 1), -1), ((5,), 8000)]]
                 + [Use((5, 1), F([8000]))],
    "AudioSpectrogram": [Use(s, window_size=w, stride=n, magnitude_squared=q) for q in (False, True) for s, w, n in [
        ((20, 2), 6, 3), ((64, 1), 16, 4), ((5, 1), 6, 3), ((20, 0), 6, 3), ((40, 1), 5, 20), ((20, 1), 1, 3), ((20, 1), 6, 0), ((20,), 6, 3)]],
    "Mfcc": plain([Use(F(np.random.default_rng(1).uniform(0, 4, s)), F(r), **a) for s, r, a in [
        ((2, 3, 65), 16000, {}), ((1, 2, 129), 8000, {"filterbank_channel_count": 20, "dct_coefficient_count": 20}),
        ((1, 1, 65), 4000, {}), ((2, 3, 65), 0, {}), ((2, 3, 1), 16000, {}), ((2, 3, 65), 16000, {"dct_coefficient_count": 41}),
        ((2, 3, 65), 16000, {"upper_frequency_limit": 10.0}), ((3, 65), 16000, {})]]),
    "AudioSummaryV2": [Use(F(b"a"), s, F(r)) for s in HEARD for r in (8000.0, 44100.5, 0)] + [Use(F(b"a"), (2, 5), F([8000.0]))],
    "TensorSummaryV2": [Use(F(b"a"), s, F(m)) for s in [(), (0,), (2, 3)] for m in (b"", b"\x12\x01x")] + [
        Use(F([b"a"]), (2,), F(b""))],
    "StringFormat": [Use(Each([s, (2,), (9, 2)]), T=[t, tf.string, tf.int64], template=w, summarize=n)
                     for s in [(), (0,), (7,), (2, 0), (8, 2), (2, 2, 7)] for n in (3, 1, -1) for w in ("<%s, %s> %s",)
                     for t in (tf.float32, tf.float64, tf.int8, tf.bool, tf.complex64, tf.float16)] + [
        Use(Each([()]), T=[tf.float32], template="%s%s"), Use(Each([()]), T=[tf.float32], template="a{}b", placeholder="{}")],
}
