# SPDX-License-Identifier: Apache-2.0
"""Unicode: encoding, decoding, transcoding, n-grams."""
import itertools

import numpy as np
import tensorflow.compat.v1 as tf

from ops_cases import Case, I, L, i32, rng, strs

WORDS = ["", "plain", "na\u00efve \u20ac", "\u65e5\u672c\u8a9e", "\U0001f600!", "\x00\x09\x1f\x7f", "\ufffe\ufdd0\U0010ffff", "\ufeffbom"]
# overlong, surrogate, out of range, truncated and stray sequences; each yields its own number of replacements
BROKEN = [b"\xc0\x80", b"\xed\xa0\x80x", b"\xf4\x90\x80\x80", b"\xf5\x80", b"\xe2\x82", b"a\xe2\x82b", b"\xf0\x9f\x98", b"\x80\x80a\xbf", b"\xff\xfe", b"\xe0\x80\x80", b"\xf0\x80\x80\x80"]


def raw(*words):
    return np.array(words, object)


def texts_of(encoding):
    whole = [w.encode(encoding, "surrogatepass") for w in WORDS]
    broken = {"utf-8": BROKEN, "utf-16-be": [b"\xd8\x00", b"\xd8\x00\x00a", b"\xdc\x00\x00a", b"a", b"\x00ab", b"\xd8\x00\xd8\x00\xdc\x00", b"\xd8\x00\xdc"],
              "utf-32-be": [b"\x00\x11\x00\x00\x00\x00\x00a", b"\x00\x00\xd8\x00", b"a", b"\x00\x00\x00ab\x00", b"\x80\x00\x00\x00"]}[encoding]
    return raw(*whole), raw(*broken, *(bytes(rng.randint(0, 256, 12).astype(np.uint8)) for _ in range(40)))


def characters():
    for encoding, errors, controls in itertools.product(("utf-8", "utf-16-be", "utf-32-be"), ("replace", "ignore", "strict"), (False, True)):
        whole, broken = texts_of(encoding)
        attrs = {"input_encoding": encoding.upper(), "errors": errors, "replace_control_characters": controls}
        for text, more in ((whole, {}), (broken, {}), (broken, {"replacement_char": 63}), (whole[:0], {}), (whole[2:3].reshape(()), {})):
            for splits in (tf.int32, tf.int64):
                yield Case("UnicodeDecode", {"input": text}, {**attrs, **more, "Tsplits": splits})
            # TensorFlow aborts with int32 splits
            yield Case("UnicodeDecodeWithOffsets", {"input": text}, {**attrs, **more})
            for out in ("UTF-8", "UTF-16-BE", "UTF-32-BE"):
                yield Case("UnicodeTranscode", {"input": text}, {**attrs, **more, "output_encoding": out})
    for encoding in ("US-ASCII", "ISO-8859-1", "latin1", "utf8", "UTF-16LE"):
        yield Case("UnicodeDecode", {"input": raw(b"abc\xe9", b"\x80")}, {"input_encoding": encoding})
    marked = raw(b"\xfe\xff\x00*\x00a", b"\xff\xfe*\x00a\x00", b"\x00*\x00a", b"\xfe\xff\x00*\xfe\xff\x00a", b"\xff", b"")
    wide = raw(b"\xff\xfe\x00\x00*\x00\x00\x00", b"\x00\x00\xfe\xff\x00\x00\x00a", b"\x00\x00\x00b", b"\xfe\xff")
    # one string per case: TensorFlow keeps the byte order for the following strings
    for encoding, text in [("UTF-16", t) for t in marked] + [("utf32", t) for t in wide]:
        yield Case("UnicodeDecodeWithOffsets", {"input": raw(text)}, {"input_encoding": encoding})
        yield Case("UnicodeTranscode", {"input": raw(text)}, {"input_encoding": encoding, "output_encoding": "UTF-8"})
    yield Case("UnicodeDecode", {"input": raw(b"a")}, {"input_encoding": "no such"})
    yield from charsets()
    yield Case("UnicodeScript", {"input": np.array([*range(0, 0x20000, 7), *range(0xe0000, 0xe0200, 3), -1, 0x110000], I).reshape(-1, 2)})
    yield Case("UnicodeTranscode", {"input": whole.reshape(2, 4)}, {"input_encoding": "UTF-32-BE", "output_encoding": "UTF-8"})


