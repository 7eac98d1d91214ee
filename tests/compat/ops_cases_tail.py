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


def sparse_joins():
    for t in (F, D, I, L):
        for shape, sizes, dim in (((4, 5), (3, 1, 2), 0), ((4, 5), (3, 1, 2), 1), ((2, 3, 4), (2, 5), -2), ((6,), (2, 0), -1)):
            parts = []
            for n in sizes:
                own = list(shape)
                own[dim] = n
                parts.append(sparse_of(t, own, int(np.prod(own)) // 2))
            lists = dict(zip(("indices", "values", "shapes"), map(list, zip(*parts))))
            yield Case("SparseConcat", lists, {"concat_dim": dim})
    words = (np.array([[1, 0], [0, 1]], L), np.array([b"b", b"a"], object), np.array([2, 2], L))
    yield Case("SparseConcat", {"indices": [words[0]] * 2, "values": [words[1]] * 2, "shapes": [words[2]] * 2}, {"concat_dim": 1})
    for shape, dim in (((4, 6), 2), ((4, 6), -3), ((4,), 0), ((5, 6), 1)):
        other = sparse_of(F, shape, 2)
        first = sparse_of(F, (4, 5), 3)
        yield Case("SparseConcat", dict(zip(("indices", "values", "shapes"), map(list, zip(first, other)))), {"concat_dim": dim})


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


def samplers():
    """Draws are TensorFlow's own for a seed; chances of real weights are sums of its order, nearly."""
    seeds = {"seed": 87, "seed2": 5}
    true = np.array([[1, 0], [7, 3], [9, 9]], L)
    for unique, n in itertools.product((False, True), (1, 4, 10)):
        attrs = {"num_true": 2, "num_sampled": n, "unique": unique, **seeds}
        for op in ("Uniform", "LogUniform", "LearnedUnigram", "ThreadUnsafeUnigram"):
            for range_max in (10, 16, 1000, 100003):
                yield Case(op + "CandidateSampler", {"true_classes": true}, {"range_max": range_max, **attrs}, rtol=1e-5)
        if n == 10:
            yield Case("AllCandidateSampler", {"true_classes": true}, attrs)
        weights = [float(w) for w in rng.randint(1, 9, 10)]
        for bend in (1.0, 0.75):
            yield Case("FixedUnigramCandidateSampler", {"true_classes": true}, {"range_max": 10, "unigrams": weights, "distortion": bend, **attrs}, rtol=1e-5)
        yield Case("FixedUnigramCandidateSampler", {"true_classes": true}, {"range_max": 10, "unigrams": weights[:8], "num_reserved_ids": 2, **{**attrs, "num_sampled": min(n, 8)}}, rtol=1e-5)
        yield Case("FixedUnigramCandidateSampler", {"true_classes": true % 5}, {"range_max": 5, "unigrams": weights, "num_shards": 2, "shard": 1, **{**attrs, "num_sampled": min(n, 5)}}, rtol=1e-5)
    yield Case("UniformCandidateSampler", {"true_classes": true}, {"range_max": 1 << 40, **attrs}, rtol=1e-5)
    for classes, more in ((true[0], {}), (true[:, :1], {}), (true + 1, {}), (true - 1, {}), (true, {"num_sampled": 11})):
        yield Case("UniformCandidateSampler", {"true_classes": classes}, {"range_max": 10, **attrs, **more})
    yield Case("FixedUnigramCandidateSampler", {"true_classes": true}, {"range_max": 9, "unigrams": weights, **attrs})
    yield Case("FixedUnigramCandidateSampler", {"true_classes": true}, {"range_max": 10, **attrs})
    for sampled in ([3, 9, 4, 1], [], [9, 1, 9, 2], [5]):
        yield Case("ComputeAccidentalHits", {"true_classes": true, "sampled_candidates": np.array(sampled, L)}, {"num_true": 2})
    yield Case("ComputeAccidentalHits", {"true_classes": true, "sampled_candidates": true}, {"num_true": 2})
    yield Case("ComputeAccidentalHits", {"true_classes": true, "sampled_candidates": true[0]}, {"num_true": 3})


def classes():
    for t, to, (rows, n) in itertools.product((F, D, np.float16), (tf.int32, tf.int64), ((1, 3), (3, 10), (2, 1))):
        logits = real(t, rows, n)
        for count in (0, 1, 5, 64):
            yield Case("Multinomial", {"logits": logits, "num_samples": scalar(count)}, {"seed": 3, "seed2": 8, "output_dtype": to})
            yield Case("StatelessMultinomial", {"logits": logits, "num_samples": scalar(count), "seed": np.array([4, -9], L)}, {"output_dtype": to})
    odd = np.array([[0, -np.inf, np.nan, 2, np.inf]], F)
    yield Case("Multinomial", {"logits": odd, "num_samples": scalar(20)}, {"seed": 3, "seed2": 8})
    yield Case("Multinomial", {"logits": odd[0], "num_samples": scalar(20)})
    yield Case("Multinomial", {"logits": odd, "num_samples": scalar(-1)})
    yield Case("Multinomial", {"logits": odd[:, :0], "num_samples": scalar(1)})
    yield Case("StatelessMultinomial", {"logits": odd, "num_samples": scalar(1), "seed": i32(1, 2, 3)})


def formats():
    """Tensors as text, by dimension, and shortened in the middle."""
    words = np.array([[b"a", b"\"q'\n"], [b"\x01\xc3\xa9", b""]], object)
    for t, n in itertools.product((real(F, 2, 3, 4), real(D, 9), ints(L, 3, 7), np.array([True, False]), words, scalar(7, I), scalar(0.1, F),
                                   real(F, 0), real(F, 3, 0), real(F, 0, 3), np.array([np.inf, -np.inf, np.nan, 1e30, 1e-7, 100000, 1234567], F),
                                   real(np.float16, 5), ints(np.uint8, 4, low=0), np.array(b"w", object)), (-1, 0, 1, 2, 3, 100)):
        if n or t.dtype != bool:  # of which stock then says nothing at all
            yield Case("StringFormat", {"inputs": [t]}, {"template": "<{}>", "placeholder": "{}", "summarize": n})
    yield Case("StringFormat", {"inputs": [i32(1, 2), real(F, 2)]}, {"template": "a%sb%s"})


def ragged():
    def case(splits, values, t=L):
        return Case("RaggedTensorToSparse", {"rt_nested_splits": [np.array(s, t) for s in splits], "rt_dense_values": values})
    words = np.array([b"a", b"", b"c\0d"], object)
    for t, values in itertools.product((I, L), (real(F, 3), ints(I, 3, 2), real(D, 3, 2, 2), words, ints(L, 3, 0), np.array([True, False, True]))):
        yield case([[0, 2, 2, 3]], values, t)
        yield case([[0, 0, 2], [0, 3, 3]], values, t)
        yield case([[0, 1, 3], [0, 0, 2, 2], [0, 1, 3]], values, t)
    x = real(F, 3)
    for splits in ([[0, 2, 2]], [[0, 2, 1, 3]], [[1, 3]], [[]], [[0, 2], [0, 1]], [[0, 2], [0, 1, 2]], [[0, 4]], [[0, -1, 3]], [[0]]):
        yield case(splits, x)
    yield case([[0]], x[:0])
    yield case([[0, 0], [0]], x[:0])


def tail_cases():
    for group in (ragged, volumes, clips, places, sparse_arithmetic, sparse_joins, global_norms, samplers, classes, formats):
        yield from group()
