# SPDX-License-Identifier: Apache-2.0
"""Diagonals of matrices, QR factors, triangular systems."""
import numpy as np

from ops_cases import Case, D, F, I, L, i32, ints, real, scalar
from ops_cases.linear import parts


def diagonals_v2():
    for t in (F, I):
        make = ints if t == I else real
        for k in ([0], [1], [-1], [-1, 1], [0, 2], [-2, -1], [5], [1, -1]):
            at = {"k": np.array(k, I)}
            yield Case("MatrixDiagPartV2", {"input": make(t, 2, 3, 4), **at, "padding_value": scalar(7, t)})
            n = k[-1] - k[0] + 1
            longest = 2 if k == [-2, -1] else 3 if len(k) > 1 or k == [1] else 3 if k == [0] else 2
            band = make(t, *((2, n, longest) if len(k) > 1 and n > 0 else (2, longest)))
            yield Case("MatrixSetDiagV2", {"input": make(t, 2, 3, 4), "diagonal": band, **at})
            yield Case("MatrixDiagV2", {"diagonal": band, **at, "num_rows": scalar(-1), "num_cols": scalar(-1), "padding_value": scalar(9, t)})


def diagonals():
    aligns = ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")
    for t in (F, D, I, L):
        make = ints if t in (I, L) else real
        yield Case("MatrixDiag", {"diagonal": make(t, 2, 3)})
        yield Case("MatrixDiagPart", {"input": make(t, 2, 3, 4)})
        yield Case("MatrixSetDiag", {"input": make(t, 2, 4, 3), "diagonal": make(t, 2, 3)})
        for low, high in ((0, 0), (1, 2), (-1, 0), (0, -1), (-1, -1), (4, 3)):
            yield Case("MatrixBandPart", {"input": make(t, 2, 4, 3), "num_lower": scalar(low, L), "num_upper": scalar(high, L)})
    for align in aligns:
        for k in ((0,), (2,), (-1,), (-1, 1), (0, 2), (-3, -1), (-3, 4), (2, 1), (7,)):
            for rows, cols in ((4, 5), (5, 4), (3, 3)):
                yield Case("MatrixDiagPartV3", {"input": real(F, 2, rows, cols), "k": i32(*k), "padding_value": scalar(9, F)}, {"align": align})
        for k, width in (((0,), 3), ((2,), 3), ((-1, 1), 3), ((0, 2), 4), ((-2, 0), 3)):
            shape = (2, width) if len(k) == 1 else (2, k[1] - k[0] + 1, width)
            for rows, cols in ((-1, -1), (4, -1), (-1, 5), (3, 5), (2, 9)):
                yield Case("MatrixDiagV3", {"diagonal": real(F, *shape), "k": i32(*k), "num_rows": scalar(rows), "num_cols": scalar(cols),
                                            "padding_value": scalar(-5, F)}, {"align": align})
        yield Case("MatrixSetDiagV3", {"input": real(F, 2, 4, 5), "diagonal": real(F, 2, 3, 4), "k": i32(-1, 1)}, {"align": align})
    yield Case("MatrixSetDiagV3", {"input": real(F, 4, 5), "diagonal": real(F, 3), "k": scalar(2)})
    yield Case("MatrixSetDiagV3", {"input": real(F, 4, 5), "diagonal": real(F, 2), "k": scalar(2)})
    yield Case("MatrixBandPart", {"input": real(F, 3), "num_lower": scalar(0, L), "num_upper": scalar(0, L)})
    yield Case("MatrixBandPart", {"input": real(F, 3, 3), "num_lower": scalar(4, L), "num_upper": scalar(0, L)})


def factors():
    for t in (F, D, np.complex64, np.complex128):
        single = t in (F, np.complex64)
        for shape in ((4, 4), (5, 3), (3, 5), (2, 4, 3), (1, 1), (33, 33), (70, 41), (41, 70), (101, 100), (0, 3), (2, 3, 0)):
            for full in (False, True):
                x = (real(D, *shape) + (1j * real(D, *shape) if np.issubdtype(t, np.complexfloating) else 0)).astype(t)
                large = max(shape) > 9
                if 0 not in shape:
                    yield Case("Qr", {"input": x}, {"full_matrices": full}, seen=parts,
                               rtol=1e-4 if single else 1e-10, atol=(1e-3 if large else 2e-6) if single else 1e-12 if large else 1e-14)
    yield Case("Qr", {"input": real(F, 4)})


def triangles():
    for t in (F, D):
        tolerances = {"rtol": 1e-4 if t == F else 1e-10, "atol": 2e-6 if t == F else 1e-14}
        for shape, columns in (((4, 4), 3), ((2, 3, 3), 1), ((1, 1), 2), ((0, 0), 2), ((3, 3), 0)):
            matrix = real(t, *shape) + 3 * np.eye(shape[-1], dtype=t)
            for lower in (False, True):
                for adjoint in (False, True):
                    yield Case("MatrixTriangularSolve", {"matrix": matrix, "rhs": real(t, *shape[:-1], columns)},
                               {"lower": lower, "adjoint": adjoint}, **tolerances)
    flat = real(F, 3, 3)
    flat[1, 1] = 0
    yield Case("MatrixTriangularSolve", {"matrix": flat, "rhs": real(F, 3, 1)})
    yield Case("MatrixTriangularSolve", {"matrix": real(F, 3, 3), "rhs": real(F, 2, 1)})
    yield Case("MatrixTriangularSolve", {"matrix": real(F, 3, 2), "rhs": real(F, 3, 1)})


def matrices_cases():
    for group in (diagonals_v2, diagonals, factors, triangles):
        yield from group()
