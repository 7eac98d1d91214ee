# SPDX-License-Identifier: Apache-2.0
"""Two replicas of the operator: SIGSTOP stops the leader until its lease has expired, and the other replica takes over.
Then SIGCONT resumes the first.  No write of the stale leader may take effect: after SIGCONT, only its reads and the
release of its lease may succeed.  Fifty pairs run, each in its own namespace.  Each leader is stopped at another moment
of a job's life: at the n-th request, or some milliseconds after it."""
import signal
import sys
import threading
import time

from world import (JOBS, Kubelet, Operator, Proxy, call, in_parallel, make_namespace, manifest, must, tidy, until)

PAIRS, WIDTH = 50, 25


def holder(ns):
    status, lease = call("GET", f"/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/muster-operator")
    return lease["spec"].get("holderIdentity") if status == 200 else None


def pair(index):
    ns = make_namespace(f"stale-{index}")
    kubelet = Kubelet(ns)
    proxies = [Proxy(), Proxy()]
    operators = [Operator(proxies[0], ns, leader=True)]
    job = JOBS % ns + "/j"
    try:
        first = until("a leader", lambda: holder(ns), 30)
        operators.append(Operator(proxies[1], ns, leader=True))
        stopped = threading.Event()
        seen = [0]

        # writes are counted from the creation of the job; the tenth comes after Running
        def stop_at(method, path, number):
            if method != "GET" and "/leases" not in path:
                seen[0] += 1
                if seen[0] > index % 10 and not stopped.is_set():
                    if index % 2:
                        operators[0].signal(signal.SIGSTOP)
                    else:  # a little later: between two calls, within a reconcile
                        threading.Timer(index / 5000, operators[0].signal, (signal.SIGSTOP,)).start()
                    stopped.set()
            return None

        proxies[0].hook = stop_at
        must("POST", JOBS % ns, manifest("j", program={"command": ["x"]},
                                         tasks={"ps": {"replicas": 1}, "worker": {"replicas": 2}}))
        if not stopped.wait(5):  # fewer writes: stop the leader while it is idle
            operators[0].signal(signal.SIGSTOP)
        time.sleep(0.1)
        until("the other leads", lambda: holder(ns) not in (None, "", first), 60, 0.3)
        until("the job runs", lambda: (call("GET", job)[1].get("status") or {}).get("phase") == "Running", 30)
        kubelet.end("j-worker-1", 0)
        kubelet.end("j-worker-0", 0)
        woke = time.monotonic()
        operators[0].signal(signal.SIGCONT)
        until("it ends by itself", lambda: operators[0].process.poll() is not None, 20)
        until("the job ends", lambda: (call("GET", job)[1].get("status") or {}).get("phase") == "Succeeded", 30)
        until("another has led to the end", lambda: holder(ns) not in (None, "", first), 5)
        late = [e for e in proxies[0].log if e[0] > woke and e[1] != "GET" and len(e) > 3 and e[3] < 300]
        assert not late, f"the stale leader wrote: {[e[1:] for e in late]}"
        double = {n: u for n, u in kubelet.uids.items() if len(u) != 1}
        assert not double, f"more than one pod for {double}"
        assert operators[1].process.poll() is None, "the new leader has ended"
    finally:
        kubelet.stop()
        for o in operators:
            if o.process.poll() is None:
                o.stop()
        for p in proxies:
            p.close()


def main():
    began = time.monotonic()
    failed = in_parallel(range(PAIRS), pair, WIDTH)
    for index, why in failed:
        print(f"    pair {index}: {why}")
    print(f"    {PAIRS} stale leaders, {len(failed)} pairs failed ({time.monotonic() - began:.0f} s)")
    return 1 if failed else 0


try:
    sys.exit(main())
finally:
    tidy()