def charsets():
    """All bytes, and all byte pairs that Python can decode. For other pairs ICU has private-use characters and its
    own lengths of malformed sequences."""
    single = [f"ISO-8859-{n}" for n in (*range(2, 12), 13, 14, 15)] + [f"windows-{n}" for n in (1250, 1251, 1252, 1254, 1256, 1258)]
    for name in (*single, "KOI8-R", "koi8-u", "latin2", "latin5", "latin6", "latin9", "CP1251", "cp1252"):
        yield Case("UnicodeDecode", {"input": raw(bytes(range(256)))}, {"input_encoding": name})
        yield Case("UnicodeTranscode", {"input": raw(b"a\xe9\xf0z", b"")}, {"input_encoding": name, "output_encoding": "UTF-16-BE"})
    for name in ("windows-874", "windows-1253", "windows-1255", "windows-1257", "TIS-620"):
        known = bytes(i for i in range(256) if bytes([i]).decode(name.replace("windows-", "cp"), "ignore"))
        yield Case("UnicodeDecode", {"input": raw(known)}, {"input_encoding": name})
    wide = {"Shift_JIS": "cp932", "windows-31j": "cp932", "cp932": "cp932", "sjis": "cp932", "EUC-JP": "euc_jp", "EUC-KR": "euc_kr", "windows-949": "cp949",
            "KS_C_5601-1987": "cp949", "GB2312": "gb2312", "GBK": "gbk", "cp936": "gbk", "GB18030": "gb18030", "Big5": "big5"}
    for name, python in wide.items():
        pairs = [bytes([a, b]) for a in range(128, 256) for b in range(256) if len(bytes([a, b]).decode(python, "replace")) == 1]
        characters = [p for p in pairs if p.decode(python, "replace").isprintable() and "\ufffd" not in p.decode(python, "replace")]
        text = b"".join(p for p in characters if not (name == "GB2312" and p == b"\xa3\xa7") and not (name == "EUC-KR" and p in (b"\xa2\xe6", b"\xa2\xe7")))
        yield Case("UnicodeDecodeWithOffsets", {"input": raw(text, text[:1])}, {"input_encoding": name})
        yield Case("UnicodeTranscode", {"input": raw(b"a" + text[-8:] + text[:1] + b" z")}, {"input_encoding": name, "output_encoding": "UTF-8", "errors": "ignore"})
        yield Case("UnicodeDecode", {"input": raw(b"a" + text[:1] + b" z")}, {"input_encoding": name, "errors": "strict"})
    yield Case("UnicodeDecode", {"input": raw("\U0001f600 \u00e9\u0080".encode("gb18030"))}, {"input_encoding": "GB18030"})
    yield Case("UnicodeDecode", {"input": raw("\u4e02\u4e04".encode("euc_jp"))}, {"input_encoding": "EUC-JP"})


def encodings():
    good = i32(*map(ord, "na\u00efve\u20ac\U0001f600"), 0, 0x10ffff)
    bad = i32(97, 0xd800, 98, -1, 0x110000, 0xfffe, 0xfdd0, 99, 0xfffd)
    for out, errors, t in itertools.product(("UTF-8", "UTF-16-BE", "UTF-32-BE"), ("replace", "ignore", "strict"), (I, L)):
        for values in (good, bad):
            splits = np.array([0, 3, 3, len(values)], t)
            yield Case("UnicodeEncode", {"input_values": values, "input_splits": splits}, {"errors": errors, "output_encoding": out})
        yield Case("UnicodeEncode", {"input_values": bad, "input_splits": np.array([0, 9], t)}, {"errors": errors, "output_encoding": out, "replacement_char": 63})
    for splits in (i32(1, 9), i32(0, 5, 4, 9), i32(0, 8), i32(0, 10), i32()):
        yield Case("UnicodeEncode", {"input_values": good, "input_splits": splits}, {"output_encoding": "UTF-8"})


def ngrams():
    words = strs(*"abcdefg")
    for t, widths, pad, keep in itertools.product((I, L), ([1], [2], [3], [2, 3], [5, 1]), (0, 1, 2, 9, -1), (False, True)):
        for splits in ([0, 7], [0, 2, 2, 3, 7]):
            yield Case("StringNGrams", {"data": words, "data_splits": np.array(splits, t)},
                       {"separator": "|", "ngram_widths": widths, "left_pad": "<", "right_pad": ">>", "pad_width": pad, "preserve_short_sequences": keep})
    plain = {"separator": "", "ngram_widths": [2], "left_pad": "", "right_pad": "", "pad_width": 1, "preserve_short_sequences": False}
    yield Case("StringNGrams", {"data": words, "data_splits": i32(0, 7)}, plain)
    yield Case("StringNGrams", {"data": words[:0], "data_splits": i32(0)}, plain)
    yield Case("StringNGrams", {"data": words[:0], "data_splits": i32(0, 0)}, plain)
    for splits in (i32(1, 7), i32(0, 5, 4, 7), i32(0, 6), i32(0, 9), i32(0, -1, 7)):
        yield Case("StringNGrams", {"data": words, "data_splits": splits}, plain)


def examples():
    """JSON of examples; the bytes must be equal."""
    one = lambda kind, value: '{"features": {"feature": {"a": {"%s": {"value": %s}}}}}' % (kind, value)  # noqa: E731
    good = ["{}", '{"features": null}', '{"features": {}}', '{"features": {"feature": {"b": {}, "a": {"int64List": {}}}}}', one("int64List", '["1", 2, -3, 1e2, "-9223372036854775808"]'),
            one("int64_list", "7"), one("int64List", "[0, 0]"), one("floatList", "[0, 0.0]"), one("int64List", "null"), one("float_list", '[1.5, "NaN", "-Infinity", "Infinity", 2, "0.25", -1e-3]'), one("bytesList", '["YWI=", "_-8", "/+8=", ""]'),
            '{"features": {"feature": {"z\u00e9": {"floatList": {"value": []}}, "a": {"bytes_list": {"value": "YQ"}}}}}']
    yield Case("DecodeJSONExample", {"json_examples": strs(*good)})
    for text in good:
        yield Case("DecodeJSONExample", {"json_examples": strs(text).reshape(())})
    for text in ("", "x", "[]", '{"other": 1}', '{"features": {"other": 1}}', one("int64List", '["x"]'), one("int64List", "[1.5]"), one("int64List", "[1e30]"), one("bytesList", '["!"]'),
                 one("floatList", "[1e300]"), one("bytesList", "[1]"), one("list", "[1]"), '{"features": {"feature": {"a": 1}}}', '{"features": 3}',
                 '{"features": {"feature": {"a": {"int64List": {"value": [1]}, "floatList": {"value": [1]}}}}}'):
        yield Case("DecodeJSONExample", {"json_examples": strs(text)})


def text_cases():
    for group in (characters, encodings, ngrams, examples):
        yield from group()
