# SPDX-License-Identifier: Apache-2.0
"""Linear algebra, real and complex, in batches.

Vectors of a decomposition are compared by the absolute values of their elements, since signs or complex phases may
differ.
"""
import functools

import numpy as np
import tensorflow.compat.v1 as tf

from ops_cases import Case, D, F, real, rng, scalar

C, Z = np.complex64, np.complex128
TYPES = (F, D, C, Z)
SHAPES = ((3, 3), (1, 1), (2, 3, 5, 5), (12, 12), (0, 0), (2, 0, 0), (40, 40), (101, 101))


def near(t, factor=1.0):
    single = t in (F, C)
    return {"rtol": (2e-4 if single else 1e-9) * factor, "atol": (2e-4 if single else 1e-9) * factor}


def parts(x):
    """Splits complex numbers into pairs of reals, so that the case's tolerance applies."""
    return np.stack([x.real, x.imag]) if np.iscomplexobj(x) else x


def sizes(x):
    return np.abs(x)


def in_order(x):
    return np.sort(np.abs(np.atleast_1d(x)), axis=-1)


def divided(by, x):
    return x / by


def divided_in_order(by, x):
    return in_order(x) / by


def some(t, *shape):
    x = real(D, *shape)
    return (x + 1j * real(D, *shape) if t in (C, Z) else x).astype(t)


def apart(t, *shape):
    """A square matrix, far from singular."""
    n = shape[-1]
    return (some(t, *shape) + 3 * np.sqrt(n) * np.eye(n)[rng.permutation(n)]).astype(t)


def star(x):
    return np.conj(np.swapaxes(x, -1, -2))


def positive(t, *shape):
    x = some(t, *shape)
    return (x @ star(x) + np.eye(shape[-1])).astype(t)


BAD = (np.ones((2, 3)), np.ones(3), np.ones((2, 2), np.int32)[:, :1].astype(D))


def triangles():
    for t in TYPES:
        for shape in SHAPES:
            yield Case("Cholesky", {"input": positive(t, *shape)}, seen=parts, **near(t))
            x = apart(t, *shape)
            for op in ("MatrixDeterminant", "LogMatrixDeterminant"):
                yield Case(op, {"input": x}, seen=parts, **({"rtol": 1e-3 if t in (F, C) else 1e-9}))
            for to in (tf.int32, tf.int64):
                yield Case("Lu", {"input": x}, {"output_idx_type": to}, seen=parts, **near(t))
            for adjoint in (False, True):
                yield Case("MatrixInverse", {"input": x}, {"adjoint": adjoint}, seen=parts, **near(t))
                for k in (1, 4, 0):
                    yield Case("MatrixSolve", {"matrix": x, "rhs": some(t, *shape[:-1], k)}, {"adjoint": adjoint}, seen=parts, **near(t))
                    for lower in (False, True):
                        yield Case("MatrixTriangularSolve", {"matrix": positive(t, *shape), "rhs": some(t, *shape[:-1], k)},
                                   {"lower": lower, "adjoint": adjoint}, seen=parts, **near(t, 10))
            if t in (F, D):
                yield Case("CholeskyGrad", {"l": np.linalg.cholesky(positive(D, *shape)).astype(t) if shape[-1] else x,
                                            "grad": real(t, *shape)}, **near(t, 10))
    for a, b in (((3, 1, 4, 4), (2, 4, 2)), ((4, 4), (3, 4, 1)), ((2, 4, 4), (4, 5))):
        yield Case("MatrixTriangularSolve", {"matrix": positive(D, *a), "rhs": real(D, *b)}, **near(D))
    for t in TYPES:
        for n, bands in ((1, 1), (5, 1), (5, 3), (4, 4), (60, 7)):
            for lead, of_right in (((), ()), ((2, 3), (2, 3)), ((3, 1), (2,))):
                for lower in (False, True):
                    for adjoint in (False, True):
                        a = some(t, *lead, bands, n)
                        a[..., 0 if lower else -1, :] += 4 * bands
                        yield Case("BandedTriangularSolve", {"matrix": a, "rhs": some(t, *of_right, n, 2)},
                                   {"lower": lower, "adjoint": adjoint}, seen=parts, **near(t))
    for a, b in (((0, 3), (3, 2)), ((4, 3), (3, 2)), ((2, 3), (4, 2)), ((3,), (3, 1)), ((2, 2, 3), (3, 3, 1)), ((1, 0), (0, 2))):
        yield Case("BandedTriangularSolve", {"matrix": np.ones(a), "rhs": np.ones(b)})
    yield Case("LogMatrixDeterminant", {"input": np.zeros((3, 3))})
    for op in ("Cholesky", "MatrixDeterminant", "LogMatrixDeterminant", "Lu", "MatrixInverse"):
        for x in BAD:
            yield Case(op, {"input": x})
    for op in ("Lu", "MatrixInverse"):
        yield Case(op, {"input": np.zeros((2, 2))})
        yield Case(op, {"input": np.stack([np.eye(2), np.zeros((2, 2))])})
    for x, y in ((np.zeros((2, 2)), np.ones((2, 2))), (np.eye(2), np.ones((3, 2))), (np.eye(2)[None], np.ones((2, 2))),
                 (np.stack([np.eye(2)] * 2), np.ones((1, 2, 2))), (np.ones((2, 3)), np.ones((2, 3)))):
        yield Case("MatrixSolve", {"matrix": x, "rhs": y})
    yield Case("MatrixSolve", {"matrix": np.zeros((2, 2)), "rhs": np.ones((2, 0))})


