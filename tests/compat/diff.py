# SPDX-License-Identifier: Apache-2.0
"""Runs randomly drawn cases of single ops on TensorFlow, in this process, and on our kernels; compares the results.

    python tests/compat/diff.py build/release/tests/kernels/op_driver --cases 1000 --seed 0 [--only MatMul,Sum] [-v]

Case i has the seed SEED + i: `--seed N --cases 1` replays one.  Both must give the same values, or fail with the same
code.  diff_left_out.txt names the ops that are left out, diff_accepted.txt the differences that are accepted, and why.
"""
import argparse
import collections
import fnmatch
import gc
import multiprocessing
import os
import pathlib
import re
import resource
import select
import subprocess
import sys
import tempfile
import warnings

import ops_diff
import diff_draw
import numpy as np
import ops_cases
import tensorflow.compat.v1 as tf
from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import context
from tensorflow.python.framework import op_def_registry, ops

ANSWER_S, STOCK_S = 20, 40
ROOM = 3 << 30  # limit of the bytes that each side allocates
CASES_PER_CHILD = 20000  # TensorFlow caches a kernel for each combination of attributes
NOT_ALONE = re.compile("^no kernel for op|is asynchronous$|than the harness can hold$")
# relative tolerance, also applied to the largest value of an output
RTOL = {"float16": 1e-2, "bfloat16": 3e-2, "float32": 2e-5, "float64": 1e-10, "complex64": 3e-5, "complex128": 1e-10}


ACCEPTED = pathlib.Path(__file__).with_name("diff_accepted.txt")
HUGE = 1e30  # products of larger values overflow


class Fault(Exception):
    """Our driver has ended or does not answer."""


class Driver(ops_diff.Driver):
    def __init__(self, path):
        self.p = subprocess.Popen([path, "", "2"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  bufsize=0, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (ROOM, resource.RLIM_INFINITY)))
        self.out = bytearray()

    def put(self, b):
        b = b if isinstance(b, bytes) else str(b).encode()
        self.out += len(b).to_bytes(4, "little") + b

    def send(self, graph_def, name, inputs):
        for part in (graph_def.SerializeToString(), name, len(inputs)):
            self.put(part)
        for kind, a in inputs:
            self.put(kind)
            self.put(tensor_proto(a).SerializeToString())
        try:
            while self.out:
                del self.out[:self.p.stdin.write(self.out)]
        except BrokenPipeError:
            self.out.clear()

    def read(self, n):
        parts = []
        while n:
            if not select.select([self.p.stdout], [], [], ANSWER_S)[0]:
                self.p.kill()
                raise Fault(f"no answer in {ANSWER_S} s")
            parts.append(os.read(self.p.stdout.fileno(), n))
            n -= len(parts[-1])
            if not parts[-1]:
                raise Fault(f"ended with {self.p.wait()}: {self.p.stderr.read()[-300:].decode(errors='replace').strip()}")
        return b"".join(parts)

    def get(self):
        return self.read(int.from_bytes(self.read(4), "little"))

    def receive(self):
        code = int(self.get())
        if code:
            return code, self.get().decode(errors="replace")
        return 0, [tf.make_ndarray(TensorProto.FromString(self.get())) for _ in range(int(self.get()))]


def limit(room):
    size = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + room, resource.RLIM_INFINITY))


def tensor_proto(a):
    a = np.asarray(a)
    if a.dtype.kind in "OSU":
        return tf.make_tensor_proto(a, tf.string)
    p = TensorProto(dtype=tf.as_dtype(a.dtype).as_datatype_enum, tensor_content=a.tobytes())
    for d in a.shape:
        p.tensor_shape.dim.add(size=d)
    return p


def set_attr(to, kind, v):
    if kind.startswith("list("):
        kind = kind[5:-1]
        to.list.SetInParent()
        field = getattr(to.list, {"int": "i", "float": "f", "bool": "b", "string": "s", "type": "type", "shape": "shape"}[kind])
        field.extend({"string": tf.compat.as_bytes, "type": lambda t: tf.as_dtype(t).as_datatype_enum,
                      "shape": lambda s: tf.TensorShape(s).as_proto()}.get(kind, lambda x: x)(x) for x in v)
    elif kind == "int":
        to.i = v
    elif kind == "float":
        to.f = v
    elif kind == "bool":
        to.b = v
    elif kind == "string":
        to.s = tf.compat.as_bytes(v)
    elif kind == "type":
        to.type = tf.as_dtype(v).as_datatype_enum
    elif kind == "shape":
        to.shape.CopyFrom(tf.TensorShape(v).as_proto())
    else:
        raise TypeError(f"attribute of kind {kind}")


