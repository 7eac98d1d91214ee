# SPDX-License-Identifier: Apache-2.0
"""One ps and two workers as processes: of stock TensorFlow, or of Muster."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PORTS = iter(range(23000, 24000))  # ours alone, so that a stray server is told from a test's


def free_port():
    for port in PORTS:
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise RuntimeError("every port from 23000 to 23999 is taken")


def stock(spec, job, index):
    return [sys.executable, str(ROOT / "bench/stock_server.py"), json.dumps(spec), job, str(index)]


def muster(spec, job, index):
    program = os.environ.get("MUSTER_TASK", "build/bin/muster-task")
    if program == "stock":
        return stock(spec, job, index)
    return [str(ROOT / program), f"--cluster={json.dumps(spec)}", f"--job={job}", f"--index={index}"]


class Cluster:
    """Starts at once; use `with` so that it ends."""

    def __init__(self, name, folder, workers=2):
        self.name, self.folder = name, pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        address = lambda: f"127.0.0.1:{free_port()}"
        self.spec = {"ps": [address()], "worker": [address() for _ in range(workers)]}
        self.tasks = {}
        command = {"stock": stock, "muster": muster}[name]
        for job, addresses in self.spec.items():
            for i in range(len(addresses)):
                with open(self.folder / f"{job}{i}.log", "w") as log:
                    self.tasks[job, i] = subprocess.Popen(command(self.spec, job, i), cwd=self.folder,
                                                          stdout=log, stderr=log)

    def wait_ready(self, seconds=60):
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
        """What ended although nobody asked it to, in words; "" when all run."""
        return "; ".join(f"{self.name} {job}/{i} ended with {t.returncode}: {self.last_line(job, i)}"
                         for (job, i), t in self.tasks.items() if t.poll() is not None)

    def start(self, program, task, *more):
        """A client program of programs/ beside worker `task`, as a process."""
        env = dict(os.environ, COMPAT_CLUSTER=json.dumps(self.spec), COMPAT_TASK=str(task))
        return subprocess.Popen([sys.executable, str(ROOT / "tests/compat/programs" / f"{program}.py"), *map(str, more)],
                                env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish(self, client, seconds=120):
        """Its last line, which is JSON."""
        try:
            out, err = client.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            client.kill()
            out, err = client.communicate()
            raise RuntimeError(f"{self.name}: the client hung for {seconds} s\n{tail(err)}") from None
        if client.returncode:
            raise RuntimeError(f"{self.name}: the client ended with {client.returncode}\n{tail(err)}\n{self.died()}")
        return json.loads(out.strip().splitlines()[-1])

    def run(self, program, *more, task=0, seconds=120):
        return self.finish(self.start(program, task, *more), seconds)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for t in self.tasks.values():
            if t.poll() is None:
                t.send_signal(signal.SIGKILL)
            t.wait()


def tail(text, lines=12):
    return "\n".join("    " + l for l in text.strip().splitlines()[-lines:])
