# SPDX-License-Identifier: Apache-2.0
"""Steps of recurrent nets as one op, sequences read from scores, and how far they are from each other."""
import numpy as np

from ops_cases import Case, D, F, I, L, i32, ints, real, strs

H = np.float16


def cells():
    for t, close in ((F, {"rtol": 1e-5, "atol": 1e-6}), (H, {"rtol": 2e-2, "atol": 5e-3})):
        for b, n, k in ((3, 4, 5), (1, 1, 1), (7, 20, 16)):
            x, cs, h = real(t, b, n), real(t, b, k), real(t, b, k)
            top = {"x": x, "cs_prev": cs, "h_prev": h, "w": real(t, n + k, 4 * k, low=-0.5, high=0.5), "wci": real(t, k),
                   "wcf": real(t, k), "wco": real(t, k), "b": real(t, 4 * k)}
            for peep in (False, True):
                for clip in (3.0, 0.5, -1.0):
                    yield Case("LSTMBlockCell", top, {"use_peephole": peep, "cell_clip": clip, "forget_bias": 0.7}, **close)
                back = {name: real(t, b, k, low=-1, high=1) for name in ("i", "cs", "f", "o", "ci", "co", "cs_grad", "h_grad")}
                yield Case("LSTMBlockCellGrad", {**top, **back}, {"use_peephole": peep}, **close)
            if t == H:
                continue
            top = {"x": x, "h_prev": h, "w_ru": real(t, n + k, 2 * k), "w_c": real(t, n + k, k), "b_ru": real(t, 2 * k),
                   "b_c": real(t, k)}
            yield Case("GRUBlockCell", top, rtol=1e-5, atol=2e-6)
            back = {name: real(t, b, k, low=-1, high=1) for name in ("r", "u", "c", "d_h")}
            yield Case("GRUBlockCellGrad", {**top, **back}, rtol=1e-5, atol=4e-6)
    top = {"x": real(F, 7, 4), "h_prev": real(F, 7, 5), "w_ru": real(F, 9, 10), "w_c": real(F, 9, 5), "b_ru": real(F, 10),
           "b_c": real(F, 5)}
    for bad in ({"b_c": real(F, 3)}, {"x": real(F, 2, 4)}, {"w_c": real(F, 9, 4)}, {"h_prev": real(F, 5)}):
        yield Case("GRUBlockCell", {**top, **bad})


def greedy():
    for t in (F, D):
        x = ints(t, 9, 4, 3)  # with equal classes
        for merge in (False, True):
            for blank in (-1, 0, 1):
                yield Case("CTCGreedyDecoder", {"inputs": x, "sequence_length": i32(9, 4, 0, 7)},
                           {"merge_repeated": merge, "blank_index": blank})
    x = real(F, 3, 2, 4)
    for n in (i32(3), i32(1, 4)):
        yield Case("CTCGreedyDecoder", {"inputs": x, "sequence_length": n})
    yield Case("CTCGreedyDecoder", {"inputs": x[0], "sequence_length": i32(1, 1)})


def distances():
    def side(name, at, values, shape):
        return {name + "_indices": np.array(at, L).reshape(-1, len(shape)), name + "_values": values, name + "_shape": np.array(shape, L)}

    for make in (lambda s: np.array([ord(c) for c in s], I), lambda s: np.array([ord(c) for c in s], L),
                 lambda s: np.array([ord(c) for c in s], D), lambda s: strs(*s)):
        for normal in (True, False):
            a = side("hypothesis", [[0, 0, i] for i in range(6)] + [[1, 0, 0], [1, 1, 0], [1, 1, 1]], make("kittenxab"), [2, 2, 6])
            b = side("truth", [[0, 0, i] for i in range(7)] + [[0, 1, 0], [1, 1, 0], [1, 1, 1]], make("sittingyab"), [2, 2, 7])
            yield Case("EditDistance", {**a, **b}, {"normalize": normal})
            b = side("truth", [[0, 0, 0]], make("k"), [1, 1, 7])
            yield Case("EditDistance", {**a, **b}, {"normalize": normal})
    a = side("hypothesis", [[0, 0, 0]], make("k"), [1, 1, 7])
    yield Case("EditDistance", {**a, **side("truth", [[0, 0]], make("k"), [1, 7])})


def sequence_cases():
    for group in (cells, greedy, distances):
        yield from group()
