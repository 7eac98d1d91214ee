# SPDX-License-Identifier: Apache-2.0
"""Compares the static shapes that TensorFlow and the op table infer for drawn cases of single ops.

    python tests/compat/shapes_diff.py [--cases 20000] [--seed 0] [--only MatMul,Sum] [-v]

Each input is a constant, or a placeholder some of whose dimensions are unknown.  Both sides get the same GraphDef, and
must give the same shapes or refuse it.  shapes_accepted.txt lists the kinds of differences that are accepted, and why.
"""
import argparse
import ast
import collections
import fnmatch
import os
import pathlib
import random
import re
import shlex
import signal
import subprocess
import sys
import tempfile

import diff
import diff_draw
import numpy as np
import ops_cases
import tensorflow.compat.v1 as tf
from tensorflow.python.framework import op_def_registry

ROOT = pathlib.Path(__file__).parents[2]
ACCEPTED = pathlib.Path(__file__).with_name("shapes_accepted.txt")
SECONDS = 10  # time limit of one case, in seconds
MAX_RANK = 8  # of our shapes
MADE_BY_RUNTIME = re.compile("_")


class Tool:
    """A process of tests/tools/shape_tool.c."""

    def __init__(self, folder):
        path = os.path.join(folder, "shape_tool")
        subprocess.check_call([*shlex.split(os.environ.get("CC", "gcc")), "-std=gnu17", "-D_GNU_SOURCE", "-I.", "-o", path,
                               "tests/tools/shape_tool.c", "build/release/libmuster-base.a", "-lyaml", "-lcjson", "-lz", "-lm",
                               "-pthread"], cwd=ROOT)
        self.p = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def infer(self, graph):
        """Returns (None, shapes) or (error, None)."""
        b = graph.SerializeToString()
        self.p.stdin.write(len(b).to_bytes(4, "little") + b)
        self.p.stdin.flush()
        line = self.p.stdout.readline().decode(errors="replace")
        if not line:
            sys.exit(f"shape_tool ended with {self.p.wait()}: {graph}")
        code, _, rest = line.rstrip("\n").partition(" ")
        return (None, rest.split()) if code == "0" else (rest, None)


def stock(graph):
    with tf.Graph().as_default() as g:
        try:
            tf.import_graph_def(graph, name="")
        except (ValueError, IndexError, tf.errors.OpError) as e:
            return str(e), None
        return None, ["<unknown>" if t.shape.rank is None else f"[{','.join('?' if d is None else str(d) for d in t.shape.as_list())}]"
                      for t in g.get_operation_by_name("n").outputs]


class Rows(diff_draw.Source):
    """Draws cases for the ops of the table that have outputs. Ops that diff.py cannot run get placeholders."""

    def __init__(self):
        super().__init__(ops_cases.all_cases())
        self.runs = set(self.ops)
        defs = {op: op_def_registry.get(op) for op in sorted(diff_draw.table_ops()) if not MADE_BY_RUNTIME.match(op)}
        self.ops = [op for op, d in defs.items() if d is not None and d.output_arg]

    def op(self, seed):
        return self.ops[seed % len(self.ops)]

    def draw(self, seed):
        op, rng = self.op(seed), random.Random(seed)
        if op in self.runs:
            try:
                return diff_draw.Draw(self, op, rng).draw(), rng
            except TypeError:  # the producer of the case returns a value of a type that NumPy lacks
                pass
        return DrawAny(self, op, rng).draw(), rng


class Typed:
    """An input of a type that NumPy lacks, with a drawn shape and no value."""

    def __init__(self, dtype, shape):
        self.dtype, self.shape = dtype, shape