def least():
    for t in TYPES:
        for m, n in ((5, 3), (3, 5), (4, 4), (30, 7)):
            for lead in ((), (2, 3)):
                x, y = some(t, *lead, m, n), some(t, *lead, m, 2)
                x = x + 4 * np.eye(m, n, dtype=x.dtype)  # far from singular on every processor
                for l2 in (0.0, 0.5):
                    yield Case("MatrixSolveLs", {"matrix": x, "rhs": y, "l2_regularizer": scalar(l2, D)}, seen=parts, **near(t, 30))
                yield Case("MatrixSolveLs", {"matrix": x, "rhs": y, "l2_regularizer": scalar(0, D)}, {"fast": False}, seen=parts,
                           **near(t, 30))
    twice = np.repeat(real(D, 5, 2), 2, axis=1)  # rank 2 of 4
    yield Case("MatrixSolveLs", {"matrix": twice, "rhs": real(D, 5, 3), "l2_regularizer": scalar(0, D)}, {"fast": False}, **near(D))
    yield Case("MatrixSolveLs", {"matrix": np.zeros((2, 2)), "rhs": np.ones((2, 2)), "l2_regularizer": scalar(0, D)})
    yield Case("MatrixSolveLs", {"matrix": np.zeros((2, 2)), "rhs": np.ones((2, 2)), "l2_regularizer": scalar(-1, D)})
    yield Case("MatrixSolveLs", {"matrix": np.ones((3, 2)), "rhs": np.ones((2, 2)), "l2_regularizer": scalar(0, D)})


