# SPDX-License-Identifier: Apache-2.0
"""Protobuf messages: decodes and encodes fields of every type, defaults, and malformed messages."""
import numpy as np
import tensorflow.compat.v1 as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from ops_cases import Case

Field = descriptor_pb2.FieldDescriptorProto
TYPES = {"double": tf.float64, "float": tf.float32, "int64": tf.int64, "uint64": tf.uint64, "int32": tf.int32, "fixed64": tf.uint64,
         "fixed32": tf.uint32, "bool": tf.bool, "string": tf.string, "bytes": tf.string, "uint32": tf.uint32, "enum": tf.int32,
         "sfixed32": tf.int32, "sfixed64": tf.int64, "sint32": tf.int32, "sint64": tf.int64, "message": tf.string, "group": tf.string}
WIDE = {"float": tf.float64, "int32": tf.int64, "sint32": tf.int64, "sfixed32": tf.int64, "uint32": tf.uint64, "fixed32": tf.uint64}
TEXTS = ("string", "bytes", "message", "group")
DEFAULTS = {"int32": "-42", "string": "text", "bytes": "a\\001\\\\\\nb", "enum": "B", "bool": "true", "float": "1.5", "double": "-inf"}


def _schema():
    s = descriptor_pb2.FileDescriptorSet()
    f = s.file.add(name="t.proto", package="a.b", syntax="proto2")
    names = f.enum_type.add(name="E")
    for name, number in (("A", 3), ("B", 7), ("C", -1)):
        names.value.add(name=name, number=number)
    f.message_type.add(name="Part").field.add(name="x", number=1, type=Field.TYPE_INT32, label=Field.LABEL_OPTIONAL)
    m = f.message_type.add(name="M")
    m.nested_type.add(name="Group").field.add(name="y", number=1, type=Field.TYPE_INT32, label=Field.LABEL_OPTIONAL)
    type_of = {"enum": ".a.b.E", "message": ".a.b.Part", "group": ".a.b.M.Group"}

    def add(name, t, label, **more):
        m.field.add(name=name, number=len(m.field) + 1, type=getattr(Field, "TYPE_" + t.upper()), label=label, type_name=type_of.get(t), **more)

    for t in TYPES:
        add("one_" + t, t, Field.LABEL_OPTIONAL)
        add("all_" + t, t, Field.LABEL_REPEATED)
        if t not in TEXTS:
            add("packed_" + t, t, Field.LABEL_REPEATED)
            m.field[-1].options.packed = True
    for t, text in DEFAULTS.items():
        add("default_" + t, t, Field.LABEL_OPTIONAL, default_value=text)
    f = s.file.add(name="u.proto", syntax="proto3")
    m = f.message_type.add(name="Outer").nested_type.add(name="Inner")
    m.field.add(name="n", number=1, type=Field.TYPE_INT32, label=Field.LABEL_REPEATED)
    return s


SCHEMA = _schema()
pool = descriptor_pool.DescriptorPool()
for file in SCHEMA.file:
    pool.Add(file)
M = message_factory.GetMessageClass(pool.FindMessageTypeByName("a.b.M"))
NUMBER = {f.name: f.number for f in M.DESCRIPTOR.fields}


def _message(k):
    """A message with k values in each repeated field; an empty message for k = 0."""
    m = M()
    for f in M.DESCRIPTOR.fields:
        kind = f.name.partition("_")[2]
        if k == 0 or f.name.startswith("default"):
            continue
        sign = -1 if kind in ("int32", "int64", "sint32", "sint64", "sfixed32", "sfixed64") else 1
        v = b"\xffb" if kind == "bytes" else f"s{k}" if kind == "string" else 7 if kind == "enum" else True if kind == "bool" else \
            k + 0.5 if kind in ("double", "float") else sign * k * (2**40 if "64" in kind else 3)
        if kind in ("message", "group"):
            target = getattr(m, f.name)
            for part in [target.add() for _ in range(k)] if f.label == Field.LABEL_REPEATED else [target]:
                setattr(part, "x" if kind == "message" else "y", k)
        elif f.label == Field.LABEL_REPEATED:
            getattr(m, f.name).extend([v] * k)
        else:
            setattr(m, f.name, v)
    return m.SerializeToString()


def _tag(name, wire):
    n = (name if isinstance(name, int) else NUMBER[name]) << 3 | wire
    return bytes([n]) if n < 128 else bytes([n & 127 | 128, n >> 7])


def _decode(messages, types, **attrs):
    return Case("DecodeProtoV2", {"bytes": np.array(messages, object)}, {
        "message_type": "a.b.M", "field_names": list(types), "output_types": list(types.values()),
        "descriptor_source": b"bytes://" + SCHEMA.SerializeToString(), **attrs})


