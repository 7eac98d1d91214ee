# SPDX-License-Identifier: Apache-2.0
"""Parts of things: strings split and cut, slices updated by position, running sums, draws from given seeds, diagonals."""
import numpy as np
import tensorflow.compat.v1 as tf

from ops_cases import Case, D, F, I, L, Var, i32, ints, real, scalar, strs


def _word(text):
    return np.array(text.encode(), dtype=object)


def splits():
    words = strs("a b  c", "", "  x\ty ", ",a,b,", "a::b:::c", "one")
    for by in (" ", ",", ":", ", ", "::", ""):
        for skip in (True, False):
            yield Case("StringSplit", {"input": words, "delimiter": _word(by)}, {"skip_empty": skip})
        for most in (-1, 0, 1, 2):
            yield Case("StringSplitV2", {"input": words, "sep": _word(by)}, {"maxsplit": most})
    for op, by in (("StringSplit", "delimiter"), ("StringSplitV2", "sep")):
        yield Case(op, {"input": words[:0], by: _word(",")})
        yield Case(op, {"input": _word("a,b"), by: _word(",")})
        yield Case(op, {"input": words, by: strs(",", ":")})


def cuts():
    words = strs("hello", "na\u00efve", "\u65e5\u672c\u8a9e", "")
    for unit in ("BYTE", "UTF8_CHAR"):
        yield Case("StringLength", {"input": words}, {"unit": unit})
        for t in (I, L):
            yield Case("Substr", {"input": words[:3], "pos": scalar(1, t), "len": scalar(2, t)}, {"unit": unit})
        yield Case("Substr", {"input": words[:3], "pos": i32(0, -2, 1), "len": i32(9, 1, 1)}, {"unit": unit})
        yield Case("Substr", {"input": words, "pos": scalar(1), "len": scalar(1)}, {"unit": unit})
        yield Case("Substr", {"input": words[:1], "pos": scalar(5), "len": scalar(1)}, {"unit": unit})
        yield Case("Substr", {"input": words[:1], "pos": scalar(-6), "len": scalar(1)}, {"unit": unit})
    yield Case("Substr", {"input": words[:2].reshape(2, 1), "pos": i32(0, 1, 2), "len": i32(1, 2, 2)})
    yield Case("Substr", {"input": words[:2], "pos": i32(0, 1, 2), "len": i32(1, 2, 2)})
    yield Case("Substr", {"input": words[:2], "pos": i32(0, 1), "len": i32(1)})
    mixed = strs("aBc", " X y\t", "\n", "", "Z[@`{z")
    for op in ("StringLower", "StringUpper"):
        yield Case(op, {"input": mixed})
        yield Case(op, {"input": mixed}, {"encoding": "utf-8"})
        yield Case(op, {"input": strs("\u00c4b")})
    yield Case("StringStrip", {"input": mixed})


def rewrites():
    words = strs("aaa", "xaby", "", "ab12cd345", "a.b.c")
    for pattern, rewrite in (("a", "<>"), ("[0-9]+", "#"), ("(a)(b)?", r"[\2\1\0]"), ("^a", "-"), ("c$", ""), (r"\.", r"\\"),
                             ("b*", "-"), ("a", r"\1"), ("(", "x")):
        for every in (True, False):
            yield Case("StaticRegexReplace", {"input": words}, {"pattern": pattern, "rewrite": rewrite, "replace_global": every})
        yield Case("RegexReplace", {"input": words, "pattern": _word(pattern), "rewrite": _word(rewrite)})


def patterns():
    """What RE2 and other engines disagree on: leftmost-first, UTF-8, classes, and what RE2 refuses."""
    words = strs("abcd", "foobarbaz", "a\nb\n", "x\x0by z", "\u03b1\u03b2 a\u00e9", "", "a.b-c_1", "\\d {2}")
    invalid = np.array([b"a\xffb", b"\xc3", b"\xe2 x"], dtype=object)
    for pattern in ("a|ab|abcd", "foo|foobar", "(a|ab)(c|bcd)", "a$", "(?m)^b$", "(?m)$", "^", ".", "a.b", "(?s)a.b", r"\s", r"\S+",
                    r"[\s]", r"[^\S]", r"\v", r"\pL", r"\pN", r"\p{Greek}+", r"\P{Greek}", r"\p{^Greek}+", "(?P<first>[a-c])(?P<n>.)",
                    "(?i)FOO", "(?i:A)b", "(?U)a.*b", "a+?", "[[:alpha:]]+", "[[:^alpha:]]+", r"[\w.-]+", r"[a\-c]+", "[]a]", "[^]a]+",
                    "[a-c-e]", r"\Qa.b\E", r"\x61", r"\x{3b1}", r"\141", r"\bb", r"\Ba", "a{2}", "{2}", "a{,2}", "x{2", "o{1,}?",
                    "(?:)*", "(|a)+", r"\_", "\u00e9", "[\u03b1-\u03c9]",
                    r"(a)\1", "(?=a)", "(?!a)", "(?<=a)b", "(?>a)", "a++", "a**", "a{1001}", "*a", "(*COMMIT)a", "(?#x)a", r"\K", r"\R",
                    r"\h", r"\Z", r"\8", "a)", "(a", "[a", "[z-a]", r"\p{Nonsense}", "(?P<n>a)(?P<1n>b)", "a|*", "(?x)a b", "\\"):
        yield Case("StaticRegexReplace", {"input": words}, {"pattern": pattern, "rewrite": r"<\0>", "replace_global": True})
        yield Case("StaticRegexFullMatch", {"input": words}, {"pattern": pattern})
    for pattern in (".", "b*", "[^a]", "a|", r"\w+"):
        yield Case("RegexReplace", {"input": invalid, "pattern": _word(pattern), "rewrite": _word("-")})
        yield Case("RegexFullMatch", {"input": invalid, "pattern": _word(pattern)})


def positions():
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


def seeded():
    for op in ("StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal"):
        for dtype in (tf.float32, tf.float64):
            for shape in ((3, 5), (), (301,)):
                yield Case(op, {"shape": np.array(shape, I), "seed": np.array([7, -3], L)}, {"dtype": dtype}, rtol=2e-5, atol=1e-6)
        yield Case(op, {"shape": i32(2), "seed": i32(1, 1 << 30)}, rtol=2e-5, atol=1e-6)
        yield Case(op, {"shape": i32(2), "seed": i32(1, 2, 3)})


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


def part_cases():
    for group in (splits, cuts, rewrites, patterns, positions, scans, seeded, diagonals):
        yield from group()
