# SPDX-License-Identifier: Apache-2.0
"""Ops that fewer programs use: space and batch, orders, counts, complex numbers, 16-bit floats."""
import numpy as np
import tensorflow.compat.v1 as tf

from ops_cases import B, Case, D, F, I, L, Var, i32, ints, real, rng, scalar, strs

HALF, BF = np.float16, tf.bfloat16.as_numpy_dtype


def space():
    for t in (F, L):
        x = ints(t, 2, 4, 6, 3)
        yield Case("SpaceToBatchND", {"input": x, "block_shape": i32(2, 3),
                                      "paddings": np.zeros((2, 2), I)}, known=True)
        yield Case("SpaceToBatchND", {"input": x, "block_shape": i32(2, 4),
                                      "paddings": np.array([[1, 1], [0, 2]], I)}, known=True)
        yield Case("SpaceToBatchND", {"input": x, "block_shape": i32(3), "paddings": np.array([[0, 2]], I)}, known=True)
        yield Case("SpaceToBatchND", {"input": x, "block_shape": i32(3), "paddings": np.array([[0, 1]], I)}, known=True)
        yield Case("SpaceToBatchND", {"input": x, "block_shape": i32(0), "paddings": np.array([[0, 0]], I)}, known=True)
        y = ints(t, 12, 2, 3, 2)
        yield Case("BatchToSpaceND", {"input": y, "block_shape": i32(2, 3), "crops": np.zeros((2, 2), I)}, known=True)
        yield Case("BatchToSpaceND", {"input": y, "block_shape": i32(3, 2),
                                      "crops": np.array([[1, 2], [0, 1]], I)}, known=True)
        yield Case("BatchToSpaceND", {"input": y, "block_shape": i32(4), "crops": np.array([[3, 5]], I)}, known=True)
        yield Case("BatchToSpaceND", {"input": y, "block_shape": i32(5), "crops": np.array([[0, 0]], I)}, known=True)
        yield Case("BatchToSpaceND", {"input": y, "block_shape": i32(2), "crops": np.array([[3, 3]], I)}, known=True)
        yield Case("SpaceToBatch", {"input": x, "paddings": np.zeros((2, 2), I)}, {"block_size": 2})
        yield Case("BatchToSpace", {"input": y, "crops": np.array([[0, 1], [1, 0]], I)}, {"block_size": 2})
        yield Case("SpaceToDepth", {"input": x}, {"block_size": 2})
        yield Case("SpaceToDepth", {"input": x}, {"block_size": 4})
        yield Case("DepthToSpace", {"input": ints(t, 2, 3, 2, 8)}, {"block_size": 2})
        yield Case("DepthToSpace", {"input": x}, {"block_size": 2})


def orders():
    x = ints(F, 3, 4, 5)
    for seq, batch in ((1, 0), (0, 1), (2, 0), (0, 2), (2, 1)):
        n = rng.randint(0, x.shape[seq] + 1, x.shape[batch]).astype(L)
        yield Case("ReverseSequence", {"input": x, "seq_lengths": n}, {"seq_dim": seq, "batch_dim": batch})
    yield Case("ReverseSequence", {"input": x, "seq_lengths": i32(5, 1, 1)}, {"seq_dim": 1})
    yield Case("ReverseSequence", {"input": x, "seq_lengths": i32(1, 1)}, {"seq_dim": 1})
    for shift, axis in (([1], [0]), ([-1, 7], [1, 2]), ([2, 3], [0, 0]), ([1], [-1]), ([1], [3])):
        yield Case("Roll", {"input": x, "shift": i32(*shift), "axis": i32(*axis)})
    yield Case("Roll", {"input": strs("a", "b", "c"), "shift": scalar(1), "axis": scalar(0)})
    yield Case("Roll", {"input": x, "shift": i32(1, 2), "axis": scalar(0)})
    yield Case("Diag", {"diagonal": ints(F, 4)})
    yield Case("Diag", {"diagonal": ints(I, 2, 3)})
    yield Case("ParallelConcat", {"values": [ints(F, 1, 3), ints(F, 1, 3)]}, {"shape": [2, 3]}, known=True)
    for t in (I, L):
        yield Case("DataFormatVecPermute", {"x": ints(t, 4)})
        yield Case("DataFormatVecPermute", {"x": ints(t, 4, 2)}, {"src_format": "NCHW", "dst_format": "NHWC"})
        yield Case("DataFormatVecPermute", {"x": ints(t, 2)}, {"src_format": "NHWC", "dst_format": "HWNC"})
        yield Case("DataFormatVecPermute", {"x": ints(t, 3)})
        yield Case("DataFormatDimMap", {"x": np.array([0, 1, 2, 3, -1, -4], t)})
        yield Case("DataFormatDimMap", {"x": np.array([3, 1], t)}, {"src_format": "NHWC", "dst_format": "HWNC"})
    for t in (F, D, I, L):
        row = np.sort(ints(t, 2, 9), axis=1)
        for op in ("LowerBound", "UpperBound"):
            yield Case(op, {"sorted_inputs": row, "values": ints(t, 2, 5, low=-12, high=12)})
            yield Case(op, {"sorted_inputs": row, "values": ints(t, 2, 5)}, {"out_type": tf.int64})
            yield Case(op, {"sorted_inputs": row, "values": ints(t, 3, 5)})


