# SPDX-License-Identifier: Apache-2.0
"""More cases of ops_diff.py: convolutions, pooling, normalisation, paddings."""
import itertools

from ops_cases import Case, D, F, I, L, REALS, i32, ints, np, real, scalar

CONVS = [  # input, filter, strides, padding, dilations
    ((2, 5, 5, 3), (3, 3, 3, 4), (1, 1), "SAME", (1, 1)),
    ((2, 5, 5, 3), (3, 3, 3, 4), (1, 1), "VALID", (1, 1)),
    ((1, 6, 6, 2), (3, 3, 2, 5), (2, 2), "SAME", (1, 1)),
    ((1, 7, 6, 2), (2, 3, 2, 5), (2, 1), "VALID", (1, 1)),
    ((2, 4, 4, 8), (1, 1, 8, 3), (1, 1), "SAME", (1, 1)),
    ((2, 5, 4, 8), (1, 1, 8, 3), (2, 2), "VALID", (1, 1)),
    ((1, 9, 8, 2), (3, 2, 2, 3), (1, 1), "VALID", (2, 3)),
    ((1, 9, 8, 2), (3, 3, 2, 3), (1, 1), "SAME", (2, 2)),
    ((1, 3, 3, 1), (5, 5, 1, 2), (1, 1), "SAME", (1, 1)),
    ((2, 6, 5, 2), (3, 3, 2, 3), (2, 1), [[0, 0], [2, 1], [0, 3], [0, 0]], (1, 1)),
    ((0, 5, 5, 3), (3, 3, 3, 4), (1, 1), "SAME", (1, 1)),
    ((1, 2, 2, 1), (3, 3, 1, 1), (1, 1), "VALID", (1, 1)),
    ((1, 1, 1, 1), (3, 3, 1, 1), (1, 1), "VALID", (1, 1)),
    ((4, 28, 28, 1), (5, 5, 1, 32), (1, 1), "SAME", (1, 1)),
    ((2, 14, 14, 32), (5, 5, 32, 16), (1, 1), "SAME", (1, 1)),
]


