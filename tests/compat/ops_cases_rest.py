# SPDX-License-Identifier: Apache-2.0
"""Older and rarer forms: gradients of mirrored paddings, ranks, diagonals, products of vectors; sparse tensors cut and written."""
import numpy as np

from ops_cases import Case, D, F, I, L, Var, i32, ints, real, scalar, strs

H = np.float16


def i64(*rows):
    return np.array(rows, L)


def mirrored():
    for mode in ("REFLECT", "SYMMETRIC"):
        for t in (F, D, I, L, H):
            make = ints if t in (I, L) else real
            for x, p in (((5, 7), [[1, 1], [2, 1]]), ((4, 6), [[0, 0], [2, 1]]), ((3,), [[0, 0]]), ((3, 5, 4), [[1, 0], [0, 2], [1, 1]])):
                # theirs adds halves up as halves
                yield Case("MirrorPadGrad", {"input": make(t, *x), "paddings": np.array(p, I)}, {"mode": mode},
                           atol=5e-3 if t == H else 1e-6)
        for p in ([[2, 2]], [[1, 2]], [[3, 0]], [[-1, 0]], [[0, 9]], [[0, 0], [0, 0]]):
            yield Case("MirrorPadGrad", {"input": real(F, 5), "paddings": np.array(p, L)}, {"mode": mode})


def ranked():
    for t in (F, D, I, L, np.uint8, H):
        x = ints(t, 3, 8)
        for n in (0, 3, 7, 8, -1):
            for back in (False, True):
                yield Case("NthElement", {"input": x, "n": scalar(n)}, {"reverse": back})
    yield Case("NthElement", {"input": scalar(1, F), "n": scalar(0)})
    yield Case("NthElement", {"input": real(F, 3), "n": i32(0)})
    yield Case("NthElement", {"input": real(F, 2, 3, 4), "n": scalar(2)})
    yield Case("NthElement", {"input": real(F, 0, 4), "n": scalar(2)})


def vectors():
    for t in (F, D, I, L, np.int16, H):
        make = real if t in (F, D, H) else ints
        for shape in ((3,), (4, 3), (2, 2, 3), (0, 3)):
            yield Case("Cross", {"a": make(t, *shape), "b": make(t, *shape)}, atol=1e-2 if t == H else 1e-6 if t == F else 1e-12)
    yield Case("Cross", {"a": real(F, 3, 4), "b": real(F, 3, 4)})
    yield Case("Cross", {"a": real(F, 3), "b": real(F, 2, 3)})
    yield Case("Cross", {"a": scalar(1, F), "b": scalar(1, F)})
    for t in (I, L):
        for at in ([0, 5, 23], 7, [24]):
            yield Case("UnravelIndex", {"indices": np.array(at, t), "dims": np.array([2, 3, 4], t)})
    for dims in ([2, 0], [], [-2, -3], [7]):
        yield Case("UnravelIndex", {"indices": i32(1, 3), "dims": np.array(dims, I)})
    yield Case("UnravelIndex", {"indices": i32(1, 3).reshape(1, 2), "dims": i32(2, 3)})
    yield Case("UnravelIndex", {"indices": i32(1, 3), "dims": scalar(9)})


def diagonals():
    for t in (F, I):
        make = ints if t == I else real
        for k in ([0], [1], [-1], [-1, 1], [0, 2], [-2, -1], [5], [1, -1]):
            at = {"k": np.array(k, I)}
            yield Case("MatrixDiagPartV2", {"input": make(t, 2, 3, 4), **at, "padding_value": scalar(7, t)})
            n = k[-1] - k[0] + 1
            longest = 2 if k == [-2, -1] else 3 if len(k) > 1 or k == [1] else 3 if k == [0] else 2
            band = make(t, *((2, n, longest) if len(k) > 1 and n > 0 else (2, longest)))
            yield Case("MatrixSetDiagV2", {"input": make(t, 2, 3, 4), "diagonal": band, **at})
            yield Case("MatrixDiagV2", {"diagonal": band, **at, "num_rows": scalar(-1), "num_cols": scalar(-1), "padding_value": scalar(9, t)})