def counts():
    for t in (F, D, I, L):
        w = ints(t, 7)
        yield Case("Bincount", {"arr": ints(I, 7, low=0), "size": scalar(6), "weights": w})
        yield Case("Bincount", {"arr": ints(I, 7, low=0), "size": scalar(20), "weights": np.zeros(0, t)})
        for u in (I, L):
            yield Case("DenseBincount", {"input": ints(u, 7, low=0), "size": scalar(6, u), "weights": w})
            yield Case("DenseBincount", {"input": ints(u, 2, 7, low=0), "size": scalar(6, u),
                                         "weights": ints(t, 2, 7)})
            yield Case("DenseBincount", {"input": ints(u, 2, 7, low=0), "size": scalar(6, u),
                                         "weights": np.zeros(0, t)}, {"binary_output": True})
    yield Case("Bincount", {"arr": i32(1, -1), "size": scalar(3), "weights": np.zeros(0, F)})
    yield Case("DenseBincount", {"input": i32(1, 2), "size": scalar(-3), "weights": np.zeros(0, F)})
    for t in (F, D, I, L):
        for n in (1, 5, 0):
            yield Case("HistogramFixedWidth", {"values": ints(t, 40), "value_range": np.array([-5, 5], t),
                                               "nbins": scalar(n)})
        yield Case("HistogramFixedWidth", {"values": ints(t, 4), "value_range": np.array([5, 5], t),
                                           "nbins": scalar(3)}, {"dtype": tf.int64})
    for t in (np.int8, np.int16, I, L, np.uint8, np.uint16):
        yield Case("PopulationCount", {"x": np.array([0, 1, 7, 100, -1 if np.iinfo(t).min else 255], t)})


def complexes():
    for t, c in ((F, np.complex64), (D, np.complex128)):
        a, b = real(t, 3, 4), real(t, 4)
        z, w = (a + 1j * real(t, 3, 4)).astype(c), (b + 2j).astype(c)
        yield Case("Complex", {"real": a, "imag": b}, {"Tout": tf.as_dtype(c)})
        for op in "Real Imag Angle".split():
            yield Case(op, {"input": z}, {"Tout": tf.as_dtype(t)})
        yield Case("ComplexAbs", {"x": z}, {"Tout": tf.as_dtype(t)})
        yield Case("Conj", {"input": z})
        for op in "Add AddV2 Sub Mul RealDiv Div Equal NotEqual".split():
            yield Case(op, {"x": z, "y": w})
            yield Case(op, {"x": w, "y": z})
        yield Case("Neg", {"x": z})
        yield Case("Square", {"x": z})


