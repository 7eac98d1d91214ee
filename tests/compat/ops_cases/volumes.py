# SPDX-License-Identifier: Apache-2.0
"""3-D convolutions and pools, pools with argmax, and batch normalization with global moments."""
import itertools

import numpy as np
import tensorflow.compat.v1 as tf

from ops_cases import Case, D, F, I, L, i32, ints, real, rng


def volumes():
    for t, padding, shape, size, strides in itertools.product(
            (F, D), ("VALID", "SAME"), ((2, 4, 5, 6, 3), (1, 3, 3, 3, 2)), ((2, 3, 1), (2, 3, 3)),
            ((1, 1, 1), (2, 1, 3))):
        if max(np.array(strides) - size) > 0:
            continue  # with SAME padding, stock's gradients assume another window than its forward ops
        x, out = real(t, *shape), 4
        w = real(t, *size, shape[4], out)
        attrs = {"strides": [1, *strides, 1], "padding": padding}
        tol = {"rtol": 1e-4 if t == F else 1e-10, "atol": 1e-5 if t == F else 1e-11}
        yield Case("Conv3D", {"input": x, "filter": w}, attrs, **tol)
        places = [(n + s - 1) // s if padding == "SAME" else (n - k + s) // s for n, k, s in zip(shape[1:4], size, strides)]
        g = real(t, shape[0], *places, out)
        for u in (I, L):
            yield Case("Conv3DBackpropInputV2", {"input_sizes": np.array(shape, u), "filter": w, "out_backprop": g}, attrs, **tol)
        yield Case("Conv3DBackpropFilterV2", {"input": x, "filter_sizes": i32(*w.shape), "out_backprop": g}, attrs, **tol)
        yield Case("Conv3DBackpropFilterV2", {"input": x, "filter_sizes": i32(*w.shape), "out_backprop": g[:, :, :, :, 1:]}, attrs)
        if t == D:
            continue
        attrs = {"ksize": [1, *size, 1], **attrs}
        for few in (x, ints(F, *shape, low=-2, high=2)):
            top = np.full((shape[0], *places, shape[4]), -9, F)
            pads = [max((p - 1) * s + k - n, 0) // 2 if padding == "SAME" else 0
                    for n, k, s, p in zip(shape[1:4], size, strides, places)]
            for at in np.ndindex(*places):
                box = tuple(slice(max(a * s - p, 0), a * s - p + k) for a, s, p, k in zip(at, strides, pads, size))
                top[(slice(None), *at)] = few[(slice(None), *box)].max(axis=(1, 2, 3))
            yield Case("MaxPool3D", {"input": few}, attrs)
            yield Case("MaxPool3DGrad", {"orig_input": few, "orig_output": top, "grad": real(F, *top.shape)}, attrs,
                       rtol=1e-4, atol=1e-5)
        yield Case("AvgPool3D", {"input": x}, attrs, rtol=1e-5, atol=1e-6)
        yield Case("AvgPool3DGrad", {"orig_input_shape": i32(*shape), "grad": real(F, *top.shape)}, attrs, rtol=1e-5, atol=1e-6)
    x = real(F, 2, 3, 3, 3, 2)
    ones = {"strides": [1, 1, 1, 1, 1], "padding": "VALID"}
    yield Case("Conv3D", {"input": x.astype(np.float16), "filter": real(np.float16, 2, 2, 2, 2, 4)}, ones, rtol=2e-2, atol=2e-2)
    yield Case("Conv3D", {"input": x, "filter": real(F, 2, 2, 2, 3, 4)}, ones)
    yield Case("Conv3D", {"input": x[0], "filter": real(F, 2, 2, 2, 2, 4)}, ones)
    yield Case("Conv3D", {"input": x[:0], "filter": real(F, 2, 2, 2, 2, 4)}, ones)
    yield Case("MaxPool3D", {"input": x[0]}, {"ksize": [1, 2, 2, 2, 1], **ones})


def argmax_pools():
    for t, batch, padding, (size, stride) in itertools.product((F, D), (False, True), ("VALID", "SAME"), ((2, 2), (3, 1), (2, 3))):
        x = ints(t, 2, 6, 7, 3, low=-4, high=4)
        attrs = {"ksize": [1, size, size, 1], "strides": [1, stride, stride, 1], "padding": padding,
                 "include_batch_in_index": batch}
        for to in (tf.int32, tf.int64):
            yield Case("MaxPoolWithArgmax", {"input": x}, {"Targmax": to, **attrs})
        if (size, padding) != (2, "VALID"):
            continue
        n = [(d - size + stride) // stride for d in (6, 7)]
        g = real(t, 2, *n, 3)
        at = rng.randint(0, 6 * 7 * 3, g.shape).astype(L)
        if batch:
            at[1] += 6 * 7 * 3
        yield Case("MaxPoolGradWithArgmax", {"input": x, "grad": g, "argmax": at}, attrs)
        yield Case("MaxPoolGradWithArgmax", {"input": x, "grad": g[:, 1:], "argmax": at}, attrs)
    yield Case("MaxPoolWithArgmax", {"input": x[0]}, {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"})


def global_norms():
    old = {"producer": 8}
    for t, scaled, eps in itertools.product((F, D, np.float16), (False, True), (1e-3, 0.5)):
        x, g = real(t, 2, 3, 4, 5), real(t, 2, 3, 4, 5)
        m, v, beta, gamma = real(t, 5), real(t, 5, low=0.5, high=2), real(t, 5), real(t, 5)
        attrs = {"variance_epsilon": eps, "scale_after_normalization": scaled}
        tol = {"rtol": 2e-2, "atol": 2e-2} if t == np.float16 else {"rtol": 2e-5, "atol": 1e-5} if t == F else {"rtol": 1e-11, "atol": 1e-12}
        yield Case("BatchNormWithGlobalNormalization", {"t": x, "m": m, "v": v, "beta": beta, "gamma": gamma}, attrs, **old, **tol)
        if t != np.float16:
            yield Case("BatchNormWithGlobalNormalizationGrad", {"t": x, "m": m, "v": v, "gamma": gamma, "backprop": g}, attrs, **old, **tol)
    yield Case("BatchNormWithGlobalNormalization", {"t": x[0], "m": m, "v": v, "beta": beta, "gamma": gamma}, attrs, **old)


def volumes_cases():
    for group in (volumes, argmax_pools, global_norms):
        yield from group()
