# SPDX-License-Identifier: Apache-2.0
"""Reads a CRD as JSON; fails when a field of its schema has no description, or a string or list no limit."""
import json
import sys

crd = json.load(sys.stdin)
bad = []


def walk(path, schema):
    if not schema.get("description") and not path.endswith(("metadata", "[]", "{}")):
        bad.append(f"{path}: no description")
    spec = path.startswith("spec")
    if spec and schema.get("type") == "string" and "maxLength" not in schema and "enum" not in schema:
        bad.append(f"{path}: no maxLength")
    if spec and schema.get("type") == "array" and "maxItems" not in schema:
        bad.append(f"{path}: no maxItems")
    for name, child in schema.get("properties", {}).items():
        walk(f"{path}.{name}".lstrip("."), child)
    if isinstance(schema.get("items"), dict):
        walk(path + "[]", schema["items"])
    if isinstance(schema.get("additionalProperties"), dict):
        walk(path + "{}", schema["additionalProperties"])


walk("", crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
print("\n".join("    " + b for b in bad), end="\n" if bad else "")
sys.exit(1 if bad else 0)
