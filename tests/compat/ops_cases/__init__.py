# SPDX-License-Identifier: Apache-2.0
"""The cases of ops_diff.py: an op, its inputs by name, its attributes."""
import importlib

import numpy as np

F, D, I, L, B = np.float32, np.float64, np.int32, np.int64, np.bool_
REALS, INTS = (F, D), (I, L)
rng = np.random.RandomState(7)


class Var:
    """An input that is a variable with this value, passed as a handle to Resource ops, else as a reference."""

    def __init__(self, value):
        self.value = value


class Case:
    def __init__(self, op, inputs, attrs=None, rtol=None, atol=0.0, only_shape=False, first=None,
                 known=False, producer=0, seen=None):
        self.op, self.inputs, self.attrs = op, inputs, attrs or {}
        self.rtol, self.atol, self.only_shape = rtol, atol, only_shape
        self.known = known  # True if the op needs static shapes
        self.producer = producer  # producer version of the graph, for ops that later versions reject
        self.seen = seen  # converts an output to its comparable part, if its bytes may differ
        self.first = first  # number of outputs that TensorFlow sets; None: all

    def __repr__(self):
        def short(a):
            if isinstance(a, Var):
                return "variable " + short(a.value)
            return f"{a.dtype}{list(a.shape)}"
        i = {k: [short(x) for x in v] if isinstance(v, list) else short(v)
             for k, v in self.inputs.items()}
        return f"{self.op} {i} {self.attrs}"


def real(t, *shape, low=-2.0, high=2.0):
    return (rng.uniform(low, high, shape)).astype(t)


def ints(t, *shape, low=-9, high=9):
    return rng.randint(low, high, shape).astype(t)


def strs(*words):
    return np.array([w.encode() for w in words], dtype=object)


def i32(*v):
    return np.array(v, I)


def scalar(v, t=I):
    return np.array(v, t)


def unary():
    anywhere = ("Neg Abs Sign Square Exp Expm1 Sin Cos Tan Atan Sinh Cosh Tanh Asinh Erf Erfc Floor "
                "Ceil Round Rint Sigmoid Elu Selu Softplus Softsign Relu Relu6").split()
    for op in anywhere:
        for t in REALS:
            x = np.concatenate([real(t, 40, low=-6, high=6),
                                np.array([0, -0.5, 0.5, 1.5, 2.5, -1.5, 1e-3, np.nan], t)])
            key = "features" if op in ("Elu", "Selu", "Softplus", "Softsign", "Relu",
                                       "Relu6") else "x"
            yield Case(op, {key: x}, rtol=6e-6 if t == F else None, atol=1e-7 if t == F else 1e-14)
    for op in "Sqrt Rsqrt Reciprocal Inv Log Log1p Lgamma".split():
        for t in REALS:
            yield Case(op, {"x": real(t, 33, low=0.01, high=9)}, rtol=4e-6 if t == F else None,
                       atol=1e-6 if t == F else 1e-13)
    for t in REALS:
        near = {"rtol": 1e-5 if t == F else 1e-11, "atol": 1e-5 if t == F else 1e-11}
        yield Case("Digamma", {"x": np.array([-3.7, -0.2, 0.01, 0.5, 1, 1.4616, 2, 5, 9.5, 100], t)}, **near)
        below = np.array([-1e-20, -1e-10, -1 - 1e-6], t)  # poles and values near them
        yield Case("Digamma", {"x": below}, **near)
        yield Case("Zeta", {"x": np.array([2], t), "q": below}, **near)
        yield Case("Polygamma", {"a": np.array([0, 1, 1, 2, 3, 1, 5, 1.5], t),
                                 "x": np.array([0.3, 0.3, 7, 1.2, 2, -0.6, 4, 1], t)}, **near)
        yield Case("Zeta", {"x": np.array([2, 3.5, 1.5, 2, 6, 1, 4], t), "q": np.array([1, 0.4, 20, -0.3, 3, 2, -2], t)},
                   **near)
    for op in "Asin Acos Atanh".split():
        for t in REALS:
            yield Case(op, {"x": real(t, 33, low=-0.99, high=0.99)}, rtol=4e-6 if t == F else None)
    yield Case("Acosh", {"x": real(F, 33, low=1, high=9)}, rtol=4e-6)
    for op in ("Neg", "Abs", "Sign", "Square"):
        for t in INTS:
            yield Case(op, {"x": ints(t, 3, 4)})
    for op in ("IsNan", "IsInf", "IsFinite"):
        yield Case(op, {"x": np.array([1, np.nan, np.inf, -np.inf, 0], F)})
    yield Case("LogicalNot", {"x": np.array([True, False])})
    yield Case("Invert", {"x": ints(I, 5)})
    yield Case("LeakyRelu", {"features": real(F, 9)}, {"alpha": 0.3})
    yield Case("LeakyRelu", {"features": np.array([-3, -7, -0.1, 2], np.float16)})
    yield Case("LeakyReluGrad", {"gradients": real(F, 9), "features": real(F, 9)}, {"alpha": 0.3})
    big = np.array([100, -100, 88.5, -88.5, 89, -104, -95, np.inf, -np.inf], F)
    # TensorFlow flushes subnormal numbers to zero; we do not.
    yield Case("Exp", {"x": big}, atol=1e-37)
    yield Case("Sigmoid", {"x": big}, atol=1e-30)


