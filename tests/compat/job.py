# SPDX-License-Identifier: Apache-2.0
"""Trainers that start their own servers, as one process per task, with stock's servers or ours."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

from cluster import PATIENCE, ROOT, free_port, tail


class Job:
    """Programs under `python -m muster`; use `with`, which ends them."""

    def __init__(self, name, folder):
        self.name, self.folder, self.tasks = name, pathlib.Path(folder), []
        self.folder.mkdir(parents=True, exist_ok=True)
        task = os.environ.get("MUSTER_TASK", "build/bin/muster-task")
        self.stock = name == "stock" or task == "stock"
        self.env = dict(os.environ, PYTHONPATH=str(ROOT / "client/python"), MUSTER_TASK=str(ROOT / task),
                        MUSTER_LOG="warning")

    @staticmethod
    def hosts(n):
        return ",".join(f"localhost:{free_port()}" for _ in range(n))

    def start(self, script, *arguments):
        """Starts a process whose output goes to files, which said() reads."""
        script = pathlib.Path(script)
        out = self.folder / f"{len(self.tasks)}.{script.stem}"
        command = [sys.executable, "-m", "muster", *(["--stock"] if self.stock else []), str(ROOT / script), *arguments]
        with open(f"{out}.out", "w") as o, open(f"{out}.err", "w") as e:
            task = subprocess.Popen(command, cwd=self.folder, env=self.env, stdout=o, stderr=e)
        task.output = str(out)
        self.tasks.append(task)
        return task

    def said(self, task, which="out"):
        return pathlib.Path(f"{task.output}.{which}").read_text(errors="replace")

    def finish(self, task, seconds=PATIENCE):
        """Waits for the process, and returns its output if it succeeded."""
        try:
            status = task.wait(seconds)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"{self.name}: {task.output} hangs after {seconds} s\n{tail(self.said(task, 'err'))}") from None
        if status:
            raise RuntimeError(f"{self.name}: {task.output} ended with {status}\n{tail(self.said(task, 'err'))}")
        return self.said(task)

    def run(self, script, *arguments, seconds=PATIENCE):
        return self.finish(self.start(script, *arguments), seconds)

    def wait_for(self, what, true, seconds=PATIENCE):
        end = time.time() + seconds
        while not true():
            if time.time() > end:
                raise RuntimeError(f"{self.name}: no {what} after {seconds} s")
            time.sleep(0.05)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for task in self.tasks:
            if task.poll() is None:
                task.send_signal(signal.SIGKILL)
            task.wait()


def with_each(run, folder):
    """Calls run(job) for both kinds of server at the same time; returns (stock's answer, ours)."""
    got, wrong = {}, {}

    def one(name):
        try:
            with Job(name, tempfile.mkdtemp(prefix=f"job-{name}-", dir=folder)) as job:
                got[name] = run(job)
        except Exception as e:  # the main thread raises it
            wrong[name] = e

    threads = [threading.Thread(target=one, args=(name,)) for name in ("stock", "muster")]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for e in wrong.values():
        raise e
    return got["stock"], got["muster"]
