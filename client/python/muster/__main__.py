# SPDX-License-Identifier: Apache-2.0
"""python -m muster: runs a trainer with Muster's servers."""
import argparse
import os
import re
import runpy
import sys
import traceback

from .install import pretend_tensorflow_1, replace_server

# Names of TensorFlow 1 that `import tensorflow` of TensorFlow 2 does not have.
ONLY_IN_1 = (r"Session|InteractiveSession|placeholder|get_variable|variable_scope|global_variables_initializer|app|contrib|"
             r"flags|logging|layers|reset_default_graph|ConfigProto|"
             r"train\.(Server|MonitoredTrainingSession|MonitoredSession|Supervisor|replica_device_setter|Saver|\w+Optimizer|"
             r"get_or_create_global_step)")


def names_of_tensorflow(text):
    """The names under which import statements import the package tensorflow: `import numpy as np, tensorflow as tf`."""
    statements = re.findall(r"^(?:.*[;:])?[ \t]*import[ \t]+([^;#\n]+)", text, re.M)
    modules = [words.split() for statement in statements for words in statement.split(",")]
    return {words[-1] for words in modules if words and words[0] == "tensorflow"}


def run(trainer, is_module):
    if is_module:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(trainer, run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(trainer))
        runpy.run_path(trainer, run_name="__main__")


def is_written_for_1(path):
    """True if the file imports tensorflow and uses a name that only TensorFlow 1 has."""
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            text = f.read()
    except OSError:
        return False
    return any(re.search(rf"\b{name}\.(?:{ONLY_IN_1})\b", text) for name in names_of_tensorflow(text))


def parse():
    p = argparse.ArgumentParser(prog="python -m muster", description=__doc__,
                                usage="python -m muster [--tf1 | --no-tf1] [--stock] (trainer.py | -m MODULE) [ARGUMENT...]")
    p.add_argument("--tf1", dest="tf1", action="store_true", default=None,
                   help="`import tensorflow` gives the TensorFlow 1 API (default: detected from the trainer's source)")
    p.add_argument("--no-tf1", dest="tf1", action="store_false", help="do not change TensorFlow's names")
    p.add_argument("--stock", action="store_true", help="use TensorFlow's own servers, for comparison")
    p.add_argument("-m", dest="module", action="store_true", help="the trainer is a module instead of a file")
    p.add_argument("trainer")
    p.add_argument("arguments", nargs=argparse.REMAINDER)
    return p.parse_args()


def main():
    a = parse()
    tf1 = a.tf1 if a.tf1 is not None else not a.module and is_written_for_1(a.trainer)
    if not a.module and not os.path.exists(a.trainer):
        sys.exit(f"muster: {a.trainer} does not exist")
    if not a.stock:
        replace_server()
    if tf1:
        pretend_tensorflow_1()
    sys.argv = [a.trainer, *a.arguments]
    try:
        run(a.trainer, a.module)
    except AttributeError as e:
        if not tf1 and "module 'tensorflow" in str(e):
            traceback.print_exc()
            sys.exit("muster: a trainer written for TensorFlow 1 needs: python -m muster --tf1")
        raise


if __name__ == "__main__":
    main()
