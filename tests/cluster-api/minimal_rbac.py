# SPDX-License-Identifier: Apache-2.0
"""The operator's permissions are minimal: without any one (resource, verb) of the chart's rules, this test fails.

One scenario of three jobs uses every permission: a gang with a NetworkPolicy is scaled, restarted and removed by its
TTL; a PodGroup of another gang scheduler is created; name conflicts are reported; an event repeats.  It first runs
with all permissions while every request is recorded: none may be forbidden, and each permission must have been used.

Then it runs without one permission, in a namespace and as a user of its own, until a request that needs it is forbidden.
A scenario that completes without it is a failure.  All permissions are tested, many at once; RIGHTS="VERB RESOURCE,..."
selects some."""
import base64
import os
import sys
import threading
import time

from world import (JOBS, Kubelet, Operator, Proxy, RBAC, call, grant, in_parallel, make_namespace, manifest, merge,
                   must, pairs_of, tidy, until)

WIDTH = 16
GROUPS = {"volcano": "/apis/scheduling.volcano.sh/v1beta1", "scheduler-plugins": "/apis/scheduling.x-k8s.io/v1alpha1"}


def make_group_kinds():
    for kind, path in GROUPS.items():
        group, version = path.split("/")[2:]
        name = f"podgroups.{group}"
        call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
            "metadata": {"name": name, "annotations": {"api-approved.kubernetes.io": "unapproved"}},
            "spec": {"group": group, "scope": "Namespaced",
                     "names": {"plural": "podgroups", "singular": "podgroup", "kind": "PodGroup"},
                     "versions": [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                         "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}})
        until(name, lambda: call("GET", f"{path}/namespaces/default/podgroups")[0] == 200)


def drop_group_kinds():
    for path in GROUPS.values():
        call("DELETE", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podgroups.{path.split('/')[2]}")


class Refused(Exception):
    pass


class Life:
    """An operator that lacks one permission, and its scenario; the scenario ends at the first rejected request."""

    def __init__(self, name, pairs, lacks=None):
        self.ns, self.lacks = make_namespace(name), lacks
        grant(self.ns, name, pairs)
        self.proxy = Proxy(user=name)
        self.step = "nothing yet"

    def events(self, job):
        listed = must("GET", f"/apis/events.k8s.io/v1/namespaces/{self.ns}/events")["items"]
        return [e for e in listed if e["regarding"]["name"] == job]

    def object(self, path):
        status, said = call("GET", path)
        return said if status == 200 else None

    def expect(self, what, test):
        self.step = what

        def tried():
            self.tend()
            return self.is_forbidden() or test()
        until(what, tried, max(0.1, self.deadline - time.monotonic()))
        if self.is_forbidden():
            raise Refused(what)

    def start(self):
        self.operator = Operator(self.proxy, self.ns, "--nodes=true", leader=True)

    def tend(self):
        """Restarts an operator that has ended, as its Deployment would. On a busy machine it may not renew its lease
        in time."""
        if self.operator.process.poll() is not None:
            self.operator.stop()
            self.start()

    def forbidden(self):
        with self.proxy.lock:
            return [e for e in self.proxy.log if len(e) > 3 and e[3] == 403]

    def is_forbidden(self):
        return self.lacks and any(pair_of(e[1], e[2]) == self.lacks for e in self.forbidden())

    def job(self, name):
        return self.object(JOBS % self.ns + "/" + name) or {}

    def phase_is(self, name, phase):
        return self.job(name).get("status", {}).get("phase") == phase

    def play(self, limit):
        """Runs the scenario; raises an error if an expected state is not reached within `limit` seconds."""
        self.deadline = time.monotonic() + limit
        core, ns = f"/api/v1/namespaces/{self.ns}", self.ns
        kubelet = Kubelet(ns)
        must("POST", f"{core}/services", {"metadata": {"name": "taken"}, "spec": {"ports": [{"port": 80}]}})
        must("POST", f"{core}/pods", {"metadata": {"name": "taken-ps-0"}, "spec": {"containers": [
            {"name": "c", "image": "x"}]}})
        must("POST", JOBS % ns, manifest("early", tasks={"worker": {}}))  # precedes the operator, which must read it
        self.start()
        try:
            self.lead(ns)
            self.expect("a job of before runs", lambda: self.phase_is("early", "Running"))
            self.gang(core, ns, kubelet)
            self.others(core, ns, kubelet)
            self.certificates(core, ns)
            self.nodes(core, ns)
        finally:
            kubelet.stop()
            self.operator.stop()
            self.proxy.close()
            call("DELETE", f"/api/v1/nodes/{ns}")

    def lead(self, ns):
        path = f"/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/muster-operator"
        self.expect("the lease is held", lambda: (self.object(path) or {}).get("spec", {}).get("holderIdentity"))
        first = self.object(path)["spec"]["renewTime"]
        self.expect("the lease is renewed", lambda: self.object(path)["spec"]["renewTime"] != first)

    def gang(self, core, ns, kubelet):
        group = f"{GROUPS['volcano']}/namespaces/{ns}/podgroups/g"
        policy = f"/apis/networking.k8s.io/v1/namespaces/{ns}/networkpolicies/g"
        must("POST", JOBS % ns, manifest("g", program={"command": ["x"]}, security={"networkPolicy": True},
             tasks={"ps": {}, "worker": {"replicas": 1}},
             run={"gang": "volcano", "cleanPodPolicy": "All"}))
        self.expect("the gang runs", lambda: self.phase_is("g", "Running"))
        self.expect("it has its event", lambda: any(e["reason"] == "PodsCreated" for e in self.events("g")))
        merge(JOBS % ns + "/g", {"spec": {"tasks": {"worker": {"replicas": 2}}}})
        self.expect("a worker joins", lambda: "g-worker-1" in kubelet.pods)
        self.expect("the group has grown", lambda: self.object(group)["spec"]["minMember"] == 3)
        call("DELETE", policy)
        self.expect("the policy comes back", lambda: self.object(policy))
        call("DELETE", group)
        self.expect("the group comes back", lambda: self.object(group))
        for name in ("g-worker-1", "g-worker-0"):
            self.expect(f"{name} runs", lambda: kubelet.pods.get(name, {}).get("status", {}).get("phase") == "Running")
            kubelet.end(name, 0)
        self.expect("its service goes", lambda: not self.object(f"{core}/services/g"))
        # set only now: no garbage collector is here to delete its service if the job goes before its last pod
        merge(JOBS % ns + "/g", {"spec": {"run": {"ttlSecondsAfterFinished": 1}}})
        self.expect("it is gone after its time", lambda: not self.job("g"))

    def others(self, core, ns, kubelet):
        group = f"{GROUPS['scheduler-plugins']}/namespaces/{ns}/podgroups/s"
        must("POST", JOBS % ns, manifest("s", tasks={"worker": {}}, run={"gang": "scheduler-plugins"}))
        self.expect("the other gang runs", lambda: self.phase_is("s", "Running"))
        merge(JOBS % ns + "/s", {"spec": {"tasks": {"worker": {"replicas": 2}}}})
        self.expect("the other group has grown", lambda: self.object(group)["spec"]["minMember"] == 2)
        call("DELETE", group)
        self.expect("the other group comes back", lambda: self.object(group))
        uid = self.object(f"{core}/services/s")["metadata"]["uid"]
        call("DELETE", f"{core}/services/s")
        self.expect("the service comes back", lambda: (self.object(f"{core}/services/s") or {"metadata": {"uid": uid}})
                    ["metadata"]["uid"] != uid)
        must("POST", f"/apis/networking.k8s.io/v1/namespaces/{ns}/networkpolicies",
             {"metadata": {"name": "taken"}, "spec": {"podSelector": {}}})
        must("POST", JOBS % ns, manifest("taken", tasks={"ps": {}, "worker": {}}, security={"networkPolicy": True}))
        for what in ("services/taken", "pods/taken-ps-0", "networkpolicies/taken"):
            self.expect(f"{what} is reported", lambda: any(
                e["reason"] == "NameTaken" and what in e["note"] for e in self.events("taken")))

    def certificates(self, core, ns):
        """The operator creates the Secret of a job, and adds the next CA when the certificates are old."""
        def security():
            return self.job("c").get("status", {}).get("security", {})

        def authorities():
            secret = self.object(f"{core}/secrets/{security().get('secret', 'none-yet')}")
            return base64.b64decode(secret["data"]["ca.crt"]).count(b"BEGIN CERTIFICATE") if secret else 0
        must("POST", JOBS % ns, manifest("c", tasks={"worker": {}}, security={"mtls": True}))
        self.expect("it has a secret", lambda: authorities() == 1)
        self.expect("its pod mounts it", lambda: any(
            v.get("secret", {}).get("secretName") == security()["secret"]
            for v in (self.object(f"{core}/pods/c-worker-0") or {"spec": {"volumes": []}})["spec"]["volumes"]))
        merge(JOBS % ns + "/c/status", {"status": {"security": {"issuedAt": "2020-01-01T00:00:00Z"}}})
        self.expect("the next CA joins", lambda: authorities() == 2)

    def nodes(self, core, ns):
        """Checks that the operator knows a node that was added after its start."""
        must("POST", "/api/v1/nodes", {"metadata": {"name": ns, "labels": {
            f"only-{ns}": "yes", "kubernetes.io/arch": "amd64", "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.compute.major": "9", "nvidia.com/gpu.compute.minor": "0"}}})
        merge(f"/api/v1/nodes/{ns}/status", {"status": {"capacity": {"nvidia.com/gpu": "8"}, "allocatable": {
            "nvidia.com/gpu": "8"}, "conditions": [{"type": "Ready", "status": "True"}]}})

        def chosen():
            name = f"n{time.monotonic_ns() % 1000000000}"
            must("POST", JOBS % ns, manifest(name, tasks={"worker": {"kernels": "auto"}}))
            until("a pod", lambda: self.object(f"{core}/pods/{name}-worker-0"), 5)
            limits = self.object(f"{core}/pods/{name}-worker-0")["spec"]["containers"][0].get("resources", {})
            call("DELETE", JOBS % ns + "/" + name)
            return "nvidia.com/gpu" in limits.get("limits", {})
        self.expect("the new node's GPU is used", chosen)


VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def pair_of(method, path):
    """Returns (group, resource, verb) of a request, as RBAC sees it."""
    path, _, query = path.partition("?")
    parts = path.strip("/").split("/")
    group = parts[1] if parts[0] == "apis" else ""
    rest = parts[3:] if parts[0] == "apis" else parts[2:]
    if rest[0] == "namespaces" and len(rest) > 2:
        rest = rest[2:]
    resource = "/".join(rest[:1] + rest[2:])
    if method != "GET":
        return group, resource, VERBS[method]
    return group, resource, "get" if len(rest) > 1 else "watch" if "watch=1" in query else "list"


def without_each(lacking, pairs, limit):
    """Runs the scenario without each of `lacking` in turn; returns (permissions that no request needs, those whose
    run failed)."""
    unmissed, lock = [], threading.Lock()

    def run(pair):
        life = Life(f"rights-{pairs.index(pair)}", [p for p in pairs if p != pair], lacks=pair)
        try:
            life.play(limit)
        except Refused:
            with lock:
                print(f"    without {pair[2]} {pair[1]} {pair[0]}: forbidden at '{life.step}'", flush=True)
            return
        with lock:
            unmissed.append(pair)

    failed = in_parallel(lacking, run, WIDTH)
    return unmissed, failed


def main():
    began = time.monotonic()
    make_group_kinds()
    pairs = pairs_of(must("GET", f"{RBAC}/clusterroles/muster")["rules"])
    pairs += pairs_of(must("GET", f"{RBAC}/namespaces/muster-system/roles/muster-lease")["rules"])
    pairs = sorted(set(pairs))
    whole, start = Life("rights-all", pairs), time.monotonic()
    # An object that is deleted before the informer cache has it counts as existing for a minute. A scenario on a
    # busy machine meets this several times.
    whole.play(420)
    took = time.monotonic() - start
    forbidden = whole.forbidden()
    used = {pair_of(e[1], e[2]) for e in whole.proxy.log}
    unused, failed = [p for p in pairs if p not in used], []
    if not forbidden:
        wanted = os.environ.get("RIGHTS", "each")
        lacking = [p for p in pairs if wanted == "each" or f"{p[2]} {p[1]}" in wanted.split(",")]
        more, failed = without_each(lacking, pairs, max(420, len(lacking) * took))
        unused += more
    if forbidden:
        print(f"    with all rights, forbidden: {forbidden[:3]}")
    for pair, why in failed:
        print(f"    {pair}: {why}")
    for pair in unused:
        print(f"    no request needs {pair[2]} {pair[1]} of '{pair[0]}'")
    print(f"    {len(pairs)} rights, {len(unused)} that no request needs ({time.monotonic() - began:.0f} s)")
    drop_group_kinds()
    return 1 if unused or failed or forbidden else 0


try:
    sys.exit(main())
finally:
    tidy()
