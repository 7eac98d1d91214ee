# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of examples/python on stock's servers and on ours, and compares their output."""
import glob
import os
import re
import subprocess
import sys
from pathlib import Path

from cluster import PATIENCE, ROOT
from compare import Different, checkpoint, close, folder, same_checkpoint
from job import Job, with_each

EXAMPLES = "examples/python/"
NUMBER = re.compile(r"-?\d+\.\d+")


def numbers_apart(text):
    """Splits the text into lines with placeholders for numbers, and the numbers."""
    return [NUMBER.sub("#", text).splitlines(), [float(n) for n in NUMBER.findall(text)]]


def prints_the_same(run):
    stock, ours = with_each(run, folder)
    close(numbers_apart(stock), numbers_apart(ours), "output")
    if not ours.strip():
        raise Different("it prints nothing")
    return ours.strip().splitlines()[-1]


def example_hello():
    """examples: hello"""
    return prints_the_same(lambda job: job.run(EXAMPLES + "hello.py"))


def example_two_tasks():
    """examples: two local tasks"""
    def run(job):
        hosts = "--hosts=" + job.hosts(2)
        job.start(EXAMPLES + "two_tasks.py", hosts, "--task_index=1")
        return job.run(EXAMPLES + "two_tasks.py", hosts, "--task_index=0")
    return prints_the_same(run)


def example_placement():
    """examples: parameters on two ps, computation on a worker"""
    return prints_the_same(lambda job: job.run(EXAMPLES + "place_ps_worker.py", "--ps_hosts=" + job.hosts(2),
                                               "--worker_hosts=" + job.hosts(1)))


def example_three_adds():
    """examples: a ps and two workers add"""
    return prints_the_same(lambda job: job.run(EXAMPLES + "three_adds.py", "--hosts=" + job.hosts(3)))


def on_three(name):
    """Runs a program with a ps and two workers."""
    return lambda job: job.run(EXAMPLES + name, "--ps_hosts=" + job.hosts(1), "--worker_hosts=" + job.hosts(2))


def example_in_graph():
    """examples: in-graph replication"""
    return prints_the_same(on_three("in_graph.py"))


def example_model_parallel():
    """examples: a layer on each of two tasks"""
    return prints_the_same(lambda job: job.run(EXAMPLES + "model_parallel.py", "--hosts=" + job.hosts(2)))


def example_evolution():
    """examples: evolution strategies"""
    return prints_the_same(on_three("evolution.py"))


TWINS = {  # program name: (flags of the Python program, arguments of the C program), both with numbers of hosts
    "hello": ([], []), "cluster_spec": ([], []), "three_adds": (["--hosts=", 3], [3]),
    "place_ps_worker": (["--ps_hosts=", 2, "--worker_hosts=", 1], [2, 1]),
    "in_graph": (["--ps_hosts=", 1, "--worker_hosts=", 2], [1, 2]),
    "model_parallel": (["--hosts=", 2], [2]), "evolution": (["--ps_hosts=", 1, "--worker_hosts=", 2], [1, 2])}


def with_defs_in_order(text):
    """Replaces each serialized ClusterDef by a sorted dictionary, since protobuf may write map entries in any order."""
    from tensorflow.core.protobuf import cluster_pb2

    def jobs(m):
        cluster = cluster_pb2.ClusterDef.FromString(bytes.fromhex(m[1]))
        return "as_cluster_def: " + str([(job.name, sorted(job.tasks.items())) for job in cluster.job])

    return re.sub(r"as_cluster_def: ([0-9a-f]+)", jobs, text)


def example_twins():
    """examples: each C program has the results of its Python counterpart"""
    for name, (python, c) in TWINS.items():
        with Job("muster", f"{folder}/twin-{name}") as job:
            flags = [f + job.hosts(n) for f, n in zip(python[::2], python[1::2])]
            theirs = job.run(f"{EXAMPLES}{name}.py", *flags)
            program = ROOT / "build/release/examples" / name
            if not program.exists():
                raise Different(f"{program} is not there: make examples")
            done = subprocess.run([program, *map(job.hosts, c)], capture_output=True, text=True, timeout=60)
            if done.returncode:
                raise Different(f"{name}: {done.stderr.strip()[-500:]}")
            ours = "".join(line for line in done.stdout.splitlines(True) if not line.startswith("worker 7"))
            close(*(numbers_apart(with_defs_in_order(text)) for text in (theirs, ours)), name)
    return f"{len(TWINS)} programs"


def start_trainer(job, workers, *more):
    """Starts the ps tasks, and returns a function that starts a worker."""
    hosts = ["--ps_hosts=" + job.hosts(2), "--worker_hosts=" + job.hosts(workers), *more]
    for i in range(2):
        job.start(EXAMPLES + "trainer.py", *hosts, "--job_name=ps", f"--task_index={i}")
    return lambda i: job.start(EXAMPLES + "trainer.py", *hosts, "--job_name=worker", f"--task_index={i}")


