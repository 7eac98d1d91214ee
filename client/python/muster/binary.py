# SPDX-License-Identifier: Apache-2.0
"""Finds the program muster-task."""
import os
import pathlib
import shutil

HERE = pathlib.Path(__file__).resolve().parent


def candidates():
    if os.environ.get("MUSTER_TASK"):
        yield pathlib.Path(os.environ["MUSTER_TASK"])
    yield HERE / "bin" / "muster-task"
    found = shutil.which("muster-task")
    if found:
        yield pathlib.Path(found)
    yield HERE.parents[2] / "build" / "bin" / "muster-task"  # in a source tree


def find():
    tried = []
    for path in candidates():
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
        tried.append(str(path))
    raise FileNotFoundError("muster-task was not found: add it to PATH or set MUSTER_TASK (tried "
                            + ", ".join(tried) + ")")
