# SPDX-License-Identifier: Apache-2.0
"""Kills the operator at every API call of each scenario (kill_scenarios.py) and starts another one.

A run without faults records the calls of a scenario.  Then each call is a case: a run in a namespace of its own in which
the operator gets SIGKILL at that call.  "after": the API server has answered, and the answer does not reach the
operator.  "before": the operator has used the answers of all earlier calls, and this call does not reach the API
server.  Each run must end in the state of the run without faults, with the same pods created, and then write nothing.

A killed operator leaves nothing but what the API server stores, so "after" each write reaches every such state.
That is the default.  KILL_CALLS=all kills at every call, before and after it.  KILL_SCENARIOS names the scenarios."""
import difflib
import json
import os
import re
import sys
import time

from kill_scenarios import SCENARIOS
from world import (JOBS, Kubelet, Operator, Proxy, call, in_parallel, make_namespace, manifest, merge, must, tidy, until)

PARALLEL_RUNS = int(os.environ.get("KILL_PARALLEL", 10))
STATUS_MIN_INTERVAL_S = 5  # as in operator/controller/status.c
STEP_LIMIT_S = 60
RUNS_PER_CASE = 3  # a call that does not occur gets this many runs
OWNED = ("api/v1/namespaces/%s/pods", "api/v1/namespaces/%s/services", "api/v1/namespaces/%s/secrets",
         "apis/networking.k8s.io/v1/namespaces/%s/networkpolicies")


