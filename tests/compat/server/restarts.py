# SPDX-License-Identifier: Apache-2.0
"""Tasks are killed and started again in the middle of monitored training; nothing else is done to help."""
import glob
import re
import time

from compare import Different, checkpoint, folder
from job import Job

TRAINER = "examples/python/trainer.py"
STEPS = 1600
LIMIT = 150  # a worker that has to wait for the chief looks every 30 s


class Training:
    def __init__(self, job):
        self.job, self.path = job, f"{job.folder}/checkpoints"
        self.hosts = ["--ps_hosts=" + job.hosts(2), "--worker_hosts=" + job.hosts(2)]
        self.tasks = {}

    def start(self, role, index):
        self.tasks[role, index] = self.job.start(TRAINER, *self.hosts, f"--job_name={role}", f"--task_index={index}",
                                                 f"--steps={STEPS}", f"--checkpoint_dir={self.path}", "--pause=0.02")

    def saved(self):
        """The step of the newest checkpoint; -1 when there is none."""
        return max([int(re.search(r"-(\d+)\.index", p)[1]) for p in glob.glob(f"{self.path}/model.ckpt-*.index")],
                   default=-1)

    def reach(self, step):
        def there():
            for (role, index), task in self.tasks.items():
                if task.poll() not in (None, 0):
                    raise Different(f"{role}/{index} ended with {task.returncode}: "
                                    f"{self.job.said(task, 'err').strip().splitlines()[-1:]}")
            return self.saved() >= step
        self.job.wait_for(f"checkpoint of step {step} (the last is of {self.saved()})", there, LIMIT)

    def kill(self, role, index):
        """Killed, gone for a second, started again; goes on from at most the last checkpoint on."""
        before = self.saved()
        self.tasks[role, index].kill()
        self.tasks[role, index].wait()
        time.sleep(1)
        self.start(role, index)
        self.reach(before + 100)


def restarts():
    """a worker, a ps and the chief are killed in turn; training goes on from the last checkpoint"""
    with Job("muster", f"{folder}/restarts") as job:
        t = Training(job)
        for task in (("ps", 0), ("ps", 1), ("worker", 0)):
            t.start(*task)
        t.reach(0)
        t.start("worker", 1)
        t.reach(100)
        took = []
        for role, index in (("worker", 1), ("ps", 0), ("ps", 1), ("worker", 0)):
            start = time.time()
            t.kill(role, index)
            took.append(f"{role}/{index} {time.time() - start:.0f} s")
        for index in (0, 1):
            job.finish(t.tasks["worker", index], LIMIT)
        step = int(checkpoint(t.path)["global_step"])
        if step < STEPS:
            raise Different(f"the last checkpoint is of step {step}, not of {STEPS}")
        return "100 steps further after " + ", ".join(took)


CASES = [restarts]
