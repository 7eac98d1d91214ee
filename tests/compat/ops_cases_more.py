# SPDX-License-Identifier: Apache-2.0
"""Sets, lines of text, factorisations and what else feature columns and readers ask for."""
import numpy as np

from ops_cases import Case, D, F, I, L, i32, ints, real, scalar, strs
from ops_cases_sparse import i64

OPERATIONS = ("a-b", "b-a", "intersection", "union")


def sets():
    words = strs("b", "a", "c", "b", "", "z").reshape(2, 3)
    more = strs("z", "b", "b", "", "a", "q", "c", "a").reshape(2, 4)
    for op in OPERATIONS:
        for a, b in ((ints(L, 2, 3, 4, low=0, high=5), ints(L, 2, 3, 5, low=0, high=5)),
                     (ints(I, 3, 4), ints(I, 3, 2)), (ints(np.int8, 2, 0), ints(np.int8, 2, 3)),
                     (words, more), (ints(L, 2, 3), ints(L, 3, 3)), (ints(L, 3), ints(L, 3))):
            yield Case("DenseToDenseSetOperation", {"set1": a, "set2": b}, {"set_operation": op})
        at, values = i64([0, 1], [0, 2], [2, 0], [2, 1]), ints(L, 4, low=0, high=4)
        shape = np.array([3, 4], L)
        yield Case("DenseToSparseSetOperation", {
            "set1": ints(L, 3, 4, low=0, high=4), "set2_indices": at, "set2_values": values,
            "set2_shape": shape}, {"set_operation": op})
        yield Case("SparseToSparseSetOperation", {
            "set1_indices": i64([0, 0], [1, 3], [2, 2]), "set1_values": ints(L, 3, low=0, high=4),
            "set1_shape": shape, "set2_indices": at, "set2_values": values,
            "set2_shape": shape}, {"set_operation": op})
    yield Case("DenseToSparseSetOperation", {
        "set1": ints(L, 3, 4), "set2_indices": i64([2, 0], [0, 1]), "set2_values": ints(L, 2),
        "set2_shape": np.array([3, 4], L)}, {"set_operation": "union"})
    yield Case("DenseToDenseSetOperation", {"set1": ints(L, 3, 4), "set2": ints(L, 3, 4)},
               {"set_operation": "sum"})
    yield Case("SetSize", {"set_indices": i64([0, 1], [0, 2], [2, 0]), "set_values":
                           np.array([5, 5, 6], L), "set_shape": np.array([4, 4], L)})


def lines():
    d = [real(F, 1), ints(I, 1), strs("none")]
    text = strs('1.5,2,x', '-3,,"a ""b"", c"', ',7,', ' 4 , 5 , y ')
    yield Case("DecodeCSV", {"records": text, "record_defaults": d})
    yield Case("DecodeCSV", {"records": text.reshape(2, 2), "record_defaults": d})
    yield Case("DecodeCSV", {"records": text, "record_defaults": [real(F, 0), ints(I, 0), strs()]})
    yield Case("DecodeCSV", {"records": strs("1;na;'x'"), "record_defaults": d},
               {"field_delim": ";", "na_value": "na", "use_quote_delim": False})
    yield Case("DecodeCSV", {"records": strs("1,2,3,4,5"), "record_defaults": [ints(L, 1)] * 2},
               {"select_cols": [1, 3]})
    for bad in ("1,2", "1,2,3,4", "x,2,3", "1,2.5,x", '1,2,"a', '1,2,"a"b', "1,2,a\"b", ""):
        yield Case("DecodeCSV", {"records": strs(bad), "record_defaults": d})
    for t in (F, D, I, L):
        import tensorflow as tf
        for w in ("12", "-7", " 3 ", "1e3", "1.5", "x", "", "99999999999", "0x10", "nan"):
            if w in ("0x10", "nan") and t in (I, L):
                continue
            yield Case("StringToNumber", {"string_tensor": strs(w)}, {"out_type": tf.as_dtype(t)})


def factors():
    for t in (F, D, np.complex64, np.complex128):
        single = t in (F, np.complex64)
        for shape in ((4, 4), (5, 3), (3, 5), (2, 4, 3), (1, 1), (33, 33), (70, 41), (41, 70), (101, 100), (0, 3), (2, 3, 0)):
            for full in (False, True):
                x = (real(D, *shape) + (1j * real(D, *shape) if np.issubdtype(t, np.complexfloating) else 0)).astype(t)
                large = max(shape) > 9
                if 0 not in shape:
                    yield Case("Qr", {"input": x}, {"full_matrices": full}, seen=lambda x: np.stack([x.real, x.imag]),
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


def sparse_math():
    at, shape = i64([2, 1], [0, 3], [2, 0], [0, 3]), np.array([3, 4], L)
    for v in (real(F, 4), ints(L, 4), strs("a", "b", "c", "d")):
        yield Case("SparseReorder", {"input_indices": at, "input_values": v,
                                     "input_shape": shape})
    for t in (F, D, I):
        make = ints if t == I else real
        for flip_a in (False, True):
            for flip_b in (False, True):
                b = make(t, 3 if flip_a else 4, 5)
                yield Case("SparseTensorDenseMatMul", {
                    "a_indices": at, "a_values": make(t, 4), "a_shape": shape,
                    "b": b.T.copy() if flip_b else b}, {"adjoint_a": flip_a, "adjoint_b": flip_b},
                    rtol=1e-5 if t == F else None, atol=1e-6 if t == F else 1e-14)
    for bad in (i64([0, 4]), i64([-1, 0])):
        yield Case("SparseTensorDenseMatMul", {"a_indices": bad, "a_values": real(F, 1),
                                               "a_shape": shape, "b": real(F, 4, 2)})
    yield Case("SparseTensorDenseMatMul", {"a_indices": at, "a_values": real(F, 4),
                                           "a_shape": shape, "b": real(F, 3, 2)})


def vocabularies():
    import tempfile
    names = []
    for text in ("a\nb\nc\nd\ne\n", "x\nd\na\nq\nb"):
        with tempfile.NamedTemporaryFile("w", prefix="muster-", delete=False) as f:
            f.write(text)
            names.append(np.array(f.name.encode(), dtype=object))
    for n, skip, most in ((5, 0, -1), (3, 1, -1), (5, 0, 2), (0, 0, -1), (6, 0, -1)):
        yield Case("GenerateVocabRemapping", {"new_vocab_file": names[0],
                                              "old_vocab_file": names[1]},
                   {"num_new_vocab": n, "new_vocab_offset": skip, "old_vocab_size": most})


def more_cases():
    for group in (sets, lines, factors, triangles, sparse_math, vocabularies):
        yield from group()
