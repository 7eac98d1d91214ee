# SPDX-License-Identifier: Apache-2.0
"""Special functions and Fourier transforms."""
import numpy as np

from ops_cases import Case, D, F, real

SPREAD = (1e-8, 1e-3, 0.1, 0.3, 0.49, 0.5, 0.51, 0.7, 0.99, 1.0, 1.3, 1.49, 1.51, 1.9, 2.1, 3, 4.9, 5.1, 7, 9.9, 10.1, 20, 29, 31, 39, 41, 60)


def close(t, rtol=None, atol=None):
    return {F: {"rtol": rtol or 2e-5, "atol": atol or 1e-6}, D: {"rtol": 1e-9, "atol": 1e-13}}[t]


def one():
    ways = {"Expint": "p", "Dawsn": "a", "Spence": "p", "FresnelCos": "a", "FresnelSin": "a",
            "BesselI0": "a", "BesselI1": "a", "BesselI0e": "a", "BesselI1e": "a", "BesselJ0": "a", "BesselJ1": "a",
            "BesselK0": "p", "BesselK1": "p", "BesselK0e": "p", "BesselK1e": "p", "BesselY0": "p", "BesselY1": "p"}
    for op, way in ways.items():
        for t in (F, D):
            x = np.array(SPREAD, t)
            yield Case(op, {"x": x if way == "p" else np.concatenate([-x, [0], x]).astype(t)}, **close(t, 1e-4, 1e-5))
    x = np.concatenate([np.linspace(-5, 5, 999), [np.inf, -np.inf, np.nan, 1e-30, -0.0]]).astype(F)
    yield Case("Erf", {"x": x}, rtol=1e-6)
    for op in ("Erfinv", "Ndtri"):
        for t in (F, D):
            few = 1e-3 if t == F else 1e-6  # nearer to the ends of the range, stock's single precision loses all digits
            x = np.array([few, 0.01, 0.2, 0.4999, 0.5, 0.5001, 0.6, 0.9, 1 - few, 0, 1], t)
            yield Case(op, {"x": x if op == "Ndtri" else np.concatenate([-x, x])}, **close(t, 1e-3 if op == "Erfinv" else None, 1e-5))
        yield Case(op, {"x": np.array([-1.5, 1.5, np.nan])})


def two():
    for t in (F, D):
        a = np.array([0.01, 0.5, 1, 1.5, 3, 10, 50, 200], t)[:, None]
        x = np.array([1e-5, 0.1, 0.9, 1.1, 2, 9, 11, 48, 55, 190, 215], t)
        # in single precision, 1 - p has few digits if p is near 1
        near = {"rtol": 3e-3, "atol": 1e-5} if t == F else {"rtol": 1e-8, "atol": 1e-12}
        yield Case("Igamma", {"a": a, "x": x}, **near)
        yield Case("Igammac", {"a": a, "x": x}, **near)
        near = {"rtol": 2e-2, "atol": 2e-4} if t == F else {"rtol": 1e-6, "atol": 1e-9}
        yield Case("IgammaGradA", {"a": a, "x": x}, **near)
        for times in (0.3, 0.9, 1.1, 2):
            yield Case("RandomGammaGrad", {"alpha": a[1:6], "sample": a[1:6] * t(times)}, **near)
        yield Case("Igamma", {"a": np.array([0, -1, 1], t), "x": np.zeros(3, t)})
        yield Case("IgammaGradA", {"a": np.array([0, -1, 1], t), "x": np.zeros(3, t)})
        for op in ("Igamma", "Igammac"):
            yield Case(op, {"a": np.array([1, 0, -1, 2, np.nan, 1], t), "x": np.array([0, 1, 1, -1, 1, np.nan], t)})
        b = real(t, 3, 5, low=0.1, high=9)
        near = {"rtol": 2e-4, "atol": 1e-5} if t == F else {"rtol": 1e-9, "atol": 1e-13}
        for y in (b, np.array(0.5, t)):
            for z in (real(t, 3, 5, low=0, high=1), np.array(0.3, t)):
                yield Case("Betainc", {"a": real(t, 3, 5, low=0.1, high=9), "b": y, "x": z}, **near)
        yield Case("Betainc", {"a": np.array([1, 2, 0, 1, 1, 1], t), "b": np.array([2, 2, 1, -1, 1, 1], t),
                               "x": np.array([0, 1, 0.5, 0.5, -0.1, 1.1], t)})
    yield Case("Betainc", {"a": real(F, 3), "b": real(F, 4), "x": real(F, 3)})


def pairs(x):
    """Splits complex numbers into reals, so that the case's tolerance applies."""
    return np.stack([x.real, x.imag]) if np.iscomplexobj(x) else x


def transforms():
    for t, to in ((F, np.complex64), (D, np.complex128)):
        near = {"rtol": 1e-4, "atol": 1e-4} if t == F else {"rtol": 1e-10, "atol": 1e-11}
        for rank, name in ((1, ""), (2, "2D"), (3, "3D")):
            for sizes in ((1, 1, 1), (2, 4, 8), (3, 5, 7), (4, 1, 6), (2, 3, 100), (2, 2, 0)):
                for lead in ((), (2,), (3, 2)):
                    shape = lead + sizes[3 - rank:]
                    x = (real(D, *shape) + 1j * real(D, *shape)).astype(to)
                    for op in ("FFT", "IFFT"):
                        yield Case(op + name, {"input": x}, seen=pairs, **near)
                    if not x.size:
                        continue
                    whole = np.array(sizes[3 - rank:], np.int32)
                    less = np.maximum(whole - 1, 1)
                    for n in (whole, less):
                        yield Case("RFFT" + name, {"input": real(t, *shape), "fft_length": n}, {"Tcomplex": to}, seen=pairs, **near)
                    for n in (2 * (whole[-1:] - 1), 2 * whole[-1:] - 1, np.array([1], np.int32)):
                        n = np.concatenate([whole[:-1], n]).astype(np.int32)
                        if n[-1]:
                            yield Case("IRFFT" + name, {"input": x, "fft_length": n}, {"Treal": t}, **near)
    x = real(F, 3, 4)
    z = x.astype(np.complex64)
    yield Case("FFT3D", {"input": z})
    for n in ([5], [-1], [2, 2], 3):  # stock returns INTERNAL for [0]
        yield Case("RFFT", {"input": x, "fft_length": np.array(n, np.int32)})
    for n in ([8], [-1], [2, 2], 3):
        yield Case("IRFFT", {"input": z, "fft_length": np.array(n, np.int32)})
    yield Case("RFFT", {"input": x, "fft_length": np.array([4], np.int32)}, {"Tcomplex": np.complex128})


def special_cases():
    for group in (one, two, transforms):
        yield from group()