SHAPES = [((3, 4), (3, 4)), ((3, 4), ()), ((), (3, 4)), ((3, 4), (4,)), ((3, 1), (3, 4)),
          ((2, 1, 4), (3, 1)), ((0, 4), (1, 4)), ((), ()), ((1,), ()), ((2, 3, 4, 5), (3, 1, 5))]


def binary():
    for op in "Add AddV2 Sub Mul RealDiv Div Maximum Minimum SquaredDifference".split():
        for a, b in SHAPES:
            yield Case(op, {"x": real(F, *a), "y": real(F, *b)})
        for t in (D, I, L):
            make = ints if t in INTS else real
            if op == "RealDiv" and t in INTS:
                continue
            y = make(t, 4)
            y[y == 0] = 1
            yield Case(op, {"x": make(t, 3, 4), "y": y})
    for op in "FloorDiv FloorMod TruncateDiv TruncateMod Mod".split():
        for t in INTS:
            y = ints(t, 30)
            y[y == 0] = 3
            yield Case(op, {"x": ints(t, 30, low=-50, high=50), "y": y})
    for op in "FloorDiv FloorMod Mod".split():
        yield Case(op, {"x": real(F, 30, low=-9, high=9), "y": real(F, 30)}, atol=1e-6)
    for op in ("Div", "FloorDiv", "FloorMod", "Mod"):
        yield Case(op, {"x": ints(I, 3), "y": np.zeros(3, I)})
    for op in "Pow Atan2 Xdivy Xlogy Xlog1py DivNoNan MulNoNan NextAfter".split():
        for t in REALS:
            x, y = real(t, 20, low=0, high=3), real(t, 20, low=0.1, high=3)
            x[3] = 0
            if op in ("DivNoNan", "MulNoNan"):
                y[5] = 0
            key = ("x1", "x2") if op == "NextAfter" else ("y", "x") if op == "Atan2" else ("x", "y")
            yield Case(op, {key[0]: x, key[1]: y}, rtol=4e-6 if t == F else None)
    yield Case("Pow", {"x": ints(I, 9), "y": ints(I, 9, low=0, high=5)})
    for op in "Equal NotEqual Less LessEqual Greater GreaterEqual".split():
        for t in (F, I, L):
            yield Case(op, {"x": ints(t, 3, 5, low=0, high=3), "y": ints(t, 5, low=0, high=3)})
    for op in ("Equal", "NotEqual"):
        yield Case(op, {"x": strs("a", "b", ""), "y": strs("a", "c", "")})
        yield Case(op, {"x": np.array([True, False]), "y": np.array([True, True])})
        yield Case(op, {"x": ints(I, 2), "y": ints(I, 3)}, {"incompatible_shape_error": False})
    yield Case("Add", {"x": strs("a", "b"), "y": strs("x")})
    yield Case("AddV2", {"x": real(F, 2), "y": real(F, 3)})
    for op in ("LogicalAnd", "LogicalOr"):
        yield Case(op, {"x": np.array([[True], [False]]), "y": np.array([True, False, True])})
    for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        yield Case(op, {"x": ints(I, 7), "y": ints(I, 7)})
    for op in ("LeftShift", "RightShift"):
        yield Case(op, {"x": ints(I, 7), "y": ints(I, 7, low=0, high=6)})
    for op in "ReluGrad Relu6Grad".split():
        yield Case(op, {"gradients": real(F, 20), "features": real(F, 20, low=-8, high=8)})
    for op in "EluGrad SeluGrad".split():
        yield Case(op, {"gradients": real(F, 20), "outputs": real(F, 20, low=-1, high=2)},
                   rtol=4e-6)
    for op in "SoftplusGrad SoftsignGrad".split():
        yield Case(op, {"gradients": real(F, 20), "features": real(F, 20)}, rtol=4e-6)
    for op in "SigmoidGrad TanhGrad SqrtGrad RsqrtGrad ReciprocalGrad InvGrad".split():
        yield Case(op, {"y": real(F, 20, low=0.1, high=2), "dy": real(F, 20)}, rtol=4e-6,
                   atol=1e-7)
    yield Case("SqrtGrad", {"y": np.array([0, 4, 1], np.float32), "dy": np.array([0, 1, 0], np.float32)})
    yield Case("ApproximateEqual", {"x": real(F, 5), "y": real(F, 5)}, {"tolerance": 0.5})


