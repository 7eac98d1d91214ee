# SPDX-License-Identifier: Apache-2.0
"""Ops that few programs name, and that stop those which do: products of mostly zeros, rows set in place, strings joined by segment."""
import itertools

import numpy as np
import tensorflow.compat.v1 as tf

from ops_cases import Case, D, F, I, L, i32, ints, real, scalar, strs

B = tf.bfloat16.as_numpy_dtype


def sparse_products():
    for flip_a, flip_b, hint, ta, tb in itertools.product((False, True), (False, True), (False, True), (F, B), (F, B)):
        a, b = real(F, 7, 40).astype(ta), real(F, 40, 9).astype(tb)
        a[a < 1], b[b < 1] = 0, 0
        attrs = {"transpose_a": flip_a, "transpose_b": flip_b, "a_is_sparse": hint, "b_is_sparse": not hint}
        yield Case("SparseMatMul", {"a": a.T.copy() if flip_a else a, "b": b.T.copy() if flip_b else b}, attrs, rtol=1e-5, atol=1e-5)
    a, b = real(F, 3, 4), real(F, 4, 2)
    for x, y in ((a[:0], b), (a[:, :0], b[:0]), (a, b[:3]), (a[0], b), (a, b[0])):
        yield Case("SparseMatMul", {"a": x, "b": y})


def rows_in_place():
    for t in (F, D, I, L, np.float16, B, np.int8, np.complex64):
        x, v = ints(np.int32, 5, 3).astype(t), ints(np.int32, 4, 3).astype(t)
        for op in ("InplaceUpdate", "InplaceAdd", "InplaceSub"):
            for rows in ((0, 4, 2, 2), (-1, 5, -6, 3)):
                yield Case(op, {"x": x, "i": i32(*rows), "v": v})
    x, v = real(F, 5, 3), real(F, 2, 3)
    yield Case("InplaceUpdate", {"x": strs("a", "b", "c"), "i": i32(1), "v": strs("x")})
    yield Case("InplaceUpdate", {"x": np.array([True, False]), "i": i32(1), "v": np.array([True])})
    for op in ("InplaceUpdate", "InplaceAdd"):
        for a, i, b in ((x, scalar(1), v), (x, i32(0), v), (x, i32(0, 1), v[:, :2]), (x, i32(0, 1), v[0]), (x[:, :0], i32(0, 1), v[:, :0])):
            yield Case(op, {"x": a, "i": i, "v": b})
    yield Case("DeepCopy", {"x": x})


def joins():
    words = strs("a", "bb", "", "d", "e", "f")
    for t, ids in itertools.product((I, L), ((0, 1, 0, 2, 1, 0), (4, 4, 4, 4, 4, 4), (-1, 0, -2, 3, 0, 3))):
        for between in ("", ", "):
            yield Case("UnsortedSegmentJoin", {"inputs": words, "segment_ids": np.array(ids, t), "num_segments": scalar(5, t)}, {"separator": between})
    square = words.reshape(3, 2)
    for ids in (i32(1, 0, 1), np.array([[0, 1], [1, 1], [0, 3]], I)):
        yield Case("UnsortedSegmentJoin", {"inputs": square, "segment_ids": ids, "num_segments": scalar(4)}, {"separator": "-"})
    for inputs, ids, n in ((words, i32(0, 1), scalar(2)), (words, i32(0, 1, 2, 3, 4, 5), scalar(5)), (square, scalar(0), scalar(1)), (words, np.zeros((6, 1), I), scalar(1)),
                           (square[:0], i32(), scalar(2)), (words, i32(0, 0, 0, 0, 0, 0), i32())):
        yield Case("UnsortedSegmentJoin", {"inputs": inputs, "segment_ids": ids, "num_segments": n})


def old_cases():
    for group in (sparse_products, rows_in_place, joins):
        yield from group()
    yield Case("Timestamp", {}, only_shape=True)
