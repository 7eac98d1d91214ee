# SPDX-License-Identifier: Apache-2.0
"""TensorBoard serves the summaries of the C trainer over HTTP."""
import json
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

from cluster import PATIENCE, ROOT, free_port
from compare import folder

STEPS = 400


def train(out):
    """Runs a small job of the C trainer that writes its events to `out`."""
    text = (ROOT / "examples/softmax.yaml").read_text()
    lines = []
    for line in text.splitlines():
        key = line.split(":")[0].strip()
        indent = line[:len(line) - len(line.lstrip())]
        lines.append({"steps": f"{indent}steps: {STEPS}",
                      "checkpoint": f"{indent}checkpoint: {{path: {out}}}",
                      "summaries": f"{indent}summaries: {{path: {out}, everySteps: 50}}"}.get(key, line))
    manifest = f"{out}.yaml"
    with open(manifest, "w") as f:
        f.write("\n".join(lines) + "\n")
    subprocess.run([str(ROOT / "build/bin/muster"), "run", manifest], cwd=ROOT, check=True, timeout=PATIENCE,
                   stdout=subprocess.DEVNULL)


def ask(port, path, **query):
    url = f"http://127.0.0.1:{port}/data/{path}?{urllib.parse.urlencode(query)}"
    with urllib.request.urlopen(url, timeout=10) as reply:
        return reply.read()


def tags_once_read(port, board):
    """Waits for the test accuracy, which is written last, and returns the scalar tags by run."""
    end = time.time() + PATIENCE
    while time.time() < end:
        if board.poll() is not None:
            raise RuntimeError(f"TensorBoard ended with {board.returncode}")
        try:
            tags = json.loads(ask(port, "plugin/scalars/tags"))
            if any("test_accuracy" in run for run in tags.values()):
                return tags
        except (urllib.error.URLError, ConnectionError):
            pass
        time.sleep(0.3)
    raise RuntimeError("TensorBoard does not show the accuracy")


def look(port, board):
    tags = tags_once_read(port, board)
    (run, names), = tags.items()
    for name in ("loss", "accuracy", "global_step/sec", "test_accuracy"):
        if name not in names:
            raise RuntimeError(f"no curve '{name}' among {sorted(names)}")
    losses = json.loads(ask(port, "plugin/scalars/scalars", run=run, tag="loss"))
    steps, values = [p[1] for p in losses], [p[2] for p in losses]
    if steps != sorted(steps) or steps[-1] < STEPS - 50 or not values[-1] < values[0] / 2:
        raise RuntimeError(f"the loss is {values} at {steps}")
    graph = ask(port, "plugin/graphs/graph", run=run, conceptual="false").decode()
    for node in ("softmax/weights", "global_step", "VariableV2"):
        if node not in graph:
            raise RuntimeError(f"the graph has no {node}")
    return f"{len(losses)} points of the loss, {values[0]:.2f} -> {values[-1]:.2f}, graph of {graph.count('node {')} nodes"


def tensorboard():
    """TensorBoard shows the C trainer's curves and graph"""
    out, port = f"{folder}/board", free_port()
    train(out)
    with open(f"{out}.log", "w") as log:
        board = subprocess.Popen([sys.executable, "-m", "tensorboard.main", "--logdir", out, "--port", str(port),
                                  "--host", "127.0.0.1", "--load_fast=false"], stdout=log, stderr=log)
        try:
            return look(port, board)
        finally:
            board.terminate()
            board.wait(PATIENCE)


CASES = [tensorboard]