def choose():
    for shape in ((3, 4), (3,), ()):
        c = rng.rand(*shape) > 0.5
        c = np.asarray(c)
        yield Case("Select", {"condition": c, "x": real(F, 3, 4), "y": real(F, 3, 4)})
    yield Case("Select", {"condition": np.array([True, False]), "x": strs("a", "b"),
                          "y": strs("c", "d")})
    yield Case("Select", {"condition": np.array([True, False]), "x": real(F, 3), "y": real(F, 3)})
    for shapes in (((3, 1), (4,), ()), ((), (2, 2), (2, 2)), ((2,), (2,), (1,))):
        yield Case("SelectV2", {"condition": np.asarray(rng.rand(*shapes[0]) > 0.5),
                                "t": real(F, *shapes[1]), "e": real(F, *shapes[2])})
    for t in (np.int8, np.int16, I, np.complex64, np.complex128):
        yield Case("SelectV2", {"condition": rng.rand(40) > 0.5, "t": ints(t, 40), "e": ints(t, 40)})
    yield Case("AddN", {"inputs": [real(F, 2, 3), real(F, 2, 3), real(F, 2, 3)]})
    yield Case("AddN", {"inputs": [ints(I, 2)]})
    yield Case("AddN", {"inputs": [real(F, 2, 3), real(F, 2, 2)]})
    for op in ("CheckNumerics", "CheckNumericsV2"):
        for values in ([1, 2], [np.nan, 1], [np.inf], [-np.inf], [np.inf, -np.inf], [np.nan, -np.inf], [np.nan, np.inf, -np.inf], []):
            yield Case(op, {"tensor": np.array(values, F)}, {"message": "m"})
    yield Case("DebugGradientIdentity", {"input": real(F, 3)})
    for names in (["GPU", "CPU"], ["CPU", "CPU"], ["GPU"], ["cpu"], []):
        yield Case("DeviceIndex", {}, {"device_names": names})


def casts():
    import tensorflow as tf
    types = [F, D, I, L, B, np.uint8, np.int8, np.int16, np.uint16, np.float16]
    for a in types:
        for b in types:
            x = ints(L, 20, low=0, high=100) if a != B else rng.rand(20) > 0.5
            yield Case("Cast", {"x": x.astype(a)}, {"DstT": tf.as_dtype(b)})
    yield Case("Cast", {"x": np.array([1.7, -1.7, 2.5, -0.1], F)}, {"DstT": tf.int32})
    h = np.array([1e-8, 6e-8, 6.1e-5, 1.0009766, 65504, 65519, 65520, -3e-5, np.inf, np.nan], F)
    yield Case("Cast", {"x": h}, {"DstT": tf.float16})
    yield Case("Cast", {"x": h}, {"DstT": tf.bfloat16})
    for shape in ([2, 3], [], [None, 2]):
        yield Case("FakeParam", {}, {"dtype": tf.float32, "shape": shape}, only_shape=True)
    yield Case("Cast", {"x": h.astype(np.float16)}, {"DstT": tf.float32})


def reduce():
    for op in "Sum Prod Max Min Mean".split():
        for t in (F, D, I, L):
            make = ints if t in INTS else real
            for shape, axes in (((3, 4), [0]), ((3, 4), [1]), ((3, 4), [0, 1]), ((2, 3, 4), [1]),
                                ((2, 3, 4), [0, 2]), ((2, 3, 4), [-1]), ((5,), []), ((), []),
                                ((2, 1, 3), [1])):
                for keep in (False, True):
                    yield Case(op, {"input": make(t, *shape), "axis": np.array(axes, I)},
                               {"keep_dims": keep}, rtol=4e-6 if t == F else None, atol=1e-6)
        yield Case(op, {"input": real(F, 100, 333), "axis": i32(1)}, rtol=1e-4, atol=1e-4)
        yield Case(op, {"input": real(F, 2, 2), "axis": i32(2)})
    for t in (np.uint8, np.int8, np.uint16, np.int16, I, L):  # neither the sum nor the count is representable in the small types
        yield Case("Mean", {"input": ints(t, 2, 256, low=60, high=127), "axis": i32(1)})
    for op in ("Sum", "Prod", "Max", "Min", "Mean"):
        yield Case(op, {"input": np.zeros((0, 3), F), "axis": i32(0)})
    yield Case("Sum", {"input": np.zeros((3, 0), F), "axis": i32(1)})
    for op in ("All", "Any"):
        yield Case(op, {"input": rng.rand(4, 5) > 0.3, "axis": i32(1)})
        yield Case(op, {"input": np.zeros((0,), B), "axis": i32(0)})
    yield Case("EuclideanNorm", {"input": real(F, 3, 4), "axis": i32(1)})
    for t in (I, L):
        yield Case("EuclideanNorm", {"input": ints(t, 3, 4, low=0, high=9), "axis": i32(1)})
    yield Case("L2Loss", {"t": real(F, 3, 4)})
    yield Case("L2Loss", {"t": real(np.float64, 3, 400)})
    for t in (F, I, L):
        for axis in (0, 1, -1):
            yield Case("ArgMax", {"input": ints(t, 4, 5), "dimension": scalar(axis)})
            yield Case("ArgMin", {"input": ints(t, 4, 5), "dimension": scalar(axis)})
    x = ints(F, 2, 5, 300)
    x[0, 0, :9] = x[1, 3, 5:20] = np.nan
    for axis in (0, 1, 2):
        yield Case("ArgMax", {"input": x, "dimension": scalar(axis)})
        yield Case("ArgMin", {"input": x, "dimension": scalar(axis)})
    yield Case("ArgMax", {"input": real(F, 4), "dimension": scalar(3)})
    for t in (np.int16, np.uint16):
        yield Case("ArgMax", {"input": real(F, 4, 5), "dimension": scalar(1)}, {"output_type": t})
    yield Case("InTopKV2", {"predictions": real(F, 4, 6), "targets": i32(1, 2, 3, 4),
                            "k": scalar(2)})


