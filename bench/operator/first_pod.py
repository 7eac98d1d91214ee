# SPDX-License-Identifier: Apache-2.0
"""The first pod among the objects of a dry run, owned by nobody, for the bare loop."""
import json
import sys

decoder = json.JSONDecoder()
text = sys.stdin.read()
at = 0
while at < len(text):
    if text[at] != "{":
        at += 1
        continue
    thing, at = decoder.raw_decode(text, at)
    if thing.get("kind") == "Pod":
        thing["metadata"].pop("ownerReferences", None)
        json.dump(thing, sys.stdout)
        break
