# SPDX-License-Identifier: Apache-2.0
"""Runs randomly drawn small graphs on a stock server and on ours, and compares the fetched values or the error code.

    python tests/compat/graph_diff.py --graphs 1000 --seed 0 [-v]

A graph has operations on tensors of a few shapes, conditionals and loops (of both generations), functions, variables,
queues, and the constructs of graph_makers.py, on two tasks.  It has no operation like Floor, where rounding could change the result much.
Operations with state run in the order in which they were drawn, so that the result of a step is deterministic.  Graph i has the
seed SEED + i: `--seed N --graphs 1` replays one.  A tenth each of the graphs are traced, called and run in parts.

Accepted differences, about one in 2,500 graphs:
  - a comparison of two sums that differ only in the last digit
  - a graph with two nodes that fail: the step has the error of the one that fails first
  - the order of a seeded shuffle below nested finite repeats

Two differences are reported separately and are no failures.  TensorFlow's optimizer changes the result, or only Muster's
optimizer removes a failing op whose value is unused (TensorFlow's removes most of them too).
"""
import argparse
import pathlib
import sys
import tempfile
import warnings

import numpy as np
import tensorflow.compat.v1 as tf

from cluster import Cluster
from graph_draw import STEPS, Drawn

RTOL, ATOL = 2e-4, 5e-4  # 1 - tanh^2 of a float loses most digits
STEP_MS = 60000


def run_step(session, drawn, feeds):
    everything = [drawn.fetches, drawn.updates]
    if drawn.way == "traced":
        options, metadata = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), tf.RunMetadata()
        return session.run(everything, feeds, options, metadata)[0]
    if drawn.way == "callable":
        return session.make_callable(everything, list(feeds))(*feeds.values())[0]
    if drawn.way == "partial":
        first, *rest = dict.fromkeys(x.name for x in drawn.fetches)
        step = session.partial_run_setup([first, *rest], list(feeds))
        return [session.partial_run(step, first, feeds), *session.partial_run(step, rest)]
    return session.run(everything, feeds)[0]


def run(drawn, target, optimise=True):
    """Runs the steps, and returns their values up to the error that ends them."""
    config = tf.ConfigProto(isolate_session_state=True, operation_timeout_in_ms=STEP_MS)
    config.graph_options.rewrite_options.disable_meta_optimizer = not optimise
    answer = []
    try:
        with tf.Session(target, graph=drawn.graph, config=config) as session:
            for init in drawn.inits:
                session.run(init)
            for step in range(STEPS):
                answer.append(run_step(session, drawn, {x: v[step] for x, v in drawn.feeds.items()}))
    except tf.errors.OpError as e:
        answer.append((e.error_code, e.message.rstrip("=\n")[-300:]))
    return answer


def difference(stock, ours):
    for step, (want, got) in enumerate(zip(stock, ours)):
        if isinstance(want, tuple) or isinstance(got, tuple):
            same = isinstance(want, tuple) and isinstance(got, tuple) and want[0] == got[0]
        else:
            same = all(w.shape == g.shape and np.allclose(w, g, RTOL, ATOL, equal_nan=True)
                       for w, g in zip(map(np.asarray, want), map(np.asarray, got)))
        if not same:
            return f"step {step}: got {got} want {want}"
    return None if len(stock) == len(ours) else f"{len(ours)} steps, want {len(stock)}"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--graphs", type=int, default=1000)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("-v", action="store_true", help="print every graph's operations")
    a = p.parse_args()
    warnings.simplefilter("ignore")
    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.disable_eager_execution()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="graphs-"))
    failed = errors = optimised = unused = 0
    with Cluster("stock", folder / "stock", ps=0) as stock, Cluster("muster", folder / "muster", ps=0) as ours:
        targets = [f"grpc://{c.wait_ready().spec['worker'][0]}" for c in (stock, ours)]
        for seed in range(a.seed, a.seed + a.graphs):
            drawn = Drawn(seed)
            if a.v:
                print(f"seed {seed}:", drawn.graph.as_graph_def())
            answers = [run(drawn, target) for target in targets]
            errors += any(isinstance(x, tuple) for x in answers[0])
            why = difference(*answers)
            if why and not difference(run(drawn, targets[0], optimise=False), answers[1]):
                optimised += 1
                print(f"seed {seed}: TensorFlow gives another answer without its optimizer", flush=True)
            elif why and isinstance(answers[0][-1], tuple) and not difference(answers[0], run(drawn, targets[1], optimise=False)):
                unused += 1
                print(f"seed {seed}: Muster drops an unused value whose op fails", flush=True)
            elif why:
                failed += 1
                print(f"FAIL seed {seed} ({'new' if drawn.v2 else 'old'} control flow): {why[:1500]}", flush=True)
            if stock.died() or ours.died():
                sys.exit(f"seed {seed}: {stock.died()} {ours.died()}")
    print(f"{a.graphs} graphs, {failed} failed, {errors} end with an error on both, "
          f"{optimised} that TensorFlow's optimizer breaks, {unused} in which only Muster drops an unused value")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
