# SPDX-License-Identifier: Apache-2.0
"""Compares the op table (lib/ops/ops_*.def) with TensorFlow's op registry.

    python tests/compat/table_diff.py          with TensorFlow 2.15
    python tests/compat/table_diff.py contrib  ops_contrib.def and ops_boosted_trees.def, with TensorFlow 1.15

Arguments, attributes, defaults, allowed values, minima and the stateful flag have to agree.  table_left_out.txt
lists the rows that differ on purpose.
"""
import pathlib
import re
import sys

from tensorflow.python.framework import dtypes, op_def_registry

ROOT = pathlib.Path(__file__).parents[2]
LEFT_OUT = pathlib.Path(__file__).with_name("table_left_out.txt")
OF_1_15 = {"ops_boosted_trees", "ops_contrib"}
ROW = re.compile(r'^OP\((\w+),\s*((?:"(?:[^"\\]|\\.)*"\s*)+),\s*((?:"(?:[^"\\]|\\.)*"\s*)+),\s*((?:"(?:[^"\\]|\\.)*"\s*)+),([^)]*)\)', re.M)
SET = re.compile(r'{"(\w+)",((?:\s*"[\w,]+")+)}')


def text(literals):
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals)).replace("\\n", "\n").replace("\\t", "\t")


def table(contrib):
    """Reads the op table: op -> (inputs, outputs, attributes, stateful), as lists of words."""
    rows = {}
    for path in sorted(p for p in (ROOT / "lib/ops").glob("ops_*.def") if (p.stem in OF_1_15) == contrib):
        for name, inputs, outputs, attrs, rest in ROW.findall(path.read_text()):
            shapeless = [re.sub(r"\[[^]]*\]", "", text(args)) for args in (inputs, outputs)]
            kinds = re.sub(r":(list\()?int32\b", r":\1int", text(attrs))  # the suffix belongs to TensorFlow's kernel and not to its definition
            rows[name] = [w.split(" ") if w else [] for w in (*shapeless, kinds)] + ["STATEFUL" in rest]
    return rows


def named_sets():
    """Reads the names of type sets in lib/ops/op_def.c."""
    return {name: text(types) for name, types in SET.findall((ROOT / "lib/ops/op_def.c").read_text())}


def type_name(number):
    name = dtypes.as_dtype(number).name
    return {"float32": "float", "float64": "double", "float16": "half"}.get(name, name)


def value(a, kind):
    """Formats a default as in the table."""
    if kind.startswith("list("):
        field = {"string": "s", "int": "i", "float": "f", "bool": "b", "type": "type", "shape": "shape", "func": "func"}[kind[5:-1]]
        return "[" + ",".join(scalar(v, kind[5:-1]) for v in getattr(a.list, field)) + "]"
    return scalar(getattr(a, {"string": "s", "int": "i", "float": "f", "bool": "b"}.get(kind, kind)), kind)


def scalar(v, kind):
    if kind == "string":
        return v.decode()
    if kind == "bool":
        return str(v).lower()
    if kind == "type":
        return type_name(v)
    if kind == "shape":
        return "?" if v.unknown_rank else "[" + ",".join(str(d.size) for d in v.dim) + "]"
    if kind == "func":
        return v.name
    return f"{v:.7g}" if kind == "float" else "tensor" if kind == "tensor" else str(v)


def stock_attr(a):
    """Formats an attribute as in the table."""
    word = f"{a.name}:{a.type}"
    if a.HasField("allowed_values"):
        allowed = a.allowed_values.list
        values = ",".join([type_name(t) for t in allowed.type] or [s.decode() for s in allowed.s])
        word = f"{a.name}:{{{values}}}" if a.type == "type" else word + f"{{{values}}}"
    if a.has_minimum and not (a.type.startswith("list") and a.minimum == 0):
        word += f">={a.minimum}"
    if a.HasField("default_value"):
        word += "=" + value(a.default_value, a.type)
    return word


def stock_arg(a):
    kind = a.type_attr or a.type_list_attr or type_name(a.type)
    kind = f"list({kind})" if a.type_list_attr else f"ref({kind})" if a.is_ref else kind
    return f"{a.name}:{a.number_attr}*{kind}" if a.number_attr else f"{a.name}:{kind}"


def normal(word, sets):
    """Expands named sets of types, and normalizes the numbers in defaults."""
    word = re.sub(r":{([^}]*)}", lambda m: ":{" + ",".join(sets.get(t, t) for t in m[1].split(",")) + "}", word)
    head, eq, default = word.rpartition("=")
    kind = head.partition(":")[2].partition("{")[0]
    if eq and kind in ("float", "list(float)"):
        default = re.sub(r"-?\d[-\d.e+]*", lambda m: f"{float(m[0]):.7g}", default)
    return head + eq + default


def stock_op(name):
    """Returns TensorFlow's definition of the op, or None."""
    if hasattr(op_def_registry, "get"):
        return op_def_registry.get(name)
    return op_def_registry.get_registered_ops().get(name)  # TensorFlow 1.15


def differences(name, row, sets):
    op = stock_op(name)
    if op is None:
        return ["TensorFlow has no such op"]
    found = []
    for what, ours, stock in (("inputs", row[0], [stock_arg(a) for a in op.input_arg]),
                              ("outputs", row[1], [stock_arg(a) for a in op.output_arg]),
                              ("attributes", sorted(normal(w, sets) for w in row[2]), sorted(normal(stock_attr(a), sets) for a in op.attr))):
        if ours != stock:
            ours_only, stock_only = [w for w in ours if w not in stock], [w for w in stock if w not in ours]
            found.append(f"{what}: {' '.join(ours_only)} is in TensorFlow {' '.join(stock_only)}")
    if row[3] != op.is_stateful:
        found.append(f"stateful: {row[3]} is in TensorFlow {op.is_stateful}")
    return found


def main():
    contrib = sys.argv[1:] == ["contrib"]
    if contrib:
        import contrib_ops  # registers the ops
        assert contrib_ops
    rows, sets = table(contrib), named_sets()
    left_out = {line.split(":")[0] for line in LEFT_OUT.read_text().splitlines() if line and line[0] != "#"}
    failed = 0
    for name, row in rows.items():
        found = differences(name, row, sets)
        if found and name not in left_out:
            failed += 1
            print("FAIL", name, "; ".join(found))
        elif not found and name in left_out:
            failed += 1
            print("FAIL", name, f"agrees with TensorFlow: remove it from {LEFT_OUT.name}")
    print(f"{len(rows)} rows, {failed} differ, {len(left_out)} left out")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
