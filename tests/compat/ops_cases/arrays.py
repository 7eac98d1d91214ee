# SPDX-License-Identifier: Apache-2.0
"""Padding, permutations, space and batch conversions, scatters, scans, and in-place row updates."""
import numpy as np
import tensorflow.compat.v1 as tf

from ops_cases import Case, D, F, I, L, Var, i32, ints, real, rng, scalar, strs

H = np.float16
BF16 = tf.bfloat16.as_numpy_dtype


def mirror_pads():
    for mode in ("REFLECT", "SYMMETRIC"):
        for t in (F, D, I, L, H):
            make = ints if t in (I, L) else real
            for x, p in (((5, 7), [[1, 1], [2, 1]]), ((4, 6), [[0, 0], [2, 1]]), ((3,), [[0, 0]]), ((3, 5, 4), [[1, 0], [0, 2], [1, 1]])):
                # stock adds float16 gradients in float16
                yield Case("MirrorPadGrad", {"input": make(t, *x), "paddings": np.array(p, I)}, {"mode": mode},
                           atol=5e-3 if t == H else 1e-6)
        for p in ([[2, 2]], [[1, 2]], [[3, 0]], [[-1, 0]], [[0, 9]], [[0, 0], [0, 0]]):
            yield Case("MirrorPadGrad", {"input": real(F, 5), "paddings": np.array(p, L)}, {"mode": mode})