def each(inputs):
    for v in inputs.values():
        yield from v if isinstance(v, list) else [v]


def request(d, op_def):
    """Builds the graph and the inputs for our driver."""
    g = tf.GraphDef()
    node = g.node.add(name="n", op=d.op)
    inputs, args = [], [a for a in op_def.input_arg for _ in each({0: d.inputs[a.name]})]
    for i, (arg, v) in enumerate(zip(args, each({a.name: d.inputs[a.name] for a in op_def.input_arg}))):
        kind, a = "t", v
        if isinstance(v, ops_cases.Var):
            kind, a = "ref" if arg.is_ref else "handle", v.value
        inputs.append((kind, a))
        a = np.asarray(a)
        t = tf.resource if kind == "handle" else tf.as_dtype(a.dtype if a.dtype.kind not in "OSU" else tf.string)
        g.node.add(name=f"i{i}", op="Placeholder").attr["dtype"].type = t.as_datatype_enum
        node.input.append(f"i{i}")
    for a in op_def.attr:
        set_attr(node.attr[a.name], a.type, d.attrs[a.name])
    return g, inputs


def eager(name, inputs, attrs, n_out):
    c = context.context()
    return pywrap_tfe.TFE_Py_Execute(c._handle, "/job:localhost/replica:0/task:0/device:CPU:0", name, inputs, attrs, n_out)


def tensor(a):
    a = np.asarray(a)
    # a copy, since some ops write into their feeds
    return ops.EagerTensor(np.array(a), "/job:localhost/replica:0/task:0/device:CPU:0",
                           tf.string.as_datatype_enum if a.dtype.kind in "OSU" else tf.as_dtype(a.dtype).as_datatype_enum)


def outputs(op_def, attrs):
    return sum(len(attrs[a.type_list_attr]) if a.type_list_attr else attrs[a.number_attr] if a.number_attr else 1
               for a in op_def.output_arg)


def has_refs(op_def):
    return any(a.is_ref for a in op_def.input_arg)


def stock(d, op_def):
    """Runs the op eagerly in TensorFlow. Returns the error code and the outputs, followed by the final values of the
    variables."""
    handles = []

    def feed(v):
        if not isinstance(v, ops_cases.Var):
            return tensor(v)
        t = tensor(v.value)
        h, = eager("VarHandleOp", [], ("container", "", "shared_name", f"v{len(handles)}", "dtype", t.dtype, "shape",
                                       tf.TensorShape(None), "allowed_devices", []), 1)
        eager("AssignVariableOp", [h, t], ("dtype", t.dtype, "validate_shape", False), 0)
        handles.append((h, t.dtype))
        return h
    try:
        inputs = [[feed(x) for x in v] if isinstance(v, list) else feed(v) for v in (d.inputs[a.name] for a in op_def.input_arg)]
        flat = [x for v in inputs for x in (v if isinstance(v, list) else [v])]
        attrs = tuple(x for a in op_def.attr for x in (a.name, d.attrs[a.name]))
        out = eager(d.op, flat, attrs, outputs(op_def, d.attrs))
        return 0, ops_diff.arrays([t.numpy() for t in out or []] + [
            eager("ReadVariableOp", [h], ("dtype", t), 1)[0].numpy() for h, t in handles])
    except tf.errors.NotFoundError:
        raise  # there is no kernel
    except tf.errors.OpError as e:
        return e.error_code, e.message
    finally:
        for h, _ in handles:
            eager("DestroyResourceOp", [h], ("ignore_lookup_error", True), 0)


