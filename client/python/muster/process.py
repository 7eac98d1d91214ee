# SPDX-License-Identifier: Apache-2.0
"""A muster-task process as a child of this program.

The server runs until its standard input is closed, and only this program holds the other end: its forks close theirs
(Python 3.6 has no hook for that, and the server outlives the program until they end).  So the server ends when this
program ends, for any reason.  It has its own session, so that Ctrl-C reaches this program first.  A thread copies its log
to our standard error and keeps the last line for exceptions.
"""
import array
import ipaddress
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time

from . import binary

START_SECONDS = 60
ANY_PORT = 1  # replaces port 0 in the cluster; --bind gives the real address


class StartError(RuntimeError):
    """The server could not start."""

    def __init__(self, text, exit_code):
        super().__init__(text)
        self.bad_arguments = exit_code == 2  # for example an address without a port


def is_name(host):
    """True for a DNS name (not localhost, not a numeric address), which may not resolve to this machine yet."""
    try:
        ipaddress.ip_address(host.strip("[]"))
        return False
    except ValueError:
        return host != "localhost"


def command(cluster, job, index, address_file, config_file):
    cluster = {name: dict(tasks) for name, tasks in cluster.items()}
    host, _, port = cluster[job][index].rpartition(":")
    options = []
    if port == "0":
        cluster[job][index] = f"{host}:{ANY_PORT}"
        options.append(f"--bind={host}:0")
    # the port of the task may accept only other tasks
    if (host and is_name(host)) or os.environ.get("MUSTER_TLS"):
        options.append("--local=0")
    if config_file:
        options.append(f"--session-config={config_file}")
    return [binary.find(), "--cluster=" + json.dumps(cluster), f"--job={job}", f"--index={index}",
            f"--address-file={address_file}", "--while-stdin", *options]


def serve_calls(connection):
    with connection:  # a call must not wait for a thread that has failed
        from . import functions  # needs TensorFlow, which has been imported if the graph has Python functions
        functions.serve(connection)


def accept_calls(control):
    """Receives connections for calls of Python functions through the control socket, until the server ends.  Each
    connection has a thread, because a function may wait for another one."""
    while True:
        received = array.array("i")
        byte, ancillary, _, _ = control.recvmsg(1, socket.CMSG_SPACE(received.itemsize))
        if not byte:
            return
        if not ancillary:  # too many open files: the connection is closed, and the call fails
            continue
        received.frombytes(ancillary[0][2])
        connection = socket.socket(fileno=received[0])
        threading.Thread(target=serve_calls, args=(connection,), daemon=True, name="muster Python function").start()


class Process:
    """Starts the server and returns when it is ready; raises StartError on failure."""

    def __init__(self, cluster, job, index, config=b""):
        self.last_line = ""
        with tempfile.TemporaryDirectory(prefix="muster-") as folder:
            address = pathlib.Path(folder, "address")
            settings = pathlib.Path(folder, "config") if config else None
            if settings:
                settings.write_bytes(config)
            ours, theirs = socket.socketpair()
            with theirs:
                self.child = subprocess.Popen(
                    command(cluster, job, index, address, settings) + [f"--py-func={theirs.fileno()}"],
                    stdin=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, pass_fds=[theirs.fileno()])
            if hasattr(os, "register_at_fork"):
                os.register_at_fork(after_in_child=self.child.stdin.close)
            threading.Thread(target=accept_calls, args=(ours,), daemon=True, name="muster calls").start()
            self.logger = threading.Thread(target=self.copy_log, daemon=True, name="muster-task log")
            self.logger.start()
            try:
                self.target = self.wait_until_ready(address)
            except BaseException:
                self.stop()
                raise

    def copy_log(self):
        for line in self.child.stderr:
            text = line.decode(errors="replace")
            self.last_line = text.strip() or self.last_line
            try:
                sys.stderr.write(text)
                sys.stderr.flush()
            except (OSError, ValueError, AttributeError):
                pass  # our standard error is closed; keep reading, so that the server never blocks

    def wait_until_ready(self, address):
        end = time.monotonic() + START_SECONDS
        while not address.exists():
            if self.child.poll() is not None:
                self.logger.join(1)
                reason = self.last_line.replace("muster-task: ", "", 1) if self.last_line else "no output"
                raise StartError(reason, self.child.returncode)
            if time.monotonic() > end:
                raise StartError(f"muster-task is not ready after {START_SECONDS} s", 1)
            time.sleep(0.002)
        lines = address.read_text().splitlines()
        local = [line.split()[1] for line in lines if line.startswith("local ")]
        return local[0] if local else lines[0]

    def wait(self):
        """Waits for the end of the process and returns its exit status."""
        return self.child.wait()

    def terminate(self):
        self.child.terminate()

    def stop(self):
        """Stops the process, with SIGKILL after 2 s; does nothing if it has ended."""
        try:
            self.child.stdin.close()
        except OSError:
            pass
        try:
            self.child.wait(2)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