def without_identity(text, namespace):
    """Removes the parts that differ between runs: namespace, times, uids, hashes and certificates."""
    text = text.replace(namespace, "NAMESPACE")
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", text)
    text = re.sub(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", "CERTIFICATE", text)
    text = re.sub(r"j-tls-[0-9a-f]{8}", "j-tls-ID", text)
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|\b[0-9a-f]{16,}\b|\b1[0-9]{9}\.[0-9]+", "ID", text)


def kind_of(method, path, namespace):
    path = re.sub(r"resourceVersion=\d+|timeoutSeconds=\d+", "", without_identity(path, namespace))
    return method, re.sub(r"/events/.*", "/events/EVENT", path)


class Run:
    """One job in a namespace of its own, its kubelet, and its operators, one after another."""

    def __init__(self, scenario, name, kill_at=None, leader=False):
        self.scenario, self.leader = scenario, leader
        self.namespace = make_namespace(name)
        self.job_path = JOBS % self.namespace + "/j"
        self.calls, self.kill_at, self.was_killed = {}, kill_at, False
        self.proxy, self.kubelet = Proxy(), Kubelet(self.namespace, node="some-node")
        self.proxy.hook, self.proxy.kill = self.on_call, self.kill
        self.operator, self.unused_secrets = None, 0

    def on_call(self, method, path, number):
        kind = kind_of(method, path, self.namespace)
        self.calls[kind] = self.calls.get(kind, 0) + 1
        if self.kill_at and not self.was_killed and self.kill_at[:2] == (kind, self.calls[kind]):
            self.was_killed = True
            return self.kill_at[2]
        return None

    def kill(self):
        self.operator.kill()

    def is_killed(self):
        return self.operator.process.poll() is not None

    def start_operator(self):
        self.operator = Operator(self.proxy, self.namespace, "--workers=1", leader=self.leader)

    def restart_killed(self):
        if self.is_killed():
            assert self.operator.process.returncode == -9, f"the operator exited with {self.operator.process.returncode}"
            self.operator.log.close()
            self.start_operator()

    # ---- the steps of a scenario ----
    def until(self, what, test, or_killed=False):
        def step():
            if or_killed and self.is_killed():
                return True
            self.restart_killed()
            return test()
        until(what, step, STEP_LIMIT_S)

    def status(self):
        return call("GET", self.job_path)[1].get("status") or {}

    def has_pods(self, *names):
        return set(self.kubelet.pods) == {"j-" + n for n in names}

    def is_running(self, *names):
        """True once the operator has reported that exactly these pods are ready."""
        status = self.status()
        return (self.has_pods(*names) and all(p["status"]["phase"] == "Running" for p in list(self.kubelet.pods.values()))
                and status.get("phase") == "Running" and status["summary"]["ready"] == f"{len(names)}/{len(names)}")

    def is_departing(self, name):
        pod = self.kubelet.pods.get("j-" + name)
        return pod and pod["status"]["phase"] == "Running" and "MUSTER_LEAVE" in json.dumps(pod["spec"])

    def until_running(self, *names):
        self.until(f"{', '.join(names)} run", lambda: self.is_running(*names))

    def until_end(self, phase, *names):
        self.until(f"{phase} with the pods {names}", lambda: self.status().get("phase") == phase and self.has_pods(*names))

    def until_condition(self, name):
        self.until(name, lambda: any(c["type"] == name and c["status"] == "True"
                                     for c in self.status().get("conditions", [])))

    def patch(self, spec):
        merge(self.job_path, {"spec": spec})

    def end_pod(self, name, code):
        uid = self.kubelet.pods["j-" + name]["metadata"]["uid"]
        self.kubelet.end("j-" + name, code)
        until(f"{name} has ended", lambda: (pod := self.kubelet.pods.get("j-" + name)) is None
              or pod["metadata"]["uid"] != uid or pod["status"]["phase"] != "Running")

    def delete_job(self):
        must("DELETE", self.job_path)

    # ---- the end ----
    def collect_garbage(self):
        """Deletes the dependents of a deleted job, since no garbage collector runs here."""
        if call("GET", self.job_path)[0] == 404:
            for path in OWNED:
                call("DELETE", "/" + path % self.namespace, {"gracePeriodSeconds": 0})

    def drop_unused_secrets(self, secrets, used):
        """Known fault: an operator that is killed after it has created the Secret, and before the status names it,
        leaves that Secret until the job is deleted.  main() prints how many."""
        unused = [name for name in secrets if name != used]
        assert len(unused) <= self.was_killed, f"unused secrets {unused}"
        self.unused_secrets = len(unused)
        for name in unused:
            assert secrets.pop(name)[-1][0]["kind"] == "DistributedTrainingJob"

    def state(self):
        """The job's status and all objects, comparable between runs."""
        code, job = call("GET", self.job_path)
        status = job.get("status", {}) if code == 200 else {}
        objects = {path: {o["metadata"]["name"]: [o["metadata"].get("labels"), o.get("type"), o.get("spec"),
                                                  sorted(o.get("data", {})), o["metadata"].get("ownerReferences")]
                          for o in must("GET", "/" + path % self.namespace)["items"]} for path in OWNED}
        pods = {name: list(uids.values()) for name, uids in self.kubelet.uids.items()} if self.scenario.counts_pods else None
        for service in objects[OWNED[1]].values():
            service[2].pop("clusterIPs", None)
        if code == 200:
            self.drop_unused_secrets(objects[OWNED[2]], status.get("security", {}).get("secret"))
        return without_identity(json.dumps({"job": code, "status": status, "objects": objects, "pods created": pods},
                                           indent=1, sort_keys=True), self.namespace)

    def writes(self):
        with self.proxy.lock:
            return sum(1 for e in self.proxy.log if e[1] != "GET" and "/leases" not in e[2])

    def is_quiet(self, seconds):
        before = self.writes()
        time.sleep(seconds)
        return self.writes() == before

    def check_end(self, wanted):
        """Checks that the run has reached the state of the run without faults, and that another operator does not
        change it."""
        deadline = time.monotonic() + STEP_LIMIT_S / 2
        while self.state() != wanted:
            assert time.monotonic() < deadline, "the end differs:\n" + "\n".join(
                difflib.unified_diff(wanted.splitlines(), self.state().splitlines(), "without faults", "killed", n=1, lineterm=""))
            self.collect_garbage()
            self.restart_killed()
            time.sleep(0.1)
        # the last call of the scenario may be the case, and an operator that has just started reads first
        time.sleep(0.3)
        self.restart_killed()
        time.sleep(0.7)
        assert self.is_quiet(0.8), "a write after the end"
        assert self.state() == wanted, "the end does not stay"

    def play(self, wanted=None):
        """Runs the scenario with one kill, and returns the final state."""
        try:
            must("POST", JOBS % self.namespace, manifest("j", **self.scenario.spec))
            self.start_operator()
            self.scenario.play(self)
            if wanted:
                self.check_end(wanted)
            else:
                self.collect_garbage()
                until("quiet", lambda: self.is_quiet(STATUS_MIN_INTERVAL_S + 1), STEP_LIMIT_S)
            return self.state()
        finally:
            self.kubelet.stop()
            if self.operator and not self.is_killed():
                self.operator.stop()
            self.proxy.close()


def cases_of(name, everything):
    """Runs the scenario without faults; returns (scenario, end, (kind, nth, side), leader) of each case."""
    run = Run(SCENARIOS[name], f"kill-{name}")
    wanted = run.play()
    sides = ("before", "after") if everything else ("after",)
    calls = [(kind, n, side) for kind, times in run.calls.items() for n in range(1, times + 1) for side in sides
             if everything or kind[0] != "GET"]
    cases = [(name, wanted, c, False) for c in calls]
    if name == "finish":  # these wait for a lease to expire, so they start first
        led = Run(SCENARIOS[name], "kill-led", leader=True)
        led.play()
        cases = [(name, wanted, (kind, n, side), True) for kind, times in led.calls.items() if "/leases" in kind[1]
                 for n in (1, 2) if n <= times and (everything or kind[0] != "GET") for side in sides] + cases
    return cases


def main():
    began = time.monotonic()
    everything = os.environ.get("KILL_CALLS") == "all"
    names = os.environ.get("KILL_SCENARIOS", " ".join(SCENARIOS)).split()
    cases, missed, unused_secrets = [], [], []
    failed = in_parallel(names, lambda name: cases.extend(cases_of(name, everything)), PARALLEL_RUNS)
    if failed:
        print("\n".join(f"    without faults {name}: {why}" for name, why in failed))
        return 1
    cases.sort(key=lambda case: not case[3])
    number = {id(case): i for i, case in enumerate(cases)}

    def play(case):
        name, wanted, kill_at, leader = case
        for _ in range(RUNS_PER_CASE):
            run = Run(SCENARIOS[name], f"kill-{name}-{number[id(case)]}", kill_at, leader)
            run.play(wanted)
            unused_secrets.append(run.unused_secrets)
            if run.was_killed:
                return
        missed.append(case)

    failed = in_parallel(cases, play, PARALLEL_RUNS)
    for (name, _, (kind, nth, side), leader), why in failed:
        print(f"    {name}{' with leases' if leader else ''}, killed {side} {kind[0]} {kind[1]} #{nth}: {why}")
    for name, _, (kind, nth, side), _ in missed:
        print(f"    {name}: no call {kind[0]} {kind[1]} #{nth} came")
    per_scenario = ", ".join(f"{name} {sum(c[0] == name for c in cases)}" for name in names)
    print(f"    {len(cases)} runs with a kill ({per_scenario}), {len(failed)} failed, {len(missed)} without their call "
          f"({time.monotonic() - began:.0f} s)")
    print(f"    known fault: {sum(unused_secrets)} unused secrets left")
    return 1 if failed or len(missed) > len(cases) // 10 else 0


try:
    sys.exit(main())
finally:
    tidy()
