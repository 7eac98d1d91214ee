# SPDX-License-Identifier: Apache-2.0
"""One muster-task as a child of this program.

It serves as long as its standard input stays open, and only we hold the other end: when this program ends, in
whatever way, the server does.  It has a session of its own, so that Ctrl-C reaches this program first.  What it logs
goes to our standard error, through a thread that keeps the last line for the exception.
"""
import ipaddress
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

from . import binary

START_SECONDS = 60
ANY_PORT = 1  # stands in the cluster for port 0; the server listens where --bind says


class StartError(RuntimeError):
    """The server could not start."""

    def __init__(self, text, exit_code):
        super().__init__(text)
        self.misused = exit_code == 2  # what was asked for cannot be, as an address without a port


def is_name(host):
    """Neither localhost nor a numeric address: in a cluster it may not lead here before others say so."""
    try:
        ipaddress.ip_address(host.strip("[]"))
        return False
    except ValueError:
        return host != "localhost"


def command(cluster, job, index, address_file, config_file):
    cluster = {name: dict(tasks) for name, tasks in cluster.items()}
    host, _, port = cluster[job][index].rpartition(":")
    more = []
    if port == "0":
        cluster[job][index] = f"{host}:{ANY_PORT}"
        more.append(f"--bind={host}:0")
    # the other tasks' port may be such that only tasks are heard there
    if (host and is_name(host)) or os.environ.get("MUSTER_TLS"):
        more.append("--local=0")
    if config_file:
        more.append(f"--session-config={config_file}")
    return [binary.find(), "--cluster=" + json.dumps(cluster), f"--job={job}", f"--index={index}",
            f"--address-file={address_file}", "--while-stdin", *more]


class Process:
    """Starts at once and returns when it serves; raises StartError when it cannot."""

    def __init__(self, cluster, job, index, config=b""):
        self.last_line = ""
        with tempfile.TemporaryDirectory(prefix="muster-") as folder:
            address = pathlib.Path(folder, "address")
            settings = pathlib.Path(folder, "config") if config else None
            if settings:
                settings.write_bytes(config)
            self.child = subprocess.Popen(command(cluster, job, index, address, settings), stdin=subprocess.PIPE,
                                          stderr=subprocess.PIPE, start_new_session=True)
            self.logger = threading.Thread(target=self.pass_log_on, daemon=True, name="muster-task log")
            self.logger.start()
            try:
                self.target = self.wait_until_it_serves(address)
            except BaseException:
                self.stop()
                raise

    def pass_log_on(self):
        for line in self.child.stderr:
            text = line.decode(errors="replace")
            self.last_line = text.strip() or self.last_line
            try:
                sys.stderr.write(text)
                sys.stderr.flush()
            except (OSError, ValueError, AttributeError):
                pass  # our standard error is closed; the server's must not fill up

    def wait_until_it_serves(self, address):
        end = time.monotonic() + START_SECONDS
        while not address.exists():
            if self.child.poll() is not None:
                self.logger.join(1)
                said = self.last_line.replace("muster-task: ", "", 1) if self.last_line else "it said nothing"
                raise StartError(said, self.child.returncode)
            if time.monotonic() > end:
                raise StartError(f"muster-task does not serve after {START_SECONDS} s", 1)
            time.sleep(0.002)
        lines = address.read_text().splitlines()
        local = [line.split()[1] for line in lines if line.startswith("local ")]
        return local[0] if local else lines[0]

    def wait(self):
        """Its exit status, once it has ended."""
        return self.child.wait()

    def terminate(self):
        self.child.terminate()

    def stop(self):
        """Ends it at once; does nothing when it has ended."""
        try:
            self.child.stdin.close()
        except OSError:
            pass
        try:
            self.child.wait(2)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
