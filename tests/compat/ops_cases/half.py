# SPDX-License-Identifier: Apache-2.0
"""16-bit floats: math and training."""
import numpy as np
import tensorflow.compat.v1 as tf

from ops_cases import Case, F, Var, i32, real, scalar

HALF, BF = np.float16, tf.bfloat16.as_numpy_dtype


def half_math():
    for t in (HALF, BF):
        x, y = real(F, 3, 4).astype(t), real(F, 4, low=0.5).astype(t)
        for op in "Add AddV2 Sub Mul RealDiv Maximum Minimum SquaredDifference Less GreaterEqual".split():
            yield Case(op, {"x": x, "y": y})
        for op in "Neg Abs Square Sigmoid Tanh Exp Sign Floor".split():
            yield Case(op, {"x": x})
        for op in "Relu Relu6 Elu Softplus".split():
            yield Case(op, {"features": x}, rtol=2e-2, atol=4e-3)  # stock loses bits near 0
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


def half_training():
    """Updates 16-bit variables; our kernels compute in 32 bits, so they round once."""
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
                                             "l1": s(0.1), "l2": s(0.1), "lr_power": s(-0.5)},
                   rtol=3e-2, atol=6e-2)  # the difference of two numbers near 8
    for t in (HALF, BF):
        x = real(F, 4, 3).astype(t)
        yield Case("AssignAdd", {"ref": Var(x), "value": x})
        yield Case("AssignSub", {"ref": Var(x), "value": x})
        yield Case("AssignAddVariableOp", {"resource": Var(x), "value": x})
        for op, key in (("ScatterAdd", "ref"), ("ResourceScatterAdd", "resource"), ("ScatterSub", "ref")):
            yield Case(op, {key: Var(x), "indices": i32(2, 0), "updates": x[:2]})


def half_cases():
    for group in (half_math, half_training):
        yield from group()
