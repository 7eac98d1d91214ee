# SPDX-License-Identifier: Apache-2.0
"""Ops that few programs use: rare functions, and ops with deprecated names."""
import gzip
import zlib

import numpy as np
import tensorflow.compat.v1 as tf

from ops_cases import Case, D, F, I, L, i32, ints, real, rng, scalar, strs


def one(data):
    return np.array(data, dtype=object)


def cumulative_logsumexp():
    for t in (F, D):
        x = real(t, 3, 4, 2, low=-30, high=30)
        x[1, 1], x[:2, 2, 0], x[0, 0, 0] = -np.inf, 500, np.inf
        near = {"rtol": 1e-5, "atol": 1e-6} if t == F else {"rtol": 1e-12, "atol": 1e-13}
        for axis in (0, 1, -1):
            for exclusive in (False, True):
                for reverse in (False, True):
                    yield Case("CumulativeLogsumexp", {"x": x, "axis": scalar(axis)}, {"exclusive": exclusive, "reverse": reverse}, **near)
    yield Case("CumulativeLogsumexp", {"x": real(np.float16, 5), "axis": scalar(0, L)}, rtol=2e-3, atol=2e-3)  # TensorFlow rounds each step to float16
    yield Case("CumulativeLogsumexp", {"x": real(F, 0, 3), "axis": scalar(0)})
    for axis in (scalar(2), i32(0, 1)):
        yield Case("CumulativeLogsumexp", {"x": real(F, 2, 2), "axis": axis})


def compressed_strings():
    z, g = zlib.compress(b"hello" * 300), gzip.compress(b"abc" * 100)
    for kind, texts in (("", [b"abc", b""]), ("ZLIB", [z, b""]), ("ZLIB", [z[:10]]), ("ZLIB", [z + z]), ("ZLIB", [z[:5] + b"xxxx" + z[9:]]),
                        ("ZLIB", [g]), ("GZIP", [[g, g + g], [g[:-9], b""]]), ("GZIP", [g + b"no gzip header here"]), ("GZIP", [z]), ("BZIP", [g])):
        yield Case("DecodeCompressed", {"bytes": one(texts)}, {"compression_type": kind})
    yield Case("DecodeCompressed", {"bytes": one([])}, {"compression_type": "BZIP"})
    yield Case("DecodeCompressed", {"bytes": one([zlib.compress(bytes(1 << 21))])}, {"compression_type": "ZLIB"})


def fingerprints():
    method = one(b"farmhash64")
    for data in (ints(I, 3, 4), real(F, 2, 0), real(D, 5), ints(np.uint8, 2, 3, 2, low=0), strs("ab", "cd", ""), one([[b"ab", b"cd"], [b"", b"x"]]),
                 ints(I, 0, 3), np.array([True, False])):
        yield Case("Fingerprint", {"data": data, "method": method})
    yield Case("Fingerprint", {"data": ints(I, 2), "method": one(b"md5")})
    yield Case("Fingerprint", {"data": scalar(1), "method": method})


def reversed_dimensions():
    for t in (F, I, np.uint8, np.complex64):
        x = ints(L, 2, 3, 4).astype(t)
        for dims in ((True, False, True), (False, False, False), (False, True, False)):
            yield Case("Reverse", {"tensor": x, "dims": np.array(dims)})
    yield Case("Reverse", {"tensor": strs("a", "b", "c"), "dims": np.array([True])})
    yield Case("Reverse", {"tensor": x, "dims": np.array([True])})
    yield Case("Reverse", {"tensor": scalar(7), "dims": np.array([True])})
    yield Case("Reverse", {"tensor": x[:0], "dims": np.array([True] * x.ndim)})
    yield Case("Reverse", {"tensor": x, "dims": np.array([[True]])})


def _positive(t, *shape):
    a = real(t, *shape)
    return np.matmul(a, np.swapaxes(a, -1, -2)) + 3 * np.eye(shape[-1], dtype=t)


