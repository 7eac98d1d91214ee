# SPDX-License-Identifier: Apache-2.0
"""Where the program muster-task is."""
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
    yield HERE.parents[2] / "build" / "bin" / "muster-task"  # a checkout


def find():
    tried = []
    for path in candidates():
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
        tried.append(str(path))
    raise FileNotFoundError("there is no muster-task: put it on PATH or name it in MUSTER_TASK (looked at "
                            + ", ".join(tried) + ")")