def products():
    for t in (F, D, I, L):
        make = ints if t in INTS else real
        for ta in (False, True):
            for tb in (False, True):
                a, b = make(t, 5, 7), make(t, 7, 3)
                yield Case("MatMul", {"a": a.T.copy() if ta else a, "b": b.T.copy() if tb else b},
                           {"transpose_a": ta, "transpose_b": tb}, rtol=1e-5, atol=1e-5)
    for ta in (False, True):
        for tb in (False, True):
            a, b = real(F, 65, 130), real(F, 130, 67)
            yield Case("MatMul", {"a": a.T.copy() if ta else a, "b": b.T.copy() if tb else b},
                       {"transpose_a": ta, "transpose_b": tb}, rtol=1e-4, atol=1e-4)
    yield Case("MatMul", {"a": real(F, 3, 2), "b": real(F, 1, 2)})
    yield Case("MatMul", {"a": real(F, 0, 2), "b": real(F, 2, 3)})
    yield Case("MatMul", {"a": real(F, 3, 0), "b": real(F, 0, 3)})
    for a, b in (((2, 3, 4), (2, 4, 5)), ((2, 3, 4), (4, 5)), ((3, 1, 2, 4), (2, 4, 5))):
        yield Case("BatchMatMulV2", {"x": real(F, *a), "y": real(F, *b)}, rtol=1e-5, atol=1e-5)
    yield Case("BatchMatMulV2", {"x": real(F, 2, 4, 3), "y": real(F, 2, 5, 4)},
               {"adj_x": True, "adj_y": True}, rtol=1e-5, atol=1e-5)
    yield Case("BatchMatMul", {"x": real(F, 2, 4, 3), "y": real(F, 2, 3, 2)}, rtol=1e-5, atol=1e-5)


def network():
    for shape in ((4, 3), (2, 5, 3), (2, 2, 2, 3)):
        value, bias = real(F, *shape), real(F, 3)
        yield Case("BiasAdd", {"value": value, "bias": bias})
        yield Case("BiasAddV1", {"value": value, "bias": bias})
        yield Case("BiasAddGrad", {"out_backprop": real(F, *shape)}, atol=1e-6)
    yield Case("BiasAddGrad", {"out_backprop": np.zeros((0, 3), F)})
    yield Case("BiasAdd", {"value": real(F, 4, 3), "bias": real(F, 2)})
    for op in ("Softmax", "LogSoftmax"):
        for t in REALS:
            yield Case(op, {"logits": real(t, 5, 10, low=-9, high=9)}, rtol=6e-6 if t == F else None,
                       atol=1e-6 if t == F else 1e-13)
            # log of the sum, added to a large logit
            yield Case(op, {"logits": np.repeat(np.array([[-1e7], [-1e8], [1e9]], t), 11, 1)})
    for t in REALS:
        x, y = real(t, 6, 10, low=-5, high=5), rng.dirichlet(np.ones(10), 6).astype(t)
        yield Case("SoftmaxCrossEntropyWithLogits", {"features": x, "labels": y},
                   rtol=1e-5 if t == F else None, atol=1e-6 if t == F else 1e-12)
        for k in INTS:
            yield Case("SparseSoftmaxCrossEntropyWithLogits",
                       {"features": x, "labels": ints(k, 6, low=0, high=10)},
                       rtol=1e-5 if t == F else None, atol=1e-6 if t == F else 1e-12)
    yield Case("SparseSoftmaxCrossEntropyWithLogits", {"features": real(F, 2, 3),
                                                       "labels": i32(0, 3)}, only_shape=True)


