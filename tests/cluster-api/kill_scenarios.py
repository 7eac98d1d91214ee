# SPDX-License-Identifier: Apache-2.0
"""Scenarios of a job for kill_each.py: each acts as the job's user and its nodes, on a real API server.

A step waits for a state that every run of its scenario reaches, so that all runs end in the same state."""
from collections import namedtuple

# counts_pods: every run of the scenario creates the same pods
Scenario = namedtuple("Scenario", "play spec counts_pods")

TASKS = {"ps": {"replicas": 1}, "worker": {"replicas": 2}}
COMMAND = {"program": {"command": ["x"]}, "tasks": TASKS}


def finish(run):
    run.until_running("ps-0", "worker-0", "worker-1")
    run.end_pod("worker-1", 0)
    run.end_pod("worker-0", 0)
    run.until_end("Succeeded")


def scale(run):
    run.until_running("ps-0", "worker-0", "worker-1")
    run.patch({"tasks": {"worker": {"replicas": 3}}})
    run.until_running("ps-0", "worker-0", "worker-1", "worker-2")
    run.patch({"tasks": {"worker": {"replicas": 1}}})
    run.until_running("ps-0", "worker-0")
    run.end_pod("worker-0", 0)
    run.until_end("Succeeded", "worker-0")


def fail(run):
    """Exit code 137 restarts the worker, exit code 2 fails the job."""
    run.until_running("ps-0", "worker-0", "worker-1")
    run.end_pod("worker-1", 137)
    run.until_running("ps-0", "worker-0", "worker-1")
    run.end_pod("worker-1", 2)
    run.until_end("Failed", "worker-1")


def suspend(run):
    run.until_running("ps-0", "worker-0", "worker-1")
    run.patch({"run": {"suspend": True}})
    run.until_condition("Suspended")
    run.patch({"run": {"suspend": False}})
    run.until_running("ps-0", "worker-0", "worker-1")
    run.end_pod("worker-1", 0)
    run.end_pod("worker-0", 0)
    run.until_end("Succeeded", "worker-0", "worker-1")


def depart(run):
    """A synchronous worker is removed by scaling and killed before it deregisters; a departure pod deregisters in its
    place."""
    run.until_running("ps-0", "worker-0", "worker-1")
    run.patch({"tasks": {"worker": {"replicas": 1}}})
    run.until("departure pod runs", lambda: run.is_departing("worker-1"))
    run.end_pod("worker-1", 0)
    run.until_running("ps-0", "worker-0")
    run.end_pod("worker-0", 0)
    run.until_end("Succeeded", "worker-0")


def delete(run):
    """The job is deleted when its pods run, or while no operator runs."""
    run.until("pods run", lambda: run.is_running("ps-0", "worker-0", "worker-1"), or_killed=True)
    run.delete_job()


SCENARIOS = {
    "finish": Scenario(finish, {**COMMAND, "security": {"networkPolicy": True, "mtls": True},
                             "run": {"cleanPodPolicy": "All"}}, True),
    "scale": Scenario(scale, COMMAND, True),
    "fail": Scenario(fail, COMMAND, True),
    "suspend": Scenario(suspend, COMMAND, True),
    "depart": Scenario(depart, {"mode": "sync", "tasks": TASKS, "program": {"train": {"dataset": {"path": "a.csv"}}}}, True),
    "delete": Scenario(delete, {**COMMAND, "security": {"networkPolicy": True, "mtls": True}}, False),
}
