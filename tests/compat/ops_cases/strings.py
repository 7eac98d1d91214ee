# SPDX-License-Identifier: Apache-2.0
"""Strings split, cut, joined, formatted and matched; lines of CSV; vocabularies."""
import itertools

import numpy as np
import tensorflow.compat.v1 as tf

from ops_cases import Case, D, F, I, L, i32, ints, real, scalar, strs


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


def substrings():
    words = strs("hello", "na\u00efve", "\u65e5\u672c\u8a9e", "")
    for unit in ("BYTE", "UTF8_CHAR"):
        yield Case("StringLength", {"input": words}, {"unit": unit})
        for t in (I, L):
            yield Case("Substr", {"input": words[:3], "pos": scalar(1, t), "len": scalar(2, t)}, {"unit": unit})
        yield Case("Substr", {"input": words[:3], "pos": i32(0, -2, 1), "len": i32(9, 1, 1)}, {"unit": unit})
        yield Case("Substr", {"input": words, "pos": scalar(1), "len": scalar(1)}, {"unit": unit})
        yield Case("Substr", {"input": words[:1], "pos": scalar(5), "len": scalar(1)}, {"unit": unit})
        for pos in (0, 1, -1):
            yield Case("Substr", {"input": words[:1], "pos": scalar(pos), "len": scalar(-1)}, {"unit": unit})
        yield Case("Substr", {"input": words[:1], "pos": scalar(-6), "len": scalar(1)}, {"unit": unit})
    yield Case("Substr", {"input": words[:2].reshape(2, 1), "pos": i32(0, 1, 2), "len": i32(1, 2, 2)})
    yield Case("Substr", {"input": words[:2], "pos": i32(0, 1, 2), "len": i32(1, 2, 2)})
    yield Case("Substr", {"input": words[:2], "pos": i32(0, 1), "len": i32(1)})
    mixed = strs("aBc", " X y\t", "\n", "", "Z[@`{z")
    for op in ("StringLower", "StringUpper"):
        yield Case(op, {"input": mixed})
        yield Case(op, {"input": mixed}, {"encoding": "utf-8"})
        yield Case(op, {"input": strs("\u00c4b")})
        yield Case(op, {"input": strs("\u00c4b\u00df", "\ufb01n", "\u0130i\u0131", "\u03a3\u03b1\u03a3 \u03a3", "\u0434\u0416", "\U00010428\u1e9e", "\u01c5")}, {"encoding": "utf-8"})
        yield Case(op, {"input": strs(*("\u0391" + middle for middle in ("\u03a3.\u0391", "\u0301\u03a3", "\u03a3'\u0391", "\u03a3\u00b7\u0391", "\u03a3-\u0391",
                                                                   "\u03a3\u2019\u0391", "\u03a3.", "\u03a3. \u0391", ":\u03a3")))}, {"encoding": "utf-8"})
        yield Case(op, {"input": np.array([b"a\xff\xc3(\xe2\x82b"], object)}, {"encoding": "utf-8"})
    yield Case("StringStrip", {"input": mixed})


def regex_rewrites():
    words = strs("aaa", "xaby", "", "ab12cd345", "a.b.c")
    for pattern, rewrite in (("a", "<>"), ("[0-9]+", "#"), ("(a)(b)?", r"[\2\1\0]"), ("^a", "-"), ("c$", ""), (r"\.", r"\\"),
                             ("b*", "-"), ("a", r"\1"), ("(", "x")):
        for every in (True, False):
            yield Case("StaticRegexReplace", {"input": words}, {"pattern": pattern, "rewrite": rewrite, "replace_global": every})
        yield Case("RegexReplace", {"input": words, "pattern": _word(pattern), "rewrite": _word(rewrite)})


def regex_patterns():
    """Patterns on which RE2 and other engines differ: leftmost-first, UTF-8, classes, and patterns that RE2 rejects."""
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
    long = strs("ab" * 35000, "b" * 100000)
    yield Case("StaticRegexReplace", {"input": long}, {"pattern": "a", "rewrite": "", "replace_global": True})
    yield Case("StaticRegexFullMatch", {"input": long}, {"pattern": "(ab)*"})
    yield Case("StaticRegexFullMatch", {"input": strs("w999", "w1000")}, {"pattern": "|".join(f"w{i}" for i in range(1000))})
    for pattern in (".", "b*", "[^a]", "a|", r"\w+"):
        yield Case("RegexReplace", {"input": invalid, "pattern": _word(pattern), "rewrite": _word("-")})
        yield Case("RegexFullMatch", {"input": invalid, "pattern": _word(pattern)})


def reduce_joins():
    words = np.array([[[b"a", b"b", b""], [b"d", b"e", b"f"]], [[b"g", b"h", b"i"], [b"jj", b"k", b"l"]]], dtype=object)
    for axes in ([0], [1], [2], [-1], [0, 1], [1, 0], [2, 0, 1], [0, 1, 2], [], [3], [-4], [1, 1], [1, -2]):
        for keep in (False, True):
            yield Case("ReduceJoin", {"inputs": words, "reduction_indices": np.array(axes, I)}, {"keep_dims": keep, "separator": "-"})
    yield Case("ReduceJoin", {"inputs": words, "reduction_indices": scalar(1)})
    yield Case("ReduceJoin", {"inputs": words[:0], "reduction_indices": i32(0)})
    yield Case("ReduceJoin", {"inputs": words[:, :0], "reduction_indices": i32(1)}, {"separator": ","})
    yield Case("ReduceJoin", {"inputs": np.array(b"x", dtype=object), "reduction_indices": np.zeros(0, I)})