def nth_elements():
    for t in (F, D, I, L, np.uint8, H):
        x = ints(t, 3, 8)
        for n in (0, 3, 7, 8, -1):
            for back in (False, True):
                yield Case("NthElement", {"input": x, "n": scalar(n)}, {"reverse": back})
    for x in (real(F, 2, 1000), ints(I, 2, 1000), np.array([5, 3, 1, 4], np.uint64) + np.uint64(2**63)):
        for n in (0, 2, x.shape[-1] // 2, x.shape[-1] - 1):
            yield Case("NthElement", {"input": x, "n": scalar(n)})
    yield Case("TopKV2", {"input": ints(H, 3, 90), "k": scalar(20)}, {"index_type": tf.int64})
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


def ref_selects():
    for at in (0, 1, 2, -1):
        yield Case("RefSelect", {"index": scalar(at), "inputs": [Var(real(F, 2)), Var(real(F, 3))]})


def space_and_batch():
    for t in (F, L):
        x = ints(t, 2, 4, 6, 3)
        yield Case("SpaceToBatchND", {"input": x, "block_shape": i32(2, 3),
                                      "paddings": np.zeros((2, 2), I)}, known=True)
        yield Case("SpaceToBatchND", {"input": x, "block_shape": i32(2, 4),
                                      "paddings": np.array([[1, 1], [0, 2]], I)}, known=True)
        yield Case("SpaceToBatchND", {"input": x, "block_shape": i32(3), "paddings": np.array([[0, 2]], I)}, known=True)
        yield Case("SpaceToBatchND", {"input": x, "block_shape": i32(3), "paddings": np.array([[0, 1]], I)}, known=True)
        many = ints(t, 3, 2, 2, 3, 4, 5, 2, 5)
        for blocks in ((1, 1, 3, 4, 2, 2), (1, 1, 3, 4, 2, 2, 1), (2, 1, 3, 4, 5)):
            edges = np.array([[0, 0], [0, 0], [0, 0], [0, 0], [0, 1], [0, 0], [0, 0]], I)[:len(blocks)]
            yield Case("SpaceToBatchND", {"input": many, "block_shape": i32(*blocks), "paddings": edges}, known=True)
        yield Case("SpaceToBatchND", {"input": x, "block_shape": i32(0), "paddings": np.array([[0, 0]], I)}, known=True)
        y = ints(t, 12, 2, 3, 2)
        yield Case("BatchToSpaceND", {"input": y, "block_shape": i32(2, 3), "crops": np.zeros((2, 2), I)}, known=True)
        yield Case("BatchToSpaceND", {"input": y, "block_shape": i32(3, 2),
                                      "crops": np.array([[1, 2], [0, 1]], I)}, known=True)
        yield Case("BatchToSpaceND", {"input": y, "block_shape": i32(4), "crops": np.array([[3, 5]], I)}, known=True)
        yield Case("BatchToSpaceND", {"input": y, "block_shape": i32(5), "crops": np.array([[0, 0]], I)}, known=True)
        yield Case("BatchToSpaceND", {"input": y, "block_shape": i32(2), "crops": np.array([[3, 3]], I)}, known=True)
        yield Case("SpaceToBatch", {"input": x, "paddings": np.zeros((2, 2), I)}, {"block_size": 2})
        yield Case("BatchToSpace", {"input": y, "crops": np.array([[0, 1], [1, 0]], I)}, {"block_size": 2})
        yield Case("SpaceToDepth", {"input": x}, {"block_size": 2})
        yield Case("SpaceToDepth", {"input": x}, {"block_size": 4})
        yield Case("DepthToSpace", {"input": ints(t, 2, 3, 2, 8)}, {"block_size": 2})
        yield Case("DepthToSpace", {"input": x}, {"block_size": 2})


def reorders():
    x = ints(F, 3, 4, 5)
    for seq, batch in ((1, 0), (0, 1), (2, 0), (0, 2), (2, 1)):
        n = rng.randint(0, x.shape[seq] + 1, x.shape[batch]).astype(L)
        yield Case("ReverseSequence", {"input": x, "seq_lengths": n}, {"seq_dim": seq, "batch_dim": batch})
    yield Case("ReverseSequence", {"input": x, "seq_lengths": i32(5, 1, 1)}, {"seq_dim": 1})
    yield Case("ReverseSequence", {"input": x, "seq_lengths": i32(1, 1)}, {"seq_dim": 1})
    for shift, axis in (([1], [0]), ([-1, 7], [1, 2]), ([2, 3], [0, 0]), ([1], [-1]), ([1], [3])):
        yield Case("Roll", {"input": x, "shift": i32(*shift), "axis": i32(*axis)})
    yield Case("Roll", {"input": strs("a", "b", "c"), "shift": scalar(1), "axis": scalar(0)})
    yield Case("Roll", {"input": x, "shift": i32(1, 2), "axis": scalar(0)})
    yield Case("Diag", {"diagonal": ints(F, 4)})
    yield Case("Diag", {"diagonal": ints(I, 2, 3)})
    yield Case("ParallelConcat", {"values": [ints(F, 1, 3), ints(F, 1, 3)]}, {"shape": [2, 3]}, known=True)
    for t in (I, L):
        yield Case("DataFormatVecPermute", {"x": ints(t, 4)})
        yield Case("DataFormatVecPermute", {"x": ints(t, 4, 2)}, {"src_format": "NCHW", "dst_format": "NHWC"})
        yield Case("DataFormatVecPermute", {"x": ints(t, 2)}, {"src_format": "NHWC", "dst_format": "HWNC"})
        yield Case("DataFormatVecPermute", {"x": ints(t, 3)})
        yield Case("DataFormatDimMap", {"x": np.array([0, 1, 2, 3, -1, -4], t)})
        yield Case("DataFormatDimMap", {"x": np.array([3, 1], t)}, {"src_format": "NHWC", "dst_format": "HWNC"})
    for t in (F, D, I, L):
        row = np.sort(ints(t, 2, 9), axis=1)
        for op in ("LowerBound", "UpperBound"):
            yield Case(op, {"sorted_inputs": row, "values": ints(t, 2, 5, low=-12, high=12)})
            yield Case(op, {"sorted_inputs": row, "values": ints(t, 2, 5)}, {"out_type": tf.int64})
            yield Case(op, {"sorted_inputs": row, "values": ints(t, 3, 5)})


def scatters_nd():
    for op in ("Update", "Add", "Sub", "Max", "Min"):
        for t in (F, D, I, L):
            make = ints if t in (I, L) else real
            at, updates = np.array([[1, 0], [3, 1], [1, 2]], I), make(t, 3)
            yield Case("TensorScatter" + op, {"tensor": make(t, 4, 3), "indices": at, "updates": updates})
            yield Case("ScatterNd" + op, {"ref": Var(make(t, 4, 3)), "indices": at, "updates": updates})
            yield Case("ResourceScatterNd" + op, {"ref": Var(make(t, 4, 3)), "indices": at, "updates": updates})
        for name in ("ScatterNd", "ResourceScatterNd"):
            yield Case(name + op, {"ref": Var(real(F, 4, 3)), "indices": np.array([[2], [0]], L), "updates": real(F, 2, 3)})
            yield Case(name + op, {"ref": Var(real(F, 4, 3)), "indices": np.array([[4]], L), "updates": real(F, 1, 3)})
            yield Case(name + op, {"ref": Var(real(F, 4, 3)), "indices": np.array([[1]], L), "updates": real(F, 1, 2)})
        yield Case("TensorScatter" + op, {"tensor": real(F, 4, 3), "indices": np.array([[-1]], I), "updates": real(F, 1, 3)})
    yield Case("ScatterNdNonAliasingAdd", {"input": real(F, 5), "indices": np.array([[4], [0], [4]], I), "updates": real(F, 3)})


def scans():
    for op in ("Cumsum", "Cumprod"):
        for t in (F, D, I, L):
            x = ints(t, 2, 3, 4, low=-3, high=3) if t in (I, L) else real(t, 2, 3, 4)
            for axis in (0, 1, -1):
                for exclusive in (False, True):
                    for reverse in (False, True):
                        yield Case(op, {"x": x, "axis": scalar(axis)}, {"exclusive": exclusive, "reverse": reverse}, rtol=1e-5 if t == F else None,
                                   atol=1e-6)
        yield Case(op, {"x": real(F, 2, 3), "axis": scalar(2)})
        yield Case(op, {"x": real(F, 0, 3), "axis": scalar(0, L)})
        yield Case(op, {"x": scalar(1, F), "axis": scalar(0)})


def rows_in_place():
    for t in (F, D, I, L, np.float16, BF16, np.int8, np.complex64):
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


def slice_assignments():
    for t in (F, L):
        for value in (ints(t, 2, 2), scalar(7, t), ints(t, 3, 2)):
            for op in ("StridedSliceAssign", "ResourceStridedSliceAssign"):
                yield Case(op, {"ref": Var(ints(t, 4, 5)), "begin": i32(1, 0), "end": i32(3, 4),
                                "strides": i32(1, 2), "value": value})
    for t in (F, D):
        for op in "Sum Mean SqrtN".split():
            for u in (I, L):
                yield Case(f"SparseSegment{op}GradV2", {
                    "grad": real(t, 3, 3), "indices": np.array([5, 0, 0, 2], u), "segment_ids": i32(0, 0, 0, 2),
                    "dense_output_dim0": scalar(7)})
    meta = b"\x0a\x03\x0a\x01x"
    yield Case("TensorSummaryV2", {"tag": np.array(b"t", object), "tensor": real(F, 2, 3),
                                   "serialized_summary_metadata": np.array(meta, object)})
    yield Case("TensorSummaryV2", {"tag": np.array(b"t", object), "tensor": strs("a", "bc"),
                                   "serialized_summary_metadata": np.array(b"", object)})


def isotonic_rows():
    for t, out in ((F, tf.float32), (D, tf.float64), (np.float16, tf.float16), (I, tf.float64), (L, tf.float64), (np.int8, tf.float32), (np.int16, tf.float32)):
        for shape in ((40,), (3, 7), (2, 2, 5), (0,), (3, 0), (1,), ()):
            yield Case("IsotonicRegression", {"input": ints(t, *shape, low=-5, high=5)}, {"output_dtype": out}, rtol=2e-3 if t == np.float16 else 1e-5, atol=1e-6)


def without_elements():
    """A dimension of 0 beside a huge dimension; an implementation must not loop over the huge one."""
    x, row = np.zeros((2**40, 0), F), np.zeros((2**40, 0, 0), F)
    yield Case("ConcatV2", {"values": [x, x], "axis": scalar(1)})
    yield Case("Pack", {"values": [x, x]}, {"axis": 1})
    yield Case("Split", {"axis": scalar(1), "value": x}, {"num_split": 2})
    yield Case("GatherV2", {"params": np.zeros((2**40, 3, 0), F), "indices": i32(0, 2), "axis": scalar(1)})
    yield Case("BatchMatMulV2", {"x": row, "y": row})
    yield Case("SegmentSum", {"data": np.zeros((1, 0), F), "segment_ids": np.array([2**27], L)})


def arrays_cases():
    for group in (mirror_pads, nth_elements, vectors, ref_selects, space_and_batch, reorders, scatters_nd, scans, rows_in_place, slice_assignments, without_elements):
        yield from group()
    yield Case("Timestamp", {}, only_shape=True)
