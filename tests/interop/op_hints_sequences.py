# SPDX-License-Identifier: Apache-2.0
"""How recurrent cells and ops on labelled sequences are used."""
from op_cases import Fixed as F, Use, both

CELLS = [(2, 3, 2), (1, 1, 1), (5, 4, 3)]  # batch, input, cell


def lstm(b, i, c):
    return [(b, c), (b, c), (i + c, 4 * c), (c,), (c,), (c,), (4 * c,)]


LSTM = both([Use((b, i), *lstm(b, i, c), plain=True, **more) for b, i, c in CELLS for more in (
    {}, {"cell_clip": 0.5}, {"forget_bias": 0.0, "cell_clip": -1.0})], "use_peephole") + [
    Use((2, 3), *lstm(2, 2, 2)), Use((2, 3), *lstm(2, 3, 2)[:-1], (7,))]
BLOCK = both([Use(F(n), (t, b, i), *lstm(b, i, c), plain=True, cell_clip=0.5) for b, i, c in CELLS
              for t, n in ((3, 3), (1, 1))], "use_peephole") + [Use(F(1), (2, 3), *lstm(2, 3, 2))]
GRU = [((b, i), (b, c), (i + c, 2 * c), (i + c, c), (2 * c,), (c,)) for b, i, c in CELLS]

CTC = [Use(s, F(i), F(v), F(n), plain=True, **more) for s, i, v, n, more in [
    ((4, 2, 3), [[0, 0], [0, 1], [1, 0]], [0, 1, 1], [4, 3], {}), ((5, 1, 4), [[0, 0], [0, 1]], [2, 2], [5], {}),
    ((5, 1, 4), [[0, 0], [0, 1]], [2, 2], [5], {"ctc_merge_repeated": False}),
    ((5, 1, 4), [[0, 0], [0, 1]], [2, 2], [5], {"preprocess_collapse_repeated": True}),
    ((2, 1, 4), [[0, 0], [0, 1], [0, 2]], [0, 1, 2], [2], {"ignore_longer_outputs_than_inputs": True}),
    ((2, 1, 4), [[0, 0], [0, 1], [0, 2]], [0, 1, 2], [2], {}), ((3, 1, 3), [[0, 0]], [0], [0], {}),
    ((2, 1, 4), [[0, 0], [0, 1]], [1, 1], [2], {}),  # no path: a blank must come between
    ((3, 1, 3), [[0, 0]], [-1], [3], {}), ((3, 1, 3), [[0, 0]], [0], [4], {}), ((3, 2, 3), [[0, 0]], [0], [3, 3], {}),
    ((3, 1, 3), [[1, 0]], [0], [3], {}), ((3, 1, 3), [[0, 0], [0, 1]], [2, 0], [3], {}), ((3, 1), [[0, 0]], [0], [3], {})]]
LENGTHS = [((4, 2, 3), [4, 2]), ((5, 1, 2), [5]), ((3, 2, 4), [0, 3]), ((3, 2, 4), [4, 3]), ((3, 2, 4), [3]), ((3, 2), [3])]


def edits(*pairs):
    """Sparse hypothesis and truth."""
    return [Use(*[F(x) for x in (*h, *t)], dtypes=["int32", "float32"], normalize=n)
            for h, t in pairs for n in (True, False)]


SEQUENCE_HINTS = {
    "LSTMBlockCell": LSTM,
    "LSTMBlockCellGrad": [Use((b, i), *lstm(b, i, c), *[(b, c)] * 8, plain=True, use_peephole=p)
                          for b, i, c in CELLS for p in (True, False)] + [
        Use((2, 3), *lstm(2, 3, 2), *[(2, 2)] * 7, (2, 3), use_peephole=True)],
    "BlockLSTM": BLOCK,
    "BlockLSTMV2": BLOCK,
    **{name: [Use(F(n), (t, b, i), *lstm(b, i, c), *[(t, b, c)] * 9, plain=True, use_peephole=p)
              for b, i, c in CELLS for t, n in ((3, 3), (1, 1)) for p in (True, False)]
       for name in ("BlockLSTMGrad", "BlockLSTMGradV2")},
    "GRUBlockCell": [Use(*shapes, plain=True) for shapes in GRU] + [Use((2, 3), *GRU[1][1:])],
    "GRUBlockCellGrad": [Use(*shapes, *[shapes[1]] * 4, plain=True) for shapes in GRU],
    "CTCLoss": CTC,
    "CTCGreedyDecoder": both([Use(s, F(n), plain=True, blank_index=b) for s, n in LENGTHS for b in (-1, 0, 9)],
                             "merge_repeated"),
    "CTCBeamSearchDecoder": both([Use(s, F(n), plain=True, beam_width=w, top_paths=p) for s, n in LENGTHS
                                  for w, p in ((3, 1), (8, 3), (2, 4))], "merge_repeated"),
    "EditDistance": edits(
        (([[0, 0], [0, 1], [1, 0]], [1, 2, 3], [2, 2]), ([[0, 0], [0, 1], [1, 0]], [1, 3, 3], [2, 3])),
        (([[0, 0], [2, 0], [2, 1]], [1, 2, 3], [3, 2]), ([[1, 0], [2, 0]], [1, 3], [4, 3])),
        (([[0, 0, 0]], [1], [1, 2, 1]), ([[0, 1, 0]], [1], [1, 2, 1])),
        (([[0, 0]], [1], [1, 1]), ([[0, 0, 0]], [1], [1, 1, 1])), (([[0]], [1], [1]), ([[0]], [1], [1]))),
}
