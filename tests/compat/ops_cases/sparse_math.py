# SPDX-License-Identifier: Apache-2.0
"""Sparse tensors: slices, concatenation, sums, sets, arithmetic and serialization."""
import itertools

import numpy as np
import tensorflow.compat.v1 as tf

from ops_cases import Case, D, F, I, L, i32, ints, real, rng, scalar, strs
from ops_cases.sparse import i64

AT = i64([0, 1, 0], [0, 3, 2], [1, 0, 1], [1, 2, 2], [3, 1, 0])
SHAPE = np.array([4, 5, 3], L)
OPERATIONS = ("a-b", "b-a", "intersection", "union")
BF16 = tf.bfloat16.as_numpy_dtype


def slices():
    for t in (F, I, object):
        v = strs("a", "b", "c", "d", "e") if t == object else ints(t, 5)
        x = {"indices": AT, "values": v, "shape": SHAPE}
        for start, size in (([0, 0, 0], [4, 5, 3]), ([0, 1, 0], [2, 3, 3]), ([1, 0, 1], [9, 9, 9]), ([4, 0, 0], [1, 1, 1]),
                            ([9, 0, 0], [1, 5, 3]), ([0, 0, 0], [0, 5, 3]), ([0, 0], [1, 1]), ([0, 0, 0], [1, 1, -1])):
            yield Case("SparseSlice", {**x, "start": np.array(start, L), "size": np.array(size, L)})
        for dim, n in ((0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (1, 5), (2, 3), (0, 5), (3, 1)):
            yield Case("SparseSplit", {"split_dim": scalar(dim, L), **x}, {"num_split": n})
    for t in (F, D, I):
        at = AT - i64([0, 1, 0])
        yield Case("SparseSliceGrad", {"backprop_val_grad": ints(t, 2), "input_indices": AT, "input_start": np.array([0, 1, 0], L),
                                       "output_indices": at[[0, 3]]})
        yield Case("SparseSliceGrad", {"backprop_val_grad": ints(t, 0), "input_indices": AT, "input_start": np.array([0, 1, 0], L),
                                       "output_indices": at[:0]})
    yield Case("SparseSliceGrad", {"backprop_val_grad": real(F, 2), "input_indices": AT, "input_start": np.array([0, 1], L),
                                   "output_indices": AT[:2]})
    yield Case("SparseSliceGrad", {"backprop_val_grad": real(F, 2), "input_indices": AT[:1], "input_start": np.array([0, 1, 0], L),
                                   "output_indices": AT[:2]})
    yield Case("SparseSliceGrad", {"backprop_val_grad": real(F, 1), "input_indices": AT, "input_start": np.array([0, 1, 0], L),
                                   "output_indices": AT[:2]})


def sparse_reductions():
    for op in ("SparseReduceSumSparse", "SparseReduceMaxSparse"):
        for t in (F, D, I, L):
            for axes in ([0], [1], [2], [-1], [0, 2], [1, 2], [0, 1], [3], [-4]):
                yield Case(op, {"input_indices": AT, "input_values": ints(t, 5), "input_shape": SHAPE,
                                "reduction_axes": np.array(axes, I)})
        yield Case(op, {"input_indices": AT[:0], "input_values": real(F, 0), "input_shape": SHAPE, "reduction_axes": i32(1)})


def sparse_counts():
    for t in (F, D, I, L):
        for once in (False, True):
            for ti in (I, L):
                two = i64([0, 0], [0, 2], [1, 1], [2, 0], [2, 3])
                v = np.array([1, 1, 4, 0, 9], ti)
                for at, shape in ((two, [3, 4]), (two[:, 1:], [4])):
                    for w in (ints(t, 5), ints(t, 0)):
                        yield Case("SparseBincount", {"indices": at, "values": v, "dense_shape": np.array(shape, L), "size": scalar(6, ti),
                                                      "weights": w}, {"binary_output": once})
    yield Case("SparseBincount", {"indices": i64([5, 0]), "values": i32(1), "dense_shape": np.array([3, 4], L), "size": scalar(6),
                                  "weights": ints(F, 0)})


def serialized():
    """Serialized tensors are compared after parsing, since their bytes may differ."""
    for v in (real(F, 5), ints(I, 5), strs("a", "", "ccc", "d", "e"), np.array([True, False, True, True, False])):
        x = {"sparse_indices": AT, "sparse_values": v, "sparse_shape": SHAPE}
        if v.dtype != object:
            yield Case("SerializeSparse", x)
            yield Case("SerializeManySparse", x)
        yield from deserialized(v)
    x = {"sparse_indices": AT, "sparse_values": real(F, 5), "sparse_shape": SHAPE}
    for bad in ({"sparse_indices": AT[:4]}, {"sparse_shape": SHAPE[:2]}, {"sparse_indices": AT[:, 0]}, {"sparse_values": real(F, 5, 1)}):
        yield Case("SerializeManySparse", {**x, **bad})
    yield Case("SerializeManySparse", {"sparse_indices": AT[:, :1], "sparse_values": real(F, 5), "sparse_shape": SHAPE[:1]})
    yield Case("SerializeManySparse", {**x, "sparse_indices": AT[::-1]})


def deserialized(v):
    import tensorflow.compat.v1 as tf

    def one(t):
        return tf.make_tensor_proto(t).SerializeToString()

    def parts(rows, shape):
        return [one(AT[rows]), one(v[rows]), one(np.array(shape, L))]

    t = tf.as_dtype(v.dtype if v.dtype != object else tf.string)
    a, b = parts([0, 2, 3], [4, 5, 3]), parts([1, 4], [9, 4, 4])
    for rows in ([a], [a, b], [b, a, b]):
        yield Case("DeserializeManySparse", {"serialized_sparse": np.array(rows, dtype=object)}, {"dtype": t})
        yield Case("DeserializeSparse", {"serialized_sparse": np.array(rows, dtype=object)}, {"dtype": t})
    yield Case("DeserializeSparse", {"serialized_sparse": np.array(a, dtype=object)}, {"dtype": t})
    yield Case("DeserializeSparse", {"serialized_sparse": np.array([[a, b], [b, b]], dtype=object)}, {"dtype": t})
    for bad in ([[a[0], a[1], b"x\xff"]], [a[:2]], [a, [b[0], b[1], one(np.array([1, 2], L))]], [[a[0], a[0], a[2]]],
                [[a[1], a[1], a[2]]], [[a[0], b[1], a[2]]]):
        yield Case("DeserializeManySparse", {"serialized_sparse": np.array(bad, dtype=object)}, {"dtype": t})
        yield Case("DeserializeSparse", {"serialized_sparse": np.array(bad, dtype=object)}, {"dtype": t})


def root_segments():
    x = real(F, 6, 3)
    for t in (I, L):
        for n in (5, 2, 1):
            yield Case("SparseSegmentSqrtNWithNumSegments", {"data": x, "indices": np.array([0, 3, 5, 0], t),
                                                             "segment_ids": i32(0, 0, 1, 1), "num_segments": scalar(n, t)})


def sets():
    words = strs("b", "a", "c", "b", "", "z").reshape(2, 3)
    more = strs("z", "b", "b", "", "a", "q", "c", "a").reshape(2, 4)
    for op in OPERATIONS:
        for a, b in ((ints(L, 2, 3, 4, low=0, high=5), ints(L, 2, 3, 5, low=0, high=5)),
                     (ints(I, 3, 4), ints(I, 3, 2)), (ints(np.int8, 2, 0), ints(np.int8, 2, 3)),
                     (words, more), (ints(L, 2, 3), ints(L, 3, 3)), (ints(L, 3), ints(L, 3))):
            yield Case("DenseToDenseSetOperation", {"set1": a, "set2": b}, {"set_operation": op})
        at, values = i64([0, 1], [0, 2], [2, 0], [2, 1]), ints(L, 4, low=0, high=4)
        shape = np.array([3, 4], L)
        yield Case("DenseToSparseSetOperation", {
            "set1": ints(L, 3, 4, low=0, high=4), "set2_indices": at, "set2_values": values,
            "set2_shape": shape}, {"set_operation": op})
        yield Case("SparseToSparseSetOperation", {
            "set1_indices": i64([0, 0], [1, 3], [2, 2]), "set1_values": ints(L, 3, low=0, high=4),
            "set1_shape": shape, "set2_indices": at, "set2_values": values,
            "set2_shape": shape}, {"set_operation": op})
    yield Case("DenseToSparseSetOperation", {
        "set1": ints(L, 3, 4), "set2_indices": i64([2, 0], [0, 1]), "set2_values": ints(L, 2),
        "set2_shape": np.array([3, 4], L)}, {"set_operation": "union"})
    yield Case("DenseToDenseSetOperation", {"set1": ints(L, 3, 4), "set2": ints(L, 3, 4)},
               {"set_operation": "sum"})
    yield Case("SetSize", {"set_indices": i64([0, 1], [0, 2], [2, 0]), "set_values":
                           np.array([5, 5, 6], L), "set_shape": np.array([4, 4], L)})


def sparse_math():
    at, shape = i64([2, 1], [0, 3], [2, 0], [0, 3]), np.array([3, 4], L)
    for v in (real(F, 4), ints(L, 4), strs("a", "b", "c", "d")):
        yield Case("SparseReorder", {"input_indices": at, "input_values": v,
                                     "input_shape": shape})
    for t in (F, D, I, np.complex64):
        make = {I: ints, np.complex64: lambda t, *shape: real(F, *shape) + t(1j) * real(F, *shape)}.get(t, real)
        for flip_a in (False, True):
            for flip_b in (False, True):
                b = make(t, 3 if flip_a else 4, 5)
                yield Case("SparseTensorDenseMatMul", {
                    "a_indices": at, "a_values": make(t, 4), "a_shape": shape,
                    "b": b.T.copy() if flip_b else b}, {"adjoint_a": flip_a, "adjoint_b": flip_b},
                    rtol=None if t in (D, I) else 1e-5, atol=1e-14 if t in (D, I) else 1e-6)
    for no_rows in (True, False):  # stock neither checks nor writes empty tensors
        yield Case("SparseTensorDenseMatMul", {"a_indices": at, "a_values": real(F, 4), "a_shape": np.array([3, 0], L),
                                               "b": real(F, 3 if no_rows else 0, 5 if no_rows else 0)}, {"adjoint_a": no_rows})
    for bad in (i64([0, 4]), i64([-1, 0])):
        yield Case("SparseTensorDenseMatMul", {"a_indices": bad, "a_values": real(F, 1),
                                               "a_shape": shape, "b": real(F, 4, 2)})
    yield Case("SparseTensorDenseMatMul", {"a_indices": at, "a_values": real(F, 4),
                                           "a_shape": shape, "b": real(F, 3, 2)})


def sparse_of(t, shape, n):
    """Returns ordered indices, nonzero values, and the shape."""
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
    empty = {"sp_indices": np.zeros((0, 1), L), "sp_values": np.zeros(0, F), "sp_shape": np.array([0], L)}
    yield Case("SparseDenseCwiseAdd", {**empty, "dense": np.ones(1, F)})
    yield Case("SparseTensorDenseAdd", {**named("a_", a), "b": real(F, 5, 4)})
    yield Case("SparseReduceSum", {**named("input_", a), "reduction_axes": i32(2)})
    outside = {"indices": i64([0, 1], [0, 7], [2, -1]), "values": real(F, 3), "shape": np.array([3, 4], L)}
    for op in ("SparseReduceSum", "SparseReduceMax", "SparseReduceSumSparse", "SparseReduceMaxSparse"):
        yield Case(op, {**{"input_" + k: v for k, v in outside.items()}, "reduction_axes": i32(1)})
    yield Case("SparseSoftmax", {"sp_" + k: v for k, v in outside.items()}, rtol=1e-5)
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


def sparse_products():
    for flip_a, flip_b, hint, ta, tb in itertools.product((False, True), (False, True), (False, True), (F, BF16), (F, BF16)):
        a, b = real(F, 7, 40).astype(ta), real(F, 40, 9).astype(tb)
        a[a < 1], b[b < 1] = 0, 0
        attrs = {"transpose_a": flip_a, "transpose_b": flip_b, "a_is_sparse": hint, "b_is_sparse": not hint}
        yield Case("SparseMatMul", {"a": a.T.copy() if flip_a else a, "b": b.T.copy() if flip_b else b}, attrs, rtol=1e-5, atol=1e-5)
    a, b = real(F, 3, 4), real(F, 4, 2)
    for x, y in ((a[:0], b), (a[:, :0], b[:0]), (a, b[:3]), (a[0], b), (a, b[0])):
        yield Case("SparseMatMul", {"a": x, "b": y})


def sparse_math_cases():
    for group in (slices, sparse_reductions, sparse_counts, serialized, root_segments, sets, sparse_math, sparse_arithmetic, sparse_joins, sparse_products):
        yield from group()
