# SPDX-License-Identifier: Apache-2.0
"""Manifests derived from the schema of the CRD.

bad    each field gets each kind of invalid value (its type, range, length, pattern, choice): the API server rejects it
       and names the field, or the operator reports it in a condition.  A valid job beside them runs meanwhile.
live   each field of a running job gets another valid value: the change is rejected with a reason, or the operator
       applies it (observedGeneration) and the job continues.  Each CEL rule of the CRD must have rejected a manifest
       here or in manifests.txt, which also has valid manifests.
"""
import copy
import json
import os
import sys
import threading
import time

from world import (JOBS, Kubelet, Operator, Proxy, call, in_parallel, make_namespace, manifest, must, tidy, until)

CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/distributedtrainingjobs.muster.dev"
# other fields that some fields need to be valid
BESIDE = {
    "program.args": {"program": {"command": ["x"]}},
    "program.classicFlags": {"program": {"command": ["x"]}},
    "program.train": {"program": {"train": {"dataset": {"path": "a.csv"}}}},
    "program.train.hiddenUnits": {"program": {"train": {"model": "mlp"}}},
    "checkpoint": {"checkpoint": {"path": "/c"}},
    "summaries": {"summaries": {"path": "/s"}},
    "sync": {"mode": "sync", "sync": {}},
    "run.queue": {"run": {"gang": "volcano"}},
    "run.priorityClass": {"run": {"gang": "volcano"}},
}


def merged(base, more):
    out = copy.deepcopy(base)
    for key, value in more.items():
        out[key] = merged(out[key], value) if isinstance(value, dict) and isinstance(out.get(key), dict) else value
    return out


def fields(schema, path=()):
    """Yields (path, schema) of every field; "worker" stands for every task."""
    for name, sub in schema.get("properties", {}).items():
        if sub.get("description", "").startswith("Not a field"):
            continue
        yield (*path, name), sub
        yield from fields(sub, (*path, name))
    sub = schema.get("additionalProperties")
    if isinstance(sub, dict):
        name = {"tasks": "worker"}.get(path[-1], "cpu")
        yield (*path, name), sub
        yield from fields(sub, (*path, name))


def at(path, value):
    for key in reversed(path):
        value = {key: value}
    return value


def base_for(path):
    spec = {"tasks": {"ps": {"replicas": 1}, "worker": {"replicas": 1}}}
    for prefix, more in BESIDE.items():
        if (".".join(path) + ".").startswith(prefix + "."):
            spec = merged(spec, more)
    return spec


def wrong_values(schema):
    kind = schema.get("type")
    if schema.get("x-kubernetes-int-or-string"):
        yield from ("a lot", "1 Gi", "", True, [])
        return
    yield from {"string": (7, True, {}, []), "integer": ("x", 1.5, True, {}), "number": ("x", True, []),
                "boolean": ("x", 1, {}), "array": ("x", {"a": 1}, 3), "object": ("x", [], 3)}.get(kind, ())
    if "enum" in schema:
        yield from ("Bogus", "")
    if "minimum" in schema:
        yield schema["minimum"] - 1
    if "maximum" in schema:
        yield schema["maximum"] + 1
    if schema.get("minLength"):
        yield ""
    if "maxLength" in schema and schema["maxLength"] < 5000:
        yield "a" * (schema["maxLength"] + 1)
    if "pattern" in schema:
        yield from ("A B", "-")
    if schema.get("minItems"):
        yield []
    if "maxItems" in schema and schema["items"].get("type") in ("string", "integer"):
        yield [7 if schema["items"]["type"] == "integer" else "a"] * (schema["maxItems"] + 1)
    if kind == "array":
        yield from ([w] for w in wrong_values(schema["items"]))


def other_value(schema, path):
    """Returns a valid value that differs from the present one, or None for a container."""
    if "enum" in schema:
        return schema["enum"][-1] if schema.get("default") != schema["enum"][-1] else schema["enum"][0]
    if schema.get("x-kubernetes-int-or-string"):
        return "2"
    kind = schema.get("type")
    if path[-1] == "kernels":
        return "cpu"
    if kind == "boolean":
        return not schema.get("default", False)
    if kind in ("integer", "number"):
        # far from 0, so that no deadline expires
        value = schema.get("default", 1000 if kind == "integer" else 0) + (1 if kind == "integer" else 0.01)
        return min(value, schema.get("maximum", value))
    if kind == "string":
        return "other"
    if kind == "array":
        return [64] if schema["items"]["type"] == "integer" else ["other"]
    return {"metadata": {"labels": {"a": "b"}}} if path[-1] == "template" else None


