# SPDX-License-Identifier: Apache-2.0
"""Runs every case of ops_cases through TensorFlow and through our kernels, and compares.

    python tests/compat/ops_diff.py build/release/tests/kernels/op_driver [-v] [--threads 4] [--only MatMul,Sum]

Floats must agree to a few units in the last place (a case may set another tolerance), everything else
exactly.  When TensorFlow fails we must fail too, with the same code; a differing text is shown
with -v.
"""
import argparse
import os
import struct
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402

sys.path.insert(0, os.path.dirname(__file__))
from tensorflow.core.framework.tensor_pb2 import TensorProto  # noqa: E402
import ops_cases  # noqa: E402

tf.disable_v2_behavior()


class Driver:
    def __init__(self, path, variant, *more):
        self.p = subprocess.Popen([path, variant or "", *map(str, more)],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def put(self, b):
        b = b if isinstance(b, bytes) else str(b).encode()
        self.p.stdin.write(struct.pack("<I", len(b)) + b)

    def get(self):
        n, = struct.unpack("<I", self.p.stdout.read(4))
        return self.p.stdout.read(n)

    def ask(self, graph_def, name, arrays):
        self.put(graph_def.SerializeToString())
        self.put(name)
        self.put(len(arrays))
        for kind, a in arrays:
            self.put(kind)
            self.put(tf.make_tensor_proto(a).SerializeToString())
        self.p.stdin.flush()
        return int(self.get())

    def time(self, graph_def, name, arrays):
        """Returns the outputs and the fastest run in nanoseconds. The driver needs a time limit on its command line."""
        return self.ask(graph_def, name, arrays), self.get().decode(errors="replace")

    def run(self, graph_def, name, arrays):
        code = self.ask(graph_def, name, arrays)
        if code:
            return code, self.get().decode(errors="replace")
        out = []
        for _ in range(int(self.get())):
            t = tf.make_ndarray(TensorProto.FromString(self.get()))
            out.append(t)
        return 0, out


def add_old(case, args):
    """Adds an op that only a GraphDef with an old producer version may have. The inputs are floats and the attributes
    numbers."""
    old = tf.GraphDef()
    old.versions.producer = case.producer
    node = old.node.add(name="old", op=case.op, input=list(args))
    node.attr["T"].type = next(iter(args.values())).dtype.as_datatype_enum
    for name, value in case.attrs.items():
        setattr(node.attr[name], "b" if isinstance(value, bool) else "i" if isinstance(value, int) else "f", value)
    for name, tensor in args.items():
        old.node.add(name=name, op="Placeholder").attr["dtype"].type = tensor.dtype.as_datatype_enum
    tf.import_graph_def(old, args, name="")


def build(case, validate_shape=True):
    """Builds the op on placeholders and variables, in its own graph. Without validate_shape, variables have no static
    shape."""
    g = tf.Graph()
    feeds, kinds, variables = {}, {}, []
    with g.as_default():
        def ph(a):
            if isinstance(a, ops_cases.Var):
                v = tf.Variable(a.value, use_resource=case.op.startswith(("Resource", "Var", "Stateful", "Rng")) or
                                "VariableOp" in case.op, dtype=a.value.dtype, validate_shape=validate_shape)
                handle = v.handle if hasattr(v, "handle") else v._ref()
                kinds[handle.op.name] = ("handle" if hasattr(v, "handle") else "ref", a.value)
                variables.append(v)
                return handle
            p = tf.placeholder(tf.as_dtype(a.dtype if a.dtype.kind not in "OSU" else tf.string),
                               a.shape if case.known else None)
            feeds[p] = a
            kinds[p.op.name] = ("t", a)
            return p
        args = {k: [ph(x) for x in v] if isinstance(v, list) else ph(v)
                for k, v in case.inputs.items()}
        if case.producer:
            add_old(case, args)
        else:
            getattr(tf.raw_ops, case.op)(**args, **case.attrs)
        op = [o for o in g.get_operations() if o.type == case.op][-1]
        init = tf.global_variables_initializer()
    return g, op, feeds, [kinds[i.op.name] for i in op.inputs], variables, init


def session(g):
    """Returns a session that runs the graph without optimization."""
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.opt_level = -1
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    return tf.Session(graph=g, config=config)


def arrays(values):
    """Converts strings to object arrays, because NumPy's string type drops trailing zero bytes."""
    return [np.array(x, dtype=object) if isinstance(x, bytes) else np.asarray(x) for x in values]


def stock(g, op, feeds, variables, init):
    with session(g) as s:
        try:
            s.run(init)
            # copies, since some ops write into their feeds
            fed = {p: np.array(a) for p, a in feeds.items()}
            out = s.run([op] + [o for o in op.outputs if not o.dtype._is_ref_dtype], fed)[1:]
            return 0, arrays(out + s.run(variables))
        except tf.errors.OpError as e:
            text = e.message.split("\n")  # the line of the kernel precedes the line with the node's name
            at = next((i for i, t in enumerate(text) if "[[{{node" in t), 1)
            return e.error_code, text[max(at - 1, 0)]


def ulps(dtype):
    """The default tolerance: a few units in the last place, for numbers that are not near zero."""
    if dtype == tf.bfloat16.as_numpy_dtype:
        return 2e-2
    return {4: 2e-6, 8: 1e-12}.get(dtype.itemsize, 1e-2)


def same(want, got, case):
    if want.dtype.kind in "OSU":
        return want.shape == got.shape and list(map(tf.compat.as_bytes, want.flat)) == list(
            map(tf.compat.as_bytes, got.flat))
    if want.dtype != got.dtype or want.shape != got.shape:
        return False
    if want.dtype.kind == "c":
        single = want.dtype == np.complex64
        return np.allclose(want, got, rtol=2e-6 if single else 1e-12, atol=1e-6 if single else 1e-13)
    if want.dtype.kind == "f" or want.dtype == tf.bfloat16.as_numpy_dtype:
        w, g = want.astype(np.float64), got.astype(np.float64)
        return np.allclose(w, g, rtol=case.rtol or ulps(want.dtype),
                           atol=case.atol, equal_nan=True)
    return np.array_equal(want, got)


def check(driver, case):
    g, op, feeds, inputs, variables, init = build(case)
    code, want = stock(g, op, feeds, variables, init)
    ours, got = driver.run(g.as_graph_def(), op.name, inputs)
    if code or ours:
        if code and code == ours:
            return None, f"theirs: {want}\n      ours:   {got}"
        return f"code {ours} ({got if ours else 'ok'}), want {code} ({want if code else 'ok'})", ""
    if case.seen:
        want, got = [case.seen(x) for x in want], [case.seen(x) for x in got]
    if case.only_shape:
        ok = all(w.shape == o.shape and w.dtype == o.dtype for w, o in zip(want, got))
    else:
        ok = len(want) == len(got) and all(same(w, o, case) for w, o in zip(want[:case.first], got))
    return (None if ok else f"got\n{got}\nwant\n{want}"), ""


def main():
    a = argparse.ArgumentParser()
    a.add_argument("driver")
    a.add_argument("--variant")
    a.add_argument("--threads", type=int, default=1)
    a.add_argument("--only", default="")
    a.add_argument("-v", action="store_true")
    a = a.parse_args()
    only = set(filter(None, a.only.split(",")))
    driver, bad, n, ops = Driver(a.driver, a.variant, a.threads), 0, 0, set()
    for case in ops_cases.all_cases():
        if only and case.op not in only:
            continue
        try:
            why, note = check(driver, case)
        except (TypeError, ValueError) as e:
            why, note = f"the case cannot be built: {e}", ""
        n += 1
        ops.add(case.op)
        if a.v and note:
            print(f"  {case}\n      {note}")
        if why:
            bad += 1
            print(f"FAIL {case}: {why}")
    print(f"{n} cases of {len(ops)} ops, {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
