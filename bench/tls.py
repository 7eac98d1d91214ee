#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of mutual TLS between tasks.  A ps and a worker without TLS alternate with a ps and a
worker with certificates, on this machine.  The session uses the worker's loopback port, which has no TLS
in both cases.  Prints the best and the median of several rounds.

  bench/run.sh tls.py [ROUNDS]
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow.compat.v1 as tf

from ports import free_ports

tf.disable_eager_execution()
TASK = os.environ.get("MUSTER_TASK", "build/bin/muster-task")
MIB, SMALL_STEPS, LARGE_STEPS = 64, 100, 1


def certificates(folder):
    def openssl(*args):
        subprocess.run(["openssl", *args], check=True, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n")
    openssl("req", "-x509", *curve, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=bench", "-days", "1")
    openssl("req", *curve, "-keyout", "tls.key", "-out", "tls.csr", "-subj", "/CN=task")
    openssl("x509", "-req", "-in", "tls.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "1",
            "-extfile", "names", "-out", "tls.crt")


class Cluster:
    """A ps and a worker, with a session at the worker."""

    def __init__(self, peer, tls):
        ps, worker, local = free_ports(3)
        hosts = json.dumps({"ps": [f"127.0.0.1:{ps}"], "worker": [f"127.0.0.1:{worker}"]})
        more = [f"--tls={tls}"] if tls else []
        env = dict(os.environ, MUSTER_PEER=peer, MUSTER_LOG="warn")
        self.tasks = [subprocess.Popen([TASK, f"--cluster={hosts}", f"--job={job}", "--index=0", *more,
                                        *([f"--local={local}"] if job == "worker" else [])], env=env)
                      for job in ("ps", "worker")]
        graph = tf.Graph()
        with graph.as_default():
            with tf.device("/job:ps/task:0"):
                count = tf.Variable(0.0, name="count")
                there = tf.Variable(tf.zeros([MIB << 18]), name="there")
            with tf.device("/job:worker/task:0"):
                here = tf.Variable(tf.ones([MIB << 18]), name="here")
            self.add = count.assign_add(1.0).op
            with tf.device("/job:ps/task:0"):
                self.move = there.assign(here).op
            init = tf.global_variables_initializer()
        self.session = tf.Session(f"grpc://127.0.0.1:{local}", graph=graph)
        self.session.run(init)
        self.measure(self.add, 20)
        self.measure(self.move, 2)

    def measure(self, op, times):
        start = time.perf_counter()
        for _ in range(times):
            self.session.run(op)
        return (time.perf_counter() - start) / times * 1e3

    def end(self):
        self.session.close()
        for t in self.tasks:
            t.kill()
            t.wait()


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    with tempfile.TemporaryDirectory() as d:
        certificates(pathlib.Path(d))
        for peer, edges in (("grpc", "every edge by gRPC"), ("tcp", "streams, as between machines")):
            clusters = {"in the clear": Cluster(peer, None), "mutual TLS": Cluster(peer, d)}
            seen = {(name, what): [] for name in clusters for what in ("add", "move")}
            try:
                for _ in range(rounds):
                    for name, c in clusters.items():
                        seen[name, "add"].append(c.measure(c.add, SMALL_STEPS))
                        seen[name, "move"].append(c.measure(c.move, LARGE_STEPS))
            finally:
                for c in clusters.values():
                    c.end()
            for (name, what), ms in seen.items():
                words = "a number added on the ps" if what == "add" else f"{MIB} MiB to the ps"
                print(f"{edges:30} {words:26} {name:13} best {min(ms):8.3f} ms  median {statistics.median(ms):8.3f} ms",
                      flush=True)


if __name__ == "__main__":
    main()
