# SPDX-License-Identifier: Apache-2.0
"""Fractional pools, pools over channels, second derivatives of 3-D pools, and slice assignment."""
import itertools

import numpy as np

from ops_cases import Case, D, F, I, L, ints, real, scalar

H = np.float16
KINDS = ("FractionalMaxPool", "FractionalAvgPool")
SEEDED = {"deterministic": True, "seed": 5, "seed2": 7}


def i64(*v):
    return np.array(v, L)


def fractional_pools():
    for op, t, pseudo, over in itertools.product(KINDS, (F, D, I, L), (False, True), (False, True)):
        attrs = {**SEEDED, "pseudo_random": pseudo, "overlapping": over}
        make = real if t in (F, D) else ints
        for shape, ratio in (((2, 10, 13, 3), (1.3, 1.7)), ((1, 5, 4, 1), (1.0, 2.0)), ((1, 33, 9, 2), (2.9, 1.1)), ((3, 4, 7, 2), (4.0, 6.5))):
            x = make(t, *shape)
            yield Case(op, {"value": x}, {**attrs, "pooling_ratio": [1.0, *ratio, 1.0]}, atol=1e-6 if t == F else 0)
    x = real(F, 2, 5, 7, 2)
    for op in KINDS:
        for seeds in ({"seed": 1}, {"seed2": 1, "seed": -3}, {"seed2": 1 << 40}):
            yield Case(op, {"value": x}, {"pooling_ratio": [1.0, 1.4, 1.2, 1.0], "deterministic": True, **seeds})
        yield Case(op, {"value": x}, {"pooling_ratio": [1.0, 1.4, 1.2, 1.0]}, only_shape=True)
        for ratio in ([1.0, 1.5, 1.4, 1.5], [2.0, 1.5, 1.4, 1.0], [1.0, 8.0, 1.4, 1.0]):
            yield Case(op, {"value": x}, {**SEEDED, "pooling_ratio": ratio})
        yield Case(op, {"value": x[:0]}, {**SEEDED, "pooling_ratio": [1.0, 1.5, 1.4, 1.0]})
        yield Case(op, {"value": x[..., :0]}, {**SEEDED, "pooling_ratio": [1.0, 1.5, 1.4, 1.0]})
        yield Case(op, {"value": x[0]}, {**SEEDED, "pooling_ratio": [1.0, 1.5, 1.4, 1.0]})
        yield Case(op, {"value": x}, {"seed": 3, "pooling_ratio": [1.0, 1.5, 1.4, 1.0]})
    x[0, :2, :3] = np.nan
    yield Case("FractionalMaxPool", {"value": x}, {**SEEDED, "pooling_ratio": [1.0, 1.5, 1.4, 1.0]})


def _largest(x, rows, columns, overlapping):
    """Returns the output of FractionalMaxPool for x with these windows."""
    ends = [[b + (1 if overlapping else 0) for b in s[1:]] for s in (rows, columns)]
    return np.stack([np.stack([x[:, r:re, c:ce].max((1, 2)) for c, ce in zip(columns, ends[1])], 1)
                     for r, re in zip(rows, ends[0])], 1)