def schema_of_spec():
    return must("GET", CRD)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]


def settled(path):
    job = call("GET", path)[1]
    status = job.get("status", {})
    return job if status.get("observedGeneration") == job["metadata"]["generation"] else None


def condition(path, type):
    for c in (call("GET", path)[1].get("status") or {}).get("conditions", []):
        if c["type"] == type and c["status"] == "True":
            return c
    return None


def end(kubelet, operator, proxy):
    kubelet.stop()
    operator.stop()
    proxy.close()


def told(wrong, began, sum_of_it):
    for w in wrong:
        print(f"    {w}")
    print(f"    {sum_of_it}, {len(wrong)} wrong ({time.monotonic() - began:.0f} s)")


def bad():
    began, ns = time.monotonic(), make_namespace("mutations-bad")
    jobs = JOBS % ns
    proxy, kubelet = Proxy(), Kubelet(ns)
    operator = Operator(proxy, ns)
    cases, wrong, lock, accepted = [], [], threading.Lock(), [0]
    for path, schema in fields(schema_of_spec()):
        for value in wrong_values(schema):
            cases.append((path, value))
    # the schema does not restrict these; the operator must report the error
    for template in (7, "x", [], {"spec": 3}, {"spec": {"containers": {}}}, {"spec": {"containers": ["no map"]}},
                     {"spec": {"containers": [{"env": 3}]}}, {"spec": {"volumes": "x"}}, {"metadata": []},
                     {"metadata": {"labels": 3}}, {"spec": {"containers": [{"ports": [{"containerPort": "x"}]}]}},
                     {"spec": {"nodeSelector": {"a": 3}}}, {"spec": {"restartPolicy": "Sometimes"}},
                     {"spec": {"unknown": {"deep": [1]}, "containers": [{"image": ""}]}}):
        cases.append((("tasks", "worker", "template"), template))

    def run(case):
        index, (path, value) = case
        spec = merged(base_for(path), at(path, value))
        status, said = call("POST", jobs, manifest(f"bad{index}", **spec))
        if status >= 300:
            message = said.get("message", "")
            named = path[-1] in message or f"spec.{path[0]}" in message
            if status not in (400, 422) or not named:
                with lock:
                    wrong.append(f"{path} = {str(value)[:60]!r}: {status} {message[:200]}")
            return
        with lock:
            accepted[0] += 1
        name = f"{jobs}/bad{index}"

        def answered():
            events = must("GET", f"/apis/events.k8s.io/v1/namespaces/{ns}/events")["items"]
            return condition(name, "Failed") or condition(name, "Running") or any(
                e["regarding"]["name"] == f"bad{index}" and e["type"] == "Warning" for e in events)
        try:
            until(f"an answer to {path} = {str(value)[:60]!r}", answered, 20, 0.3)
        except AssertionError as e:
            with lock:
                wrong.append(f"{e}: {json.dumps(call('GET', name)[1].get('status', {}))[:300]}")
        call("DELETE", name)

    try:
        served = [0]
        for part in range(4):
            failed = in_parallel(list(enumerate(cases))[part::4], run, 6)
            wrong += [why for _, why in failed]
            must("POST", jobs, manifest(f"good{part}", tasks={"ps": {}, "worker": {}}))
            until("the healthy job runs", lambda: condition(f"{jobs}/good{part}", "Running"), 15)
            served[0] += 1
        if operator.process.poll() is not None:
            wrong.append("the operator has ended")
    finally:
        end(kubelet, operator, proxy)
    told(wrong, began, f"{len(cases)} bad manifests, {accepted[0]} of them for the operator to refuse, {served[0]} jobs "
                       "served meanwhile")
    return 1 if wrong or len(cases) < 200 else 0


