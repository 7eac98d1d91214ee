"""Runs the same client programs on stock TensorFlow servers and on ours, alternating in one run, and prints the ratios.

compare.py [--rounds N] [--seconds S] [--tasks PATH] [--page FILE] [CASE...]
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
import tempfile
import time

import trainer
from ports import free_ports

HERE = pathlib.Path(__file__).parent
ALL = ["start", "many_ps", "raw_constant", "raw_clients_4", "raw_clients_8", "raw_null", "constant", "null_step",
       "transfer_16MiB", "single", "mlp_b32", "mlp_b1024", "sync", "conv_b64",
       "trainer_b32", "trainer_b1024", "trainer_sync", "trainer_single", "trainer_start", "client_null"]
# TensorFlow cases to compare with our C trainer and its own servers
TRAINERS = {"trainer_b32": ("mlp_b32", {}), "trainer_b1024": ("mlp_b1024", {"batch": 1024}),
            "trainer_sync": ("sync", {"sync": True})}
# TensorFlow cases to compare with client_steps.c, and the kind of its step
IN_PROCESS = {"client_null": ("null_step", "null"), "trainer_single": ("local", "trainer")}
STARTS = {"start": (0, 1), "many_ps": (10, 1)}  # ps and workers; time from start to end of the first step
BEGIN, END = "<!-- make bench writes this table -->", "<!-- end of the table -->"
# Intermittent faults of stock servers, after which the measurement repeats: a request that the client sent once "was
# received twice"; both workers of a synchronous step wait for each other.
STOCK_FAULTS = "request was received twice", "the two workers stood still"
NO_OP = b"\x0a\x09\x0a\x01c\x12\x04NoOp"  # GraphDef { node { name: "c" op: "NoOp" } }
ENV = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
ENV.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")


def rss_mb(pid):
    with open(f"/proc/{pid}/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


class Cluster:
    def __init__(self, name, command, ps=1, workers=2):
        ports = free_ports(ps + workers)
        addresses = [f"127.0.0.1:{p}" for p in ports]
        self.spec = {"ps": addresses[:ps], "worker": addresses[ps:]}
        self.spec = {job: tasks for job, tasks in self.spec.items() if tasks}
        self.targets = ["grpc://" + a for a in self.spec["worker"]]
        self.name = name
        self.tasks = []
        start = time.perf_counter()
        for job, index in [(job, i) for job, tasks in self.spec.items() for i in range(len(tasks))]:
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
                              self.targets[-1]], env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, timeout=180)
        if self.name == "stock" and any(fault in out.stderr for fault in STOCK_FAULTS):
            print(f"  stock: {case} is measured again: {out.stderr.strip().splitlines()[-1][:100]}")
            return self.measure(case, seconds)
        if out.returncode:
            sys.exit(f"{self.name}: {case} failed:\n{out.stderr[-2000:]}")
        row = json.loads(out.stdout.strip().splitlines()[-1])
        if row.get("aborted"):  # stock servers sometimes reject a step (raw_client.c)
            print(f"  {self.name}: {case}: {row['aborted']} steps were answered with ABORTED")
            if self.name == "muster":
                sys.exit("Muster must not abort a step")
        return row

    def stop(self):
        for t in self.tasks:
            t.send_signal(signal.SIGKILL)
            t.wait()


def start_s(name, command, graph, raw_client, ps, workers):
    c = Cluster(name, command, ps, workers)
    try:
        port = c.targets[0].rsplit(":", 1)[1]
        start = time.perf_counter()
        subprocess.run([raw_client, "127.0.0.1", port, graph, "-", "-", "c", "1", "0"], check=True,
                       stdout=subprocess.DEVNULL, timeout=60)
        return c.start_s + time.perf_counter() - start
    finally:
        c.stop()


def compare_starts(case, commands, rounds, raw_client):
    """Measures the time from the start of the servers until a new session has run a step."""
    got = {name: [] for name in commands}
    with tempfile.NamedTemporaryFile() as f:
        f.write(NO_OP)
        f.flush()
        for _ in range(rounds):
            for name, command in commands.items():
                got[name].append(1e6 * start_s(name, command, f.name, raw_client, *STARTS[case]))
    return {name: {"p50_us": min(v), "per_s": 1e6 / min(v)} for name, v in got.items()}


def median(rows):
    return {k: statistics.median(r[k] for r in rows) for k in rows[0]}


def compare_steps(case, clusters, rounds, seconds):
    got = {c.name: [] for c in clusters}
    for _ in range(rounds):
        for c in clusters:
            got[c.name].append(c.measure(case, seconds))
    return [median(got[c.name]) for c in clusters]


def compare_trainers(case, stock, rounds, seconds, muster):
    """Compares stock's servers with the C trainer; stock's servers are idle while the trainer runs."""
    peer, options = TRAINERS[case]
    got = [], []
    for _ in range(rounds):
        got[0].append(stock.measure(peer, seconds))
        got[1].append(trainer.measure(muster, seconds, **options))
    s, m = median(got[0]), median(got[1])
    print(f"  memory of the trainer's job: {m['rss_mb']:.0f} MB")
    return s, m


def compare_first_steps(commands, rounds, muster, raw_client):
    """Compares a whole `muster run` of a job of one step with the start of three stock servers up to their first
    step."""
    got = {"stock": [], "muster": []}
    for _ in range(rounds):
        with tempfile.NamedTemporaryFile() as f:
            f.write(NO_OP)
            f.flush()
            got["stock"].append(1e6 * start_s("stock", commands["stock"], f.name, raw_client, 1, 2))
        got["muster"].append(1e6 * trainer.first_step(muster))
    return [{"p50_us": min(v), "per_s": 1e6 / min(v)} for v in got.values()]


def compare_in_process(case, stock, command, rounds, seconds, client_steps):
    """Compares stock's Python client with a C program that contains its worker, and prints the time of smaller steps."""
    peer, step = IN_PROCESS[case]
    got = [], []
    for _ in range(rounds):
        got[0].append(stock.measure(peer, seconds))
        ports = [f"127.0.0.1:{p}" for p in free_ports(2)]
        ps = subprocess.Popen(command(json.dumps({"ps": ports[:1], "worker": ports[1:]}), "ps", 0), env=ENV,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            Cluster.wait(int(ports[0].rsplit(":", 1)[1]))
            with tempfile.TemporaryDirectory() as folder:
                trainer.write_images(pathlib.Path(folder))
                out = subprocess.run([client_steps, *ports, folder, str(seconds)], env=ENV, check=True,
                                     timeout=60, stdout=subprocess.PIPE)
        finally:
            ps.kill()
            ps.wait()
        got[1].append(json.loads(out.stdout))
    ours = median(got[1])
    print("  in process: a step that does nothing {nothing:.1f} us, one update of one number {session:.1f} us, "
          "by a monitored session {monitored:.1f} us".format(**ours))
    return median(got[0]), {"p50_us": ours[step], "per_s": 1e6 / ours[step]}


def update_page(path, rows):
    """Replaces the table between the two markers of the page by the rows of this run."""
    with open("/proc/cpuinfo") as f:
        cpu = next((line.split(":")[1].strip() for line in f if line.startswith("model name")), "?")
    table = [f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} x {cpu}", "",
             "| case | stock, us | Muster, us | stock, steps/s | Muster, steps/s | times |", "|---|---|---|---|---|---|"]
    table += [f"| {case} | {s['p50_us']:,.0f} | {m['p50_us']:,.0f} | {s['per_s']:,.0f} | {m['per_s']:,.0f} | "
              f"{m['per_s'] / s['per_s']:.2f} |" for case, s, m in rows]
    page = pathlib.Path(path)
    head, rest = page.read_text().split(BEGIN, 1)
    page.write_text(head + BEGIN + "\n" + "\n".join(table) + "\n" + END + rest.split(END, 1)[1])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=2)
    p.add_argument("--tasks", default="build/bin/muster-task")
    p.add_argument("--muster", default="build/bin/muster")
    p.add_argument("--raw-client", default="build/release/bench/raw_client")
    p.add_argument("--client-steps", default="build/release/bench/client_steps")
    p.add_argument("--page", help="write the table into this Markdown page")
    p.add_argument("cases", nargs="*", default=ALL)
    a = p.parse_args()
    ENV["MUSTER_RAW_CLIENT"] = a.raw_client
    commands = {"stock": lambda c, j, i: [sys.executable, str(HERE / "stock_server.py"), c, j, str(i)],
                "muster": lambda c, j, i: [a.tasks, f"--cluster={c}", f"--job={j}", f"--index={i}"]}
    rows = []
    stock, ours = (Cluster(name, command) for name, command in commands.items())
    try:
        print(f"start of 3 tasks: stock {stock.start_s:.2f} s, muster {ours.start_s:.3f} s")
        print("idle RSS of the ps: stock %.0f MB, muster %.0f MB" %
              (rss_mb(stock.tasks[0].pid), rss_mb(ours.tasks[0].pid)))
        print(f"{'case':<16} {'stock p50 us':>13} {'muster p50 us':>14} {'stock /s':>10} {'muster /s':>10} {'times':>6}")
        for case in a.cases:
            if case in STARTS:
                both = compare_starts(case, commands, a.rounds, a.raw_client)
                s, m = both["stock"], both["muster"]
            elif case == "trainer_start":
                s, m = compare_first_steps(commands, a.rounds, a.muster, a.raw_client)
            elif case in IN_PROCESS:
                s, m = compare_in_process(case, stock, commands["muster"], a.rounds, a.seconds, a.client_steps)
            elif case in TRAINERS:
                s, m = compare_trainers(case, stock, a.rounds, a.seconds, a.muster)
            else:
                s, m = compare_steps(case, (stock, ours), a.rounds, a.seconds)
            rows.append((case, s, m))
            print(f"{case:<16} {s['p50_us']:>13.0f} {m['p50_us']:>14.0f} {s['per_s']:>10.0f} "
                  f"{m['per_s']:>10.0f} {m['per_s'] / s['per_s']:>6.2f}", flush=True)
    finally:
        stock.stop()
        ours.stop()
    if a.page:
        update_page(a.page, rows)


main()