def out_size(size, k, stride, padding, dilation):
    reach = (k - 1) * dilation + 1
    if padding == "SAME":
        return -(-size // stride)
    pads = 0 if padding == "VALID" else sum(padding)
    return max(0, (size + pads - reach + stride) // stride)


def largest(x, k, s, padding, out):
    """Returns the output of MaxPool for x."""
    before = [max(0, (out[1 + a] - 1) * s[a] + k[a] - x.shape[1 + a]) // 2 if padding == "SAME" else 0 for a in (0, 1)]
    y = np.zeros(out, x.dtype)
    for i, j in itertools.product(range(out[1]), range(out[2])):
        top, left = i * s[0] - before[0], j * s[1] - before[1]
        part = x[:, max(0, top):top + k[0], max(0, left):left + k[1]]
        if x.shape[0]:
            y[:, i, j] = part.max(axis=(1, 2))
    return y


def spatial(padding, axis):
    return padding[1 + axis] if isinstance(padding, list) else padding


def conv_case(prefix, back, t, x, w, strides, padding, dilations):
    depth = w[3] if prefix == "Conv2D" else w[2] * w[3]
    out = (x[0], *(out_size(x[1 + a], w[a], strides[a], spatial(padding, a), dilations[a])
                   for a in (0, 1)), depth)
    attrs = {"strides": [1, *strides, 1], "dilations": [1, *dilations, 1]}
    if isinstance(padding, list):
        attrs.update(padding="EXPLICIT", explicit_paddings=sum(padding, []))
    else:
        attrs.update(padding=padding)
    close = {"rtol": 1e-4, "atol": 4e-4} if t == F else {"rtol": 1e-10, "atol": 1e-12}
    yield Case(prefix + back[0], {"input": real(t, *x), "filter": real(t, *w)}, attrs, **close)
    if prefix == "Conv2D" and max(dilations) > 1:
        return  # TensorFlow's CPU kernels reject these gradients; unit tests compare ours with plain loops
    close["only_shape"] = 0 in out  # TensorFlow leaves the gradient uninitialized
    grad = real(t, *out)
    yield Case(prefix + back[1], {"input_sizes": i32(*x), "filter": real(t, *w),
                                  "out_backprop": grad}, attrs, **close)
    yield Case(prefix + back[2], {"input": real(t, *x), "filter_sizes": i32(*w),
                                  "out_backprop": grad}, attrs, **close)


def convolutions():
    names = "Conv2D", ("", "BackpropInput", "BackpropFilter")
    for c in CONVS:
        for t in REALS:
            yield from conv_case(*names, t, *c)
    ok = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    x, w = real(F, 1, 4, 4, 4), real(F, 3, 3, 4, 2)
    yield Case("Conv2D", {"input": x, "filter": real(F, 3, 3, 2, 4)}, ok, rtol=1e-4, atol=1e-5)
    for bad in ({"strides": [2, 1, 1, 1]}, {"dilations": [2, 1, 1, 1]}, {"data_format": "NCHW"}):
        yield Case("Conv2D", {"input": x, "filter": w}, {**ok, **bad})
    for shape in ((3, 3, 3, 2), (3, 3, 0, 2), (3, 3, 4), (3, 3, 4, 0)):
        yield Case("Conv2D", {"input": x, "filter": real(F, *shape)}, ok)
    yield Case("Conv2D", {"input": real(F, 4, 4), "filter": w}, ok)
    yield Case("Conv2D", {"input": np.ones((1, 2, 2, 2), F), "filter": np.ones((3, 3, 1, 1), F)}, {**ok, "padding": "VALID"})
    for sizes, grad in (((1, 4, 4, 4), (1, 4, 5, 2)), ((1, 4, 4, 4), (2, 4, 4, 2)), ((1, 4, 4), (1, 4, 4, 2)),
                        ((4, 4), (1, 4, 4, 2)), ((1, 4, -4, 4), (1, 4, 4, 2)), ((1, 4, 4, 3), (1, 4, 4, 2)),
                        ((1, 4, 4, 4), (1, 4, 4, 3)), ((1, 4, 4, 4), (4, 4, 2))):
        yield Case("Conv2DBackpropInput", {"input_sizes": i32(*sizes), "filter": w,
                                           "out_backprop": real(F, *grad)}, ok, rtol=1e-4, atol=1e-5)
        yield Case("Conv2DBackpropFilter", {"input": x, "filter_sizes": i32(3, 3, *sizes[2:]),
                                            "out_backprop": real(F, *grad)}, ok, rtol=1e-4, atol=1e-5)


def fused_convolutions():
    """TensorFlow wants the shapes of these ops before they run, and computes only the first image of a batch right.  conv_test.c has another."""
    def padding(rows, columns, batch=(0, 0), depth=(0, 0)):
        return np.array([batch, rows, columns, depth], I)

    none, some = padding((0, 0), (0, 0)), padding((1, 2), (2, 0))
    for t in (F, D, np.float16):
        x, w = real(t, 1, 6, 7, 3), real(t, 3, 2, 3, 4)
        close = {"known": True, "rtol": 2e-2 if t == np.float16 else 1e-4, "atol": 2e-2 if t == np.float16 else 1e-5}
        for mode, pad, stride, p in itertools.product(("REFLECT", "SYMMETRIC"), ("SAME", "VALID"), (1, 2), (none, some)):
            attrs = {"mode": mode, "padding": pad, "strides": [1, stride, stride, 1]}
            yield Case("FusedPadConv2D", {"input": x, "paddings": p, "filter": w}, attrs, **close)
            for size, corners in itertools.product(((9, 5), (6, 7), (4, 13)), (False, True)):
                yield Case("FusedResizeAndPadConv2D", {"input": x, "size": i32(*size), "paddings": p, "filter": w}, {**attrs, "resize_align_corners": corners}, **close)
    attrs = {"mode": "REFLECT", "padding": "VALID", "strides": [1, 1, 1, 1]}
    x, w = real(F, 1, 6, 7, 3), real(F, 3, 2, 3, 4)
    for p in (padding((6, 0), (0, 0)), padding((-1, 0), (0, 0)), padding((0, 0), (0, 0), batch=(1, 0)), padding((0, 0), (0, 0), depth=(0, 1))):
        yield Case("FusedPadConv2D", {"input": x, "paddings": p, "filter": w}, attrs, known=True)
        yield Case("FusedResizeAndPadConv2D", {"input": x, "size": i32(6, 7), "paddings": p, "filter": w}, attrs, known=True)
    yield Case("FusedPadConv2D", {"input": x, "paddings": padding((6, 6), (7, 7)), "filter": w}, {**attrs, "mode": "SYMMETRIC"}, known=True, rtol=1e-4, atol=1e-5)
    yield Case("FusedPadConv2D", {"input": x, "paddings": some, "filter": w}, {**attrs, "strides": [1, 2, 1, 1]}, known=True, rtol=1e-4, atol=1e-5)
    for bad in ({"strides": [2, 1, 1, 1]}, {"strides": [1, 1, 1, 2]}):
        yield Case("FusedPadConv2D", {"input": x, "paddings": some, "filter": w}, {**attrs, **bad}, known=True)
    yield Case("FusedPadConv2D", {"input": x, "paddings": some, "filter": w[:, :, :2]}, attrs, known=True)
    for size in ((0, 4), (-1, 4)):
        yield Case("FusedResizeAndPadConv2D", {"input": x, "size": i32(*size), "paddings": some, "filter": w}, attrs, known=True)


def integer_convolutions():
    for x, w, stride in (((2, 6, 7, 3), (3, 3, 3, 5), 1), ((2, 6, 6, 4), (1, 1, 4, 3), 1), ((1, 7, 7, 4), (3, 2, 2, 6), 2)):
        attrs = {"strides": [1, stride, stride, 1], "padding": "SAME"}
        a, f = ints(I, *x), ints(I, *w)
        g = ints(I, x[0], -(-x[1] // stride), -(-x[2] // stride), w[3])
        yield Case("Conv2D", {"input": a, "filter": f}, attrs)
        if w[2] == x[3]:  # TensorFlow has no CPU gradient of grouped convolutions
            yield Case("Conv2DBackpropInput", {"input_sizes": i32(*x), "filter": f, "out_backprop": g}, attrs)


def depthwise():
    names = "DepthwiseConv2dNative", ("", "BackpropInput", "BackpropFilter")
    for m, c in itertools.product((1, 2), ((2, 5, 5, 3), (1, 8, 7, 8), (0, 4, 4, 2), (2, 9, 9, 35))):
        for stride, padding in (((1, 1), "SAME"), ((1, 1), "VALID"), ((2, 2), "SAME"),
                                ((1, 1), [[0, 0], [1, 1], [2, 1], [0, 0]])):
            for t in REALS:
                yield from conv_case(*names, t, c, (3, 3, c[3], m), stride, padding, (1, 1))
    x = real(F, 1, 5, 5, 2)
    yield Case("DepthwiseConv2dNative", {"input": x, "filter": real(F, 3, 3, 2, 1)},
               {"strides": [1, 1, 2, 1], "padding": "SAME"})
    yield Case("DepthwiseConv2dNative", {"input": x, "filter": real(F, 3, 3, 3, 1)},
               {"strides": [1, 1, 1, 1], "padding": "SAME"})


def pooling():
    windows = [((2, 6, 6, 3), (2, 2), (2, 2), "VALID"), ((2, 7, 5, 3), (2, 2), (2, 2), "SAME"),
               ((3, 4, 6, 37), (2, 2), (2, 2), "SAME"),
               ((1, 7, 7, 9), (3, 3), (2, 2), "SAME"), ((1, 7, 8, 2), (3, 2), (1, 2), "VALID"),
               ((2, 4, 4, 1), (1, 1), (1, 1), "SAME"), ((1, 3, 3, 2), (5, 5), (1, 1), "SAME"),
               ((0, 4, 4, 2), (2, 2), (2, 2), "SAME"), ((1, 5, 5, 40), (1, 1), (2, 2), "VALID")]
    for t in REALS:
        for x, k, s, padding in windows:
            value = np.maximum(real(t, *x), -0.5)  # with equal neighbours
            attrs = {"ksize": [1, *k, 1], "strides": [1, *s, 1], "padding": padding}
            out = (x[0], *(out_size(x[1 + a], k[a], s[a], padding, 1) for a in (0, 1)), x[3])
            grad = real(t, *out)
            sizes = {"ksize": i32(1, *k, 1), "strides": i32(1, *s, 1)}
            close = {"rtol": 1e-5, "atol": 1e-6} if t == F else {"atol": 1e-14}
            yield Case("MaxPool", {"input": value}, attrs)
            yield Case("MaxPoolV2", {"input": value, **sizes}, {"padding": padding})
            yield Case("AvgPool", {"value": value}, attrs, **close)
            top = {"orig_input": value, "orig_output": grad * 0, "grad": grad}
            yield Case("MaxPoolGrad", top, attrs, **close)
            yield Case("MaxPoolGradV2", {**top, **sizes}, {"padding": padding}, **close)
            # TensorFlow searches the largest elements in its input orig_output
            again = {**top, "orig_output": largest(value, k, s, padding, out), "grad": real(t, *value.shape)}
            yield Case("MaxPoolGradGrad", again, attrs)
            yield Case("MaxPoolGradGradV2", {**again, **sizes}, {"padding": padding})
            yield Case("AvgPoolGrad", {"orig_input_shape": i32(*x), "grad": grad}, attrs, **close)
    x = real(F, 1, 4, 4, 4)
    two = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    yield Case("MaxPool", {"input": x}, {**two, "padding": "EXPLICIT",
                                         "explicit_paddings": [0, 0, 1, 0, 0, 1, 0, 0]})
    for bad in ({"ksize": [2, 2, 2, 1]}, {"strides": [2, 1, 1, 1]}, {"ksize": [1, 9, 9, 1]}):
        yield Case("MaxPool", {"input": x}, {**two, **bad})
        yield Case("AvgPool", {"value": x}, {**two, **bad})
    yield Case("AvgPool", {"value": x}, {**two, "ksize": [1, 2, 2, 2]})
    yield Case("MaxPool", {"input": real(F, 4, 4, 4)}, two)
    yield Case("AvgPool", {"value": real(F, 4, 4, 4)}, two)
    for grad in ((1, 2, 3, 4), (1, 2, 2, 4)):
        yield Case("MaxPoolGrad", {"orig_input": x, "orig_output": real(F, 1, 2, 2, 4),
                                   "grad": real(F, *grad)}, two)
    yield Case("AvgPoolGrad", {"orig_input_shape": i32(1, 4, 4), "grad": real(F, 1, 2, 2, 4)}, two)
    yield Case("MaxPoolV2", {"input": x, "ksize": i32(1, 2, 2), "strides": i32(1, 2, 2, 1)},
               {"padding": "SAME"})


def channels_first():
    for shape in ((2, 5, 4, 3), (1, 24, 5, 1), (3, 33, 1, 40), (0, 3, 2, 2)):
        n, loose = shape[1], {"rtol": 1e-3, "atol": 1e-3, "only_shape": shape[0] == 0}
        v = {"scale": real(F, n), "offset": real(F, n), "mean": real(F, n), "variance": real(F, n, low=0.1, high=2)}
        saved = {"scale": v["scale"], "reserve_space_1": v["mean"], "reserve_space_2": v["variance"], "reserve_space_3": scalar(0, F)}
        for training in (True, False):
            how = {"is_training": training, "data_format": "NCHW"}
            yield Case("FusedBatchNormV3", {"x": real(F, *shape), **v}, how, first=5 if training else 3, **loose)
            if training:  # TensorFlow's CPU kernel has no gradient of inference mode
                yield Case("FusedBatchNormGradV3", {"y_backprop": real(F, *shape), "x": real(F, *shape), **saved}, how, **loose)
    yield Case("FusedBatchNormV3", {"x": real(F, 2, 3), **v}, {"data_format": "NCHW"})
    yield Case("FusedBatchNormV3", {"x": real(F, 2, 4, 3, 3), **v}, {"data_format": "NCHW"})


def normalisation():
    for op, shape in itertools.product(("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"),
                                       ((2, 4, 3, 5), (8, 7, 7, 32), (1, 1, 1, 2), (0, 2, 2, 3))):
        n = shape[3]
        x = real(F, *shape) + np.float32(50)
        old = {"mean": real(F, n), "variance": real(F, n, low=0.1, high=2)}
        v = {"scale": real(F, n), "offset": real(F, n)}
        loose = {"rtol": 1e-3, "atol": 1e-3, "only_shape": shape[0] == 0}
        for factor in (1.0, 0.25):
            yield Case(op, {"x": x, **v, **old}, {"exponential_avg_factor": factor}, **loose)
        yield Case(op, {"x": x, **v, **old}, {"is_training": False, "epsilon": 1e-3}, first=3, **loose)
        none = np.zeros(0, F)
        yield Case(op, {"x": x, **v, "mean": none, "variance": none}, {}, **loose)
        third = {"reserve_space_3": scalar(0, F)} if op.endswith("3") else {}
        grad = op.replace("Norm", "NormGrad")
        for training in (True, False):
            yield Case(grad, {"y_backprop": real(F, *shape), "x": real(F, *shape), "scale": v["scale"],
                              "reserve_space_1": old["mean"], "reserve_space_2": old["variance"],
                              **third}, {"is_training": training}, **loose)
    yield from channels_first()
    x, v = real(F, 1, 2, 2, 3), real(F, 3)
    for bad in (dict(scale=real(F, 2)), dict(x=real(F, 2, 3)), dict(mean=real(F, 3, 1))):
        yield Case("FusedBatchNorm", {"x": x, "scale": v, "offset": v, "mean": v, "variance": v, **bad},
                   {"is_training": False})
    for n, radius, beta in itertools.product((1, 4, 32), (0, 2, 5), (0.5, 0.75, 1.2)):
        attrs = {"depth_radius": radius, "bias": 1.5, "alpha": 0.3, "beta": beta}
        yield Case("LRN", {"input": real(F, 2, 3, 2, n)}, attrs, rtol=1e-5, atol=1e-6)
        yield Case("LRNGrad", {"input_grads": real(F, 2, 3, 2, n), "input_image": real(F, 2, 3, 2, n),
                               "output_image": real(F, 2, 3, 2, n)}, attrs, rtol=1e-5, atol=1e-5)
    yield Case("LRN", {"input": real(F, 0, 3, 2, 4)})
    yield Case("LRN", {"input": real(F, 3, 2, 4)})


def paddings():
    for mode, t in itertools.product(("REFLECT", "SYMMETRIC"), (F, D, I, L)):
        make = real if t in REALS else ints
        for p in ([[0, 0], [0, 0]], [[1, 2], [3, 0]], [[2, 2], [1, 1]], [[0, 0], [3, 3]]):
            yield Case("MirrorPad", {"input": make(t, 3, 4), "paddings": np.array(p, I)}, {"mode": mode})
        yield Case("MirrorPad", {"input": make(t, 2, 3, 2), "paddings": np.array([[1, 0], [0, 2], [1, 1]], L)},
                   {"mode": mode})
        for p in ([[3, 0], [0, 0]], [[4, 0], [0, 0]], [[0, 0], [-1, 0]]):
            yield Case("MirrorPad", {"input": make(t, 3, 4), "paddings": np.array(p, I)}, {"mode": mode})
    for t in (F, D, I):
        yield Case("Pad", {"input": (real if t in REALS else ints)(t, 2, 3, 2, 2),
                           "paddings": np.array([[0, 0], [1, 2], [2, 0], [0, 0]], L)})
    yield Case("Pad", {"input": real(F, 0, 2), "paddings": np.array([[1, 1], [0, 0]], I)})
    yield Case("Pad", {"input": real(F, 2, 2), "paddings": np.array([[-1, 1], [0, 0]], I)})
    yield Case("Relu6Grad", {"gradients": real(F, 30), "features": real(F, 30, low=-9, high=9)})
    for op in ("EluGrad", "SeluGrad"):
        yield Case(op, {"gradients": real(F, 30), "outputs": real(F, 30, low=-1)}, rtol=1e-5)
    for op in ("SoftplusGrad", "SoftsignGrad"):
        yield Case(op, {"gradients": real(D, 30), "features": real(D, 30, low=-9, high=9)}, rtol=1e-10)


def network_cases():
    for group in (convolutions, fused_convolutions, integer_convolutions, depthwise, pooling, normalisation, paddings):
        yield from group()
