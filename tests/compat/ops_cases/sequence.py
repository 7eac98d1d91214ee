# SPDX-License-Identifier: Apache-2.0
"""Fused steps of recurrent networks, CTC decoding and loss, and edit distance."""
import operator

import numpy as np

from ops_cases import Case, D, F, I, L, i32, ints, real, rng, scalar, strs

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


def blocks():
    """Whole sequences; stock leaves some elements behind their end uninitialized."""
    for t, close in ((F, {"rtol": 2e-5, "atol": 2e-6}), (H, {"rtol": 4e-2, "atol": 1e-2})):
        for time, b, n, k, upto in ((4, 3, 4, 5, 4), (1, 1, 1, 1, 1), (6, 2, 3, 8, 4), (3, 2, 2, 2, 0)):
            top = {"seq_len_max": scalar(upto, L), "x": real(t, time, b, n), "cs_prev": real(t, b, k), "h_prev": real(t, b, k),
                   "w": real(t, n + k, 4 * k, low=-0.5, high=0.5), "wci": real(t, k), "wcf": real(t, k), "wco": real(t, k),
                   "b": real(t, 4 * k)}
            back = {name: real(t, time, b, k, low=-1, high=1) for name in ("i", "cs", "f", "o", "ci", "co", "h", "cs_grad", "h_grad")}
            within = operator.itemgetter(slice(upto))
            for peep in (False, True):
                for clip in (3.0, 0.5, -1.0):
                    yield Case("BlockLSTM", top, {"use_peephole": peep, "cell_clip": clip, "forget_bias": 0.7}, seen=within, **close)
                    yield Case("BlockLSTMV2", top, {"use_peephole": peep, "cell_clip": clip}, seen=within, **close)
                if t == F:
                    for op in ("BlockLSTMGrad", "BlockLSTMGradV2"):
                        yield Case(op, {**top, **back}, {"use_peephole": peep}, rtol=1e-4, atol=2e-5)


def labels_of(*rows):
    return {"labels_indices": np.array([[b, i] for b, row in enumerate(rows) for i in range(len(row))], L).reshape(-1, 2),
            "labels_values": np.array([x for row in rows for x in row], I)}


def losses():
    close = {"rtol": 2e-5, "atol": 2e-5}  # stock computes exponentials of doubles in float
    for t in (F, D):
        x = real(t, 9, 4, 5, low=-3, high=3)
        rows = labels_of([0, 1, 1, 3], [2], [1, 4], [3, 3, 3])  # stock writes past its memory for labels that are all blank
        for merge in (True, False):
            for collapse in (False, True):
                yield Case("CTCLoss", {"inputs": x, **rows, "sequence_length": i32(9, 4, 3, 7)},
                           {"ctc_merge_repeated": merge, "preprocess_collapse_repeated": collapse}, **close)
        yield Case("CTCLoss", {"inputs": x, **rows, "sequence_length": i32(4, 1, 0, 5)}, **close)
        yield Case("CTCLoss", {"inputs": x, **labels_of([0, 1, 4, 4], [2], [1, 1, 1], [3]), "sequence_length": i32(9, 4, 3, 7)}, **close)
        # No valid path: more labels than time steps, or repeated labels that need blanks between them.
        yield Case("CTCLoss", {"inputs": x, **rows, "sequence_length": i32(3, 4, 3, 4)},
                   {"ignore_longer_outputs_than_inputs": True}, **close)
        yield Case("CTCLoss", {"inputs": x, **rows, "sequence_length": i32(3, 4, 3, 4)})
        yield Case("CTCLoss", {"inputs": x, **rows, "sequence_length": i32(4, 1, 0, 5)},
                   {"ignore_longer_outputs_than_inputs": True}, **close)
    x = real(F, 60, 3, 30, low=-4, high=4)
    rows = labels_of(rng.randint(0, 29, 12), rng.randint(0, 29, 20), rng.randint(0, 3, 9))
    yield Case("CTCLoss", {"inputs": x, **rows, "sequence_length": i32(60, 50, 41)}, rtol=1e-4, atol=1e-4)
    x, n = real(F, 3, 2, 4), i32(3, 3)
    good = labels_of([1], [2])
    for bad in (labels_of([-1], [2]), labels_of([3, 1], [2]), labels_of([1], []), {"labels_values": i32(1)}, {"sequence_length": i32(3)},
                {"sequence_length": i32(4, 3)}, {"inputs": x[0]}, {"inputs": x[:0]},
                {"labels_indices": np.array([[1, 0], [0, 0]], L)}, {"labels_indices": np.array([[0, 0], [2, 0]], L)}):
        yield Case("CTCLoss", {"inputs": x, **good, "sequence_length": n, **bad})


def beams():
    close = {"rtol": 1e-4, "atol": 1e-5}  # stock computes doubles in float
    for t in (F, D):
        for time, batch, classes in ((9, 4, 3), (20, 3, 6), (12, 2, 30)):
            x = real(t, time, batch, classes, low=-4, high=4)
            for width, top in ((1, 1), (4, 2), (10, 3), (100, 5)):
                if width == 1 and t == F:
                    continue
                for merge in (True, False):
                    yield Case("CTCBeamSearchDecoder", {"inputs": x, "sequence_length": i32(*[time - 2 * b for b in range(batch)])},
                               {"beam_width": width, "top_paths": top, "merge_repeated": merge}, **close)
    x = real(F, 3, 2, 4)
    some = {"beam_width": 4, "top_paths": 2}
    yield Case("CTCBeamSearchDecoder", {"inputs": x, "sequence_length": i32(3, 0)}, {"beam_width": 4, "top_paths": 1}, **close)
    yield Case("CTCBeamSearchDecoder", {"inputs": x, "sequence_length": i32(3, 0)}, some)
    for bad in ({"sequence_length": i32(3)}, {"sequence_length": i32(1, 4)}, {"inputs": x[0]}):
        yield Case("CTCBeamSearchDecoder", {"inputs": x, "sequence_length": i32(3, 3), **bad}, some)
    yield Case("CTCBeamSearchDecoder", {"inputs": x, "sequence_length": i32(3, 3)}, {"beam_width": 1, "top_paths": 2})


def greedy():
    for t in (F, D):
        x = ints(t, 9, 4, 3)  # with equal scores
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
    for group in (cells, blocks, losses, beams, greedy, distances):
        yield from group()