def _malformed():
    whole = _message(2)
    yield from (whole[:-1], whole[:len(whole) // 2], b"\x80", b"\x00\x01", b"\xff" * 11)
    yield _tag("one_int32", 2) + b"\x01a"
    yield _tag("one_string", 0) + b"\x05"
    yield _tag("packed_int32", 0) + b"\x05" + _tag("packed_int32", 2) + b"\x02\x06\x07" + _tag("all_int32", 2) + b"\x02\x08\x09"
    yield _tag("default_int32", 2) + b"\x02\x05\x06"
    yield _tag("one_string", 2) + b"\x7fa"
    yield _tag("one_int32", 0) + b"\x05" + _tag("one_int32", 0) + b"\x06"
    yield _tag("one_int32", 7) + b"\x01"
    yield _tag(2000, 4)
    yield _tag(2000, 3) + _tag(5, 0) + b"\x01" + _tag(2000, 4)
    yield _tag(2000, 3) + _tag(5, 0) + b"\x01"
    yield _tag("packed_double", 2) + b"\x09" + b"\0" * 9
    yield _tag("packed_int32", 2) + b"\x02\x05\x86"
    yield _tag("packed_int32", 2) + b"\x05a"
    yield _tag("one_enum", 0) + b"\x63"
    yield _tag("one_bool", 0) + b"\x80\x80\x80\x80\x80\x01"
    yield _tag("one_int32", 0) + b"\xff\xff\xff\xff\xff\x01"
    yield _tag("one_float", 1) + b"\x80"
    yield _tag("one_message", 2) + b"\x01\xff"
    yield _tag("one_group", 3) + _tag(9, 2) + b"\x01a" + _tag(1, 0) + b"\x07" + _tag("one_group", 4)
    yield _tag("one_group", 3) * 99 + _tag("one_group", 4) * 98
    yield _tag("one_group", 3) + _tag(9, 4)


def _decoded():
    messages = [_message(2), b"", _message(1)]
    for name in NUMBER:
        t = name.partition("_")[2]
        yield _decode(messages, {name: TYPES[t]})
        yield _decode(messages, {name: tf.uint8})
        if t in WIDE and not name.startswith("packed"):
            yield _decode(messages, {name: WIDE[t]})
    some = {f: TYPES[f.partition("_")[2]] for f in (
        "one_string", "all_int32", "one_int32", "packed_int32", "packed_double", "one_float", "one_enum", "one_bool", "one_message", "one_group",
        "default_int32")}
    yield _decode([messages, messages], some)
    yield _decode(messages[0], some)
    yield _decode(messages, some, sanitize=True)
    yield _decode(np.zeros([0, 2]), some)
    yield _decode(messages, {})
    for m in _malformed():
        yield _decode([m], some)
    yield _decode([_malformed().__next__()], some, sanitize=True)
    yield _decode([_tag("one_message", 2) + b"\x01\xff"], some, sanitize=True)
    yield _decode([b"\x80"], {"one_double": tf.float64})
    for more in ({"message_type": "a.b.Nothing"}, {"message_type": "M"}, {"message_type": ".a.b.M"}, {"field_names": ["none"] * len(some)},
                 {"field_names": ["one_string"]}, {"message_format": "json"}, {"descriptor_source": b"bytes://\n\x05a"}, {"descriptor_source": b""},
                 {"descriptor_source": b"/nonexistent/set"}):
        yield _decode(messages, some, **more)
    yield _decode([b"\x08\x05\x0a\x02\x06\x07"], {"n": tf.int32}, message_type="Outer.Inner")


def _encode(sizes, values, **attrs):
    arrays = {k: np.array(v[0], object if v[1] == tf.string else v[1].as_numpy_dtype) for k, v in values.items()}
    return Case("EncodeProto", {"sizes": np.array(sizes, np.int32), "values": list(arrays.values())}, {
        "message_type": "a.b.M", "field_names": list(values), "descriptor_source": b"bytes://" + SCHEMA.SerializeToString(), **attrs})


def _encoded():
    for name in NUMBER:
        kind = name.partition("_")[2]
        for t in (TYPES[kind], WIDE.get(kind), tf.uint8):
            v = [b"\x08\x05", b"\xff"] if t == tf.string else [1.25, -2] if t in (tf.float32, tf.float64) else \
                [True, False] if t == tf.bool else [2**31 + 1, 5] if t in (tf.uint32, tf.uint64) else [200, 1] if t == tf.uint8 else [-7, 9]
            if t:
                yield _encode([[2], [0], [1]], {name: ([v] * 3, t)})
    numbers, words = ([[1, 2], [3, 4]], tf.int32), ([["a"], ["b"]], tf.string)
    yield _encode([[1, 2], [1, 0]], {"one_string": words, "packed_int32": numbers})
    yield _encode([[[1, 2]], [[1, 0]]], {"one_string": ([[["a"]], [["b"]]], tf.string), "all_int32": ([[[1, 2]], [[3, 4]]], tf.int32)})
    yield _encode([[1], [3]], {"all_int32": numbers})
    yield _encode([[1], [-1]], {"all_int32": numbers})
    yield _encode([[1, 1], [1, 1]], {"all_int32": numbers})
    yield _encode([1], {"all_int32": numbers})
    yield _encode(np.zeros([0, 1]), {"all_int32": (np.zeros([0, 2]), tf.int32)})
    yield _encode([2], {"all_int32": ([1, 2], tf.int32)})
    yield _encode([[1, 1]], {"one_int32": ([[1]], tf.int32), "all_int32": ([[1], [2]], tf.int32)})
    yield _encode([[1]], {"none": ([[1]], tf.int32)})
    yield _encode([[1]], {"one_int32": ([[1]], tf.int32)}, field_names=["one_int32", "all_int32"])


def protos_cases():
    yield from _decoded()
    yield from _encoded()