# (old value, new value) for the rules that compare both
TRANSITIONS = [
    ({}, {"tasks": {"more": {}}}),
    ({}, {"tasks": {"ps": {"replicas": 2}}}),
    ({"program": {"command": ["x"]}}, {"program": {"command": ["y"]}}),
    ({"security": {"networkPolicy": False}}, {"security": {"networkPolicy": True}}),
    ({"security": {"networkPolicy": False}}, {"security": None}),
    ({}, {"security": {"mtls": True}}),
    ({}, {"mode": "sync"}),
    ({"mode": "sync"}, {"sync": {"backupWorkers": 1}}),
    ({"run": {"gang": "kueue", "queue": "q"}}, {"tasks": {"worker": {"replicas": 2}}}),
    ({"run": {"gang": "none"}}, {"run": {"gang": "volcano"}}),
]


def rules(schema):
    for rule in schema.get("x-kubernetes-validations", []):
        yield rule["message"]
    for sub in [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]:
        if isinstance(sub, dict):
            yield from rules(sub)


def check_rules(ns, refusals):
    """Fails unless the message of each rule has occurred."""
    jobs = JOBS % ns
    for index, (before, change) in enumerate(TRANSITIONS):
        spec = merged({"tasks": {"ps": {"replicas": 1}, "worker": {"replicas": 1}}}, before)
        must("POST", jobs, manifest(f"rule{index}", **spec))
        _, said = call("PATCH", f"{jobs}/rule{index}", {"spec": change}, "application/merge-patch+json")
        refusals.append(said.get("message", ""))
        call("DELETE", f"{jobs}/rule{index}")
    with open(os.path.join(os.path.dirname(__file__), "manifests.txt")) as f:
        for line in f:
            if line.startswith("#"):
                continue
            name, want, spec = line.rstrip("\n").split("|", 2)
            if want != "ok":
                _, said = call("POST", jobs + "?dryRun=All", manifest(name, **json.loads(spec)))
                refusals.append(said.get("message", ""))
    whole = must("GET", CRD)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return [message for message in rules(whole) if not any(message in r for r in refusals)]


def live():
    began, ns = time.monotonic(), make_namespace("mutations-live")
    jobs = JOBS % ns
    proxy, kubelet = Proxy(), Kubelet(ns)
    operator = Operator(proxy, ns)
    cases = [(path, other_value(schema, path)) for path, schema in fields(schema_of_spec())]
    cases = [(path, value) for path, value in cases if value is not None]
    wrong, refusals, lock = [], [], threading.Lock()

    def run(case):
        index, (path, value) = case
        name, spec = f"{jobs}/m{index}", base_for(path)
        spec.get("run", {}).pop("gang", None), spec.get("run", {}).pop("queue", None)
        must("POST", jobs, manifest(f"m{index}", **spec))
        until(f"m{index} runs", lambda: condition(name, "Running"), 30)
        status, said = call("PATCH", name, {"spec": at(path, value)}, "application/merge-patch+json")
        if status == 200:
            until(f"an answer to {'.'.join(path)} = {value!r}", lambda: settled(name), 20)
            job = call("GET", name)[1]
            if condition(name, "Failed"):
                raise AssertionError(f"{'.'.join(path)} = {value!r}: {condition(name, 'Failed')}")
            if path == ("run", "suspend"):
                until("suspended", lambda: condition(name, "Suspended"), 20)
            elif job["status"]["phase"] not in ("Running", "Pending", "Restarting"):
                raise AssertionError(f"{'.'.join(path)} = {value!r}: phase {job['status']['phase']}")
            if path[-1] == "replicas":
                until("the pods", lambda: call("GET", name)[1]["status"]["tasks"]["worker"]["desired"] == value, 20)
        else:
            with lock:
                refusals.append(said.get("message", ""))
                if status != 422 or len(said.get("message", "")) < 20:
                    wrong.append(f"{path} = {value!r}: {status} {said.get('message')}")
        call("DELETE", name)

    try:
        wrong += [f"{case[1]}: {why}" for case, why in in_parallel(list(enumerate(cases)), run, 8)]
        unseen = check_rules(ns, refusals)
        wrong += [f"no case is refused by the rule '{message}'" for message in unseen]
        if operator.process.poll() is not None:
            wrong.append("the operator has ended")
    finally:
        end(kubelet, operator, proxy)
    told(wrong, began, f"{len(cases)} fields changed, {len(refusals)} refusals")
    return 1 if wrong else 0


try:
    sys.exit({"bad": bad, "live": live}[sys.argv[1]]())
finally:
    tidy()
