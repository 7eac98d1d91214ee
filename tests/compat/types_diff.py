# SPDX-License-Identifier: Apache-2.0
"""Runs the ops of ops_cases in every type for which TensorFlow has a CPU kernel, and compares.

    python tests/compat/types_diff.py build/release/tests/kernels/op_driver [--only MatMul,Sum]

TensorFlow's registry has the type constraints of each kernel.  For every type attribute that follows from the
inputs, the first cases of an op run once for each registered type, with the inputs cast to it.
types_left_out.txt lists the types that Muster does not support; any other failing type fails the run.
"""
import argparse
import collections
import copy
import pathlib
import subprocess
import sys

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.framework import kernels, op_def_registry

import ops_cases
import ops_diff

CASES_PER_OP = 3
TOLERANCE = {"float16": (2e-2, 1e-2), "bfloat16": (6e-2, 3e-2), "float32": (1e-5, 2e-6), "float64": (1e-11, 1e-12)}
NOT_TENSORS = {"resource", "variant", "int4", "uint4"}  # NumPy has no such type
FLOAT8 = {"float8_e5m2", "float8_e4m3fn"}  # no program with parameter servers uses them
LEFT_OUT = pathlib.Path(__file__).with_name("types_left_out.txt")


def cast(value, dtype):
    """Casts the value to another type, keeping it in the range of that type."""
    if isinstance(value, ops_cases.Var):
        return ops_cases.Var(cast(value.value, dtype))
    a = np.asarray(value)
    if dtype == tf.string:
        return np.array([str(x).encode() for x in a.flat], dtype=object).reshape(a.shape)
    if a.dtype.kind in "OSU":
        a = np.array([len(x) + i for i, x in enumerate(a.flat)]).reshape(a.shape)
    if a.dtype.kind == "c" and not dtype.is_complex:
        a = a.real
    if dtype.is_complex and a.dtype.kind != "c":
        a = np.nan_to_num(a, posinf=3, neginf=-3)  # an infinite complex product may have any NaN
        a = a + 0.5j * np.roll(a.astype(np.float64), 1)
    if dtype.is_bool:
        return np.asarray(a > 0)
    if dtype.is_integer:
        info = np.iinfo(dtype.as_numpy_dtype)
        a = np.clip(np.round(a.astype(np.float64)) if a.dtype.kind not in "iub" else a.astype(np.int64), max(info.min, -100), min(info.max, 100))
    return a.astype(dtype.as_numpy_dtype)


def registered(op):
    """Returns the type attributes of the op with the types for which a CPU kernel is registered."""
    allowed = collections.defaultdict(set)
    for kernel in kernels.get_registered_kernels_for_op(op).kernel:
        if kernel.device_type == "CPU":
            for c in kernel.constraint:
                allowed[c.name] |= {tf.as_dtype(t) for t in c.allowed_values.list.type}
    return allowed


def in_type(case, op_def, attribute, dtype):
    """Returns the case with the attribute's inputs cast; None if no input has the attribute."""
    other, found = copy.copy(case), False
    other.inputs, other.attrs = dict(case.inputs), dict(case.attrs)
    for arg in op_def.input_arg:
        held = isinstance(other.inputs.get(arg.name), ops_cases.Var) and attribute in ("T", "dtype")  # passed as a handle
        if (arg.type_attr == attribute or held) and arg.name in other.inputs:
            v = other.inputs[arg.name]
            other.inputs[arg.name] = [cast(x, dtype) for x in v] if isinstance(v, list) else cast(v, dtype)
            found = found or not held or arg.type_attr == attribute
        elif arg.type_attr == "Treal" and attribute == "T":  # the real type that corresponds to T
            other.inputs[arg.name] = cast(other.inputs[arg.name], dtype.real_dtype)
    rtol, atol = TOLERANCE.get(dtype.name, (0, 0))
    other.rtol, other.atol = max(case.rtol or 0, rtol), max(case.atol, atol)
    if attribute in other.attrs:
        other.attrs[attribute] = dtype
    return other if found else None