def arrays():
    x = real(F, 2, 3, 4)
    words = strs("a", "", "ccc", "dd")
    yield Case("Shape", {"input": x})
    yield Case("ShapeN", {"input": [x, real(F, 0)]})
    yield Case("Size", {"input": x})
    yield Case("Rank", {"input": x})
    for s in ([6, 4], [-1, 2], [24], [-1], [2, 3, 4, 1]):
        yield Case("Reshape", {"tensor": x, "shape": np.array(s, I)})
    for s in ([5, 5], [-1, -1], [7, -1]):
        yield Case("Reshape", {"tensor": x, "shape": np.array(s, I)})
    yield Case("Reshape", {"tensor": words, "shape": i32(2, 2)})
    for shape, new in (((0, 4, 6), (0, -1)), ((0, 6), (0, -1, 3)), ((2, 0, 5), (-1, 0)), ((0, 5), (-1, 5)), ((2, 3), (0, -1)), ((0, 5), (0, -1, 3))):
        yield Case("Reshape", {"tensor": np.zeros(shape, F), "shape": np.array(new, I)})
    yield Case("Reshape", {"tensor": strs(), "shape": i32(-1)})
    for a in (0, 1, -1, -4, 3, 4):
        yield Case("ExpandDims", {"input": x, "axis": scalar(a)})
    yield Case("Squeeze", {"input": real(F, 1, 3, 1)})
    yield Case("Squeeze", {"input": real(F, 1, 3, 1)}, {"axis": [0]})
    yield Case("Squeeze", {"input": real(F, 1, 3, 1)}, {"axis": [-1]})
    yield Case("Squeeze", {"input": real(F, 1, 3, 1)}, {"axis": [1]}, only_shape=True)
    for axis in (3, -4):
        yield Case("Squeeze", {"input": real(F, 1, 3, 1)}, {"axis": [axis]})
    yield Case("BroadcastTo", {"input": real(F, 3, 1), "shape": i32(2, 3, 4)})
    yield Case("BroadcastArgs", {"s0": i32(3, 1), "s1": i32(2, 1, 4)})
    for a, b in ((i32(3, 1), i32(3, 4)), (i32(4), i32(3, 4)), (i32(2), i32(2)), (i32(), i32(2)),
                 (i32(1), i32(1, 1)), (i32(2, 1, 3), i32(5, 1))):
        yield Case("BroadcastGradientArgs", {"s0": a, "s1": b})
    for axis in (0, 1, 2, -1):
        yield Case("ConcatV2", {"values": [x, x], "axis": scalar(axis)})
        yield Case("Pack", {"values": [x, x]}, {"axis": axis})
        yield Case("Unpack", {"value": x}, {"num": x.shape[axis], "axis": axis})
    yield Case("ConcatV2", {"values": [strs("a"), strs(), strs("b", "c")], "axis": scalar(0)})
    yield Case("ConcatV2", {"values": [real(F, 2, 2), real(F, 3, 3)], "axis": scalar(0)})
    yield Case("Concat", {"concat_dim": scalar(0), "values": [real(F, 2, 2), real(F, 3, 2)]})
    yield Case("ConcatOffset", {"concat_dim": scalar(1), "shape": [i32(2, 3), i32(2, 5),
                                                                   i32(2, 1)]})
    yield Case("Pack", {"values": [strs("a"), strs("b")]})
    yield Case("Split", {"axis": scalar(1), "value": real(F, 2, 6)}, {"num_split": 3})
    yield Case("SplitV", {"value": real(F, 6, 2), "size_splits": i32(1, 2, 3), "axis": scalar(0)},
               {"num_split": 3})
    yield Case("SplitV", {"value": real(F, 6, 2), "size_splits": i32(1, -1), "axis": scalar(0)},
               {"num_split": 2})
    yield Case("Slice", {"input": x, "begin": i32(0, 1, 2), "size": i32(-1, 2, 1)})
    yield Case("Slice", {"input": x, "begin": i32(0, 1, 2), "size": i32(3, 2, 1)})
    yield Case("Slice", {"input": words, "begin": i32(1), "size": i32(2)})
    yield Case("Tile", {"input": real(F, 2, 3), "multiples": i32(2, 3)})
    yield Case("Tile", {"input": words, "multiples": i32(2)})
    yield Case("Tile", {"input": real(F, 2, 3), "multiples": i32(0, 3)})
    for p in ((0, 1, 2), (2, 1, 0), (1, 2, 0), (0, 2, 1)):
        yield Case("Transpose", {"x": x, "perm": np.array(p, I)})
    yield Case("Transpose", {"x": x, "perm": i32(0, 0, 1)})
    z = np.array([[1 + 2j, 3 - 4j, 5], [0, -1j, 6 + 1j]])
    for z in (z.astype(np.complex64), z.astype(np.complex128), z.imag.astype(F)):
        yield Case("ConjugateTranspose", {"x": z, "perm": i32(1, 0)})
    yield Case("ReverseV2", {"tensor": x, "axis": i32(0, 2)})
    yield Case("Pad", {"input": real(F, 2, 3), "paddings": np.array([[1, 2], [0, 3]], I)})
    yield Case("PadV2", {"input": real(F, 2, 3), "paddings": np.array([[1, 2], [0, 3]], I),
                         "constant_values": scalar(7, F)})


