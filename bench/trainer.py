"""Runs the C trainer on this machine with `muster run`, on synthetic images: 784-128-10.

measure(program, seconds, batch, sync, workers, ps) returns the global steps per second that it reports, and
its memory. The trainer feeds a new batch each step; the peer of compare.py has its batch in the graph.
first_step(program) returns the seconds of a whole job of one step.
"""
import pathlib
import re
import signal
import statistics
import struct
import subprocess
import tempfile
import time

import numpy as np

ROWS = 6400
MANIFEST = """\
apiVersion: muster.dev/v1
kind: DistributedTrainingJob
metadata: {{name: bench}}
spec:
  program:
    train:
      model: mlp
      hiddenUnits: [128]
      dataset: {{format: idx, trainImages: {folder}/x.idx, trainLabels: {folder}/y.idx, scale: 255}}
      batchSize: {batch}
      learningRate: 0.01
      optimizer: sgd
      steps: {steps}
  mode: {mode}
  tasks:
{tasks}"""


def write_images(folder):
    rng = np.random.RandomState(0)
    images, labels = rng.randint(0, 256, (ROWS, 28, 28)), rng.randint(0, 10, ROWS)
    (folder / "x.idx").write_bytes(struct.pack(">IIII", 0x803, ROWS, 28, 28) + images.astype(np.uint8).tobytes())
    (folder / "y.idx").write_bytes(struct.pack(">II", 0x801, ROWS) + labels.astype(np.uint8).tobytes())


def rss_mb(pid):
    """Returns the memory of pid and its children in MB; shared pages count once."""
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    total = 0
    for child in [str(pid), *children]:
        rollup = pathlib.Path(f"/proc/{child}/smaps_rollup").read_text()
        total += int(re.search(r"^Pss: +(\d+)", rollup, re.M).group(1))
    return total / 1e3


def write_job(folder, steps=10**9, batch=32, sync=False, workers=2, ps=1):
    write_images(folder)
    manifest = folder / "job.yaml"
    tasks = "".join(f"    {job}: {{replicas: {n}}}\n" for job, n in [("ps", ps), ("worker", workers)] if n)
    manifest.write_text(MANIFEST.format(folder=folder, batch=batch, steps=steps, tasks=tasks,
                                        mode="sync" if sync else "async"))
    return manifest


def first_step(program):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        manifest = write_job(folder, steps=1)
        start = time.perf_counter()
        subprocess.run([program, "run", manifest, "--logs", folder / "logs"], stdout=subprocess.DEVNULL,
                       check=True, timeout=60)
        return time.perf_counter() - start


def measure(program, seconds, **options):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        manifest = write_job(folder, **options)
        job = subprocess.Popen([program, "run", manifest, "--logs", folder / "logs"], stdout=subprocess.DEVNULL)
        try:
            time.sleep(1.5 + seconds)
            memory = rss_mb(job.pid)
        finally:
            job.send_signal(signal.SIGINT)
            job.wait(60)
        log = (folder / "logs/worker-0.log").read_text()
    rates = [float(r) for r in re.findall(r"^progress .* steps_per_second=([\d.]+)", log, re.M)][1:]
    if not rates:
        raise RuntimeError(f"the trainer has reported no progress:\n{log[-2000:]}")
    rate = statistics.median(rates)
    return {"per_s": rate, "p50_us": 1e6 / rate, "rss_mb": memory}
