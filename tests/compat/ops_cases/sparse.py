# SPDX-License-Identifier: Apache-2.0
"""Sparse tensors, strings, top-k, files and raw bytes."""
import numpy as np

from ops_cases import Case, D, F, I, L, i32, ints, real, rng, scalar, strs


def i64(*rows):
    return np.array(rows, L)


def sparse():
    for t in (I, L):
        yield Case("SparseToDense", {
            "sparse_indices": np.array([[0, 1], [1, 0], [2, 3]], t), "output_shape":
            np.array([3, 4], t), "sparse_values": real(F, 3), "default_value": scalar(-1, F)})
    for idx, shape, v in ((np.array(2, I), [5], scalar(3, F)), (i32(1, 3), [5], real(F, 2)),
                          (i32(1, 3), [5], scalar(9, F)), (i32(3, 1), [5], real(F, 2)),
                          (i32(1, 1), [5], real(F, 2)), (i32(1, 7), [5], real(F, 2)),
                          (i32(1, 3), [5], real(F, 3)), (i32(1, 3), [5, 5], real(F, 2))):
        yield Case("SparseToDense", {"sparse_indices": idx, "output_shape": np.array(shape, I),
                                     "sparse_values": v, "default_value": scalar(0, F)})
    yield Case("SparseToDense", {"sparse_indices": i32(1, 1), "output_shape": i32(3),
                                 "sparse_values": strs("a", "b"),
                                 "default_value": np.array(b"-", dtype=object)},
               {"validate_indices": False})
    idx = i64([0, 0, 0], [0, 1, 2], [1, 1, 5])
    for to in ([4, 9], [-1, 6], [36], [2, 3, -1, 1], [5, -1], [-1, -1], [35]):
        yield Case("SparseReshape", {"input_indices": idx, "input_shape": np.array([2, 3, 6], L),
                                     "new_shape": np.array(to, L)})
    yield Case("SparseReshape", {"input_indices": np.zeros((0, 2), L), "input_shape":
                                 np.array([0, 4], L), "new_shape": np.array([0, 2], L)})
    outside = i64([0, 1, -2], [1, 0, 7], [5, 2, 6])
    for to in ([4, 9], [36], [2, 3, 6], [2, 3, -1, 1]):
        yield Case("SparseReshape", {"input_indices": outside, "input_shape": np.array([2, 3, 6], L), "new_shape": np.array(to, L)})
    for rows, n in (([[0, 1], [3, 0], [3, 2]], 5), ([[2, 1], [0, 0], [2, 0]], 3), ([], 2),
                    ([[5, 0]], 3)):
        rows = np.array(rows, L).reshape(-1, 2)
        yield Case("SparseFillEmptyRows", {
            "indices": rows, "values": ints(L, len(rows)), "dense_shape": np.array([n, 4], L),
            "default_value": scalar(-7, L)})


def text():
    yield Case("Assert", {"condition": np.array(True), "data": [real(F, 2)]})
    yield Case("Assert", {"condition": np.array(False), "data": [i32(1, 2, 3, 4), strs("x")]})
    yield Case("AsString", {"input": ints(I, 5)})
    yield Case("AsString", {"input": ints(L, 2, 2)}, {"width": 6, "fill": "0"})
    yield Case("AsString", {"input": np.array([True, False])})
    for t in (F, D):
        x = np.array([1.5, -2.25, 1e10, 1e-7, 0], t)
        yield Case("AsString", {"input": x})
        yield Case("AsString", {"input": x}, {"precision": 2})
        yield Case("AsString", {"input": x}, {"scientific": True})
        yield Case("AsString", {"input": x}, {"shortest": True})
    yield Case("AsString", {"input": ints(I, 2)}, {"precision": 2})


def ranked():
    for t in (F, D, I, L):
        x = ints(t, 3, 8)
        for k in (0, 1, 5, 8, 9):
            yield Case("TopKV2", {"input": x, "k": scalar(k)})
    yield Case("TopKV2", {"input": scalar(1, F), "k": scalar(1)})
    for x in (ints(F, 3, 400), np.array([5, 3, 1, 4], np.uint64) + np.uint64(2**63), ints(np.int8, 2, 50)):
        for k in (1, 3, 4):
            yield Case("TopKV2", {"input": x, "k": scalar(k)})
    x = real(F, 4, 6)
    x[3, 2] = np.inf
    for k in (1, 3, 6):
        yield Case("InTopKV2", {"predictions": x, "targets": i32(0, 5, 7, 1), "k": scalar(k)})
    yield Case("DiagPart", {"input": real(F, 4, 4)})
    yield Case("DiagPart", {"input": ints(I, 2, 3, 2, 3)})
    yield Case("DiagPart", {"input": real(F, 4, 3)})
    yield Case("DiagPart", {"input": real(F, 4)})
    yield Case("ScatterNd", {"indices": np.array([[1], [3], [1]], I), "updates": real(F, 3, 2),
                             "shape": i32(5, 2)})
    yield Case("ScatterNd", {"indices": np.array([[1, 0], [3, 1]], I), "updates": real(F, 2),
                             "shape": i32(5, 2)})
    yield Case("ScatterNd", {"indices": np.array([[9]], I), "updates": real(F, 1, 2),
                             "shape": i32(5, 2)})
    yield Case("ScatterNd", {"indices": np.array([[1]], I), "updates": real(F, 1, 3),
                             "shape": i32(5, 2)})


def raw():
    import tensorflow as tf
    for t in (tf.uint8, tf.int16, tf.float32, tf.int64):
        for little in (True, False):
            yield Case("DecodeRaw", {"bytes": strs("abcdefgh", "ijklmnop")},
                       {"out_type": t, "little_endian": little})
    yield Case("DecodeRaw", {"bytes": strs("abc")}, {"out_type": tf.int16})
    yield Case("DecodeRaw", {"bytes": strs("abc", "de")}, {"out_type": tf.uint8})
    yield Case("ReadFile", {"filename": np.array(__file__.encode(), dtype=object)})
    yield Case("ReadFile", {"filename": np.array(b"/nowhere/at/all", dtype=object)})
    here = __file__.rsplit("/", 1)[0]
    for pattern in ("/ops_c*.py", "/../../*", "/../../.*"):
        yield Case("MatchingFiles", {"pattern": np.array((here + pattern).encode(), dtype=object)})


def hashes():
    words = np.array([bytes(rng.randint(0, 256, n).astype(np.uint8)) for n in range(200)],
                     dtype=object)
    for n in (10, 2 ** 62):
        yield Case("StringToHashBucketFast", {"input": words}, {"num_buckets": n})


def sparse_cases():
    for group in (sparse, text, ranked, raw, hashes):
        yield from group()