def strided():
    x = ints(I, 4, 5, 6)

    def case(b, e, s, **masks):
        return Case("StridedSlice", {"input": x, "begin": np.array(b, I), "end": np.array(e, I),
                                     "strides": np.array(s, I)}, masks)
    yield case([1], [3], [1])
    yield case([1, 0], [3, 5], [1, 2])
    yield case([-1], [0], [1], shrink_axis_mask=1)
    yield case([1], [0], [-2], shrink_axis_mask=1)
    yield case([0, -1], [4, -6], [1, -2])
    yield case([0, 0], [0, 2], [1, 1], ellipsis_mask=1)
    yield case([0, 0, 1], [0, 0, 3], [1, 1, 1], ellipsis_mask=2, begin_mask=1, end_mask=1)
    yield case([1], [3], [1], ellipsis_mask=2)
    yield case([0, 0], [0, 0], [1, 1], new_axis_mask=1, begin_mask=2, end_mask=2)
    yield case([5, 0], [9, 2], [1, 1])
    yield case([4], [5], [1], shrink_axis_mask=1)
    yield case([0], [4], [0])
    yield case([0, 0, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1])
    yield case([2, 1, 1], [4, 3, 5], [1, 1, 3], shrink_axis_mask=2)
    yield case([-100], [100], [3])
    yield case([100], [-100], [-1])
    for shape, b, e, s in (((4, 5), [1, 0], [3, 5], [1, 2]), ((4,), [3], [0], [-1])):
        t = real(F, *shape)[tuple(slice(i, j, k) for i, j, k in zip(b, e, s))]
        yield Case("StridedSliceGrad", {"shape": np.array(shape, I), "begin": np.array(b, I),
                                        "end": np.array(e, I), "strides": np.array(s, I),
                                        "dy": t.copy()})


def make():
    yield Case("Fill", {"dims": i32(2, 3), "value": scalar(7, F)})
    yield Case("Fill", {"dims": i32(2), "value": np.array(b"x", dtype=object)})
    yield Case("Fill", {"dims": i32(-1), "value": scalar(7, F)})
    yield Case("ZerosLike", {"x": real(F, 2, 2)})
    yield Case("OnesLike", {"x": real(F, 2, 2)})
    yield Case("OnesLike", {"x": rng.rand(3) > 0.5})
    for t in (I, L, F):
        yield Case("Range", {"start": scalar(3, t), "limit": scalar(18, t), "delta": scalar(4, t)})
    for t in REALS:  # rounding in the division, which depends on the type, decides the size
        for limit in (0.3, 0.6, 1.1, 1.7):
            yield Case("Range", {"start": scalar(0, t), "limit": scalar(limit, t), "delta": scalar(0.1, t)})
    yield Case("Range", {"start": scalar(5), "limit": scalar(0), "delta": scalar(-2)})
    yield Case("Range", {"start": scalar(5), "limit": scalar(0), "delta": scalar(2)})
    yield Case("Range", {"start": scalar(0), "limit": np.array([[3]], I), "delta": scalar(1)})
    for start, limit, delta in ((2**53, 2**53 + 3, 1), (2**60 + 10, 2**60, -3), (-2**62, 2**62, 2**60)):
        yield Case("Range", {"start": scalar(start, L), "limit": scalar(limit, L), "delta": scalar(delta, L)})
    yield Case("LinSpace", {"start": scalar(0, F), "stop": scalar(1, F), "num": scalar(5)})
    yield Case("Where", {"condition": rng.rand(3, 4) > 0.5})
    yield Case("Where", {"condition": np.zeros((0,), B)})
    yield Case("Where", {"condition": ints(F, 7, low=0, high=2)})
    for axis in (-1, 0, 1):
        yield Case("OneHot", {"indices": ints(I, 2, 3, low=-1, high=4), "depth": scalar(4),
                              "on_value": scalar(1, F), "off_value": scalar(0, F)}, {"axis": axis})
    yield Case("InvertPermutation", {"x": i32(2, 0, 1)})
    yield Case("InvertPermutation", {"x": i32(2, 0, 0)})


def gather():
    p = real(F, 3, 4, 5)
    for axis in (0, 1, 2, -1):
        yield Case("GatherV2", {"params": p, "indices": np.array([[0, 2], [1, 0]], I),
                                "axis": scalar(axis)})
    yield Case("GatherV2", {"params": p, "indices": np.array([[0], [1], [3]], L),
                            "axis": scalar(1)}, {"batch_dims": 1})
    yield Case("GatherV2", {"params": strs("a", "b", "c"), "indices": np.array([2, 0], L),
                            "axis": scalar(0)})
    yield Case("GatherV2", {"params": strs("a", "b", "c"), "indices": np.zeros((0,), L),
                            "axis": scalar(0)})
    yield Case("Gather", {"params": p, "indices": i32(2, 1)})
    yield Case("GatherV2", {"params": real(F, 3), "indices": scalar(7), "axis": scalar(0)})
    yield Case("GatherV2", {"params": real(F, 3), "indices": i32(1, 7), "axis": scalar(0)})
    yield Case("GatherNd", {"params": p, "indices": np.array([[0, 1], [2, 3]], I)})
    yield Case("GatherNd", {"params": p, "indices": np.array([[0, 1, 2], [2, 3, 4]], I)})
    yield Case("GatherNd", {"params": p, "indices": np.array([[0, 9]], I)})
    for op in "Sum Prod Max Min".split():
        yield Case("UnsortedSegment" + op, {"data": real(F, 4, 3), "segment_ids": i32(0, 2, 0, -1),
                                            "num_segments": scalar(3)})
    yield Case("UnsortedSegmentSum", {"data": real(F, 2, 3),
                                      "segment_ids": np.array([[0, 1, 1], [0, 2, 2]], I),
                                      "num_segments": scalar(3)})


