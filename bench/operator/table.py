# SPDX-License-Identifier: Apache-2.0
"""The figures of run.sh as a table: a row a figure, a column a kind, and ours as a ratio to the peer's."""
import json
import statistics
import sys

ROWS = [  # figure, unit, better when: -1 less, 1 more
    ("pods_a_second", "pods/s until all exist", 1),
    ("pods_a_second_10_90", "pods/s, 10-90 %", 1),
    ("to_running_s", "s until the last job says Running", -1),
    ("operator_cpu_ms_a_pod_create", "operator CPU ms a pod, create", -1),
    ("operator_cpu_ms_a_pod_to_running", "operator CPU ms a pod, to Running", -1),
    ("operator_cpu_ms_a_pod_life", "operator CPU ms a pod, whole life", -1),
    ("apiserver_cpu_ms_a_pod_create", "API server CPU ms a pod, create", -1),
    ("operator_peak_mb", "operator RSS MB, peak", -1),
    ("operator_rss_mb", "operator RSS MB, at the end", -1),
    ("writes_a_job_to_running", "writes a job to Running", -1),
    ("events_a_job_to_running", "of these, events", -1),
    ("writes_a_job_to_succeeded", "writes a job then to Succeeded", -1),
    ("conflicts_to_running", "conflicts to Running", -1),
    ("rest_writes", "writes at rest, jobs running", -1),
    ("idle_operator_cpu_percent", "CPU % idle, no job", -1),
    ("rest_operator_cpu_percent", "CPU % at rest, jobs running", -1),
]
KINDS = ["bare", "stock", "lifted", "ours"]


def main():
    runs = {}
    with open(sys.argv[1], encoding="utf-8") as lines:
        for line in lines:
            figures = json.loads(line)
            runs.setdefault(figures["note"], []).append(figures)

    def value(kind, figure):
        found = [r[figure] for r in runs.get(kind, []) if figure in r]
        return statistics.median(found) if found else None

    def cell(number):
        return f"{number:>9.2f}" if number is not None else " " * 8 + "-"

    kinds = [k for k in KINDS if k in runs]
    jobs = max((r["count"] for k in kinds if k != "bare" for r in runs[k]), default=0)
    print(f"{jobs} jobs x (2 ps + 4 workers)".ljust(38) + "".join(k.rjust(9) for k in kinds) +
          "  ours/lifted  ours/bare")
    for figure, unit, better in ROWS:
        if all(value(k, figure) is None for k in kinds):
            continue
        text = unit.ljust(38) + "".join(cell(value(k, figure)) for k in kinds)
        for peer, width in (("lifted", 13), ("bare", 11)):
            a, b = value("ours", figure), value(peer, figure)
            text += (f"{a / b:.2f}" if a is not None and b else "").rjust(width)
        print(text.rstrip())
    for run in runs.get("restart", []):
        print(f"restart: first write {run['first_pod_ms']:.0f} ms after exec; "
              f"a bare list takes {run['bare_list_ms']:.0f} ms, again {run['bare_list_again_ms']:.0f} ms")
    for kind, all_of in runs.items():
        for run in all_of:
            if run.get("complete") is False:
                print(f"{kind}: did not come to its end")


main()
