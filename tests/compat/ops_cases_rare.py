# SPDX-License-Identifier: Apache-2.0
"""Ops that few programs use: rare functions, and ops under older names."""
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
    yield Case("CumulativeLogsumexp", {"x": real(np.float16, 5), "axis": scalar(0, L)}, rtol=2e-3)
    yield Case("CumulativeLogsumexp", {"x": real(F, 0, 3), "axis": scalar(0)})
    for axis in (scalar(2), i32(0, 1)):
        yield Case("CumulativeLogsumexp", {"x": real(F, 2, 2), "axis": axis})


def compressed_strings():
    z, g = zlib.compress(b"hello" * 300), gzip.compress(b"abc" * 100)
    for kind, texts in (("", [b"abc", b""]), ("ZLIB", [z, b""]), ("ZLIB", [z[:10]]), ("ZLIB", [z + z]), ("ZLIB", [z[:5] + b"xxxx" + z[9:]]),
                        ("ZLIB", [g]), ("GZIP", [[g, g + g], [g[:-9], b""]]), ("GZIP", [g + b"no gzip header here"]), ("GZIP", [z]), ("BZIP", [g])):
        yield Case("DecodeCompressed", {"bytes": one(texts)}, {"compression_type": kind})
    yield Case("DecodeCompressed", {"bytes": one([zlib.compress(bytes(1 << 21))])}, {"compression_type": "ZLIB"})


def rare_cases():
    for group in (cumulative_logsumexp, compressed_strings):
        yield from group()