def training():
    for t in (F, D):
        def v(positive=False):
            return Var(real(t, 5, 3, low=0.1 if positive else -2))
        g = real(t, 5, 3)
        lr, one = scalar(0.1, t), scalar(0.9, t)
        for r in ("", "Resource"):
            for l1 in (0, 0.3):
                yield Case(r + "ApplyAdagradDA", {
                    "var": v(), "gradient_accumulator": v(), "gradient_squared_accumulator": v(True), "grad": g,
                    "lr": lr, "l1": scalar(l1, t), "l2": scalar(0.2, t), "global_step": scalar(3, L)}, rtol=1e-5)
            yield Case(r + "ApplyAdaMax", {"var": v(), "m": v(), "v": v(True), "beta1_power": scalar(0.8, t),
                                           "lr": lr, "beta1": one, "beta2": scalar(0.99, t),
                                           "epsilon": scalar(1e-6, t), "grad": g}, rtol=1e-5)
            yield Case(r + "ApplyAddSign", {"var": v(), "m": v(), "lr": lr, "alpha": scalar(1, t),
                                            "sign_decay": scalar(0.7, t), "beta": one, "grad": g}, rtol=1e-5)
            yield Case(r + "ApplyPowerSign", {"var": v(), "m": v(), "lr": lr, "logbase": scalar(1, t),
                                              "sign_decay": scalar(0.7, t), "beta": one, "grad": g}, rtol=1e-5)
        yield Case("ResourceApplyAdamWithAmsgrad", {
            "var": v(), "m": v(), "v": v(True), "vhat": v(True), "beta1_power": scalar(0.8, t),
            "beta2_power": scalar(0.9, t), "lr": lr, "beta1": one, "beta2": scalar(0.99, t),
            "epsilon": scalar(1e-6, t), "grad": g}, rtol=1e-5)
        yield Case("ResourceSparseApplyAdagradDA", {
            "var": v(), "gradient_accumulator": v(),
            "gradient_squared_accumulator": v(True), "grad": real(t, 2, 3), "indices": i32(4, 1), "lr": lr,
            "l1": scalar(0.3, t), "l2": scalar(0.2, t), "global_step": scalar(3, L)}, rtol=1e-5)


def parts():
    for t in (F, L):
        for value in (ints(t, 2, 2), scalar(7, t), ints(t, 3, 2)):
            for op in ("StridedSliceAssign", "ResourceStridedSliceAssign"):
                yield Case(op, {"ref": Var(ints(t, 4, 5)), "begin": i32(1, 0), "end": i32(3, 4),
                                "strides": i32(1, 2), "value": value})
    for t in (F, D):
        for op in "Sum Mean SqrtN".split():
            for u in (I, L):
                yield Case(f"SparseSegment{op}GradV2", {
                    "grad": real(t, 3, 3), "indices": np.array([5, 0, 0, 2], u), "segment_ids": i32(0, 0, 0, 2),
                    "dense_output_dim0": scalar(7)})
    meta = b"\x0a\x03\x0a\x01x"
    yield Case("TensorSummaryV2", {"tag": np.array(b"t", object), "tensor": real(F, 2, 3),
                                   "serialized_summary_metadata": np.array(meta, object)})
    yield Case("TensorSummaryV2", {"tag": np.array(b"t", object), "tensor": strs("a", "bc"),
                                   "serialized_summary_metadata": np.array(b"", object)})


