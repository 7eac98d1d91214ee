# SPDX-License-Identifier: Apache-2.0
"""Ragged tensors: ragged ranges, gathers, and conversion to dense tensors with a default value."""
import itertools

import numpy as np
import tensorflow.compat.v1 as tf

from ops_cases import Case, D, F, I, L, i32, ints, real, rng, scalar, strs


def ranges():
    for t, splits in itertools.product((I, L, F, D), (tf.int32, tf.int64)):
        attrs = {"Tsplits": splits}
        one = lambda *v: np.array(v, t)  # noqa: E731
        for starts, limits, deltas in (
                (one(0, 5, 8), one(3, 5, 12), one(1, 1, 1)), (one(0, 5, 8), scalar(10, t), scalar(2, t)), (scalar(0, t), one(3, 0, -4), scalar(1, t)),
                (one(9, 2, 3), one(1, 9, 3), one(-3, -1, -2)), (scalar(0, t), scalar(4, t), scalar(1, t)), (one(), one(), scalar(1, t)), (one(0), one(10), one(3))):
            yield Case("RaggedRange", {"starts": starts, "limits": limits, "deltas": deltas}, attrs)
        for starts, limits, deltas in ((one(0, 1), one(3), one(1, 1)), (one(0), one(3), one(0)), (one(0).reshape(1, 1), one(1), one(1))):
            yield Case("RaggedRange", {"starts": starts, "limits": limits, "deltas": deltas}, attrs)
    yield Case("RaggedRange", {"starts": scalar(2**31 - 3), "limits": scalar(2**31 - 1), "deltas": scalar(1)})
    for limit in (0.3, 0.6, 1.0):
        yield Case("RaggedRange", {"starts": scalar(0.0, F), "limits": scalar(limit, F), "deltas": scalar(0.1, F)})


def gathers():
    for t, at, splits in itertools.product((F, L, None), (I, L), (I, L)):
        values = strs(*"abcdefg") if t is None else real(F, 7, 2).astype(t)
        one, two = np.array([0, 2, 2, 5, 7], splits), np.array([0, 1, 1, 4], splits)
        for nested, rows in (([one], (0, 2, 2, 3)), ([one], (1,)), ([one], ()), ([two, one], (2, 0, 1, 2)), ([two, one], (1,))):
            index = np.array(rows, at)
            yield Case("RaggedGather", {"params_nested_splits": nested, "params_dense_values": values, "indices": index}, {"OUTPUT_RAGGED_RANK": len(nested)})
        for nested in ([one], [two, one]):
            yield Case("RaggedGather", {"params_nested_splits": nested, "params_dense_values": values, "indices": np.array(2, at)},
                       {"OUTPUT_RAGGED_RANK": len(nested) - 1})
        square = np.array([[0, 3], [2, 1], [3, 3]], at)
        yield Case("RaggedGather", {"params_nested_splits": [one], "params_dense_values": values, "indices": square}, {"OUTPUT_RAGGED_RANK": 2})
        yield Case("RaggedGather", {"params_nested_splits": [two, one], "params_dense_values": values, "indices": square[:1].reshape(1, 1, 2) % 3}, {"OUTPUT_RAGGED_RANK": 4})
    for index in (i32(0, 4), i32(-1)):
        yield Case("RaggedGather", {"params_nested_splits": [one], "params_dense_values": values, "indices": index}, {"OUTPUT_RAGGED_RANK": 1})
    for bad in (np.array([0, 3, 2], L), np.array([0, 9], L)):
        yield Case("RaggedGather", {"params_nested_splits": [bad], "params_dense_values": values, "indices": i32(0)}, {"OUTPUT_RAGGED_RANK": 1})