def random():
    import tensorflow as tf
    for op in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal"):
        for t in (tf.float32, tf.float64):
            for n in ((7,), (3, 50)):
                yield Case(op, {"shape": np.array(n, I)}, {"dtype": t, "seed": 5, "seed2": 9},
                           rtol=1e-6, atol=1e-6)
    for t in INTS:
        yield Case("RandomUniformInt", {"shape": i32(11), "minval": scalar(-3, t),
                                        "maxval": scalar(90, t)}, {"seed": 5, "seed2": 9})
    yield Case("RandomUniformInt", {"shape": i32(1), "minval": scalar(3), "maxval": scalar(3)})
    yield Case("RandomUniform", {"shape": i32(4)}, {"dtype": tf.float32}, only_shape=True)
    for shape in ((), (1,), (2,), (9,), (0, 3), (3, 0), (6, 2), (1, 4)):
        yield Case("RandomShuffle", {"value": np.arange(np.prod(shape), dtype=F).reshape(shape)}, {"seed": 5, "seed2": 9})


def strings():
    yield Case("StringJoin", {"inputs": [strs("a", "b"), np.array(b"-", dtype=object),
                                         strs("c", "d")]}, {"separator": "/"})
    yield Case("StaticRegexFullMatch", {"input": strs("s3://x", "/tmp/x", "")},
               {"pattern": "^s3://.*"})
    yield Case("ShardedFilename", {"basename": np.array(b"/a/b", dtype=object), "shard": scalar(1),
                                   "num_shards": scalar(12)})
    yield Case("ShardedFilespec", {"basename": np.array(b"/a/b", dtype=object),
                                   "num_shards": scalar(12)})
    yield Case("ScalarSummary", {"tags": np.array(b"loss", dtype=object), "values": scalar(2.5, F)})
    yield Case("HistogramSummary", {"tag": np.array(b"w", dtype=object),
                                    "values": (np.arange(64) / 8 - 3).astype(F)})
    yield Case("HistogramSummary", {"tag": np.array(b"w", dtype=object),
                                    "values": np.array([np.nan], F)})
    s = np.array(b"\n\x0b\n\x04loss\x15\x00\x00 @", dtype=object)
    yield Case("MergeSummary", {"inputs": [s]})
    yield Case("MergeSummary", {"inputs": [s, s]})


def variables():
    v = Var(real(F, 3, 2))
    yield Case("Assign", {"ref": v, "value": real(F, 3, 2)})
    yield Case("Assign", {"ref": v, "value": real(F, 2)})
    yield Case("Assign", {"ref": v, "value": real(F, 2)}, {"validate_shape": False})
    for op in ("AssignAdd", "AssignSub"):
        for t in (F, D, I, L):
            yield Case(op, {"ref": Var(ints(t, 4)), "value": ints(t, 4)})
            yield Case(op + "VariableOp", {"resource": Var(ints(t, 4)), "value": ints(t, 4)})
    yield Case("AssignAdd", {"ref": v, "value": real(F, 2)})
    yield Case("AssignVariableOp", {"resource": v, "value": real(F, 3, 2)})
    import tensorflow as tf
    yield Case("ReadVariableOp", {"resource": v}, {"dtype": tf.float32})
    yield Case("VariableShape", {"input": v})
    yield Case("IsVariableInitialized", {"ref": v})
    yield Case("VarIsInitializedOp", {"resource": v})
    yield Case("CountUpTo", {"ref": Var(scalar(3))}, {"limit": 5})
    yield Case("CountUpTo", {"ref": Var(scalar(5))}, {"limit": 5})
    yield Case("ResourceGather", {"resource": Var(real(F, 4, 3)), "indices": i32(3, 0, 0)},
               {"dtype": tf.float32})
    for name in "Update Add Sub Mul Div Max Min".split():
        for key, pre in (("ref", ""), ("resource", "Resource")):
            for upd in (real(F, 2, 3, low=1), real(F, low=1)):
                yield Case(f"{pre}Scatter{name}", {key: Var(real(F, 4, 3)), "indices": i32(2, 0),
                                                   "updates": np.asarray(upd)})
        yield Case(f"Scatter{name}", {"ref": Var(real(F, 4, 3)), "indices": i32(4),
                                      "updates": real(F, 1, 3)})