def values():
    for t in TYPES:
        for shape in SHAPES:
            x = some(t, *shape)
            x = (x + star(x)).astype(t)
            yield Case("SelfAdjointEigV2", {"input": x}, {"compute_v": False}, seen=parts, first=1, **near(t))
            yield Case("SelfAdjointEigV2", {"input": x}, seen=sizes, **near(t, 10))
            to = tf.complex64 if t in (F, C) else tf.complex128
            x = some(t, *shape)
            yield Case("Eig", {"input": x}, {"Tout": to, "compute_v": False}, first=1,
                       seen=in_order, **near(t, 10))
            yield Case("Eig", {"input": x}, {"Tout": to}, seen=in_order, **near(t, 30))
            yield Case("MatrixSquareRoot", {"input": positive(t, *shape)}, seen=parts, **near(t, 10))
            if shape[-1]:  # an upper triangle with positive values has a real root; an arbitrary real matrix may not
                tri = np.triu(real(D, *shape)) + 5 * np.eye(shape[-1]) if shape[-1] < 20 else np.eye(shape[-1])
                yield Case("MatrixSquareRoot", {"input": tri.astype(t)}, seen=parts, **near(t, 10))
            for scale in (1, 1e-3, 3):
                x = (some(t, *shape) * (scale / max(shape[-1], 1)**0.5)).astype(t)
                yield Case("MatrixExponential", {"input": x}, producer=26, seen=parts, **near(t, 10))
            if t in (C, Z):
                yield Case("MatrixLogarithm", {"input": positive(t, *shape)}, seen=parts, **near(t, 30))
                yield Case("MatrixLogarithm", {"input": apart(t, *shape)}, seen=parts, **near(t, 300))
        for shape in (*SHAPES, (5, 3), (3, 5), (2, 30, 4), (90, 61), (50, 73), (1, 6), (6, 1), (0, 3), (3, 0)):
            x = some(t, *shape)
            yield Case("Svd", {"input": x}, {"compute_uv": False}, seen=parts, first=1, **near(t))
            yield Case("Svd", {"input": x}, seen=sizes, **near(t, 10))
            if abs(shape[-1] - shape[-2]) < 2:  # with a larger null space any rotation of its basis is correct
                yield Case("Svd", {"input": x}, {"full_matrices": True}, seen=sizes, **near(t, 10))
    for op, more in (("SelfAdjointEigV2", {}), ("Eig", {"Tout": tf.complex128}), ("MatrixSquareRoot", {})):
        for x in BAD:
            yield Case(op, {"input": x}, more)
    for x in (*BAD, np.full((2, 2), np.nan), np.array([[0, 1], [0, 0.]]), np.diag([1e-300, 0, 20, -700])):
        yield Case("MatrixExponential", {"input": x}, producer=26, **near(D))
    for op, more in (("SelfAdjointEigV2", {}), ("Eig", {"Tout": tf.complex128})):
        yield Case(op, {"input": np.full((2, 2), np.nan)}, more)
    yield Case("SelfAdjointEigV2", {"input": np.eye(4)[::-1].copy()}, {"compute_v": False}, first=1, **near(D))
    yield Case("SelfAdjointEigV2", {"input": np.zeros((3, 3))})
    low = real(D, 60, 5)  # most eigenvalues are 0
    for scale in (1.0, 1e150, 1e-150):
        yield Case("SelfAdjointEigV2", {"input": low @ low.T * scale}, {"compute_v": False}, first=1, seen=functools.partial(divided, scale), **near(D))
        yield Case("Svd", {"input": low @ low.T * scale}, {"compute_uv": False}, first=1, seen=functools.partial(divided, scale), **near(D))
        yield Case("Eig", {"input": some(D, 30, 30) * scale}, {"Tout": tf.complex128, "compute_v": False}, first=1,
                   seen=functools.partial(divided_in_order, scale), **near(D, 10))
    yield Case("Svd", {"input": np.ones(3)})
    for x in (np.zeros((3, 3)), np.ones((4, 4)), np.repeat(real(D, 5, 2), 2, axis=1), np.array([[0., 1], [0, 1]]), np.diag([0., 2, 0])):
        yield Case("Svd", {"input": x}, {"compute_uv": False}, first=1, **near(D))


def threes():
    for t in TYPES:
        for lead in ((), (2, 3)):
            for n in (1, 2, 4, 9):
                d, rhs = some(t, *lead, 3, n), some(t, *lead, n, 2)
                yield Case("TridiagonalSolve", {"diagonals": d, "rhs": rhs}, seen=parts, **near(t, 30))
                d[..., 1, :] += 5
                yield Case("TridiagonalSolve", {"diagonals": d, "rhs": rhs}, {"partial_pivoting": False}, seen=parts, **near(t))
                yield Case("TridiagonalMatMul", {"superdiag": d[..., :1, :], "maindiag": d[..., 1:2, :], "subdiag": d[..., 2:, :],
                                                 "rhs": rhs}, seen=parts, **near(t))
    d, rhs = real(D, 3, 4), real(D, 4, 2)
    for x, y in ((d[:2], rhs), (d, rhs[:3]), (d[None], rhs)):
        yield Case("TridiagonalSolve", {"diagonals": x, "rhs": y})
    yield Case("TridiagonalSolve", {"diagonals": np.zeros((3, 4)), "rhs": rhs})
    yield Case("TridiagonalMatMul", {"superdiag": d[0], "maindiag": d[1], "subdiag": d[2], "rhs": rhs})


def products():
    """Products in every type, with transposed or adjoint operands, in batches. Few rows times a large matrix take a
    separate code path."""
    for t in TYPES:
        for m, k, n in ((5, 7, 3), (1, 9, 4), (6, 5, 1), (20, 300, 200), (130, 65, 70), (0, 3, 2), (3, 0, 2)):
            for ta in (False, True):
                for tb in (False, True):
                    a, b = some(t, *((k, m) if ta else (m, k))), some(t, *((n, k) if tb else (k, n)))
                    yield Case("MatMul", {"a": a, "b": b}, {"transpose_a": ta, "transpose_b": tb}, seen=parts, **near(t))
                    yield Case("BatchMatMulV2", {"x": np.stack([a, a + 1]), "y": b}, {"adj_x": ta, "adj_y": tb}, seen=parts,
                               **near(t))
    a, b = some(F, 20, 300), some(F, 300, 200)
    a[3, 5], b[7, 9], b[8, 9] = np.nan, np.inf, -np.inf
    for m in (1, 2, 20):
        yield Case("MatMul", {"a": a[:m], "b": b}, **near(F))


def linear_cases():
    for group in (products, triangles, least, values, threes):
        yield from group()
