# SPDX-License-Identifier: Apache-2.0
"""Histograms, population counts, complex numbers, clipped values."""
import numpy as np
import tensorflow.compat.v1 as tf

from ops_cases import Case, D, F, I, L, i32, ints, real, rng, scalar


def counts():
    for t in (F, D, I, L):
        w = ints(t, 7)
        yield Case("Bincount", {"arr": ints(I, 7, low=0), "size": scalar(6), "weights": w})
        yield Case("Bincount", {"arr": ints(I, 7, low=0), "size": scalar(20), "weights": np.zeros(0, t)})
        for u in (I, L):
            yield Case("DenseBincount", {"input": ints(u, 7, low=0), "size": scalar(6, u), "weights": w})
            yield Case("DenseBincount", {"input": ints(u, 2, 7, low=0), "size": scalar(6, u),
                                         "weights": ints(t, 2, 7)})
            yield Case("DenseBincount", {"input": ints(u, 2, 7, low=0), "size": scalar(6, u),
                                         "weights": np.zeros(0, t)}, {"binary_output": True})
    yield Case("Bincount", {"arr": i32(1, -1), "size": scalar(3), "weights": np.zeros(0, F)})
    yield Case("DenseBincount", {"input": i32(1, 2), "size": scalar(-3), "weights": np.zeros(0, F)})
    for t in (F, D, I, L):
        for n in (1, 5, 0):
            yield Case("HistogramFixedWidth", {"values": ints(t, 40), "value_range": np.array([-5, 5], t),
                                               "nbins": scalar(n)})
        yield Case("HistogramFixedWidth", {"values": ints(t, 4), "value_range": np.array([5, 5], t),
                                           "nbins": scalar(3)}, {"dtype": tf.int64})
    # values on non-integer bin limits are left out: TensorFlow puts some of them into the next bin
    ranges = {F: [(0.1, 0.7), (-1e30, 1e30), (3, 3.0001)], D: [(0.1, 0.7), (-1e300, 1e300)], I: [(-7, 90), (-2**30, 2**30 - 1), (0, 2**31 - 1)],
              L: [(-7, 90), (-2**40, 2**41), (-2**61, 2**61)]}  # stock crashes for 2**60 and 2**60 + 9
    for t, pairs in ranges.items():
        for low, high in pairs:
            middle = low + (high - low) * rng.uniform(size=3000) if t in (F, D) else low + rng.randint(0, high - low, 3000, dtype=np.int64)
            values = np.concatenate([middle.astype(t), np.array([low, high, low - 1, high - 1, low + 1], t)])
            for n, dtype in ((7, tf.int32), (30, tf.int64), (1, tf.int32)):
                yield Case("HistogramFixedWidth", {"values": values, "value_range": np.array([low, high], t), "nbins": scalar(n)}, {"dtype": dtype})
    for t in (np.int8, np.int16, I, L, np.uint8, np.uint16):
        yield Case("PopulationCount", {"x": np.array([0, 1, 7, 100, -1 if np.iinfo(t).min else 255], t)})


def complexes():
    for t, c in ((F, np.complex64), (D, np.complex128)):
        a, b = real(t, 3, 4), real(t, 4)
        z, w = (a + 1j * real(t, 3, 4)).astype(c), (b + 2j).astype(c)
        yield Case("Complex", {"real": a, "imag": b}, {"Tout": tf.as_dtype(c)})
        for op in "Real Imag Angle".split():
            yield Case(op, {"input": z}, {"Tout": tf.as_dtype(t)})
        yield Case("ComplexAbs", {"x": z}, {"Tout": tf.as_dtype(t)})
        yield Case("Conj", {"input": z})
        for op in "Add AddV2 Sub Mul RealDiv Div Equal NotEqual".split():
            yield Case(op, {"x": z, "y": w})
            yield Case(op, {"x": w, "y": z})
        yield Case("Neg", {"x": z})
        yield Case("Square", {"x": z})


def clips():
    for t in (F, D, I, L):
        x = (real if t in (F, D) else ints)(t, 3, 5)
        low, high = scalar(-1, t), scalar(1, t)
        for a, b in ((low, high), (x - high, high), (low, x + high), (x - high, x + high), (high, low), (low, x[0])):
            yield Case("ClipByValue", {"t": x, "clip_value_min": a, "clip_value_max": b})
    yield Case("ClipByValue", {"t": x[:0], "clip_value_min": low, "clip_value_max": high})


def counts_cases():
    for group in (counts, complexes, clips):
        yield from group()
