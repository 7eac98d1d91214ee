# SPDX-License-Identifier: Apache-2.0
"""Grey dilation and its gradients."""
import itertools

import numpy as np

from ops_cases import Case, D, F, I, L, ints, real

H = np.float16


def dilation_output(n, size, stride, rate, padding):
    reach = (size - 1) * rate + 1
    return (n + stride - 1) // stride if padding == "SAME" else (n - reach + stride) // stride


def dilations():
    """Integers from a small range, so that several sums are equal and the first maximum counts."""
    for t, padding, size, stride, rate in itertools.product(
            (F, D, I, L, H, np.uint8, np.int16), ("VALID", "SAME"), ((1, 1), (3, 2)), ((1, 1), (2, 3)), ((1, 1), (2, 1), (1, 3))):
        low = 0 if t == np.uint8 else -3
        attrs = {"strides": [1, *stride, 1], "rates": [1, *rate, 1], "padding": padding}
        for shape in ((2, 7, 8, 3), (1, 4, 5, 1), (0, 7, 8, 3)):
            x, w = ints(t, *shape, low=low, high=4), ints(t, *size, shape[3], low=low, high=4)
            yield Case("Dilation2D", {"input": x, "filter": w}, attrs)
            out = [dilation_output(*a, padding) for a in zip(shape[1:3], size, stride, rate)]
            g = ints(t, shape[0], *out, shape[3], low=low, high=4)
            for op in ("Dilation2DBackpropInput", "Dilation2DBackpropFilter"):
                yield Case(op, {"input": x, "filter": w, "out_backprop": g}, attrs)
    x, w, g = real(F, 2, 6, 7, 3), real(F, 2, 2, 3), real(F, 2, 5, 6, 3)
    plain = {"strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": "VALID"}
    yield Case("Dilation2D", {"input": x, "filter": w}, plain)
    x[0, 2, 3] = -np.inf
    x[1, 1, 1] = np.nan
    yield Case("Dilation2D", {"input": x, "filter": w}, plain)
    yield Case("Dilation2DBackpropInput", {"input": x, "filter": w, "out_backprop": g}, plain)
    for images, by, attrs in ((x[0], w, {}), (x, w[0], {}), (x, w[..., :2], {}), (x, w, {"strides": [2, 1, 1, 1]}),
                              (x, w, {"rates": [1, 1, 1, 2]})):
        yield Case("Dilation2D", {"input": images, "filter": by}, {**plain, **attrs})
    for op in ("Dilation2DBackpropInput", "Dilation2DBackpropFilter"):
        yield Case(op, {"input": x, "filter": w, "out_backprop": g[:, 1:]}, plain)
        yield Case(op, {"input": x, "filter": w, "out_backprop": g[..., 1:]}, plain)
        yield Case(op, {"input": x, "filter": w, "out_backprop": g}, {**plain, "rates": [1, 2**63 - 1, 1, 1]})
        yield Case(op, {"input": x, "filter": w, "out_backprop": g}, {**plain, "strides": [1, 2**63 - 2, 1, 1]})


def window_cases():
    yield from dilations()
