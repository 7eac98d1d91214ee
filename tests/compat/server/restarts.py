# SPDX-License-Identifier: Apache-2.0
"""Kills and restarts tasks in the middle of monitored training; recovery needs no other action."""
import glob
import pathlib
import re
import time

from cluster import Cluster
from compare import Different, checkpoint, close, folder
from job import Job

TRAINER = "examples/python/trainer.py"
STEPS = 1600


class Training:
    def __init__(self, job, *more):
        self.job, self.path, self.more = job, f"{job.folder}/checkpoints", more
        self.hosts = ["--ps_hosts=" + job.hosts(2), "--worker_hosts=" + job.hosts(2)]
        self.tasks = {}

    def start(self, role, index):
        self.tasks[role, index] = self.job.start(TRAINER, *self.hosts, f"--job_name={role}", f"--task_index={index}",
                                                 f"--steps={STEPS}", f"--checkpoint_dir={self.path}", "--pause=0.02", *self.more)

    def saved(self):
        """The step of the newest checkpoint; -1 if there is none."""
        return max([int(re.search(r"-(\d+)\.index", p)[1]) for p in glob.glob(f"{self.path}/model.ckpt-*.index")],
                   default=-1)

    def reach(self, step):
        def there():
            for (role, index), task in self.tasks.items():
                if task.poll() not in (None, 0):
                    raise Different(f"{role}/{index} ended with {task.returncode}: "
                                    f"{self.job.said(task, 'err').strip().splitlines()[-1:]}")
            return self.saved() >= step
        self.job.wait_for(f"checkpoint of step {step} (the last is of {self.saved()})", there)

    def kill(self, role, index):
        """Kills the task, starts it again after a second, and waits for 100 steps beyond the last checkpoint."""
        before = self.saved()
        self.tasks[role, index].kill()
        self.tasks[role, index].wait()
        time.sleep(1)
        self.start(role, index)
        self.reach(before + 100)


def kill_in_turn(name, victims, *more):
    """Trains with two ps and two workers to the last step; kills and restarts each victim during the training."""
    with Job("muster", f"{folder}/{name}") as job:
        t = Training(job, *more)
        for task in (("ps", 0), ("ps", 1), ("worker", 0)):
            t.start(*task)
        t.reach(0)
        t.start("worker", 1)
        t.reach(100)
        took = []
        for role, index in victims:
            start = time.time()
            t.kill(role, index)
            took.append(f"{role}/{index} {time.time() - start:.0f} s")
        for index in (0, 1):
            job.finish(t.tasks["worker", index])
        step = int(checkpoint(t.path)["global_step"])
        if step < STEPS:
            raise Different(f"the last checkpoint is of step {step}, not of {STEPS}")
        return "100 steps further after " + ", ".join(took)


def restarts():
    """a worker, a ps and the chief are killed in turn; training continues from the last checkpoint"""
    return kill_in_turn("restarts", (("worker", 1), ("ps", 0), ("ps", 1), ("worker", 0)))


def restarts_sync():
    """a worker and the chief of synchronous training are killed in turn; the other one waits, and training continues

    A ps is not killed: the client's queue runner would close the token queue on the other ps, and all workers would end.
    """
    return kill_in_turn("restarts-sync", (("worker", 1), ("worker", 0)), "--sync")


def goes_on():
    """a worker that restarts while the ps runs continues from the state of the ps, which is newer than any checkpoint"""
    got = {}
    for name in ("stock", "muster"):
        there = pathlib.Path(f"{folder}/goes-on-{name}")
        with Cluster(name, there) as cluster:
            chief = cluster.wait_ready().start("goes_on", 0, there / "checkpoints", 30)
            end = time.time() + 150
            while not (there / "checkpoints/reached").exists():
                if chief.poll() is not None or time.time() > end:
                    raise Different(f"{name}: the chief did not count to 30")
                time.sleep(0.05)
            saved = max(int(re.search(r"-(\d+)\.index", p)[1]) for p in glob.glob(f"{there}/checkpoints/model.ckpt-*.index"))
            if saved >= 30:
                raise Different(f"{name}: a checkpoint of step {saved} proves nothing")
            cluster.restart("worker", 1)
            worker = cluster.wait_ready().run("goes_on", there / "checkpoints", 5, task=1)
            (there / "checkpoints/over").touch()
            got[name] = [saved, worker, cluster.finish(chief)]
    close(got["stock"], got["muster"])
    if got["muster"][1] != {"start": 30, "step": 35}:
        raise Different(f"it went on from {got['muster'][1]}, not from 30")
    return f"from step 30, with a checkpoint of step {got['muster'][0]}"


CASES = [restarts, restarts_sync, goes_on]
