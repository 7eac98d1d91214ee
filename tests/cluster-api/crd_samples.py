# SPDX-License-Identifier: Apache-2.0
"""Reads a CRD (JSON) from standard input and names the fields of its spec that none of the samples uses."""
import glob
import json
import subprocess
import sys


def fields(schema, path=()):
    for name, sub in schema.get("properties", {}).items():
        if sub.get("description", "").startswith("Not a field"):
            continue
        yield (*path, name)
        yield from fields(sub, (*path, name))
    sub = schema.get("additionalProperties")
    if isinstance(sub, dict) and path[-1] == "tasks":
        yield from fields(sub, (*path, "*"))


def used(value, path=()):
    yield path
    if isinstance(value, dict):
        for key, v in value.items():
            yield from used(v, (*path, "*" if path == ("tasks",) else key))


have = set()
for name in glob.glob("deploy/samples/*.yaml") + glob.glob("examples/*.yaml"):
    # as the server parsed them, without defaults
    text = subprocess.run(["kubectl", "create", "--dry-run=client", "--validate=false", "-o", "json", "-f", name],
                          capture_output=True, text=True, check=True).stdout
    have |= set(used(json.loads(text).get("spec", {})))
schema = json.load(sys.stdin)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
missing = [".".join(f) for f in fields(schema) if f not in have]
for f in missing:
    print(f"    no sample uses spec.{f}")
sys.exit(1 if missing else 0)
