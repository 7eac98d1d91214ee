"""Stock TensorFlow servers and ours, the same client programs, alternating in one run; ratios at the end.

compare.py [--rounds N] [--seconds S] [--tasks PATH] [CASE...]
"""
import argparse
import json
import os
import pathlib
import signal
import socket
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
ALL = ["constant", "null_step", "transfer_16MiB", "mlp_b32", "mlp_b1024", "conv_b64"]
ENV = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
ENV.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")


def free_ports(n):
    socks = [socket.socket() for _ in range(n)]
    for s in socks:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in socks]
    for s in socks:
        s.close()
    return ports


def rss_mb(pid):
    with open(f"/proc/{pid}/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


class Cluster:
    def __init__(self, name, command):
        ports = free_ports(3)
        self.spec = {"ps": [f"127.0.0.1:{ports[0]}"], "worker": [f"127.0.0.1:{p}" for p in ports[1:]]}
        self.targets = ["grpc://" + a for a in self.spec["worker"]]
        self.name = name
        self.tasks = []
        start = time.perf_counter()
        for job, index in [("ps", 0), ("worker", 0), ("worker", 1)]:
            self.tasks.append(subprocess.Popen(command(json.dumps(self.spec), job, index), env=ENV,
                                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        for p in ports:
            self.wait(p)
        self.start_s = time.perf_counter() - start

    @staticmethod
    def wait(port):
        end = time.time() + 60
        while time.time() < end:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                time.sleep(0.002)
        sys.exit(f"nothing listens on port {port}")

    def measure(self, case, seconds):
        out = subprocess.run([sys.executable, HERE / "cases.py", case, self.targets[0], str(seconds),
                              self.targets[1]], env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, timeout=180)
        if out.returncode:
            sys.exit(f"{self.name}: {case} failed:\n{out.stderr[-2000:]}")
        return json.loads(out.stdout.strip().splitlines()[-1])

    def stop(self):
        for t in self.tasks:
            t.send_signal(signal.SIGKILL)
            t.wait()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=2)
    p.add_argument("--tasks", default="build/bin/muster-task")
    p.add_argument("cases", nargs="*", default=ALL)
    a = p.parse_args()
    stock = Cluster("stock", lambda c, j, i: [sys.executable, str(HERE / "stock_server.py"), c, j, str(i)])
    ours = Cluster("muster", lambda c, j, i: [a.tasks, f"--cluster={c}", f"--job={j}", f"--index={i}"])
    try:
        print(f"start of 3 tasks: stock {stock.start_s:.2f} s, muster {ours.start_s:.3f} s")
        print("idle RSS of the ps: stock %.0f MB, muster %.0f MB" %
              (rss_mb(stock.tasks[0].pid), rss_mb(ours.tasks[0].pid)))
        print(f"{'case':<16} {'stock p50 us':>13} {'muster p50 us':>14} {'stock /s':>10} {'muster /s':>10} {'times':>6}")
        for case in a.cases:
            got = {"stock": [], "muster": []}
            for _ in range(a.rounds):
                for c in (stock, ours):
                    got[c.name].append(c.measure(case, a.seconds))
            s, m = ({k: statistics.median(r[k] for r in got[n]) for k in ("p50_us", "per_s")}
                    for n in ("stock", "muster"))
            print(f"{case:<16} {s['p50_us']:>13.0f} {m['p50_us']:>14.0f} {s['per_s']:>10.0f} "
                  f"{m['per_s']:>10.0f} {m['per_s'] / s['per_s']:>6.2f}", flush=True)
    finally:
        stock.stop()
        ours.stop()


main()
