# SPDX-License-Identifier: Apache-2.0
"""Cases that `make diff` drew and in which the two sides differed."""
import numpy as np
import tensorflow.compat.v1 as tf

from ops_cases import Case, D, F, I, L, Var, i32, real, scalar, strs


def gradients():
    bad = np.array([np.nan, np.inf, -1, 2], F)
    for op in ("ReluGrad", "Relu6Grad"):
        yield Case(op, {"gradients": bad, "features": np.array([-1, -2, -3, 4], F)})
        yield Case(op, {"gradients": real(F, 3, 4), "features": real(F, 4)})
    for op, out in (("EluGrad", "outputs"), ("SeluGrad", "outputs"), ("SoftplusGrad", "features"), ("SoftsignGrad", "features")):
        yield Case(op, {"gradients": real(F, 3, 4), out: real(F, 4)})
    for op in ("SigmoidGrad", "TanhGrad", "SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad"):
        yield Case(op, {"y": real(F, 3, 4), "dy": real(F, 4)})


def ranks():
    for op in ("Sum", "Mean", "Max"):
        yield Case(op, {"input": real(F, 3, 4), "axis": i32(1, -1)})
    yield Case("Any", {"input": np.array([[True], [False]]), "axis": i32(0, 0)})
    for op in ("Cumsum", "Cumprod"):
        yield Case(op, {"x": real(D, 3, 4), "axis": i32(1)})
    for op in ("RandomUniform", "TruncatedNormal"):
        yield Case(op, {"shape": scalar(3)}, {"dtype": tf.float32, "seed": 5, "seed2": 9})
    yield Case("StatelessRandomNormal", {"shape": scalar(3), "seed": i32(1, 2)})
    yield Case("ReadFile", {"filename": strs("/nowhere/at/all")})
    yield Case("MatchingFiles", {"pattern": strs("/nowhere", "/at/all").reshape(2, 1)})
    yield Case("ShardedFilespec", {"basename": scalar(b"a", object), "num_shards": i32(3)})
    yield Case("HistogramSummary", {"tag": strs("a"), "values": real(F, 3)})
    yield Case("ApplyAdadelta", {"var": Var(real(F, 3)), "accum": Var(real(F, 3)), "accum_update": Var(real(F, 3)), "lr": scalar(0.1, F),
                                 "rho": np.array([0.5], F), "epsilon": scalar(0.1, F), "grad": real(F, 3)})


def offsets():
    for last in (i32(2, 3, 4), i32(3, 1), i32(5, 3)):
        yield Case("ConcatOffset", {"concat_dim": scalar(0), "shape": [i32(2, 3), last]})


def bitcasts():
    yield Case("Bitcast", {"input": i32(1, 2, 3)}, {"type": tf.uint8})
    yield Case("Bitcast", {"input": np.arange(16, dtype=np.uint8).reshape(2, 8)}, {"type": tf.float64})
    yield Case("Bitcast", {"input": np.arange(16, dtype=np.uint8).reshape(4, 4)}, {"type": tf.float64})
    yield Case("Bitcast", {"input": scalar(1, I)}, {"type": tf.int64})


def single_elements():
    x, dim = np.arange(6, dtype=F).reshape(2, 3), np.zeros((1, 1), I)
    yield Case("ExpandDims", {"input": x, "axis": dim})
    yield Case("ExpandDims", {"input": x, "axis": i32(0, 0)})
    yield Case("SplitV", {"value": x, "size_splits": i32(1, 1), "axis": dim}, {"num_split": 2})


def paddings():
    for pads in ((1, 0, 1, 0), (2, 0, 1, 1), (0, 2, 1, 1), (1, 1, 2, 0), (1, 1, 0, 2)):
        yield Case("MaxPool", {"input": np.arange(16, dtype=F).reshape(1, 4, 4, 1)},
                   {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "EXPLICIT", "explicit_paddings": [0, 0, *pads, 0, 0]})


def limits():
    yield Case("Roll", {"input": np.arange(3, dtype=F), "shift": scalar(2**63 - 1, L), "axis": scalar(0)})
    yield Case("DynamicStitch", {"indices": [i32(2**31 - 1)], "data": [np.ones((1, 2), np.int8)]})
    yield Case("InplaceSub", {"x": np.zeros((4, 0), bool), "i": i32(0, 1), "v": np.zeros((2, 0), bool)})
    yield Case("StringUpper", {"input": np.array([b"a\0b", b"\0", b"ab"], object)}, {"encoding": "utf-8"})


def drawn_cases():
    for group in (gradients, ranks, offsets, bitcasts, single_elements, paddings, limits):
        yield from group()
