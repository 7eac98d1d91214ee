# SPDX-License-Identifier: Apache-2.0
"""Copies a pod (JSON) for the bare loop: without owner, status and the members that the API server set."""
import json
import sys

pod = json.load(sys.stdin)
kept = {key: pod["metadata"][key] for key in ("name", "labels", "annotations") if key in pod["metadata"]}
json.dump({"apiVersion": pod["apiVersion"], "kind": pod["kind"], "metadata": kept, "spec": pod["spec"]}, sys.stdout)
