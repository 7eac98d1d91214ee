# SPDX-License-Identifier: Apache-2.0
"""Draws one case of a single op from a seed: types, attributes, shapes and values.

Most cases start from a case of ops_cases and change a type, a shape, some values or an attribute.  The others are
drawn from the OpDef alone.  A seed names the same case until ops_cases or this file changes.
"""
import collections
import fnmatch
import pathlib
import random
import re

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.framework import kernels, op_def_registry

import ops_cases
import types_diff

HERE = pathlib.Path(__file__).parent
LEFT_OUT = HERE / "diff_left_out.txt"
NO_NUMPY = {tf.as_dtype(t) for t in types_diff.NOT_TENSORS | types_diff.FLOAT8}
ANY_TYPE = [tf.float32, tf.int32, tf.float64, tf.int64, tf.float16, tf.bool, tf.string, tf.uint8, tf.complex64]
DIMS = [0, 1, 1, 2, 2, 3, 3, 4, 5, 8, 17]
LONG_DIMS = [31, 33, 64, 100, 257, 1000]  # exercise the tails of vector loops and the division among threads
EXTREME_INTS = [-1 << 63, -1 << 31, (1 << 31) - 1, 1 << 31, 1 << 32, 1 << 62, (1 << 63) - 1]
ROOM = 1 << 16  # maximum number of elements of a drawn tensor

Drawn = collections.namedtuple("Drawn", "op inputs attrs case")  # attrs: all attributes of the OpDef; case: tolerances and other settings of the comparison


def table_ops():
    """Returns the names of the ops in Muster's op table."""
    text = "".join(f.read_text() for f in (HERE / "../../lib/ops").glob("ops_*.def"))
    return set(re.findall(r"^OP\((\w+)", text, re.M))


def left_out():
    lines = [line.split(" ", 1)[0] for line in LEFT_OUT.read_text().splitlines() if line and line[0] != "#"]
    return re.compile("|".join(map(fnmatch.translate, lines)))


class Source:
    """The sources of drawn cases: TensorFlow's op and kernel registries, and the cases of ops_cases."""

    def __init__(self, cases):
        self.cases, self.kernels = collections.defaultdict(list), collections.defaultdict(list)
        for case in cases:
            case.inputs = by_op_def(case)
            if op_def_registry.get(case.op).is_stateful and "seed" in {a.name for a in op_def_registry.get(case.op).attr}:
                case.only_shape = True  # a cached TensorFlow kernel continues its random sequence
            if case.inputs is not None and not case.producer:
                self.cases[case.op].append(case)
        missing = {(op, *t.split("=")) for op, *types in
                   (line.split() for line in types_diff.LEFT_OUT.read_text().splitlines() if line[:1] not in ("", "#"))
                   for t in types}
        for k in kernels.get_all_registered_kernels().kernel:
            if k.device_type == "CPU" and not k.label:
                allowed = {a.name: set(a.allowed_values.list.type) for a in op_def_registry.get(k.op).attr}
                types = {c.name: [tf.as_dtype(t) for t in c.allowed_values.list.type if
                                  drawable(tf.as_dtype(t)) and (not allowed.get(c.name) or t in allowed[c.name]) and
                                  (k.op, c.name, tf.as_dtype(t).name) not in missing] for c in k.constraint}
                if all(types.values()):
                    self.kernels[k.op].append(types)
        skip, ours = left_out(), table_ops()
        self.ops = [op for op in sorted(ours & set(self.kernels)) if not skip.match(op) and self.can_draw(op)]

    def can_draw(self, op):
        op_def = op_def_registry.get(op)
        args = [*op_def.input_arg, *op_def.output_arg]
        kinds = [a.type for a in op_def.attr if not a.HasField("default_value")]
        if any("func" in a.type for a in op_def.attr):
            return False
        return op in self.cases or not (
            op_def.is_stateful or any(a.type in NO_NUMPY or a.is_ref for a in args) or "tensor" in kinds)

    def draw(self, seed):
        op = self.ops[seed % len(self.ops)]
        return Draw(self, op, random.Random(seed)).draw()


