# SPDX-License-Identifier: Apache-2.0
"""Compares each kernel with TensorFlow's: the same op on the same shapes and as many threads, alternating.

    kernels.py DRIVER [--threads N] [--rounds N] [--only TEXT[;TEXT...]]

TensorFlow runs a chain of copies of the op.  Its time minus that of a single op, divided by the number
of copies, excludes Python and the session.  Ours is timed around the kernel by tests/kernels/op_driver.
Both figures are the fastest of all rounds; `times` above 1 means ours is the faster one.
"""
import argparse
import math
import os
import pathlib
import sys
import time

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", TF_ENABLE_ONEDNN_OPTS="1", CUDA_VISIBLE_DEVICES="")
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests/compat"))
import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402
import ops_diff  # noqa: E402
from ops_cases import Case, Var  # noqa: E402

MILLISECONDS = 120  # per round and side
RNG = np.random.RandomState(1)


def real(*shape):
    return RNG.rand(*shape).astype(np.float32)


def products():
    for m, k, n, ta, tb, what in [
            (1024, 784, 128, False, False, "mlp b1024"), (784, 1024, 128, True, False, "mlp b1024"),
            (1024, 128, 10, False, False, "mlp b1024"), (128, 1024, 10, True, False, "mlp b1024"),
            (1024, 10, 128, False, True, "mlp b1024"), (32, 784, 128, False, False, "mlp b32"),
            (784, 32, 128, True, False, "mlp b32"), (64, 3136, 128, False, False, "cnn b64"),
            (3136, 64, 128, True, False, "cnn b64"), (64, 128, 3136, False, True, "cnn b64"),
            (512, 512, 512, False, False, ""), (1024, 1024, 1024, False, False, ""),
            (2048, 2048, 2048, False, False, ""), (1024, 1024, 1024, False, True, ""),
            (1024, 1024, 1024, True, False, ""), (1, 1024, 1024, False, False, "row")]:
        a = real(k, m) if ta else real(m, k)
        b = real(n, k) if tb else real(k, n)
        yield f"MatMul {m}x{k}x{n} {'NT'[ta]}{'NT'[tb]} {what}", Case(
            "MatMul", {"a": a, "b": b}, {"transpose_a": ta, "transpose_b": tb})


    for x, y in [((32, 8, 64, 64), (32, 8, 64, 64)), ((16, 12, 128, 64), (16, 12, 64, 128)),
                 ((8, 12, 512, 64), (8, 12, 64, 512))]:
        yield f"BatchMatMulV2 {x} by {y}", Case("BatchMatMulV2", {"x": real(*x), "y": real(*y)}, {})