def example_trainer_alone():
    """examples: the trainer with one worker; the loss and the checkpoint are the same"""
    def run(job):
        path = f"{job.folder}/checkpoints"
        worker = start_trainer(job, 1, "--steps=300", f"--checkpoint_dir={path}")
        return job.finish(worker(0)), checkpoint(path)

    (stock, ca), (ours, cb) = with_each(run, folder)
    close(numbers_apart(stock), numbers_apart(ours), "output")
    same_checkpoint(ca, cb)
    return ours.strip().splitlines()[-1]


LINE = re.compile(r"worker (\d): (\d+) steps here, global step (\d+), loss (\S+)")


def train_in_two(job, steps, *more):
    """Trains with two workers; worker 1 starts when worker 0 has initialized the variables. Returns ([(steps, global
    step, loss)], checkpoint)."""
    path = f"{job.folder}/checkpoints"
    worker = start_trainer(job, 2, f"--steps={steps}", f"--checkpoint_dir={path}", "--pause=0.01", *more)
    chief = worker(0)
    job.wait_for("first checkpoint", lambda: glob.glob(f"{path}/model.ckpt-0.index"))
    both = [chief, worker(1)]
    lines = [LINE.search(job.finish(task)) for task in both]
    return [(int(m[2]), int(m[3]), float(m[4])) for m in lines], checkpoint(path)


def check_trained(results, saved, steps):
    shapes = {k: list(v.shape) for k, v in saved.items() if "Adagrad" not in k}
    if int(saved["global_step"]) < steps:
        raise Different(f"the checkpoint is of step {saved['global_step']}, not of {steps}")
    if shapes != {"dense/kernel": [20, 16], "dense/bias": [16], "dense_1/kernel": [16, 5], "dense_1/bias": [5],
                  "global_step": []}:
        raise Different(f"the checkpoint holds {shapes}")
    for here, _, loss in results:
        if here < 10 or not loss < 0.7:
            raise Different(f"a worker ran {here} steps and its loss is {loss}")


def example_trainer():
    """examples: the trainer, 2 ps and 2 workers, async"""
    steps = 1500
    for results, saved in with_each(lambda job: train_in_two(job, steps), folder):
        check_trained(results, saved, steps)
        # a step may read the global step before its own increment, so each worker may run one step too many
        if sum(here for here, _, _ in results) > steps - 1 + 2 * len(results):
            raise Different(f"{results} steps were run, {steps} were asked for")
    return f"{[r[0] for r in results]} steps by worker"


def example_trainer_sync():
    """examples: the trainer, 2 ps and 2 workers, sync"""
    steps = 600
    for results, saved in with_each(lambda job: train_in_two(job, steps, "--sync"), folder):
        check_trained(results, saved, steps)
        if not sum(here for here, _, _ in results) >= 2 * (steps - 1):
            raise Different(f"{results}: fewer gradients than {steps} steps of two")
    return f"{[r[0] for r in results]} steps by worker"


def example_trainer_backup():
    """examples: the trainer, sync, a step waits for one of two workers"""
    steps = 600
    for results, saved in with_each(lambda job: train_in_two(job, steps, "--sync", "--aggregate=1"), folder):
        check_trained(results, saved, steps)
    return f"{[r[0] for r in results]} steps by worker"


def example_own_trainer():
    """examples: own-trainer.yaml, a TensorFlow program as a job of muster run"""
    out = f"{folder}/own-trainer"
    manifest = f"{folder}/own-trainer.yaml"
    with open(ROOT / "examples/own-trainer.yaml") as f, open(manifest, "w") as to:
        to.write(f.read().replace("out/own-trainer", out))
    env = dict(os.environ, PYTHONPATH=str(ROOT / "client/python"), XDG_RUNTIME_DIR=folder,
               PATH=os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"])
    done = subprocess.run([ROOT / "build/bin/muster", "run", manifest], cwd=ROOT, env=env, capture_output=True, text=True,
                          timeout=PATIENCE)
    if done.returncode or "own-trainer: succeeded" not in done.stdout:
        raise Different(f"muster run ends with {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}")
    # the other worker may start too late to run any step, because the job ends with its chief
    chief = LINE.search(Path(f"{out}/logs/worker-0.log").read_text())
    if not chief or not float(chief[4]) < 1.6 or int(checkpoint(out)["global_step"]) < 200:
        raise Different(f"the chief says {chief and chief[0]}")
    return chief[0]


CASES = [example_hello, example_two_tasks, example_placement, example_three_adds, example_in_graph, example_model_parallel,
         example_evolution, example_twins, example_trainer_alone, example_trainer, example_trainer_sync,
         example_trainer_backup, example_own_trainer]
