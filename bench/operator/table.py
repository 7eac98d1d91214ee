# SPDX-License-Identifier: Apache-2.0
"""Prints the figures of run.sh as a table with a row per figure and a column per kind and number of jobs.
Then it compares the targets with the measured values.

    table.py FIGURES [IMAGE]"""
import json
import os
import statistics
import sys

ROWS = [  # figure, unit
    ("pods_a_second", "pods/s until all exist"),
    ("pods_a_second_10_90", "pods/s, 10-90 %"),
    ("to_running_s", "s until the last job says Running"),  # for the bare loop: until the status of its last pod is updated
    ("operator_cpu_ms_a_pod_create", "operator CPU ms a pod, create"),
    ("operator_cpu_ms_a_pod_to_running", "operator CPU ms a pod, to Running"),
    ("operator_cpu_ms_a_pod_life", "operator CPU ms a pod, whole life"),
    ("apiserver_cpu_ms_a_pod_create", "API server CPU ms a pod, create"),
    ("operator_idle_rss_mb", "operator RSS MB, idle"),
    ("operator_running_peak_mb", "operator RSS MB, peak to Running"),
    ("operator_end_peak_mb", "operator RSS MB, peak"),
    ("operator_end_rss_mb", "operator RSS MB, at the end"),
    ("writes_a_job_to_running", "writes a job to Running"),
    ("events_a_job_to_running", "of these, events"),
    ("writes_a_job_to_succeeded", "writes a job then to Succeeded"),
    ("conflicts_to_running", "conflicts to Running, all clients'"),
    ("own_conflicts", "conflicts, as the operator counts"),
    ("own_retries", "retries of the operator's queue"),
    ("pods_over", "pods too many"),
    ("jobs_behind", "jobs whose status lacks a pod"),
    ("rest_writes", "writes at rest, jobs running"),
    ("rest_reads", "reads at rest, jobs running"),
    ("idle_operator_cpu_percent", "CPU % idle, no job"),
    ("rest_operator_cpu_percent", "CPU % at rest, jobs running"),
]
KINDS = ["bare", "stock", "lifted", "ours", "crowd"]


def read(path):
    """Returns a map from (kind, jobs) to figures, each the median of the runs that have it."""
    runs = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            figures = json.loads(line)
            runs.setdefault((figures["note"], figures["count"] // (6 if figures["note"] == "bare" else 1)), []).append(figures)
    return {key: {f: statistics.median(r[f] for r in all_of if f in r) if f != "note" and f != "verb" else all_of[0][f]
                  for f in {f for r in all_of for f in r}} for key, all_of in runs.items()}


def show(runs):
    columns = [(kind, jobs) for kind in KINDS for k, jobs in sorted(runs) if k == kind]
    if not columns:
        return
    print("jobs of 2 ps + 4 workers".ljust(38) + "".join(f"{kind} {jobs}".rjust(13) for kind, jobs in columns))
    for figure, unit in ROWS:
        cells = [runs[c].get(figure) for c in columns]
        if any(c is not None for c in cells):
            print(unit.ljust(38) + "".join(" " * 12 + "-" if c is None else f"{c:>13.2f}" for c in cells))


def promises(runs, image):
    """Yields (description, target as text, figure or None, whether the target is met)."""
    def figure(kind, jobs, name):
        return runs.get((kind, jobs), {}).get(name)

    def at_most(what, value, limit, unit=""):
        yield what, f"<= {limit:g}{unit}", value, value is not None and value <= limit

    def beside(what, value, other, factor, words):
        ratio = value / other if value is not None and other else None
        yield what, words, ratio, ratio is not None and (ratio >= factor if factor > 0 else ratio <= -factor)

    def megabytes(path):
        return os.path.getsize(path) / 1e6 if path and os.path.exists(path) else None

    small = ("ours", 100)
    for name, words, factor, target in (("pods_a_second", "pods/s, of the peer's lifted", 1.3, ">= 1.3 x"),
                                        ("operator_cpu_ms_a_pod_life", "CPU a pod, of the peer's", -0.25, "<= 1/4")):
        yield from beside(f"100 jobs: {words}", figure(*small, name), figure("lifted", 100, name), factor, target)
    yield from at_most("writes a job to Running", figure(*small, "writes_a_job_to_running"), 16)
    yield from at_most("writes a job then to Succeeded", figure(*small, "writes_a_job_to_succeeded"), 6)
    for name, words in (("own_conflicts", "conflicts"), ("own_retries", "retries"), ("pods_over", "pods too many"),
                        ("jobs_behind", "statuses that lack a pod"), ("rest_writes", "writes at rest"), ("rest_reads", "reads at rest")):
        yield from at_most(words, figure(*small, name), 0)
    yield from at_most("CPU at rest", figure(*small, "rest_operator_cpu_percent"), 0.1, " %")
    yield from at_most("RSS idle", figure(*small, "operator_idle_rss_mb"), 25, " MB")
    yield from at_most("RSS peak, 10,000 pods", figure("crowd", 1667, "operator_running_peak_mb"), 80, " MB")
    restart = next((runs[k] for k in runs if k[0] == "restart"), {})
    yield from at_most("restart, 500 jobs: first write after a list",
                       restart["first_pod_ms"] - min(restart["bare_list_ms"], restart["bare_list_again_ms"])
                       if "first_pod_ms" in restart else None, 200, " ms")
    yield from at_most("image", megabytes(image), 40, " MB")


def main():
    runs = read(sys.argv[1])
    show(runs)
    print()
    print("promises".ljust(46) + "target".rjust(12) + "measured".rjust(12))
    for what, target, value, met in promises(runs, *(sys.argv[2:] + [None])[:1]):
        said = "not measured" if value is None else "met" if met else "MISSED"
        print(what.ljust(46) + target.rjust(12) + ("-" if value is None else f"{value:.2f}").rjust(12) + "  " + said)
    for (kind, jobs), run in runs.items():
        if kind == "restart":
            print(f"restart: first write {run['first_pod_ms']:.0f} ms after exec; a bare list takes "
                  f"{run['bare_list_ms']:.0f} ms, again {run['bare_list_again_ms']:.0f} ms")
        if not run.get("complete", True):
            print(f"{kind} {jobs}: did not come to its end")


main()
