# SPDX-License-Identifier: Apache-2.0
"""What servers do beyond single steps: each function of the two programs is one line of the report."""
import json

from compare import Different, both, close, folder, report
from job import with_each

# Not there yet on ours, each with its reason; a case that passes all the same is told.
MISSING = {
    "partition_graphs": "output_partition_graphs is not answered",
    "a_trace_of_a_step": "trace_level is not answered",
}


def compare_each(group, stock, ours):
    for name in stock:
        error = None
        try:
            close(stock[name], ours.get(name))
        except Different as e:
            error = e
        words = f"{group}: {name.replace('_', ' ')}"
        if name in MISSING:
            report(words, None if error else "it passes: take it off the list", f"known to differ: {MISSING[name]}")
        else:
            report(words, error)


def sessions():
    """sessions, containers, queues, callables, partial runs"""
    compare_each("sessions", *both(lambda c: c.run("behaviours", seconds=400)))


def servers():
    """tf.train.Server's own interface"""
    def run(job):
        return json.loads(job.run("tests/compat/programs/own_servers.py").strip().splitlines()[-1])
    compare_each("servers", *with_each(run, folder))


CASES = [sessions, servers]
