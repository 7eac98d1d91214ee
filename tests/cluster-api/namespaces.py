# SPDX-License-Identifier: Apache-2.0
"""One operator watches two of three namespaces, with a Role in each of the two and no other permission.

Faults of one namespace (its watches repeatedly get 410) do not affect jobs of the other, and the third namespace is
never requested.
"""
import sys
import time

from world import (JOBS, Kubelet, Operator, Proxy, RBAC, call, grant, make_namespace, manifest, must, pairs_of, tidy,
                   until)


def phase(ns):
    return (call("GET", JOBS % ns + "/j")[1].get("status") or {}).get("phase")


def main():
    one, two, other = (make_namespace(f"several-{i}") for i in range(3))
    user = f"{one}-user"
    pairs = [p for p in pairs_of(must("GET", f"{RBAC}/clusterroles/muster")["rules"]) if p[1] != "nodes"]
    for ns in (one, two):
        grant(ns, user, pairs)
    for ns in (one, two, other):
        must("POST", JOBS % ns, manifest("j", tasks={"ps": {}, "worker": {}}))
    proxy, gone = Proxy(user=user), {}

    def hook(method, path, number):
        if f"/{one}/" in path and "watch=1" in path:
            kind = path.split("?")[0]
            gone[kind] = gone.get(kind, 0) + 1
            return "gone" if gone[kind] <= 4 else None
        return None

    proxy.hook = hook
    kubelets = [Kubelet(ns) for ns in (one, two)]
    operator = Operator(proxy, None, f"--namespace={one}", f"--namespace={two},{one}", log=None)
    try:
        for ns in (one, two):
            until(f"{ns} runs", lambda: phase(ns) == "Running", 40)
        until("all lists again", lambda: len(gone) >= 3 and all(n > 4 for n in gone.values()), 40)
        before = proxy.writes()
        time.sleep(1)
        assert proxy.writes() == before, "written after both run"
        assert phase(other) is None, "the third namespace was touched"
        for kubelet in kubelets:
            assert all(len(u) == 1 for u in kubelet.uids.values()), kubelet.uids
        refused = [e for e in proxy.log if len(e) > 3 and e[3] == 403]
        assert not refused, f"asked for what is not its: {refused[:2]}"
        assert not [e for e in proxy.log if f"/{other}/" in e[2]]
        assert operator.process.poll() is None
    finally:
        for kubelet in kubelets:
            kubelet.stop()
        operator.stop()
        proxy.close()
    print(f"    {sum(gone.values())} watches, {4 * len(gone)} of them told that history is gone")
    return 0


try:
    sys.exit(main())
finally:
    tidy()
