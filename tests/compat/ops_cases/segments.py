# SPDX-License-Identifier: Apache-2.0
"""Partitions, unique values and segments."""
import numpy as np

from ops_cases import Case, F, I, INTS, L, REALS, i32, ints, real, scalar, strs


def partition():
    x = real(F, 5, 2)
    yield Case("DynamicPartition", {"data": x, "partitions": i32(1, 0, 2, 0, 1)},
               {"num_partitions": 4})
    yield Case("DynamicPartition", {"data": strs("a", "b", "c"), "partitions": i32(1, 0, 1)},
               {"num_partitions": 2})
    yield Case("DynamicPartition", {"data": x, "partitions": scalar(1)}, {"num_partitions": 2})
    yield Case("DynamicPartition", {"data": x, "partitions": i32(1, 0, 2, 0, 1)},
               {"num_partitions": 2})
    yield Case("DynamicPartition", {"data": x, "partitions": i32(1, 0)}, {"num_partitions": 2})
    for op in ("DynamicStitch", "ParallelDynamicStitch"):
        yield Case(op, {"indices": [i32(3, 1), i32(0, 2)], "data": [real(F, 2, 3), real(F, 2, 3)]})
        yield Case(op, {"indices": [scalar(1), np.array([[0, 2], [1, 3]], I)],
                        "data": [real(F, 3), real(F, 2, 2, 3)]})
        yield Case(op, {"indices": [i32(), i32(0)], "data": [np.zeros((0, 2), F), real(F, 1, 2)]})
    yield Case("DynamicStitch", {"indices": [i32(0), i32(1)],
                                 "data": [real(F, 1, 3), real(F, 1, 2)]})


def unique():
    for x in (i32(3, 1, 3, 3, 7, 1), ints(L, 40), strs("b", "a", "b", ""), i32(),
              np.array([0.0, -0.0, 1.5, np.nan, 1.5, np.nan], F), ints(L, 900, low=0, high=500),
              real(np.float64, 300)):
        for t in INTS:
            import tensorflow as tf
            yield Case("Unique", {"x": x}, {"out_idx": tf.as_dtype(t)})
        yield Case("UniqueWithCounts", {"x": x})
    yield Case("Unique", {"x": ints(I, 2, 2)})
    yield Case("UniqueV2", {"x": i32(2, 2, 1), "axis": i32(0)})
    yield Case("UniqueV2", {"x": ints(I, 3, 9, 2, low=0, high=2), "axis": i32(1)})
    yield Case("UniqueV2", {"x": ints(I, 40, 1), "axis": i32(0)})
    yield Case("ListDiff", {"x": i32(1, 2, 3, 4, 5), "y": i32(2, 4)})
    yield Case("ListDiff", {"x": strs("a", "b", "a"), "y": strs("b")})


def segments():
    for t in REALS + INTS:
        x = (real if t in REALS else ints)(t, 6, 3)
        for op in "Sum Prod Max Min Mean".split():
            if op == "Mean" and t in INTS:
                continue
            yield Case("Segment" + op, {"data": x, "segment_ids": i32(0, 0, 1, 3, 3, 3)})
    x = real(F, 6, 3)
    yield Case("SegmentSum", {"data": x, "segment_ids": i32(0, 2, 1, 3, 3, 3)})
    yield Case("SegmentSum", {"data": x, "segment_ids": i32(0, 2)})
    yield Case("SegmentSum", {"data": np.zeros((0, 3), F), "segment_ids": i32()})
    for t in REALS:
        for op in "Sum Mean SqrtN".split():
            x, ids, seg = real(t, 6, 3), i32(5, 0, 0, 2), i32(0, 0, 0, 2)
            yield Case("SparseSegment" + op, {"data": x, "indices": ids, "segment_ids": seg})
            yield Case("SparseSegment" + op, {"data": x, "indices": i32(6), "segment_ids": i32(0)})
            yield Case("SparseSegment" + op + "Grad", {
                "grad": real(t, 3, 3), "indices": ids, "segment_ids": seg,
                "output_dim0": scalar(7)})
            if op != "SqrtN":
                yield Case(f"SparseSegment{op}WithNumSegments", {
                    "data": x, "indices": ids, "segment_ids": seg, "num_segments": scalar(5)})
