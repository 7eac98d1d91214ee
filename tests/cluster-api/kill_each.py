# SPDX-License-Identifier: Apache-2.0
"""The operator is killed before and after every single request of one life of a job, from create to done.

An undisturbed life is played first and its requests are written down.  Then each of them is a case, twice: in a
namespace of its own the same life is played, the operator is killed (SIGKILL) right before the request reaches the
API server or right after it took effect, and another operator goes on.  Each life must end in the picture of the
undisturbed one, no index may ever have had two pods, and afterwards nothing may be written."""
import json
import re
import sys
import time

from world import (JOBS, Kubelet, Operator, Proxy, call, in_parallel, make_namespace, manifest, must, tidy, until)

WIDTH = 6
SPEC = {"program": {"command": ["x"]}, "tasks": {"ps": {"replicas": 1}, "worker": {"replicas": 2}},
        "security": {"networkPolicy": True}, "run": {"cleanPodPolicy": "All"}}


def kind_of(method, path, namespace):
    """What a request asks, without what differs from life to life."""
    path = path.replace(namespace, "NS")
    path = re.sub(r"resourceVersion=\d+|timeoutSeconds=\d+", "", path)
    return method, re.sub(r"/events/.*", "/events/EVENT", path)


def picture(namespace):
    """The job's end, without times and uids."""
    status, job = call("GET", JOBS % namespace + "/j")
    said = job["status"]
    for condition in said["conditions"]:
        condition.pop("lastTransitionTime")
    for entry in said["ledger"]:
        entry.pop("uid"), entry.pop("podCreated", None)
    said.pop("startTime"), said.pop("completionTime")
    said["cluster"].pop("members")  # a hash of addresses, which have the namespace in them
    pods = must("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
    services = must("GET", f"/api/v1/namespaces/{namespace}/services")["items"]
    return json.dumps([said, [p["metadata"]["name"] for p in pods], [s["metadata"]["name"] for s in services]],
                      sort_keys=True)


def phase(namespace):
    return call("GET", JOBS % namespace + "/j")[1].get("status", {}).get("phase")


def live(name, hook=None, leader=False):
    """Plays one life; hook(kind, nth) says what happens to a request.  Returns the requests and the end."""
    namespace = make_namespace(name)
    proxy, seen = Proxy(), {}
    kubelet = Kubelet(namespace)
    operators, armed = [], [True]

    def fate(method, path, number):
        kind = kind_of(method, path, namespace)
        seen[kind] = seen.get(kind, 0) + 1
        what = hook(kind, seen[kind]) if hook and armed[0] else None
        if what:
            armed[0] = False
        return what

    def kill():
        operators[-1].kill()

    proxy.hook, proxy.kill = fate, kill
    operators.append(Operator(proxy, namespace, "--workers=1", leader=leader))
    dead = lambda: operators[-1].process.poll() is not None

    def next_operator():
        if dead():
            operators.append(Operator(proxy, namespace, "--workers=1", leader=leader))

    def alive(test):
        def both():
            next_operator()
            return test()
        return both

    limit = 60
    try:
        must("POST", JOBS % namespace, manifest("j", **SPEC))
        until("Running", alive(lambda: phase(namespace) == "Running"), limit)
        until("all ready", alive(lambda: len(kubelet.pods) == 3), limit)
        for name in ("j-worker-1", "j-worker-0"):
            until(f"{name} done", alive(lambda: name not in kubelet.pods or
                  kubelet.pods[name]["status"]["phase"] in ("Running", "Succeeded")), limit)
            kubelet.end(name, 0)
        until("Succeeded", alive(lambda: phase(namespace) == "Succeeded"), limit)
        until("clean", alive(lambda: not must("GET", f"/api/v1/namespaces/{namespace}/pods")["items"] and
                             not must("GET", f"/api/v1/namespaces/{namespace}/services")["items"]), limit)
        # a request that ends the life may be a case too: give it its time, then somebody must be there
        time.sleep(0.3)
        next_operator()
        until("a look of whoever is there", lambda: not dead(), 5)
        time.sleep(0.7)
        before = proxy.writes() - lease_writes(proxy)
        time.sleep(0.8)
        assert proxy.writes() - lease_writes(proxy) == before, f"{namespace}: written after the end"
        double = {n: u for n, u in kubelet.uids.items() if len(u) != 1}
        assert not double, f"more than one pod for {double}"
        return dict(seen), picture(namespace), armed[0]
    finally:
        kubelet.stop()
        if not dead():
            operators[-1].stop()
        proxy.close()


def lease_writes(proxy):
    with proxy.lock:
        return sum(1 for e in proxy.log if e[1] != "GET" and "/leases" in e[2])


def main():
    began = time.monotonic()
    seen, wanted, _ = live("kill-none")
    led, _, _ = live("kill-led", leader=True)
    cases = [(kind, n, side, False) for kind, times in seen.items() for n in range(1, times + 1)
             for side in ("before", "after")]
    cases += [(kind, n, side, True) for kind in led if "/leases" in kind[1] for n in (1, 2) if n <= led[kind]
              for side in ("before", "after")]
    # those that wait for a lease to expire first
    cases.sort(key=lambda c: not c[3])
    missed = []

    def run(case):
        kind, nth, side, leader = case
        for again in range(3):
            name = f"kill-{cases.index(case)}-{again}"
            _, end, unarmed = live(name, lambda k, n: side if k == kind and n == nth else None, leader)
            assert end == wanted, f"the end differs in {name}: {end} instead of {wanted}"
            if not unarmed:
                return
        missed.append(case)  # this request is not made in every life

    failed = in_parallel(cases, run, WIDTH)
    for (kind, nth, side, _), why in failed:
        print(f"    killed {side} {kind[0]} {kind[1]} #{nth}: {why}")
    print(f"    {len(seen)} kinds of requests, {len(cases)} lives with a kill, {len(failed)} failed, "
          f"{len(missed)} where the request did not come ({time.monotonic() - began:.0f} s)")
    for kind, nth, side, _ in missed:
        print(f"    did not come: {kind[0]} {kind[1]} #{nth}")
    return 1 if failed or len(missed) > len(cases) // 10 else 0


try:
    sys.exit(main())
finally:
    tidy()