def old_matrices():
    """Ops on batches of matrices, which early versions of TensorFlow name separately."""
    for t in (F, D):
        near = {"rtol": 1e-3, "atol": 1e-4} if t == F else {"rtol": 1e-8, "atol": 1e-9}
        a, b = _positive(t, 2, 3, 3), real(t, 2, 3, 2)
        yield Case("BatchMatrixDiag", {"diagonal": real(t, 2, 3)}, producer=9)
        yield Case("BatchMatrixDiagPart", {"input": a}, producer=9)
        yield Case("BatchMatrixSetDiag", {"input": a, "diagonal": real(t, 2, 3)}, producer=9)
        yield Case("BatchMatrixBandPart", {"input": a, "num_lower": scalar(1, L), "num_upper": scalar(0, L)}, producer=9)
        for low in (scalar(1., t), real(t, 3)):  # too few dimensions
            yield Case("BatchMatrixDiag", {"diagonal": low}, producer=9)
            yield Case("BatchMatrixDiagPart", {"input": low}, producer=9)
            yield Case("BatchMatrixSetDiag", {"input": low, "diagonal": low}, producer=9)
            yield Case("BatchMatrixBandPart", {"input": low, "num_lower": scalar(1, L), "num_upper": scalar(0, L)}, producer=9)
        yield Case("BatchMatrixInverse", {"input": a}, producer=9, **near)
        yield Case("BatchMatrixDeterminant", {"input": a}, producer=9, **near)
        yield Case("BatchMatrixSolve", {"matrix": a, "rhs": b}, producer=9, **near)
        yield Case("BatchMatrixSolveLs", {"matrix": a, "rhs": b, "l2_regularizer": scalar(0.1, D)}, producer=9, **near)
        yield Case("BatchMatrixSolveLs", {"matrix": a, "rhs": b, "l2_regularizer": real(D, 0)}, producer=9)
        yield Case("BatchMatrixTriangularSolve", {"matrix": a, "rhs": b}, producer=9, **near)
        yield Case("BatchCholesky", {"input": a}, producer=9, **near)
        yield Case("BatchSelfAdjointEigV2", {"input": a}, {"compute_v": True}, producer=9, seen=np.abs, **near)
        yield Case("BatchSvd", {"input": a}, {"compute_uv": True}, producer=9, seen=np.abs, **near)
        for op in ("SelfAdjointEig", "BatchSelfAdjointEig"):
            yield Case(op, {"input": a[0]}, producer=9, seen=np.abs, **near)
            yield Case(op, {"input": a}, producer=9, seen=np.abs, **near)
            yield Case(op, {"input": real(t, 2, 3)}, producer=9)


def has_string_content(text):
    return np.array(b"\x42" in text.item())


def summaries():
    for x in (real(F, 2, 3), ints(I, 2), strs("a", "b")):
        yield Case("TensorSummary", {"tensor": x}, seen=has_string_content)


def numbers_of_the_debugger():
    values = real(F, 2, 3, 4)
    values[0, 0, :] = -np.inf, np.inf, np.nan, 0
    for mode in (2, 3, 4, 5, 8, 1):
        for x in (values, values.astype(np.float16), values[1].astype(D), ints(I, 2, 1, 1, 2, 1, 3, 1), ints(np.uint8, 3), scalar(2.5, F), real(F, 0, 2)):
            for out in (tf.float32, tf.float64):
                yield Case("DebugNumericSummaryV2", {"input": x}, {"tensor_debug_mode": mode, "tensor_id": 7, "output_dtype": out})
    for i in (1 << 24, (1 << 24) + 1, 1 << 53, (1 << 53) + 1):
        yield Case("DebugNumericSummaryV2", {"input": values}, {"tensor_debug_mode": 2, "tensor_id": i, "output_dtype": tf.float64})
        yield Case("DebugNumericSummaryV2", {"input": values}, {"tensor_debug_mode": 2, "tensor_id": i})


def shuffled_indices():
    for t in (I, np.uint32, L, np.uint64):
        seed = np.array([5, 77, 1 << 30], t)
        for most in (1, 9, 1000, 65535, 65536, 100000, 1 << 29) + ((1 << 40, (1 << 62) + 5) if t in (L, np.uint64) else ()):
            for rounds in (4, 6):
                yield Case("RandomIndexShuffle", {"index": np.array(most // 3, t), "seed": seed, "max_index": np.array(most, t)}, {"rounds": rounds})
        yield Case("RandomIndexShuffle", {"index": np.arange(10, dtype=t), "seed": seed, "max_index": np.array(9, t)})
    many = np.arange(6, dtype=L).reshape(2, 3)
    for index, seed, most in ((L(3), many, L(9)), (np.array([3, 4]), many, np.array([9, 90])), (L(1), many[0], np.array([9, 90, 900])), (L(0), many[0], L(0)),
                              (np.array([3, 4, 5]), many, L(9)), (L(3), many[:, :2], L(9)), (np.array([[3]]), many[0], L(9)), (L(3), many[0], np.array([[9]])),
                              (np.zeros(0, L), many[0], L(9))):
        yield Case("RandomIndexShuffle", {"index": np.array(index), "seed": seed, "max_index": np.array(most)})


def rare_cases():
    for group in (numbers_of_the_debugger, shuffled_indices, cumulative_logsumexp, compressed_strings, fingerprints, reversed_dimensions, old_matrices, summaries):
        yield from group()