def segment_joins():
    words = strs("a", "bb", "", "d", "e", "f")
    for t, ids in itertools.product((I, L), ((0, 1, 0, 2, 1, 0), (4, 4, 4, 4, 4, 4), (-1, 0, -2, 3, 0, 3))):
        for between in ("", ", "):
            yield Case("UnsortedSegmentJoin", {"inputs": words, "segment_ids": np.array(ids, t), "num_segments": scalar(5, t)}, {"separator": between})
    square = words.reshape(3, 2)
    for ids in (i32(1, 0, 1), np.array([[0, 1], [1, 1], [0, 3]], I)):
        yield Case("UnsortedSegmentJoin", {"inputs": square, "segment_ids": ids, "num_segments": scalar(4)}, {"separator": "-"})
    for inputs, ids, n in ((words, i32(0, 1), scalar(2)), (words, i32(0, 1, 2, 3, 4, 5), scalar(5)), (square, scalar(0), scalar(1)), (words, np.zeros((6, 1), I), scalar(1)),
                           (square[:0], i32(), scalar(2)), (words, i32(0, 0, 0, 0, 0, 0), i32())):
        yield Case("UnsortedSegmentJoin", {"inputs": inputs, "segment_ids": ids, "num_segments": n})


def string_formats():
    """Formats tensors of each rank, also with elided middle elements."""
    words = np.array([[b"a", b"\"q'\n"], [b"\x01\xc3\xa9", b""]], object)
    for t, n in itertools.product((real(F, 2, 3, 4), real(D, 9), ints(L, 3, 7), np.array([True, False]), words, scalar(7, I), scalar(0.1, F),
                                   real(F, 0), real(F, 3, 0), real(F, 0, 3), np.array([np.inf, -np.inf, np.nan, 1e30, 1e-7, 100000, 1234567], F),
                                   real(np.float16, 5), ints(np.uint8, 4, low=0), np.array(b"w", object)), (-1, 0, 1, 2, 3, 100)):
        if n or t.dtype != bool:  # stock writes nothing in this case
            yield Case("StringFormat", {"inputs": [t]}, {"template": "<{}>", "placeholder": "{}", "summarize": n})
    yield Case("StringFormat", {"inputs": [i32(1, 2), real(F, 2)]}, {"template": "a%sb%s"})


def csv_lines():
    d = [real(F, 1), ints(I, 1), strs("none")]
    text = strs('1.5,2,x', '-3,,"a ""b"", c"', ',7,', ' 4 , 5 , y ')
    yield Case("DecodeCSV", {"records": text, "record_defaults": d})
    yield Case("DecodeCSV", {"records": text.reshape(2, 2), "record_defaults": d})
    yield Case("DecodeCSV", {"records": text, "record_defaults": [real(F, 0), ints(I, 0), strs()]})
    yield Case("DecodeCSV", {"records": strs("1;na;'x'"), "record_defaults": d},
               {"field_delim": ";", "na_value": "na", "use_quote_delim": False})
    yield Case("DecodeCSV", {"records": strs("1,2,3,4,5"), "record_defaults": [ints(L, 1)] * 2},
               {"select_cols": [1, 3]})
    for bad in (" ,2,x", "1, ,x", "1,2", "1,2,3,4", "x,2,3", "1,2.5,x", '1,2,"a', '1,2,"a"b', "1,2,a\"b", ""):
        yield Case("DecodeCSV", {"records": strs(bad), "record_defaults": d})
    for t in (F, D, I, L):
        import tensorflow as tf
        for w in ("12", "-7", " 3 ", "1e3", "1.5", "x", "", "99999999999", "0x10", "nan", " ", "\t ", "+5", "- 5", "-", "inf", "infinity", "nan(1)", "0x1p3",
                  "0x1.8", "1e", "1" * 31, "1" * 32, "0" * 40 + "5", "-9223372036854775808", "9223372036854775808"):
            yield Case("StringToNumber", {"string_tensor": strs(w)}, {"out_type": tf.as_dtype(t)})


def vocabularies():
    import tempfile
    names = []
    for text in ("a\nb\nc\nd\ne\n", "x\nd\na\nq\nb", "a\nb\na\n", "a\n\nb\n"):
        with tempfile.NamedTemporaryFile("w", prefix="muster-", delete=False) as f:
            f.write(text)
            names.append(np.array(f.name.encode(), dtype=object))
    for n, skip, most in ((5, 0, -1), (3, 1, -1), (5, 0, 2), (0, 0, -1), (6, 0, -1)):
        yield Case("GenerateVocabRemapping", {"new_vocab_file": names[0],
                                              "old_vocab_file": names[1]},
                   {"num_new_vocab": n, "new_vocab_offset": skip, "old_vocab_size": most})
    for old, most in itertools.product(names[2:], (-1, 1, 2)):  # a repeated line, an empty line
        yield Case("GenerateVocabRemapping", {"new_vocab_file": names[0], "old_vocab_file": old}, {"num_new_vocab": 2, "new_vocab_offset": 0, "old_vocab_size": most})


def strings_cases():
    for group in (splits, substrings, regex_rewrites, regex_patterns, reduce_joins, segment_joins, string_formats, csv_lines, vocabularies):
        yield from group()
