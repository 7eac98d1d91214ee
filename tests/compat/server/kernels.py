# SPDX-License-Identifier: Apache-2.0
"""Compares single kernels with TensorFlow's: every case of ops_cases, without a server."""
import re
import subprocess
import sys

from cluster import PYTHON, ROOT
from compare import Different

DRIVER = ROOT / "build/release/tests/kernels/op_driver"
MINUTES = 8  # they take one minute on a machine with other load


def kernels():
    """some seventeen thousand cases of single ops, also invalid ones"""
    if not DRIVER.exists():
        raise Different(f"{DRIVER} is not there: make {DRIVER.relative_to(ROOT)}")
    out = subprocess.run([sys.executable, ROOT / "tests/compat/ops_diff.py", DRIVER, "--threads", "2"], cwd=ROOT,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60 * MINUTES).stdout
    said = re.search(r"(\d+ cases of \d+ ops), (\d+) failed", out)
    if not said or said[2] != "0":
        raise Different(out[out.find("FAIL"):][:4000] if "FAIL" in out else out[-4000:])
    return said[1]


def types():
    """each op in every type for which TensorFlow has a CPU kernel"""
    out = subprocess.run([sys.executable, ROOT / "tests/compat/types_diff.py", DRIVER], cwd=ROOT, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, timeout=60 * MINUTES).stdout
    said = re.search(r"(\d+ cases), (\d+) types failed", out)
    if not said or said[2] != "0":
        raise Different(out[-4000:])
    return said[1]


def op_table(*files):
    """every row of the op table and the definition of the op in TensorFlow"""
    out = subprocess.run([PYTHON if files else sys.executable, ROOT / "tests/compat/table_diff.py", *files], cwd=ROOT, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, timeout=60 * MINUTES).stdout
    said = re.search(r"(\d+ rows), (\d+) differ", out)
    if not said or said[2] != "0":
        raise Different(out[out.find("FAIL"):][:4000] if "FAIL" in out else out[-4000:])
    return said[1]


def static_shapes():
    """the shapes that the op table and TensorFlow infer while a graph is built, for drawn inputs of every op"""
    return without_difference("shapes_diff.py", "--cases", "6000")


def without_difference(program, *arguments):
    """Runs a program that compares drawn cases, and returns its last line; raises Different if a case differs."""
    out = subprocess.run([sys.executable, ROOT / "tests/compat" / program, *arguments], cwd=ROOT, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, timeout=60 * MINUTES).stdout
    said = re.search(r"^\d+ (?:cases|graphs), 0 failed.*", out, re.M)
    if not said:
        raise Different(out[out.find("FAIL"):][:4000] if "FAIL" in out else out[-4000:])
    return said[0]


def drawn():
    """drawn cases of single ops: the same values or the same error code"""
    return without_difference("diff.py", DRIVER, "--cases", "3000")


def drawn_graphs():
    """drawn graphs on two tasks: the same values or the same error code"""
    return without_difference("graph_diff.py", "--graphs", "60")


CASES = [kernels, types, drawn, drawn_graphs, op_table, static_shapes]