class DrawAny(diff_draw.Draw):
    def draw(self):
        self.inputs, self.attrs = {}, {}
        for a in self.op.attr:
            if a.type == "type" and not (a.HasField("default_value") and self.chance(0.5)):
                allowed = [t for t in map(tf.as_dtype, a.allowed_values.list.type) if diff_draw.drawable(t)]
                self.attrs[a.name] = self.rng.choice(allowed or diff_draw.ANY_TYPE)
            elif a.type == "type":
                self.attrs[a.name] = tf.as_dtype(a.default_value.type)
            elif a.type == "func":
                self.attrs[a.name] = "f"
            elif a.type == "list(func)":
                self.attrs[a.name] = ["f", "f"]
            elif a.type == "list(shape)":
                self.attrs[a.name] = [self.one_attr(a, "shape", None) for _ in range(2)]
            elif a.type == "list(type)":
                self.attrs[a.name] = [self.one_attr(a, "type", diff_draw.from_proto(a.allowed_values) if a.HasField("allowed_values") else None) for _ in range(2)]
            elif a.type == "int" and a.name.lower().startswith("n") and not a.HasField("default_value"):
                self.attrs[a.name] = max(a.minimum, 2)
        for arg in self.op.input_arg:
            types = self.attrs[arg.type_list_attr] if arg.type_list_attr else [
                self.attrs[arg.type_attr] if arg.type_attr else tf.as_dtype(arg.type)]
            if arg.number_attr:
                types = types * self.attrs.setdefault(arg.number_attr, max(1, self.rng.choice([1, 2, 3])))
            many = [self.any_tensor(t, arg.is_ref) for t in types]
            self.inputs[arg.name] = many if arg.number_attr or arg.type_list_attr else many[0]
        attrs = dict(self.attrs)
        for a in self.op.attr:
            if a.name not in attrs:
                attrs[a.name] = self.attr(a)
        return diff_draw.Drawn(self.op.name, self.inputs, attrs, None)

    def any_tensor(self, t, is_ref):
        if t in diff_draw.NO_NUMPY or t.is_quantized or is_ref:
            shape = () if t == tf.resource or is_ref and t == tf.string and self.chance(0.5) else self.rng.choice([(), (), (2,), self.usual])
            return ops_cases.Var(np.zeros(shape, t.as_numpy_dtype)) if is_ref else Typed(t, shape)
        return self.tensor(t)


def partial(rng, shape):
    """The shape with some dimensions replaced by unknown ones."""
    if rng.random() < 0.15:
        return tf.TensorShape(None)
    return tf.TensorShape([None if rng.random() < 0.15 else d for d in shape])


def add_input(g, name, v, is_ref, rng):
    held = v.value if isinstance(v, ops_cases.Var) else v
    if not isinstance(v, Typed):
        held = np.asarray(held)
    dtype = held.dtype if isinstance(v, Typed) else tf.as_dtype(held.dtype) if held.dtype.kind not in "OSU" else tf.string
    is_value = not isinstance(v, (Typed, ops_cases.Var)) and rng.random() < (0.7 if dtype in (tf.int32, tf.int64) else 0.1)
    op = "VariableV2" if is_ref else "VarHandleOp" if isinstance(v, ops_cases.Var) else "Const" if is_value else "Placeholder"
    node = g.node.add(name=name, op=op)
    node.attr["dtype"].type = dtype.as_datatype_enum
    if is_value:
        node.attr["value"].tensor.CopyFrom(diff.tensor_proto(held))
    else:
        node.attr["shape"].shape.CopyFrom(partial(rng, held.shape).as_proto())


def graph_of(d, rng):
    op_def = op_def_registry.get(d.op)
    g = tf.GraphDef()
    g.versions.producer = min(tf.version.GRAPH_DEF_VERSION, op_def.deprecation.version - 1 if op_def.HasField("deprecation") else 1 << 30)
    names = []
    for arg in op_def.input_arg:
        v = d.inputs[arg.name]
        for x in v if isinstance(v, list) else [v]:
            names.append(f"i{len(names)}")
            add_input(g, names[-1], x, arg.is_ref, rng)
    node = g.node.add(name="n", op=d.op, input=names)
    for a in op_def.attr:
        v = d.attrs[a.name]
        if a.type == "func":
            node.attr[a.name].func.name = v or "f"
        elif a.type == "list(func)":
            for _ in v:
                node.attr[a.name].list.func.add(name="f")
        elif a.type == "tensor":
            node.attr[a.name].tensor.CopyFrom(v if v is not None else diff.tensor_proto(np.zeros((2, 3), np.float32)))
        else:
            diff.set_attr(node.attr[a.name], a.type, v)
    return g


def describe(g):
    def shape(n):
        if n.op == "Const":
            return str(np.array2string(tf.make_ndarray(n.attr["value"].tensor), separator=",", threshold=12).replace("\n", ""))
        s = tf.TensorShape(n.attr["shape"].shape)
        return f"{'' if n.op == 'Placeholder' else n.op}{'?' if s.rank is None else s.as_list()}"
    attrs = {k: re.sub(r"\s+", " ", str(v)).strip() for k, v in sorted(g.node[-1].attr.items())}
    return f"{g.node[-1].op} {' '.join(map(shape, g.node[:-1]))} {attrs}"


