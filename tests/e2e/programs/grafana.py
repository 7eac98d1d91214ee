# SPDX-License-Identifier: Apache-2.0
"""grafana.py URL DATASOURCE: queries Grafana for its dashboard "muster" and for the data of each panel, as a browser
does; prints the number of series per panel.  Exits with 1 if a panel has none."""
import json
import sys
import urllib.request

url, source = sys.argv[1:]


def ask(path, body=None):
    call = urllib.request.Request(url + path, json.dumps(body).encode() if body else None, {"Content-Type": "application/json"})
    with urllib.request.urlopen(call, timeout=10) as answer:
        return json.load(answer)


def series(target):
    """Returns the series of one query of a panel, from the data source that the dashboard's variable selects."""
    query = json.loads(json.dumps(target).replace("${source}", source))
    query.update(intervalMs=2000, maxDataPoints=300, range=True)
    answer = ask("/api/ds/query", {"queries": [query], "from": "now-5m", "to": "now"})
    frames = answer["results"][target["refId"]].get("frames", [])
    return [f for f in frames if f["data"]["values"] and f["data"]["values"][0]]


empty = 0
dashboard = ask("/api/dashboards/uid/muster")["dashboard"]
for panel in dashboard["panels"]:
    counts = [len(series(t)) for t in panel["targets"]]
    empty += not all(counts)
    print(f"{panel['title']}: {' + '.join(map(str, counts))} series")
sys.exit(1 if empty or not dashboard["panels"] else 0)