def fractional_gradients():
    rows, columns = (0, 2, 3, 5), (0, 1, 3, 4, 6, 7)
    for t, over in itertools.product((F, D, I, L), (False, True)):
        make = real if t in (F, D) else ints
        x, g, attrs = make(t, 2, 5, 7, 3), make(t, 2, 3, 5, 3), {"overlapping": over}
        windows = {"row_pooling_sequence": i64(*rows), "col_pooling_sequence": i64(*columns)}
        y = _largest(x, rows, columns, over)
        yield Case("FractionalMaxPoolGrad", {"orig_input": x, "orig_output": y, "out_backprop": g, **windows}, attrs, atol=1e-6)
        yield Case("FractionalAvgPoolGrad", {"orig_input_tensor_shape": i64(*x.shape), "out_backprop": g, **windows}, attrs, atol=1e-6)
    x, g = real(F, 2, 5, 7, 3), real(F, 2, 3, 5, 3)
    y = _largest(x, rows, columns, False)
    right = {"orig_input": x, "orig_output": y, "out_backprop": g, **windows}
    for wrong in ({"row_pooling_sequence": i64(0, 2, 3)}, {"row_pooling_sequence": i64(0, 1, 3, 5)}, {"row_pooling_sequence": i64(rows)},
                  {"col_pooling_sequence": i64(columns)}, {"orig_output": y + 1}, {"orig_output": y[0]}, {"out_backprop": g.reshape(2, 5, 3, 3)}, {"orig_input": x[0]}):
        yield Case("FractionalMaxPoolGrad", {**right, **wrong})
    yield Case("FractionalMaxPoolGrad", {**right, "orig_input": x[:0], "orig_output": y[:0], "out_backprop": g[:0]})
    right = {"orig_input_tensor_shape": i64(*x.shape), "out_backprop": g, **windows}
    for wrong in ({"row_pooling_sequence": i64(0, 2, 3)}, {"row_pooling_sequence": i64(0, 2, 3, 5, 5)}, {"row_pooling_sequence": i64(0, 2, 3, 9)},
                  {"row_pooling_sequence": i64(0, -2, 3, 5)}, {"row_pooling_sequence": i64(3, 2, 1, 0)}, {"row_pooling_sequence": i64(rows)},
                  {"col_pooling_sequence": i64(0, 1)}, {"out_backprop": g[0]}, {"orig_input_tensor_shape": i64(2, 5, 7)},
                  {"orig_input_tensor_shape": i64(0, 5, 7, 3)}, {"orig_input_tensor_shape": i64(2, 5, 0, 3)},
                  {"orig_input_tensor_shape": i64(2, 5, 7, -3)}):
        yield Case("FractionalAvgPoolGrad", {**right, **wrong})


def channel_pools():
    for t in (F, D, H, I, L, np.uint8, np.int8, np.int16, np.uint16):
        x = ints(t, 2, 3, 2, 6, low=0 if t in (np.uint8, np.uint16) else -9)
        for k, padding in itertools.product((2, 3, 6), ("VALID", "SAME")):
            yield Case("MaxPool", {"input": x}, {"ksize": [1, 1, 1, k], "strides": [1, 1, 1, k], "padding": padding})
    x = real(F, 2, 3, 2, 6)
    sizes = [np.array([1, 1, 1, k], I) for k in (3, 2)]
    yield Case("MaxPoolV2", {"input": x, "ksize": sizes[0], "strides": sizes[0]}, {"padding": "VALID"})
    yield Case("MaxPoolV2", {"input": x, "ksize": sizes[0], "strides": sizes[1]}, {"padding": "VALID"})
    yield Case("MaxPool", {"input": x[:0]}, {"ksize": [1, 1, 1, 3], "strides": [1, 1, 1, 3], "padding": "VALID"})
    for ksize, strides in (([1, 1, 1, 4], [1, 1, 1, 4]), ([1, 1, 1, 3], [1, 1, 1, 2]), ([1, 2, 1, 3], [1, 1, 1, 3]), ([2, 1, 1, 3], [1, 1, 1, 3]),
                           ([1, 1, 1, 7], [1, 1, 1, 7])):
        yield Case("MaxPool", {"input": x}, {"ksize": ksize, "strides": strides, "padding": "VALID"})
    attrs = {"ksize": [1, 1, 1, 3], "strides": [1, 1, 1, 3], "padding": "VALID"}
    y = x[..., ::3]
    yield Case("AvgPool", {"value": x}, attrs)
    yield Case("MaxPoolGrad", {"orig_input": x, "orig_output": y, "grad": y}, attrs)
    yield Case("MaxPoolGradV2", {"orig_input": x, "orig_output": y, "grad": y, "ksize": sizes[0], "strides": sizes[0]}, {"padding": "VALID"})
    yield Case("MaxPoolGradGrad", {"orig_input": x, "orig_output": y, "grad": x}, attrs)