def joins():
    words = np.array([[[b"a", b"b", b""], [b"d", b"e", b"f"]], [[b"g", b"h", b"i"], [b"jj", b"k", b"l"]]], dtype=object)
    for axes in ([0], [1], [2], [-1], [0, 1], [1, 0], [2, 0, 1], [0, 1, 2], [], [3], [-4], [1, 1], [1, -2]):
        for keep in (False, True):
            yield Case("ReduceJoin", {"inputs": words, "reduction_indices": np.array(axes, I)}, {"keep_dims": keep, "separator": "-"})
    yield Case("ReduceJoin", {"inputs": words, "reduction_indices": scalar(1)})
    yield Case("ReduceJoin", {"inputs": words[:0], "reduction_indices": i32(0)})
    yield Case("ReduceJoin", {"inputs": words[:, :0], "reduction_indices": i32(1)}, {"separator": ","})
    yield Case("ReduceJoin", {"inputs": np.array(b"x", dtype=object), "reduction_indices": np.zeros(0, I)})


AT = i64([0, 1, 0], [0, 3, 2], [1, 0, 1], [1, 2, 2], [3, 1, 0])
SHAPE = np.array([4, 5, 3], L)


def cut():
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
    yield Case("SparseSliceGrad", {"backprop_val_grad": real(F, 1), "input_indices": AT, "input_start": np.array([0, 1, 0], L),
                                   "output_indices": AT[:2]})


def reduced():
    for op in ("SparseReduceSumSparse", "SparseReduceMaxSparse"):
        for t in (F, D, I, L):
            for axes in ([0], [1], [2], [-1], [0, 2], [1, 2], [0, 1], [3], [-4]):
                yield Case(op, {"input_indices": AT, "input_values": ints(t, 5), "input_shape": SHAPE,
                                "reduction_axes": np.array(axes, I)})
        yield Case(op, {"input_indices": AT[:0], "input_values": real(F, 0), "input_shape": SHAPE, "reduction_axes": i32(1)})


def counted():
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


def written():
    """Bytes are compared as the tensors that they say, by what reads them."""
    for v in (real(F, 5), ints(I, 5), strs("a", "", "ccc", "d", "e"), np.array([True, False, True, True, False])):
        x = {"sparse_indices": AT, "sparse_values": v, "sparse_shape": SHAPE}
        if v.dtype != object:
            yield Case("SerializeSparse", x)
            yield Case("SerializeManySparse", x)
        yield from read(v)
    x = {"sparse_indices": AT, "sparse_values": real(F, 5), "sparse_shape": SHAPE}
    for bad in ({"sparse_indices": AT[:4]}, {"sparse_shape": SHAPE[:2]}, {"sparse_indices": AT[:, 0]}, {"sparse_values": real(F, 5, 1)}):
        yield Case("SerializeManySparse", {**x, **bad})
    yield Case("SerializeManySparse", {"sparse_indices": AT[:, :1], "sparse_values": real(F, 5), "sparse_shape": SHAPE[:1]})
    yield Case("SerializeManySparse", {**x, "sparse_indices": AT[::-1]})


def read(v):
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


def roots():
    x = real(F, 6, 3)
    for t in (I, L):
        for n in (5, 2, 1):
            yield Case("SparseSegmentSqrtNWithNumSegments", {"data": x, "indices": np.array([0, 3, 5, 0], t),
                                                             "segment_ids": i32(0, 0, 1, 1), "num_segments": scalar(n, t)})


def references():
    for at in (0, 1, 2, -1):
        yield Case("RefSelect", {"index": scalar(at), "inputs": [Var(real(F, 2)), Var(real(F, 3))]})


def rest_cases():
    for group in (mirrored, ranked, vectors, diagonals, joins, cut, reduced, counted, written, roots, references):
        yield from group()