def cases_by_op(only):
    by_op = collections.defaultdict(list)
    for case in ops_cases.all_cases():
        if (not only or case.op in only) and not case.producer and len(by_op[case.op]) < CASES_PER_OP:
            by_op[case.op].append(case)
    return by_op


def compare(driver, case):
    """Returns None, or the difference if TensorFlow has a result."""
    try:
        g, op, feeds, inputs, variables, init = ops_diff.build(case)
        code, want = ops_diff.stock(g, op, feeds, variables, init)
    except Exception:  # the case does not exist in this type
        return None
    if code:
        return None
    ours, got = driver.run(g.as_graph_def(), op.name, inputs)
    if ours:
        return f"code {ours} ({got})"
    if case.seen:
        want, got = [case.seen(x) for x in want], [case.seen(x) for x in got]
    if case.only_shape:
        ok = all(w.shape == o.shape and w.dtype == o.dtype for w, o in zip(want, got))
    else:
        ok = len(want) == len(got) and all(ops_diff.same(w, o, case) for w, o in zip(want[:case.first], got))
    return None if ok else f"got\n{got}\nwant\n{want}"


def items(only):
    """Yields each op, type attribute and type, with its cases."""
    for op, cases in cases_by_op(only).items():
        op_def = op_def_registry.get(op)
        for attribute, types in sorted(registered(op).items()):
            for dtype in sorted(types, key=lambda t: t.as_datatype_enum):
                if op.startswith(("Conv", "DepthwiseConv2dNativeBackpropFilter")) and dtype.size == 2:
                    continue  # TensorFlow sums in 16 bits, so the values depend on the order
                if dtype.name in NOT_TENSORS | FLOAT8 or dtype.is_quantized:
                    continue
                others = [o for o in (in_type(c, op_def, attribute, dtype) for c in cases) if o]
                if others:
                    yield op, attribute, dtype, others


def run(a):
    """Compares starting at item a.start. Each line begins with the item's number, for the parent process."""
    driver = ops_diff.Driver(a.driver, "", 1)
    for i, (op, attribute, dtype, others) in enumerate(items(set(filter(None, a.only.split(","))))):
        if i < a.start:
            continue
        print(i, "run", op, attribute, dtype.name, len(others), flush=True)
        why = next(filter(None, (compare(driver, o) for o in others)), None)
        if why:
            print(i, "FAIL", op, f"{attribute}={dtype.name}:", why.replace("\n", " "), flush=True)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("driver")
    a.add_argument("--only", default="")
    a.add_argument("--start", type=int, help=argparse.SUPPRESS)
    a = a.parse_args()
    if a.start is not None:
        return run(a)
    # TensorFlow aborts when one of its checks fails; the next child continues after that item
    only = set(filter(None, a.only.split(",")))
    left_out = {tuple(line.split()) for line in LEFT_OUT.read_text().splitlines() if line and line[0] not in "#>"}
    left_out = {(op, t) for op, *types in left_out for t in types if not only or op in only}
    start, n, failed, found = 0, 0, 0, set()
    while True:
        child = subprocess.Popen([sys.executable, __file__, a.driver, "--only", a.only, "--start", str(start)],
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        last = None
        for line in child.stdout:
            i, what, rest = line.split(" ", 2)
            if what == "run":
                start, last = int(i) + 1, rest.strip()
                n += int(rest.split()[3])
            else:
                op, what, why = rest.strip().split(" ", 2)
                found.add((op, what.rstrip(":")))
                if (op, what.rstrip(":")) not in left_out:
                    failed += 1
                    print("FAIL", op, what, why, flush=True)
        if child.wait() == 0:
            break
        if child.returncode > 0:
            sys.exit(f"types_diff: a child ended with {child.returncode} at {last}")
        print(f"left out, TensorFlow ends with signal {-child.returncode}: {last}", flush=True)
    for op, what in sorted(left_out - found):
        print(f"{op} {what} works here: remove it from {LEFT_OUT.name}")
    print(f"{n} cases, {failed} types failed, {len(found & left_out)} left out")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