def dims(text):
    return None if text == "<unknown>" else [d for d in text[1:-1].split(",") if d]


def kind_of(got, want):
    """Classifies a difference: our shape has "less" or "more" information, or it is an "other" shape."""
    g, w = dims(got), dims(want)
    if g is None or w is None:
        return None if g == w or g is None and len(w) > MAX_RANK else "less" if g is None else "more"
    if len(g) != len(w) or any(x != y and "?" not in (x, y) for x, y in zip(g, w)):
        return "other"
    return None if g == w else "less" if any(x == "?" != y for x, y in zip(g, w)) else "more"


def difference(want, got):
    """Returns the kind of the difference and its description."""
    if want[0] and got[0]:
        return None, ""
    if want[0]:
        return "accepts", f"ours accepts, TensorFlow: {want[0][:200]}"
    if got[0] and got[0].startswith("Attr ") and "out of range for an int32" in got[0]:
        return None, ""  # TensorFlow's kernel refuses it
    if got[0]:
        return "refuses", f"ours refuses: {got[0][:200]}; TensorFlow: {want[1]}"
    kinds = {kind_of(g, w) for g, w in zip(got[1], want[1])} if len(got[1]) == len(want[1]) else {"other"}
    return next((k for k in ("other", "less", "more") if k in kinds), None), f"got {' '.join(got[1])} want {' '.join(want[1])}"


def accepted_kinds():
    """Yields (kind, pattern of an op) from lines `kind | ops | reason`."""
    for line in ACCEPTED.read_text().splitlines():
        if line and line[0] != "#":
            kind, ops, _ = map(str.strip, line.split(" | "))
            for op in ops.split():
                yield kind, re.compile(fnmatch.translate(op))


def one(rows, tool, seed, accepted):
    """Runs one case; returns its outcome and a description."""
    try:
        d, rng = rows.draw(seed)
        graph = graph_of(d, rng)
    except (TypeError, ValueError, KeyError, AttributeError, IndexError) as e:
        return "undrawn", f"{rows.op(seed)} {type(e).__name__} {e}"
    want, got = stock(graph), tool.infer(graph)
    kind, why = difference(want, got)
    text = f"{describe(graph)}\n    {kind}: {why}" if kind else f"{describe(graph)}\n    {want[0] or ' '.join(want[1])}"
    if not kind:
        return "refused" if want[0] else "same", text
    return "accepted" if any(k == kind and op.match(d.op) for k, op in accepted) else "FAIL", text


def child(rows, a, seed, n, to):
    """Runs n cases starting at the seed. Writes the seed before each case and the outcome after it."""
    accepted, only = list(accepted_kinds()), set(filter(None, a.only.split(",")))
    with tempfile.TemporaryDirectory() as folder, os.fdopen(to, "w") as out:
        tool = Tool(folder)
        while n:
            if not only or rows.op(seed) in only:
                print(seed, file=out, flush=True)
                signal.alarm(SECONDS)  # some values make TensorFlow loop forever
                what, text = one(rows, tool, seed, accepted)
                print(what, repr(text), file=out, flush=True)
                n -= 1
            seed += 1


def run(rows, a):
    count, seed, done = collections.Counter(), a.seed, 0
    while done < a.cases:
        fd, to = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(fd)
            try:
                child(rows, a, seed, a.cases - done, to)
            finally:
                os._exit(0)
        os.close(to)
        with os.fdopen(fd) as lines:
            for line in lines:
                seed, done = int(line), done + 1
                what, _, text = next(lines, "end ''").partition(" ")
                count[what] += 1
                if what in ("FAIL", "end") or a.v:
                    print(f"{what} seed {seed}: {ast.literal_eval(text)}", flush=True)
        os.waitpid(pid, 0)
        seed += 1
    print(f"{done} cases, {count['FAIL']} failed, {count['accepted']} accepted differences, {count['refused']} that both refuse, "
          f"{count['undrawn']} not drawn, {count['end']} that end TensorFlow")
    return 1 if count["FAIL"] or count["end"] > done / 100 else 0  # more crashes indicate a fault in this program


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cases", type=int, default=20000)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--only", default="")
    p.add_argument("-v", action="store_true", help="print every case")
    return run(Rows(), p.parse_args())


if __name__ == "__main__":
    sys.exit(main())