def dense():
    one, two, ids = [0, 2, 2, 5, 7], [0, 1, 1, 4], [0, 0, 2, 2, 2, 3, 3]
    for t, index, asked in itertools.product((F, I, None), (I, L), (I, L)):
        values = strs(*"abcdefg") if t is None else real(F, 7).astype(t) * 9
        wide = None if t is None else (real(F, 7, 2) * 9).astype(t)
        filler = np.array(b"-", object) if t is None else scalar(-1, t)
        by = lambda *v: np.array(v, index)  # noqa: E731
        def ask(values, filler, kinds, parts, shape=-1):
            return Case("RaggedTensorToTensor", {"shape": np.array(shape, asked), "values": values, "default_value": filler, "row_partition_tensors": parts},
                        {"row_partition_types": kinds}, first=1)
        for shape in (-1, [-1, -1], [4, 3], [2, 2], [6, 5], [-1, 1], [0, -1]):
            yield ask(values, filler, ["ROW_SPLITS"], [by(*one)], shape)
            yield ask(values, filler, ["FIRST_DIM_SIZE", "VALUE_ROWIDS"], [by(4)[0], by(*ids)], shape)
        for shape in (-1, [-1, -1, -1], [2, 2, 2], [5, 4, 4]):
            yield ask(values, filler, ["ROW_SPLITS", "ROW_SPLITS"], [by(*two), by(*one)], shape)
            yield ask(values, filler, ["FIRST_DIM_SIZE", "VALUE_ROWIDS", "VALUE_ROWIDS"], [by(3)[0], by(0, 2, 2, 2), by(*ids)], shape)
        if wide is not None:
            for shape, fill in ((-1, filler), ([-1, 2, 2], filler), ([-1, -1, 2], np.array([7, 8], t)), (-1, np.array([7], t))):
                yield ask(wide, fill, ["ROW_SPLITS"], [by(*one)], shape)
            yield ask(wide, filler, ["ROW_SPLITS"], [by(*one)], [-1, 2, 3])
            yield ask(wide, np.array([1, 2, 3], t), ["ROW_SPLITS"], [by(*one)])
        yield ask(values[:0], filler, ["ROW_SPLITS"], [by(0, 0, 0)])
        yield ask(values, filler, ["ROW_SPLITS"], [by(*one)], [1, 2, 3])


def ragged_to_sparse():
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


def crosses():
    texts, numbers, splits = strs("a", "b", "c"), np.array([1, 2, 3], L), np.array([0, 1, 3], L)

    def cross(order, ragged=(), sparse=(), dense=(), hashed=False, buckets=0, splits_type=tf.int64):
        return Case("RaggedCross", {
            "ragged_values": [v for v, _ in ragged], "ragged_row_splits": [s for _, s in ragged],
            "sparse_indices": [np.array(i, L) for i, _, _ in sparse], "sparse_values": [v for _, v, _ in sparse], "sparse_shape": [np.array(s, L) for _, _, s in sparse],
            "dense_inputs": list(dense)}, {"input_order": order, "hashed_output": hashed, "num_buckets": buckets, "hash_key": 956888297470,
                                           "out_values_type": tf.int64 if hashed else tf.string, "out_row_splits_type": splits_type})
    ragged = (texts, splits), (numbers, np.array([0, 2, 3], L))
    sparse = ([[0, 0], [1, 0], [1, 3]], strs("x", "y", "z"), [2, 4])
    dense = np.array([[7, 9], [8, 1]], L)
    for hashed, buckets in ((False, 0), (True, 0), (True, 10)):
        for order in ("RSD", "DSR", "SDR", "RS", "RSDD", "RSX", "rsd", "RRD", ""):
            yield cross(order, ragged[:1], (sparse,), (dense,), hashed, buckets)
        yield cross("RR", ragged, hashed=hashed, buckets=buckets)
        yield cross("DR", ragged[1:], (), (strs("p", "q").reshape(2, 1),), hashed, buckets)
    yield cross("RD", ((texts, splits.astype(I)),), (), (dense,), splits_type=tf.int32)
    for bad in ([0, 1, 2], [1, 2, 3], [0, 3], [0], [], [[0, 1, 3]]):
        yield cross("RD", ((texts, np.array(bad, L)),), (), (dense,))
    for bad in (([[0, 0]], strs("x"), [2]), ([0], strs("x"), [2, 4]), ([[0, 0, 0]], strs("x"), [2, 4, 1]), ([[0, 0]], strs("x"), [3, 4])):
        yield cross("RS", ragged[:1], (bad,))
    for bad in (dense[0], dense[:1], dense.reshape(2, 2, 1), dense[:, :0]):
        yield cross("RD", ragged[:1], (), (bad,))


def filled_rows():
    for t in (F, D, I, L, None):
        v = strs("a", "b", "c") if t is None else real(t, 3) if t in (F, D) else ints(t, 3)
        for rows, n in (([0, 2, 2], 4), ([2, 0, 2], 3), ([0, 1, 2], 3), ([0, 1, 5], 4), ([0, -1, 1], 4), ([0, 1], 4), ([0, 1, 2], -1), ([0, 1, 2], 0)):
            yield Case("RaggedFillEmptyRows", {"value_rowids": np.array(rows, L), "values": v, "nrows": scalar(n, L), "default_value": v[:1].reshape(())})
        yield Case("RaggedFillEmptyRows", {"value_rowids": np.zeros(0, L), "values": v[:0], "nrows": scalar(3, L), "default_value": v[:1].reshape(())})
        for at in ([0, 2], [2, 2], [], [3], [-1]) if t else ():
            yield Case("RaggedFillEmptyRowsGrad", {"reverse_index_map": np.array(at, L), "grad_values": v}, rtol=1e-6)


def ragged_cases():
    for group in (ranges, gathers, dense, ragged_to_sparse):
        yield from group()
