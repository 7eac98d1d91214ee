# SPDX-License-Identifier: Apache-2.0
"""The tasks of a cluster as processes, either of stock TensorFlow or of Muster."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = {p.stem: p for p in (ROOT / "tests/compat/programs").rglob("*.py")}  # the client programs by name
FIRST_PORT = int(os.environ.get("COMPAT_PORT", 23000))  # no other test uses these ports, so a stray server is recognized
# Time-out in seconds, far above the duration of any test on a busy machine, so only a hang reaches it.
PATIENCE = 400
CLIENT = os.environ.get("MUSTER_TF_CLIENT")  # the virtual environment of the client programs; None: the current one
PYTHON = str(ROOT / CLIENT / "bin/python") if CLIENT else sys.executable
PORTS = iter(range(FIRST_PORT, FIRST_PORT + 1000))


def free_port():
    for port in PORTS:
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise RuntimeError(f"every port from {FIRST_PORT} to {FIRST_PORT + 999} is taken")


def stock(spec, job, index):
    return [sys.executable, str(ROOT / "bench/stock_server.py"), json.dumps(spec), job, str(index)]


def stock_with_contrib(spec, job, index):
    """The command of a TensorFlow 1.15 server with tf.contrib."""
    return [PYTHON, str(ROOT / "tests/compat/contrib_server.py"), json.dumps(spec), job, str(index)]


def muster(spec, job, index):
    program = os.environ.get("MUSTER_TASK", "build/bin/muster-task")
    if program == "stock":
        return stock(spec, job, index)
    return [str(ROOT / program), f"--cluster={json.dumps(spec)}", f"--job={job}", f"--index={index}"]


class Cluster:
    """Starts its tasks in the constructor; use `with`, which ends them."""

    def __init__(self, name, folder, ps=1, worker=2, odd=None, stock=stock, **more):
        """`odd` is a task (job, index) that runs the other kind of server, `stock` makes the command of a stock
        server, and `more` maps further jobs to their number of tasks, as chief=1."""
        self.name, self.folder = name, pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        address = lambda: f"127.0.0.1:{free_port()}"
        self.spec = {job: [address() for _ in range(n)] for job, n in {"ps": ps, "worker": worker, **more}.items()}
        self.tasks, self.clients = {}, []
        self.commands, self.odd = [stock, muster] if name == "stock" else [muster, stock], odd
        for job, addresses in self.spec.items():
            for i in range(len(addresses)):
                self.start_task(job, i)

    def start_task(self, job, i):
        with open(self.folder / f"{job}{i}.log", "a") as log:
            self.tasks[job, i] = subprocess.Popen(self.commands[(job, i) == self.odd](self.spec, job, i), cwd=self.folder,
                                                  stdout=log, stderr=log)

    def restart(self, job, i):
        """Kills the task and starts it again at the same address."""
        self.tasks[job, i].kill()
        self.tasks[job, i].wait()
        self.start_task(job, i)

    def wait_ready(self, seconds=PATIENCE):
        end = time.time() + seconds
        for (job, i), task in self.tasks.items():
            host, port = self.spec[job][i].split(":")
            while True:
                if task.poll() is not None:
                    raise RuntimeError(f"{self.name} {job}/{i} ended with {task.returncode}: {self.last_line(job, i)}")
                try:
                    socket.create_connection((host, int(port)), 1).close()
                    break
                except OSError:
                    if time.time() > end:
                        raise RuntimeError(f"{self.name} {job}/{i} does not listen after {seconds} s") from None
                    time.sleep(0.02)
        return self

    def last_line(self, job, i):
        lines = (self.folder / f"{job}{i}.log").read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "no output"

    def died(self):
        """Describes the tasks that ended unexpectedly; "" if all run."""
        return "; ".join(f"{self.name} {job}/{i} ended with {t.returncode}: {self.last_line(job, i)}"
                         for (job, i), t in self.tasks.items() if t.poll() is not None)

    def start(self, program, task, *more):
        """Starts a client program of programs/ as worker `task`."""
        env = dict(os.environ, COMPAT_CLUSTER=json.dumps(self.spec), COMPAT_TASK=str(task), PYTHONPATH=str(ROOT / "tests/compat/programs"))
        client = subprocess.Popen([PYTHON, str(PROGRAMS[program]), *map(str, more)],
                                  env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.clients.append(client)
        return client

    def finish(self, client, seconds=PATIENCE):
        """Returns the last line of the client's output, parsed as JSON."""
        try:
            out, err = client.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            client.kill()
            out, err = client.communicate()
            raise RuntimeError(f"{self.name}: the client hung for {seconds} s\n{tail(err)}") from None
        if client.returncode:
            raise RuntimeError(f"{self.name}: the client ended with {client.returncode}\n{tail(err)}\n{self.died()}")
        return json.loads(out.strip().splitlines()[-1])

    def run(self, program, *more, task=0, seconds=PATIENCE):
        return self.finish(self.start(program, task, *more), seconds)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in [*self.clients, *self.tasks.values()]:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()


def tail(text, lines=12):
    return "\n".join("    " + l for l in text.strip().splitlines()[-lines:])
