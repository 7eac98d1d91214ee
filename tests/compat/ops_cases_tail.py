# SPDX-License-Identifier: Apache-2.0
"""The long tail of ops_diff.py: ops that few programs use."""
import itertools

import numpy as np
import tensorflow.compat.v1 as tf

from ops_cases import Case, D, F, I, L, i32, ints, real, rng, scalar


def volumes():
    for t, padding, shape, size, strides in itertools.product(
            (F, D), ("VALID", "SAME"), ((2, 4, 5, 6, 3), (1, 3, 3, 3, 2)), ((2, 3, 1), (2, 3, 3)),
            ((1, 1, 1), (2, 1, 3))):
        if max(np.array(strides) - size) > 0:
            continue  # under SAME, stock's gradients then assume another window than its forward ops take
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


def clips():
    for t in (F, D, I, L):
        x = (real if t in (F, D) else ints)(t, 3, 5)
        low, high = scalar(-1, t), scalar(1, t)
        for a, b in ((low, high), (x - high, high), (low, x + high), (x - high, x + high), (high, low), (low, x[0])):
            yield Case("ClipByValue", {"t": x, "clip_value_min": a, "clip_value_max": b})
    yield Case("ClipByValue", {"t": x[:0], "clip_value_min": low, "clip_value_max": high})


def places():
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


def sparse_of(t, shape, n):
    """Positions in order, values that are no zeros, and the shape."""
    at = np.sort(rng.choice(int(np.prod(shape)), n, replace=False))
    values = real(t, n) if t in (F, D) else ints(t, n, low=1)
    return np.stack(np.unravel_index(at, shape), 1).astype(L).reshape(n, len(shape)), values, np.array(shape, L)


def named(prefix, s):
    return dict(zip((prefix + "indices", prefix + "values", prefix + "shape"), s))


def sparse_arithmetic():
    for t, (shape, n, m) in itertools.product((F, D, I, L), (((4, 5), 9, 7), ((2, 3, 4), 10, 12), ((6,), 0, 4), ((7,), 3, 0))):
        a, b = sparse_of(t, shape, n), sparse_of(t, shape, m)
        both = {**named("a_", a), **named("b_", b)}
        for least in (0, 2):
            yield Case("SparseAdd", {**both, "thresh": scalar(least, t)})
        for op in ("SparseSparseMaximum", "SparseSparseMinimum"):
            yield Case(op, both)
        union = np.unique(np.concatenate([a[0], b[0]]), axis=0)
        yield Case("SparseAddGrad", {"backprop_val_grad": ints(t, len(union)), "a_indices": a[0], "b_indices": b[0],
                                     "sum_indices": union})
        dense = real(t, *shape, low=1) if t in (F, D) else ints(t, *shape, low=1)
        for op in ("Add", "Mul", "Div"):
            for d in (dense, dense[:1], dense.reshape(-1)[:1].reshape(()), dense[0]):
                yield Case("SparseDenseCwise" + op, {**named("sp_", a), "dense": d}, rtol=1e-6)
        for u in (I, L):
            yield Case("SparseTensorDenseAdd", {"a_indices": a[0].astype(u), "a_values": a[1], "a_shape": a[2].astype(u), "b": dense})
        for axes, keep in itertools.product(([], [0], [-1], list(range(len(shape)))), (False, True)):
            for op in ("SparseReduceSum", "SparseReduceMax"):
                yield Case(op, {**named("input_", a), "reduction_axes": i32(*axes)}, {"keep_dims": keep}, rtol=1e-5, atol=1e-6)
        if t in (F, D) and n and len(shape) > 1:
            yield Case("SparseSoftmax", named("sp_", a), rtol=1e-5)
        yield Case("SparseFillEmptyRowsGrad", {"reverse_index_map": np.array([3, 0, 4], L), "grad_values": ints(t, 6)})
    a, b = sparse_of(F, (4, 5), 6), sparse_of(F, (4, 6), 6)
    yield Case("SparseAdd", {**named("a_", a), **named("b_", b), "thresh": scalar(0, F)})
    yield Case("SparseSparseMaximum", {**named("a_", a), **named("b_", b)})
    yield Case("SparseDenseCwiseMul", {**named("sp_", a), "dense": real(F, 3, 5)})
    yield Case("SparseTensorDenseAdd", {**named("a_", a), "b": real(F, 5, 4)})
    yield Case("SparseReduceSum", {**named("input_", a), "reduction_axes": i32(2)})
    yield Case("SparseFillEmptyRowsGrad", {"reverse_index_map": np.array([6], L), "grad_values": real(F, 6)})


def tail_cases():
    for group in (volumes, clips, places, sparse_arithmetic):
        yield from group()