def by_op_def(case):
    """Maps the inputs to their names in the OpDef, since tf.raw_ops renames some. Returns None if inputs are missing."""
    names = [a.name for a in op_def_registry.get(case.op).input_arg]
    if len(names) != len(case.inputs):
        return None
    renamed = iter([v for k, v in case.inputs.items() if k not in names])
    return {n: case.inputs[n] if n in case.inputs else next(renamed) for n in names}


def drawable(t):
    return t not in NO_NUMPY and not t.is_quantized


class Draw:
    def __init__(self, source, op, rng):
        self.source, self.rng, self.op = source, rng, op_def_registry.get(op)
        self.values = np.random.RandomState(rng.randrange(1 << 32))
        self.usual = self.shape()

    def chance(self, p):
        return self.rng.random() < p

    def draw(self):
        cases = self.source.cases[self.op.name]
        if cases and self.chance(0.85):
            case = self.rng.choice(cases)
            self.inputs, self.attrs = dict(case.inputs), dict(case.attrs)
            for _ in range(self.rng.choice([0, 1, 1, 1, 2, 2, 3])):
                self.rng.choice([self.change_type, self.change_shape, self.change_shape, self.change_value, self.change_value,
                                 self.change_attr])()
        else:
            case = cases[0] if cases else ops_cases.Case(self.op.name, {})
            self.inputs, self.attrs = {}, {}
            self.draw_all()
        return Drawn(self.op.name, self.inputs, self.all_attrs(), case)

    # ---- from the OpDef ----
    def draw_all(self):
        types = {name: self.rng.choice(allowed) for name, allowed in self.rng.choice(self.source.kernels[self.op.name]).items()}
        for a in self.op.attr:
            if a.type == "type" and a.name not in types:
                types[a.name] = self.rng.choice([t for t in map(tf.as_dtype, a.allowed_values.list.type) if drawable(t)] or
                                                ANY_TYPE)
        self.attrs.update({k: v for k, v in types.items()})
        for arg in self.op.input_arg:
            if arg.type_list_attr:
                self.inputs[arg.name] = [self.tensor(self.rng.choice(ANY_TYPE)) for _ in range(self.rng.randint(1, 3))]
                continue
            t = types[arg.type_attr] if arg.type_attr else tf.as_dtype(arg.type)
            if t == tf.resource or arg.is_ref:
                t = types.get("dtype") or types.get("T") or tf.float32
                self.inputs[arg.name] = ops_cases.Var(self.tensor(t))
            elif arg.number_attr:
                same = arg.name if self.chance(0.9) else None
                self.inputs[arg.name] = [self.tensor(t, same) for _ in range(self.rng.randint(1, 3))]
            else:
                self.inputs[arg.name] = self.tensor(t)

    def shape(self):
        shape = [self.rng.choice(DIMS) for _ in range(self.rng.choice([0, 1, 1, 2, 2, 2, 3, 4, 4, 5]))]
        if shape and np.prod(shape) < 100 and self.chance(0.1):
            shape[self.rng.randrange(len(shape))] = self.rng.choice(LONG_DIMS)
        return tuple(shape)

    def tensor(self, dtype, same=None):
        shape = self.usual if same or self.chance(0.6) else self.rng.choice([(), (1,), self.usual[:1], self.usual[1:], self.shape()])
        return self.fill(shape, dtype)

    def fill(self, shape, dtype):
        if dtype == tf.string:
            return self.array(shape, lambda: self.rng.choice([b"", b"a", b"ab", b"7", b"-1.5", b"a b", b"\xff", b"x" * 40]), object)
        if dtype.is_bool:
            return self.values.randint(0, 2, shape).astype(bool)
        if dtype.is_integer:
            a = self.values.randint(0 if dtype.is_unsigned or self.chance(0.7) else -2, self.rng.choice([2, 4, 9]), shape)
        else:
            a = np.round(self.values.uniform(-4, 4, shape) * 4) / 4
        if dtype.is_complex:
            a = a + 1j * self.values.randint(-3, 4, shape)
        a = np.asarray(a).astype(dtype.as_numpy_dtype)
        return self.odd_values(a) if self.chance(0.2) else a

    def array(self, shape, one, dtype):
        a = np.empty(shape, dtype)
        for i in range(a.size):
            a.flat[i] = one()
        return a

    def all_attrs(self):
        """Returns all attributes: those that follow from the inputs, those of the case, and random values for the
        rest."""
        attrs = {}
        for arg in self.op.input_arg:
            v = self.inputs[arg.name]
            many = v if isinstance(v, list) else [v]
            types = [tf.as_dtype(x.dtype if x.dtype.kind not in "OSU" else tf.string) for x in
                     (x.value if isinstance(x, ops_cases.Var) else np.asarray(x) for x in many)]
            if arg.type_attr and types:
                attrs[arg.type_attr] = types[0]
            if arg.type_list_attr:
                attrs[arg.type_list_attr] = types
            if arg.number_attr:
                attrs[arg.number_attr] = len(many)
        for a in self.op.attr:
            if a.name not in attrs:
                v = self.attrs[a.name] if a.name in self.attrs else self.attr(a)
                attrs[a.name] = {"type": tf.as_dtype, "float": float, "list(float)": lambda v: [*map(float, v)]}.get(a.type, lambda v: v)(v)
        return attrs

    def attr(self, a):
        if a.HasField("default_value"):
            return from_proto(a.default_value)
        return self.any_attr(a)

    def any_attr(self, a):
        allowed = from_proto(a.allowed_values) if a.HasField("allowed_values") else None
        if a.type.startswith("list("):
            many = max(a.minimum, self.rng.choice([0, 1, 2, 4, 4]))
            return [self.one_attr(a, a.type[5:-1], allowed) for _ in range(many)]
        return self.one_attr(a, a.type, allowed)

    def one_attr(self, a, kind, allowed):
        if kind == "type":
            return self.rng.choice([t for t in allowed or ANY_TYPE if drawable(t)])
        if kind == "string":
            return self.rng.choice(allowed or [b"", b"a", b"NHWC", b"min"])
        if kind == "int":
            least = a.minimum if a.has_minimum and not a.type.startswith("list(") else -1
            return max(least, self.rng.choice(EXTREME_INTS if self.chance(0.1) else [least, least + 1, 0, 1, 1, 2, 2, 3, 5, 100]))
        if kind == "float":
            return self.rng.choice([0.0, 1.0, 0.5, -1.0, 1e-3, 3.0, 100.0, 3e38, float("inf"), float("-inf"), float("nan")])
        if kind == "bool":
            return self.chance(0.5)
        if kind == "shape":
            return tf.TensorShape(None) if self.chance(0.2) else tf.TensorShape([d if self.chance(0.8) else None for d in self.shape()])
        return None

    # ---- mutations of a case ----
    def change_type(self):
        for name, allowed in self.rng.choice(self.source.kernels[self.op.name]).items():
            to = self.rng.choice(allowed)
            for arg in self.op.input_arg:
                held = isinstance(self.inputs[arg.name], ops_cases.Var) and name in ("T", "dtype")
                if arg.type_attr == name or held:
                    v = self.inputs[arg.name]
                    self.inputs[arg.name] = [types_diff.cast(x, to) for x in v] if isinstance(v, list) else types_diff.cast(v, to)
            if name in self.attrs:
                self.attrs[name] = to

    def change_input(self, change):
        """Changes one input tensor."""
        places = [(k, i) for k, v in self.inputs.items() for i in (range(len(v)) if isinstance(v, list) else [None])]
        if not places:
            return
        k, i = self.rng.choice(places)
        v = self.inputs[k] if i is None else self.inputs[k][i]
        new = ops_cases.Var(change(np.asarray(v.value))) if isinstance(v, ops_cases.Var) else change(np.asarray(v))
        if i is None:
            self.inputs[k] = new
        else:
            self.inputs[k] = [*self.inputs[k][:i], new, *self.inputs[k][i + 1:]]

    def change_shape(self):
        self.change_input(self.reshape)

    def reshape(self, a):
        shape = list(a.shape)
        at = self.rng.randrange(len(shape)) if shape else None
        how = self.rng.choice("dim dim dim insert drop scalar any list".split())
        if how == "dim" and shape:
            shape[at] = self.rng.choice([0, 1, max(shape[at] - 1, 0), shape[at] + 1, 2, self.rng.choice(LONG_DIMS)])
        elif how == "insert":
            shape.insert(self.rng.randint(0, len(shape)), self.rng.choice([1, 1, 0, 2]))
        elif how == "drop" and shape:
            del shape[at]
        elif how == "scalar":
            shape = []
        elif how == "list" and len(self.inputs) > 1:
            lists = [k for k, v in self.inputs.items() if isinstance(v, list) and v]
            for k in lists[:1]:
                self.inputs[k] = self.inputs[k][:-1] if len(self.inputs[k]) > 1 and self.chance(0.5) else self.inputs[k] + [a]
        else:
            shape = list(self.shape())
        if np.prod(shape) > ROOM:
            return a
        if a.size == 0:
            return np.zeros(shape, a.dtype) if a.dtype != object else np.full(shape, b"", object)
        return np.resize(a, shape)

    def change_value(self):
        self.change_input(self.odd_values)

    def odd_values(self, a):
        """Replaces some or all elements by rare values of the type."""
        if not a.size:
            return a
        kind = a.dtype.kind
        if kind in "OSU":
            odd = [b"", b"\x00", b"\xff\xfe", b"a" * 70, b"-1", b"1e999", b"nan", b"\xe2\x82\xac", b"0x10", b" 3", a.flat[0]]
        elif kind == "b":
            odd = [True, False]
        elif kind in "iu":
            info = np.iinfo(a.dtype)
            odd = [0, 1, 2, 3, 5, int(a.flat[0]) + 1, int(a.max()) + 1, int(a.min()) - 1]
            odd = odd * 2 + [-1, -2, info.min, info.max, info.max - 1]
            odd = [x for x in odd if info.min <= x <= info.max]
        else:
            big = 3e38 if a.dtype.itemsize in (4, 8) else 6e4
            odd = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e-3, 1e4]
            if kind != "c":  # an infinite complex product may have any NaN
                odd += [np.inf, -np.inf, np.nan] + [big, -big] * self.chance(0.3)
        a = a.copy()
        for i in self.rng.sample(range(a.size), self.rng.choice([1, 1, 2, min(a.size, 200)]) if a.size > 1 else 1):
            a.flat[i] = self.rng.choice(odd)
        return a

    def change_attr(self):
        inferred = {x for arg in self.op.input_arg for x in (arg.type_attr, arg.type_list_attr, arg.number_attr)}
        free = [a for a in self.op.attr if a.name not in inferred and a.type not in ("func", "tensor", "type", "list(type)") and
                a.name not in ("seed", "seed2")]
        if not free:
            return
        a = self.rng.choice(free)
        old = self.attrs.get(a.name, self.attr(a))
        if a.type == "list(int)" and old and self.chance(0.7):
            old = list(old)
            old[self.rng.randrange(len(old))] = self.rng.choice(EXTREME_INTS if self.chance(0.1) else [0, 1, 2, 3, -1])
            self.attrs[a.name] = old
        else:
            self.attrs[a.name] = self.any_attr(a)


def from_proto(v):
    kind = v.WhichOneof("value")
    if kind == "list":
        one = [f for f, _ in v.list.ListFields()]
        values = list(getattr(v.list, one[0].name)) if one else []
        return [tf.as_dtype(x) for x in values] if one and one[0].name == "type" else values
    if kind == "type":
        return tf.as_dtype(v.type)
    return tf.TensorShape(v.shape) if kind == "shape" else getattr(v, kind)
