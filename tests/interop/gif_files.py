# SPDX-License-Identifier: Apache-2.0
"""GIF files for tests: frames of colours, compressed, interlaced, transparent, with tables of their own."""
import numpy as np

COLORS = [(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 0), (9, 8, 7), (200, 100, 50), (1, 2, 3), (250, 251, 252)]


def number(n):
    return int(n).to_bytes(2, "little")


def compressed(colors, code_bits, full_table=True):
    """The colours in LZW, as blocks; without `full_table` the table is thrown away when it has 30 texts."""
    clear, end = 1 << code_bits, (1 << code_bits) + 1
    codes, widths = [clear], [code_bits + 1]
    table, bits = {(c,): c for c in range(clear)}, code_bits + 1
    text = ()

    def put(code):
        codes.append(code)
        widths.append(bits)

    for color in colors:
        if text + (color,) in table:
            text += (color,)
            continue
        put(table[text])
        if len(table) + 2 < 4096:
            table[text + (color,)] = len(table) + 2
            # A reader learns each text one code later.
            if len(table) + 1 == 1 << bits and bits < 12:
                bits += 1
        if not full_table and len(table) > clear + 30:
            put(clear)
            table, bits = {(c,): c for c in range(clear)}, code_bits + 1
        text = (color,)
    put(table[text])
    if len(table) + 2 == 1 << bits and bits < 12:
        bits += 1
    put(end)
    word, at = 0, 0
    for code, width in zip(codes, widths):
        word |= code << at
        at += width
    data = word.to_bytes((at + 7) // 8, "little")
    blocks = [data[i:i + 255] for i in range(0, len(data), 255)]
    return bytes([code_bits]) + b"".join(bytes([len(b)]) + b for b in blocks) + b"\0"


def table_of(colors):
    """The bits that say how many colours there are, and the colours."""
    bits = max(1, (len(colors) - 1).bit_length())
    padded = list(colors) + [(0, 0, 0)] * ((1 << bits) - len(colors))
    return bits - 1, bytes(v for color in padded for v in color)


def rows_in_file(frame, interlaced):
    if not interlaced:
        return frame
    order = [y for start, step in ((0, 8), (4, 8), (2, 4), (1, 2)) for y in range(start, len(frame), step)]
    return frame[order]


def frame_block(frame, left=0, top=0, colors=None, transparent=None, interlaced=False, code_bits=3, full_table=True):
    """One frame, an array of colours."""
    control = b""
    if transparent is not None:
        control = b"!\xf9\x04" + bytes([1]) + number(3) + bytes([transparent, 0])
    flags, table = 0x40 if interlaced else 0, b""
    if colors is not None:
        bits, table = table_of(colors)
        flags |= 0x80 | bits
    height, width = frame.shape
    return control + b"," + number(left) + number(top) + number(width) + number(height) + bytes([flags]) + table + \
        compressed(rows_in_file(frame, interlaced).ravel().tolist(), code_bits, full_table)


def gif(frames, size=(6, 8), colors=COLORS, head=b"GIF89a", end=b";"):
    """A file of blocks that frame_block made."""
    flags, table = 0, b""
    if colors is not None:
        bits, table = table_of(colors)
        flags = 0x80 | bits
    return head + number(size[1]) + number(size[0]) + bytes([flags, 0, 0]) + table + b"".join(frames) + end


def picture(height, width, seed, colors=8):
    return np.random.default_rng(seed).integers(0, colors, (height, width))


COMMENT = b"!\xfe\x05hello\x02xy\x00"
LOOPS = b"!\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00"
STRIPES = np.add.outer(np.arange(30), np.arange(40)) // 7 % 8
GIFS = {
    "one": gif([frame_block(picture(6, 8, 1))]),
    "old": gif([frame_block(picture(6, 8, 1))], head=b"GIF87a"),
    "of no known version": gif([frame_block(picture(6, 8, 1))], head=b"GIF88b"),
    "stripes": gif([frame_block(STRIPES)], (30, 40)),
    "a full table": gif([frame_block(picture(190, 201, 5))], (190, 201)),
    "cleared": gif([frame_block(picture(30, 40, 6), full_table=False)], (30, 40)),
    "interlaced": gif([frame_block(picture(h, 4, h), interlaced=True) for h in (21,)], (21, 4)),
    "flat interlaced": gif([frame_block(picture(3, 4, 2), interlaced=True)], (3, 4)),
    "frames": gif([LOOPS, frame_block(picture(6, 8, 1)), COMMENT, frame_block(picture(6, 8, 2), transparent=3),
                   frame_block(picture(6, 8, 3), transparent=0, interlaced=True)]),
    "parts": gif([frame_block(picture(6, 8, 1)), frame_block(picture(2, 3, 2), 4, 3),
                  frame_block(picture(2, 3, 2), 1, 1, transparent=2), frame_block(picture(4, 5, 4), 6, 4)]),
    "part first": gif([frame_block(picture(2, 3, 1), 1, 2, transparent=1), frame_block(picture(6, 8, 2))]),
    "own colors": gif([frame_block(picture(6, 8, 1), colors=COLORS[::-1]), frame_block(picture(6, 8, 2))]),
    "no common colors": gif([frame_block(picture(6, 8, 1, 2), colors=COLORS[:2], code_bits=2)], colors=None),
    "larger than said": gif([frame_block(picture(6, 8, 1))], (2, 2)),
    "no end": gif([frame_block(picture(6, 8, 1))], end=b""),
    "eight bits": gif([frame_block(picture(20, 20, 7, 256), colors=[(i, 255 - i, i * 7 % 256) for i in range(256)],
                                   code_bits=8)], (20, 20)),
}
WRONG_GIFS = [
    gif([]), gif([frame_block(picture(6, 8, 1))])[:13], gif([frame_block(picture(6, 8, 1))])[:30],
    gif([frame_block(picture(6, 8, 1))], colors=None), gif([frame_block(picture(6, 8, 1))], colors=COLORS[:2]),
    gif([frame_block(picture(6, 8, 1)).replace(number(8) + number(6), number(8) + number(0))]),
    gif([frame_block(picture(6, 8, 1)).replace(number(8) + number(6), number(9999) + number(9999))]),
    gif([frame_block(picture(6, 8, 1), code_bits=3)], head=b"GOF89a")]