def volume_second_derivatives():
    attrs = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 1, 2, 1, 1], "padding": "VALID"}
    x = ints(F, 2, 3, 4, 4, 2, low=0, high=5)
    for t, padding in itertools.product((F, np.float32), ("VALID", "SAME")):
        ends = (2, 2, 3) if padding == "VALID" else (3, 2, 4)
        y = np.full((2, *ends, 2), -1, t)
        for d, h, w in np.ndindex(*ends):
            y[:, d, h, w] = x[:, d:d + 2, 2 * h:2 * h + 2, w:w + 2].max((1, 2, 3))
        yield Case("MaxPool3DGradGrad", {"orig_input": x, "orig_output": y, "grad": real(t, *x.shape)}, {**attrs, "padding": padding})
    y = y[:, :2, :, :3]
    right = {"orig_input": x, "orig_output": y, "grad": x}
    yield Case("MaxPool3DGradGrad", {**right, "orig_output": y + 9}, attrs)
    for wrong in ({"orig_output": y[:, :1]}, {"grad": x[:, :1]}, {"orig_input": x[0]}, {"orig_output": y[0]}, {"grad": x[0]},
                  {"orig_input": x[:0], "orig_output": y[:0], "grad": x[:0]}):
        yield Case("MaxPool3DGradGrad", {**right, **wrong}, attrs)
    for wrong in ({"ksize": [1, 2, 2, 2, 2]}, {"ksize": [2, 2, 2, 2, 1]}, {"strides": [1, 1, 1, 1, 2]}):
        yield Case("MaxPool3DGradGrad", right, {**attrs, **wrong})


def replaced_slices():
    for t in (F, I, np.uint8, np.complex64, np.bool_):
        x = ints(I, 4, 5, low=0).astype(t)
        for u in (I, L):
            spec = {"begin": np.array([0, 4], u), "end": np.array([3, 0], u), "strides": np.array([2, -2], u)}
            for shape in ((2, 2), (), (2,), (2, 1), (1, 2, 2), (1, 1), (3, 2), (2, 2, 1), (0, 2)):
                yield Case("TensorStridedSliceUpdate", {"input": x, **spec, "value": ints(I, *shape, low=0).astype(t)})
    x, v = ints(I, 4, 5), ints(I, 5)
    spec = {"begin": np.array([1, 0], I), "end": np.array([3, 4], I), "strides": np.array([1, 1], I)}
    for masks in ({"shrink_axis_mask": 1}, {"new_axis_mask": 1}, {"ellipsis_mask": 1}, {"ellipsis_mask": 3}, {"begin_mask": 3, "end_mask": 3}):
        yield Case("TensorStridedSliceUpdate", {"input": x, **spec, "value": v[:1]}, masks)
    yield Case("TensorStridedSliceUpdate", {"input": x, **spec, "value": v}, {"end_mask": 2})
    for wrong in ({"strides": np.array([1, 0], I)}, {"end": np.array([0, 0], I)}, {"end": np.array([3], I)}):
        yield Case("TensorStridedSliceUpdate", {"input": x, **spec, **wrong, "value": v[:1]})
    words = np.array([b"a", b"bc", b"d"], object)
    yield Case("TensorStridedSliceUpdate", {"input": words, "begin": np.array([1], I), "end": np.array([3], I), "strides": np.array([1], I),
                                            "value": words[:1]})
    yield Case("TensorStridedSliceUpdate", {"input": x, **spec, "value": scalar(1)}, {"shrink_axis_mask": 3})


def pools_cases():
    for group in (fractional_pools, fractional_gradients, channel_pools, volume_second_derivatives, replaced_slices):
        yield from group()