def convolutions():
    for x, w, stride in [((64, 28, 28, 1), (5, 5, 1, 32), 1), ((64, 14, 14, 32), (5, 5, 32, 64), 1),
                         ((8, 56, 56, 64), (3, 3, 64, 64), 1), ((8, 56, 56, 64), (1, 1, 64, 256), 1),
                         ((8, 14, 14, 256), (3, 3, 256, 256), 1), ((8, 7, 7, 512), (3, 3, 512, 512), 1),
                         ((8, 56, 56, 64), (3, 3, 64, 128), 2), ((2, 224, 224, 3), (7, 7, 3, 64), 2),
                         ((8, 32, 32, 3), (3, 3, 3, 16), 1)]:
        out = (x[0], -(-x[1] // stride), -(-x[2] // stride), w[3])
        name = f"{x} * {w}" + (f" /{stride}" if stride > 1 else "")
        attrs = {"strides": [1, stride, stride, 1], "padding": "SAME"}
        a, f, g = real(*x), real(*w), real(*out)
        yield f"Conv2D {name}", Case("Conv2D", {"input": a, "filter": f}, attrs)
        if x[3] > 3:
            yield f"  BackpropInput {name}", Case("Conv2DBackpropInput", {
                "input_sizes": np.int32(x), "filter": f, "out_backprop": g}, attrs)
        yield f"  BackpropFilter {name}", Case("Conv2DBackpropFilter", {
            "input": a, "filter_sizes": np.int32(w), "out_backprop": g}, attrs)


def grouped():
    for prefix, x, w in [("Conv2D", (8, 56, 56, 128), (3, 3, 4, 128)), ("Conv2D", (8, 28, 28, 256), (3, 3, 8, 256)),
                         ("Conv2D", (8, 14, 14, 512), (3, 3, 16, 512)), ("Conv2D", (8, 7, 7, 1024), (3, 3, 32, 1024)),
                         ("Conv2D", (8, 27, 27, 96), (5, 5, 48, 256)),
                         ("DepthwiseConv2dNative", (8, 56, 56, 64), (3, 3, 64, 1)),
                         ("DepthwiseConv2dNative", (8, 56, 56, 64), (3, 3, 64, 2)),
                         ("DepthwiseConv2dNative", (8, 56, 56, 3), (3, 3, 3, 8))]:
        attrs = {"strides": [1, 1, 1, 1], "padding": "SAME"}
        filters = w[3] if prefix == "Conv2D" else w[2] * w[3]
        a, f, g = real(*x), real(*w), real(*x[:3], filters)
        name = f"{x} * {w} in {x[3] // w[2] if prefix == 'Conv2D' else x[3]} groups"
        yield f"{prefix} {name}", Case(prefix, {"input": a, "filter": f}, attrs)
        yield f"  BackpropInput {name}", Case(prefix + "BackpropInput", {
            "input_sizes": np.int32(x), "filter": f, "out_backprop": g}, attrs)
        yield f"  BackpropFilter {name}", Case(prefix + "BackpropFilter", {
            "input": a, "filter_sizes": np.int32(w), "out_backprop": g}, attrs)


def pools():
    for x in [(64, 28, 28, 32), (64, 14, 14, 64)]:
        a, half = real(*x), real(x[0], x[1] // 2, x[2] // 2, x[3])
        attrs = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}
        yield f"MaxPool {x}", Case("MaxPool", {"input": a}, attrs)
        yield f"MaxPoolGrad {x}", Case("MaxPoolGrad", {
            "orig_input": a, "orig_output": a[:, ::2, ::2].copy(), "grad": half}, attrs)
        yield f"AvgPool {x}", Case("AvgPool", {"value": a}, attrs)


def elementwise():
    x, bias = real(64, 28, 28, 32), real(32)
    y, labels = real(1024, 10), RNG.randint(0, 10, 1024).astype(np.int32)
    big, other = real(1 << 20), real(1 << 20)
    yield "BiasAdd 64x28x28x32", Case("BiasAdd", {"value": x, "bias": bias}, {})
    yield "BiasAddGrad 64x28x28x32", Case("BiasAddGrad", {"out_backprop": x}, {})
    yield "Relu 64x28x28x32", Case("Relu", {"features": x}, {})
    yield "ReluGrad 64x28x28x32", Case("ReluGrad", {"gradients": x, "features": x}, {})
    yield "SparseSoftmaxXent 1024x10", Case("SparseSoftmaxCrossEntropyWithLogits", {
        "features": y, "labels": labels}, {})
    for n, k in ((1 << 20, 1 << 20), (1000, 1000), (1000, 5)):
        yield f"TopKV2 {k} of {n}", Case("TopKV2", {"input": real((1 << 20) // n, n), "k": np.int32(k)}, {})
    large = real(1024, 10000)
    yield "SparseSoftmaxXent 1024x10000", Case("SparseSoftmaxCrossEntropyWithLogits", {
        "features": large, "labels": labels}, {})
    yield "SoftmaxXent 1024x10000", Case("SoftmaxCrossEntropyWithLogits", {
        "features": large, "labels": large / large.sum(-1, keepdims=True)}, {})
    yield "Softmax 1024x1024", Case("Softmax", {"logits": big.reshape(1024, 1024)}, {})
    for op in ("Mul", "AddV2"):
        yield f"{op} 1M", Case(op, {"x": big, "y": other}, {})
    for op in ("Tanh", "Exp", "Sigmoid", "Sqrt"):
        yield f"{op} 1M", Case(op, {"x": big}, {})
    yield "Sum 1M", Case("Sum", {"input": big, "axis": np.int32([0])}, {})
    yield "Sum columns 1024x1024", Case("Sum", {"input": big.reshape(1024, 1024),
                                                "axis": np.int32([0])}, {})
    yield "Transpose 1024x1024", Case("Transpose", {"x": big.reshape(1024, 1024),
                                                    "perm": np.int32([1, 0])}, {})


def applies():
    one = np.float32(0.9)
    for n in (100352, 401408):
        yield f"ApplyGradientDescent {n}", Case("ApplyGradientDescent", {
            "var": Var(real(n)), "alpha": one, "delta": real(n)}, {})
        yield f"ApplyAdam {n}", Case("ApplyAdam", {
            "var": Var(real(n)), "m": Var(real(n)), "v": Var(real(n)), "beta1_power": one,
            "beta2_power": one, "lr": one, "beta1": one, "beta2": one, "epsilon": one,
            "grad": real(n)}, {})


def lookups():
    table, rows = real(1 << 14, 1024), RNG.randint(0, 1 << 14, 32).astype(np.int32)
    yield "GatherV2 32 rows of 4 KiB", Case("GatherV2", {"params": table, "indices": rows,
                                                       "axis": np.int32(0)}, {})
    yield "ScatterSub 32 rows of 4 KiB", Case("ScatterSub", {
        "ref": Var(table), "indices": rows, "updates": real(32, 1024)}, {})


def positive(*shape):
    a = real(*shape)
    return a @ np.swapaxes(a, -1, -2) + shape[-1] * np.eye(shape[-1], dtype=np.float32)


def matrices():
    for shape in [(16, 16), (64, 64), (256, 256), (512, 512), (1000, 4, 4)]:
        x, spd, right = real(*shape), positive(*shape), real(*shape)
        size = "x".join(map(str, shape))
        yield f"Cholesky {size}", Case("Cholesky", {"input": spd}, {})
        yield f"CholeskyGrad {size}", Case("CholeskyGrad", {
            "l": np.linalg.cholesky(spd), "grad": right}, {})
        yield f"Lu {size}", Case("Lu", {"input": x}, {})
        for op in ("MatrixInverse", "MatrixDeterminant", "LogMatrixDeterminant"):
            yield f"{op} {size}", Case(op, {"input": x}, {})
        yield f"MatrixSolve {size}", Case("MatrixSolve", {"matrix": x, "rhs": right}, {})
        yield f"MatrixSolveLs {size}", Case("MatrixSolveLs", {
            "matrix": spd, "rhs": right, "l2_regularizer": np.float64(0.1)}, {"fast": True})
        yield f"MatrixTriangularSolve {size}", Case("MatrixTriangularSolve", {
            "matrix": spd, "rhs": right}, {})
        yield f"Qr {size}", Case("Qr", {"input": x}, {})
        yield f"SelfAdjointEigV2 {size}", Case("SelfAdjointEigV2", {"input": spd}, {})
        yield f"Svd {size}", Case("Svd", {"input": x}, {})
        if shape[-1] <= 256:
            yield f"Eig {size}", Case("Eig", {"input": x}, {"Tout": tf.complex64})


def cells():
    for time_, batch, n in [(20, 32, 128), (50, 8, 512), (100, 1, 64)]:
        h, wide = real(batch, n), real(time_, batch, n)
        top = {"seq_len_max": np.int64(time_), "x": wide, "cs_prev": h, "h_prev": h,
               "w": real(2 * n, 4 * n) / n, "wci": real(n), "wcf": real(n), "wco": real(n),
               "b": real(4 * n)}
        given = {k: wide for k in ("i", "cs", "f", "o", "ci", "co", "h")}
        back = {**top, **given, "cs_grad": wide, "h_grad": wide}
        size = f"{time_}x{batch}x{n}"
        yield f"BlockLSTM {size}", Case("BlockLSTM", top, {})
        yield f"BlockLSTMGrad {size}", Case("BlockLSTMGrad", back, {"use_peephole": False})
    x = real(64, 256)
    gru = {"x": x, "h_prev": x, "w_ru": real(512, 512) / 256, "w_c": real(512, 256) / 256,
           "b_ru": real(512), "b_c": real(256)}
    yield "GRUBlockCell 64x256", Case("GRUBlockCell", gru, {})
    yield "GRUBlockCellGrad 64x256", Case("GRUBlockCellGrad", {
        **gru, "r": x, "u": x, "c": x, "d_h": x}, {})


class Stock:
    """Runs the op once, and a chain of `copies` further ones, in one session."""

    def __init__(self, case, threads):
        self.graph, self.copies = tf.Graph(), 10
        config = tf.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=1)
        config.graph_options.optimizer_options.opt_level = -1
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        with self.graph.as_default():
            args = {k: self.argument(v) for k, v in case.inputs.items()}
            ends = []
            for n in (1, 1 + self.copies):
                last = []
                for _ in range(n):
                    with tf.control_dependencies(last):
                        getattr(tf.raw_ops, case.op)(**args, **case.attrs)
                    last = [[o for o in self.graph.get_operations() if o.type == case.op][-1]]
                ends.append(last[0])
            self.session = tf.Session(config=config)
            self.session.run(tf.global_variables_initializer())
            self.one, self.many = (self.session.make_callable(o) for o in ends)

    @staticmethod
    def argument(a):
        if isinstance(a, Var):
            return tf.Variable(a.value, use_resource=False)._ref()
        if a.dtype == np.int32 or not a.shape:
            return tf.constant(a)
        # TensorFlow's oneDNN kernels cache the reordered weights of a constant filter, so the filter is a variable.
        return tf.Variable(a, use_resource=False)

    def measure(self):
        best, end = [math.inf, math.inf], time.perf_counter() + MILLISECONDS / 1e3
        while time.perf_counter() < end:
            for i, run in enumerate((self.one, self.many)):
                start = time.perf_counter()
                run()
                best[i] = min(best[i], time.perf_counter() - start)
        return best


def compare(case, driver, threads, rounds):
    g, op, _, inputs, _, _ = ops_diff.build(case)
    stock, ours, theirs = Stock(case, threads), math.inf, [math.inf, math.inf]
    stock.measure()
    for _ in range(rounds):
        theirs = [min(p) for p in zip(theirs, stock.measure())]
        code, ns = driver.time(g.as_graph_def(), op.name, inputs)
        if code:
            raise SystemExit(f"{case.op}: {ns}")
        ours = min(ours, int(ns) / 1e3)
    stock.session.close()
    return 1e6 * (theirs[1] - theirs[0]) / stock.copies, ours


def main():
    p = argparse.ArgumentParser()
    p.add_argument("driver")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--only", default="")
    a = p.parse_args()
    driver = ops_diff.Driver(a.driver, "", a.threads, MILLISECONDS)
    print(f"{a.threads} thread(s) {'':<41} {'stock us':>10} {'muster us':>10} {'times':>6}")
    for group in (products, convolutions, grouped, pools, elementwise, applies, lookups, matrices, cells):
        for name, case in group():
            if any(text in name for text in a.only.split(";")):
                stock, ours = compare(case, driver, a.threads, a.rounds)
                print(f"{name:<53} {stock:>10.1f} {ours:>10.1f} {stock / ours:>6.2f}", flush=True)


main()
