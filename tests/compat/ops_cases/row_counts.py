# SPDX-License-Identifier: Apache-2.0
"""Counts of values per row, norms of small integers and complex numbers, scatters of strings."""
import itertools

import numpy as np

from ops_cases import Case, D, F, I, L, ints, real, scalar, strs

NONE = np.zeros(0, F)


def i64(*v):
    return np.array(v, L)


def _ways():
    for binary, (least, most) in itertools.product((False, True), ((-1, -1), (9, -1), (-1, 3), (5, 3), (-1, 0), (-1, 50))):
        yield {"binary_output": binary, "minlength": least, "maxlength": most}


def dense_counts():
    for t, w in itertools.product((I, L), (F, D, I, L)):
        for shape in ((2, 7), (9,), (3, 1), (2, 0)):
            x = ints(t, *shape, low=0, high=6)
            for attrs in _ways():
                yield Case("DenseCountSparseOutput", {"values": x, "weights": np.zeros(0, w)}, attrs)
            yield Case("DenseCountSparseOutput", {"values": x, "weights": ints(w, *shape)}, attrs)
    x = ints(I, 2, 3, low=0)
    for values, weights in ((x, real(F, 3)), (x[None], NONE), (x - 20, NONE), (scalar(3), NONE), (x[:0], NONE)):
        yield Case("DenseCountSparseOutput", {"values": values, "weights": weights}, {"binary_output": False})


def sparse_counts():
    at = np.array([[0, 0], [0, 2], [1, 1], [1, 2], [3, 0]], L)
    for t, w in itertools.product((I, L), (F, D, I, L)):
        x = np.array([3, 3, 1, 0, 1], t)
        for attrs in _ways():
            yield Case("SparseCountSparseOutput", {"indices": at, "values": x, "dense_shape": i64(5, 4), "weights": np.zeros(0, w)}, attrs)
        yield Case("SparseCountSparseOutput", {"indices": at[::-1], "values": x, "dense_shape": i64(4, 4), "weights": ints(w, 5)}, attrs)
        yield Case("SparseCountSparseOutput", {"indices": np.arange(5, dtype=L)[:, None], "values": x, "dense_shape": i64(9), "weights": ints(w, 5)}, attrs)
        yield Case("SparseCountSparseOutput", {"indices": at[:0], "values": x[:0], "dense_shape": i64(2, 4), "weights": np.zeros(0, w)}, attrs)
        yield Case("SparseCountSparseOutput", {"indices": at, "values": x, "dense_shape": i64(2**63 - 2, 4), "weights": ints(w, 5)}, attrs)
    right = {"indices": at, "values": np.array([3, 3, 1, 0, 1], I), "dense_shape": i64(5, 4), "weights": NONE}
    for wrong in ({"indices": at[:, 0]}, {"values": right["values"][:3]}, {"dense_shape": i64(1, 4)}, {"dense_shape": i64(5, 1)}, {"dense_shape": i64(2)},
                  {"values": right["values"] - 2}, {"weights": real(F, 2)}, {"dense_shape": i64(0, 4)}, {"indices": at[:0], "values": right["values"][:0], "dense_shape": i64(0, 4)},
                  {"values": right["values"][None]}, {"dense_shape": i64(5, 4)[None]}, {"indices": -at}, {"dense_shape": i64(-2, 4)}):
        yield Case("SparseCountSparseOutput", {**right, **wrong}, {"binary_output": False})


def ragged_counts():
    splits = (i64(0, 2, 5), i64(0, 2, 2, 5, 5), i64(0, 5), i64(0, 3, 2, 5), i64(0, -1, 5))
    for t, w in itertools.product((I, L), (F, D, I, L)):
        x = np.array([3, 3, 1, 0, 1], t)
        for s in splits:
            for attrs in _ways():
                yield Case("RaggedCountSparseOutput", {"splits": s, "values": x, "weights": np.zeros(0, w)}, attrs)
            yield Case("RaggedCountSparseOutput", {"splits": s, "values": x, "weights": ints(w, 5)}, {"binary_output": False})
            for size, binary in itertools.product((4, 2, 0), (False, True)):
                for weights in (np.zeros(0, w), ints(w, 5)):
                    yield Case("RaggedBincount", {"splits": s, "values": x, "size": scalar(size, t), "weights": weights}, {"binary_output": binary})
    x = np.array([3, 3, 1, 0, 1], I)
    for wrong in ({"splits": i64(0, 2)}, {"splits": i64(0, 7)}, {"splits": i64(1, 5)}, {"splits": i64()}, {"splits": i64(0)}, {"values": x - 2}):
        yield Case("RaggedCountSparseOutput", {"splits": splits[0], "values": x, "weights": NONE, **wrong}, {"binary_output": False})
        yield Case("RaggedBincount", {"splits": splits[0], "values": x, "weights": NONE, "size": scalar(4), **wrong})
    yield Case("RaggedCountSparseOutput", {"splits": splits[0], "values": x, "weights": real(F, 2)}, {"binary_output": False})
    yield Case("RaggedBincount", {"splits": splits[0], "values": x, "weights": NONE, "size": scalar(-1)})
    yield Case("RaggedBincount", {"splits": splits[0], "values": x, "weights": NONE, "size": np.array([4], I)})


def norms():
    for t in (np.int8, np.uint8, np.int16, np.uint16, I, L, np.uint32, np.uint64):
        x = ints(t, 3, 4, low=0 if np.dtype(t).kind == "u" else -11, high=11)
        for axes in ([0], [1], [0, 1], []):
            yield Case("EuclideanNorm", {"axis": np.array(axes, I), "input": x})
        yield Case("EuclideanNorm", {"axis": np.array([0], I), "input": np.array([[100, 100, 12], [90, 3, 13]], t)})
    for t in (np.complex64, np.complex128):
        z = (real(D, 3, 4) + 1j * real(D, 3, 4)).astype(t)
        for axes in ([0], [1], [0, 1]):
            yield Case("EuclideanNorm", {"axis": np.array(axes, I), "input": z}, {"keep_dims": True})


def scattered_strings():
    for t in (I, L):
        yield Case("ScatterNd", {"indices": np.array([[0], [2], [0]], t), "updates": strs("a", "b", "cd"), "shape": np.array([4], t)})
        yield Case("ScatterNd", {"indices": np.array([[2], [0], [2]], t), "updates": np.array([[b"a", b"b"], [b"x", b""], [b"", b"z"]], object),
                                 "shape": np.array([3, 2], t)})
        yield Case("ScatterNd", {"indices": np.array([[3]], t), "updates": strs("a"), "shape": np.array([3], t)})


def row_counts_cases():
    for group in (dense_counts, sparse_counts, ragged_counts, norms, scattered_strings):
        yield from group()