def optimizers():
    def s(v, t):
        return np.array(v, t)
    for t in REALS:
        for pre in ("", "Resource"):
            def v(*shape):
                return Var(real(t, *(shape or (5, 3)), low=0.1, high=1))
            g, rows, idx = real(t, 5, 3), real(t, 3, 3), i32(4, 0, 2)
            tol = dict(rtol=1e-5 if t == F else 1e-11, atol=1e-6 if t == F else 1e-13)

            def both(name, before, after, attrs=None, sparse=True, delta="grad"):
                yield Case(f"{pre}Apply{name}", {**before, delta: g, **after}, attrs, **tol)
                if sparse:
                    yield Case(f"{pre}SparseApply{name}", {**before, "grad": rows, "indices": idx,
                                                           **after}, attrs, **tol)
            lr, half = s(0.1, t), s(0.5, t)
            yield from both("GradientDescent", {"var": v(), "alpha": lr}, {}, sparse=False,
                            delta="delta")
            for u in (True, False):
                yield from both("Adagrad", {"var": v(), "accum": v(), "lr": lr}, {},
                                {"update_slots": u})
                yield from both("AdagradV2", {"var": v(), "accum": v(), "lr": lr,
                                              "epsilon": s(1e-3, t)}, {}, {"update_slots": u})
                yield from both("Momentum", {"var": v(), "accum": v(), "lr": lr},
                                {"momentum": half}, {"use_nesterov": u})
                if pre:
                    yield from both("KerasMomentum", {"var": v(), "accum": v(), "lr": lr},
                                    {"momentum": half}, {"use_nesterov": u})
                yield from both("Adam", {"var": v(), "m": v(), "v": v(), "beta1_power": s(0.9, t),
                                         "beta2_power": s(0.99, t), "lr": lr, "beta1": s(0.9, t),
                                         "beta2": s(0.99, t), "epsilon": s(1e-3, t)}, {},
                                {"use_nesterov": u}, sparse=False)
            yield from both("RMSProp", {"var": v(), "ms": v(), "mom": v(), "lr": lr, "rho": half,
                                        "momentum": half, "epsilon": s(1e-3, t)}, {})
            yield from both("CenteredRMSProp", {
                "var": v(), "mg": Var(real(t, 5, 3, low=0.01, high=0.1)), "ms": v(), "mom": v(),
                "lr": lr, "rho": half, "momentum": half, "epsilon": s(1e-3, t)}, {})
            yield from both("Adadelta", {"var": v(), "accum": v(), "accum_update": v(), "lr": lr,
                                         "rho": half, "epsilon": s(1e-3, t)}, {})
            ftrl = {"lr": lr, "l1": s(0.2, t), "l2": s(0.3, t)}
            for power in (-0.5, -0.7):
                yield from both("Ftrl", {"var": v(), "accum": v(), "linear": v()},
                                {**ftrl, "lr_power": s(power, t)})
                yield from both("FtrlV2", {"var": v(), "accum": v(), "linear": v()},
                                {**ftrl, "l2_shrinkage": s(0.1, t), "lr_power": s(power, t)})
            prox = {"l1": s(0.2, t), "l2": s(0.3, t)}
            yield from both("ProximalGradientDescent", {"var": v(), "alpha": lr, **prox}, {},
                            delta="delta", sparse=False)
            yield Case(f"{pre}SparseApplyProximalGradientDescent",
                       {"var": v(), "alpha": lr, **prox, "grad": rows, "indices": idx}, **tol)
            yield from both("ProximalAdagrad", {"var": v(), "accum": v(), "lr": lr, **prox}, {})
    yield Case("ApplyGradientDescent", {"var": Var(real(F, 2)), "alpha": s(1, F),
                                        "delta": real(F, 3)})


# The other modules.  Their order is fixed, because all share one random generator.
MODULES = (
    ("segments", "partition"), ("segments", "unique"), ("segments", "segments"),
    ("nn", "network_cases"), ("sparse", "sparse_cases"), ("records", "record_cases"),
    ("pipeline", "pipeline_cases"), ("bytes", "bytes_cases"), ("images", "image_cases"),
    ("pictures", "picture_cases"), ("resize", "resize_cases"),
    ("einsum", "einsum_cases"), ("sequence", "sequence_cases"),
    ("random", "random_cases"), ("linear", "linear_cases"),
    ("special", "special_cases"), ("boxes", "box_cases"), ("scripts", "script_cases"),
    ("windows", "window_cases"), ("ragged", "ragged_cases"), ("text", "text_cases"),
    ("drawn", "drawn_cases"), ("sparse_math", "sparse_math_cases"),
    ("matrices", "matrices_cases"), ("arrays", "arrays_cases"),
    ("counts", "counts_cases"), ("volumes", "volumes_cases"), ("half", "half_cases"),
    ("rare", "rare_cases"), ("protos", "protos_cases"), ("pools", "pools_cases"),
    ("row_counts", "row_counts_cases"), ("clusters", "clusters_cases"), ("training", "training_cases"), ("samplers", "samplers_cases"),
    ("strings", "strings_cases"),
    ("resize", "scale_cases"), ("pictures", "old_picture_cases"), ("arrays", "isotonic_rows"),
    ("ragged", "crosses"), ("ragged", "filled_rows"))


def all_cases():
    for group in (variables, optimizers, unary, binary, choose, casts, reduce, products, network, arrays, strided, make,
                  gather, random, strings):
        yield from group()
    for module, group in MODULES:
        yield from getattr(importlib.import_module(f"ops_cases.{module}"), group)()