def narrow():
    for t in (HALF, BF):
        x, y = real(F, 3, 4).astype(t), real(F, 4, low=0.5).astype(t)
        for op in "Add AddV2 Sub Mul RealDiv Maximum Minimum SquaredDifference Less GreaterEqual".split():
            yield Case(op, {"x": x, "y": y})
        for op in "Neg Abs Square Sigmoid Tanh Exp Sign Floor".split():
            yield Case(op, {"x": x})
        for op in "Relu Relu6 Elu Softplus".split():
            yield Case(op, {"features": x}, rtol=2e-2)
        yield Case("Sqrt", {"x": y})
        yield Case("MatMul", {"a": x, "b": real(F, 4, 5).astype(t)})
        yield Case("BiasAdd", {"value": x, "bias": y})
        for op in "Sum Mean Max Min".split():
            yield Case(op, {"input": x, "axis": i32(1)})
        yield Case("Softmax", {"logits": x})
        yield Case("LogSoftmax", {"logits": x}, atol=2e-2)
        yield Case("AddN", {"inputs": [x, x]})
        yield Case("ArgMax", {"input": x, "dimension": scalar(1)})
        yield Case("ReluGrad", {"gradients": x, "features": x})
        yield Case("MaxPool", {"input": real(F, 1, 4, 4, 2).astype(t)},
                   {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"})
        yield Case("Conv2D", {"input": real(F, 1, 5, 5, 2).astype(t), "filter": real(F, 3, 3, 2, 4).astype(t)},
                   {"strides": [1, 1, 1, 1], "padding": "SAME"}, atol=5e-2)
        yield Case("UnsortedSegmentSum", {"data": x, "segment_ids": i32(1, 0, 1), "num_segments": scalar(2)})
        yield Case("SegmentSum", {"data": x, "segment_ids": i32(0, 0, 1)})
        yield Case("Cumsum", {"x": x, "axis": scalar(0)})


def narrow_training():
    """Updates of 16-bit variables; ours are computed in 32 bits, so they round once."""
    for t, pre in ((t, pre) for t in (HALF, BF) for pre in ("", "Resource")):
        tol = {"rtol": 3e-2, "atol": 3e-2}

        def v():
            return Var(real(F, 30, 20, low=0.1, high=1).astype(t))

        def s(x):
            return scalar(x, t)
        g, rows, idx = real(F, 30, 20).astype(t), real(F, 3, 20).astype(t), i32(4, 0, 29)
        yield Case(pre + "ApplyGradientDescent", {"var": v(), "alpha": s(0.1), "delta": g}, **tol)
        yield Case(pre + "ApplyMomentum", {"var": v(), "accum": v(), "lr": s(0.1), "grad": g, "momentum": s(0.5)}, **tol)
        yield Case(pre + "ApplyAdagrad", {"var": v(), "accum": v(), "lr": s(0.1), "grad": g}, **tol)
        yield Case(pre + "ApplyAdam", {
            "var": v(), "m": v(), "v": v(), "beta1_power": s(0.5), "beta2_power": s(0.5), "lr": s(0.1), "beta1": s(0.5),
            "beta2": s(0.5), "epsilon": s(0.01), "grad": g}, **tol)
        yield Case(pre + "ApplyRMSProp", {"var": v(), "ms": v(), "mom": v(), "lr": s(0.1), "rho": s(0.5), "momentum": s(0.5),
                                          "epsilon": s(0.01), "grad": g}, **tol)
        yield Case(pre + "SparseApplyAdagrad", {"var": v(), "accum": v(), "lr": s(0.1), "grad": rows, "indices": idx}, **tol)
        yield Case(pre + "SparseApplyMomentum", {"var": v(), "accum": v(), "lr": s(0.1), "grad": rows, "indices": idx,
                                                 "momentum": s(0.5)}, **tol)
        yield Case(pre + "SparseApplyFtrl", {"var": v(), "accum": v(), "linear": v(), "grad": rows, "indices": idx, "lr": s(0.1),
                                             "l1": s(0.1), "l2": s(0.1), "lr_power": s(-0.5)}, **tol)
    for t in (HALF, BF):
        x = real(F, 4, 3).astype(t)
        yield Case("AssignAdd", {"ref": Var(x), "value": x})
        yield Case("AssignSub", {"ref": Var(x), "value": x})
        yield Case("AssignAddVariableOp", {"resource": Var(x), "value": x})
        for op, key in (("ScatterAdd", "ref"), ("ResourceScatterAdd", "resource"), ("ScatterSub", "ref")):
            yield Case(op, {key: Var(x), "indices": i32(2, 0), "updates": x[:2]})


def breadth_cases():
    for group in (space, orders, counts, complexes, training, parts, narrow, narrow_training):
        yield from group()