def stock_graph(graph, inputs):
    """Like stock(), but for an op with reference inputs, which needs a graph."""
    def add(name, op, *inputs, **types):
        node = graph.node.add(name=name, op=op, input=inputs)
        for attr, t in types.items():
            node.attr[attr].type = t
        return node
    feeds, variables = {}, []
    for i, (kind, a) in enumerate(inputs):
        if kind == "ref":
            node = next(n for n in graph.node if n.name == f"i{i}")
            node.op, t = "VariableV2", node.attr["dtype"].type
            node.attr["shape"].shape.unknown_rank = True
            add(f"value{i}", "Placeholder", dtype=t)
            add(f"set{i}", "Assign", f"i{i}", f"value{i}", T=t).attr["validate_shape"].b = False
            variables.append(i)
        feeds[f"value{i}:0" if kind == "ref" else f"i{i}:0"] = np.array(a)
    with tf.Graph().as_default() as g:
        tf.import_graph_def(graph, name="")
    with ops_diff.session(g) as s:
        try:
            s.run([f"set{i}" for i in variables], {f"value{i}:0": feeds.pop(f"value{i}:0") for i in variables})
            op = g.get_operation_by_name("n")
            out = s.run([op] + [o for o in op.outputs if not o.dtype._is_ref_dtype], feeds)[1:]
            return 0, ops_diff.arrays(out + s.run([f"i{i}:0" for i in variables]))
        except tf.errors.OpError as e:
            return e.error_code, e.message


def same(want, got, case):
    if want.dtype.kind in "OSU" or want.dtype != got.dtype or want.shape != got.shape:
        return ops_diff.same(want, got, case)
    name = tf.as_dtype(want.dtype).name
    if name not in RTOL:
        return np.array_equal(want, got)
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    w, g = want.astype(wide), got.astype(wide)
    rtol = max(RTOL[name], case.rtol or 0)
    finite = np.abs(w[np.isfinite(w)])
    return np.allclose(w, g, rtol=rtol, atol=max(case.atol, rtol * finite.max(initial=0), rtol * 1e-2), equal_nan=True)


def difference(d, stock_answer, ours):
    (code, want), (our_code, got) = stock_answer, ours
    if code or our_code:
        if code == our_code:
            return None
        return f"code {our_code} ({got if our_code else 'ok'}), want {code} ({want if code else 'ok'})"
    if d.case.seen:
        want, got = [d.case.seen(x) for x in want], [d.case.seen(x) for x in got]
    if d.case.only_shape:
        ok = len(want) == len(got) and all(w.shape == g.shape and w.dtype == g.dtype for w, g in zip(want, got))
    else:
        ok = len(want) == len(got) and all(same(w, g, d.case) for w, g in zip(want[:d.case.first], got))
    return None if ok else f"got {got} want {want}"


def accepted_rules():
    """Yields (pattern of ops, rule) from lines `ops | rule | reason`."""
    for line in ACCEPTED.read_text().splitlines():
        if line and line[0] != "#":
            ops, rule, _ = map(str.strip, line.split(" | "))
            for op in ops.split():
                yield re.compile(fnmatch.translate(op)), rule


def is_extreme(v):
    a = np.asarray(v.value if isinstance(v, ops_cases.Var) else v)
    if a.dtype.kind in "iu":
        return bool((np.abs(a.astype(np.float64)) >= np.iinfo(a.dtype).max / 2).any())
    if a.dtype.kind in "OSUb":
        return False
    a = np.abs(a.astype(np.complex128))
    return bool((~np.isfinite(a) | (a > HUGE)).any())


def is_accepted(d, why, answer, rules):
    extreme = {"extreme": any(map(is_extreme, [*each(d.inputs), *(v for v in d.attrs.values() if isinstance(v, float))])),
               "overflow": answer is not None and not answer[0] and any(map(is_extreme, answer[1]))}
    why = describe(d) + " " + re.sub(r"{{function_node[^}]*}} ", "", why)
    extreme["empty"] = any(np.size(v.value if isinstance(v, ops_cases.Var) else v) == 0 for v in each(d.inputs))
    return any(ops.match(d.op) and extreme.get(rule, re.search(rule, why, re.S)) for ops, rule in rules)


def describe(d, full=False):
    def short(v):
        if isinstance(v, list):
            return "[" + ", ".join(map(short, v)) + "]"
        var = isinstance(v, ops_cases.Var)
        a = np.asarray(v.value if var else v)
        text = np.array2string(a, separator=",", threshold=10000 if full else 24).replace("\n", "")
        return f"{'variable ' if var else ''}{a.dtype}{list(a.shape)}{text if full or len(text) < 200 else text[:200] + '…'}"
    return f"{d.op} " + " ".join(f"{k}={short(v)}" for k, v in d.inputs.items()) + " " + str(
        {k: v.name if isinstance(v, tf.DType) else v for k, v in d.attrs.items()})


def all_cases():
    return list(ops_cases.all_cases())


def make_source():
    """Draws cases in a separate process. Some cases open a session, and a fork of this process would not have its
    threads."""
    with multiprocessing.get_context("fork").Pool(1) as apart:
        source = diff_draw.Source(apart.apply(all_cases))
    source.accepted = list(accepted_rules())
    gc.freeze()
    return source


def child(a, source, lines, errors, seed, n):
    """Runs n cases starting at seed, and sends (seed, kind, text) of each result."""
    os.dup2(errors.fileno(), 2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # some ops write to stdout
    context.context().ensure_initialized()
    with context.eager_mode():
        tensor(0)  # starts TensorFlow's threads
        limit(ROOM)
        driver = Driver(a.driver)
        while n:
            op = source.ops[seed % len(source.ops)]
            if not a.only or op in a.only.split(","):
                lines.send((seed, "run", op))
                n -= 1
                driver = one(driver, a, source, seed, op, lambda what, text: lines.send((seed, what, text)))
            seed += 1
    driver.p.kill()
    os._exit(0)


def one(driver, a, source, seed, op, tell):
    op_def = op_def_registry.get(op)
    d = source.draw(seed)
    if a.v:
        tell("case", describe(d, True))
    answer = why = None
    try:
        graph, inputs = request(d, op_def)
        driver.send(graph, "n", inputs)
        try:
            with context.eager_mode():
                answer = stock_graph(graph, inputs) if has_refs(op_def) else stock(d, op_def)
        finally:
            ours = driver.receive()
        if ours[0] == tf.errors.UNIMPLEMENTED and NOT_ALONE.search(ours[1]):
            raise NotImplementedError(ours[1])
        why = difference(d, answer, ours)
    except (TypeError, ValueError, MemoryError, NotImplementedError, tf.errors.OpError) as e:
        tell("skip", f"{op} {type(e).__name__} {str(e)[:300]}")
        driver.p.kill()  # the rest of its answer must not be read as that of the next case
        driver = Driver(a.driver)
    except Fault as e:
        why, driver = str(e), Driver(a.driver)
    if why and is_accepted(d, why, answer, source.accepted):
        tell("accepted", f"{op} {why[:300]}")
    elif why:
        tell("FAIL", f"{describe(d)}\n    {why.replace(chr(10), ' ')[:600]}")
    return driver


def run_child(a, source, seed, n):
    """Forks a child, yields its messages and then its exit status. Kills a child that is silent for STOCK_S seconds."""
    fork = multiprocessing.get_context("fork")
    receive, send = fork.Pipe(False)
    with tempfile.TemporaryFile() as errors:
        process = fork.Process(target=child, args=(a, source, send, errors, seed, n))
        process.start()
        send.close()
        try:
            while receive.poll(STOCK_S):
                yield receive.recv()
            process.kill()
        except EOFError:
            pass
        process.join()
        if process.exitcode > 0:
            errors.seek(0)
            sys.exit(f"diff: a child failed: {errors.read()[-3000:].decode(errors='replace')}")
        yield seed, "exit", process.exitcode


def run(a):
    source, count, seed, op = make_source(), collections.Counter(), a.seed, None
    while count["run"] < a.cases:
        for at, what, text in run_child(a, source, seed, min(a.cases - count["run"], CASES_PER_CHILD)):
            count[what] += 1
            if what == "run":
                seed, op = at + 1, text
            elif what == "exit" and text:
                count["end"] += 1
                print(f"seed {seed - 1}: TensorFlow ends with signal {-text}: {op}", flush=True)
            elif what == "FAIL" or a.v and what != "exit":
                print(f"{what} seed {at}: {text}", flush=True)
    print(f"{count['run']} cases, {count['FAIL']} failed, {count['accepted']} accepted differences, {count['skip']} that only "
          f"one of the two can run, {count['end']} that end TensorFlow")
    return 1 if count["FAIL"] else 0


def main():
    p = argparse.ArgumentParser()
    p.add_argument("driver")
    p.add_argument("--cases", type=int, default=1000)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--only", default="")
    p.add_argument("-v", action="store_true", help="print every case")
    a = p.parse_args()
    warnings.simplefilter("ignore")
    return run(a)


if __name__ == "__main__":
    sys.exit(main())
