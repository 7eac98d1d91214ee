# SPDX-License-Identifier: Apache-2.0
"""Runs drawn small graphs on a stock server and on ours, and compares the fetched values or the error's code.

    python tests/compat/graph_diff.py --graphs 1000 --seed 0 [-v]

A graph has operations on tensors of a few shapes, conditionals and loops (of both generations), functions, variables
and queues, on two tasks.  No operation jumps where rounding decides, as Floor does.  Operations with state run in the
order in which they were drawn, so that a step has one right answer.  Graph i has the seed SEED + i: `--seed N --graphs 1`
replays one.
"""
import argparse
import pathlib
import random
import sys
import tempfile
import warnings

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.framework import function
from tensorflow.python.ops import control_flow_util

from cluster import Cluster

SHAPES = [(), (3,), (2, 3), (3, 2), (1, 3)]
STEPS = 3
RTOL, ATOL = 2e-4, 5e-4  # 1 - tanh^2 keeps few digits of a float
TASKS = ["/job:worker/task:0", "/job:worker/task:1"]
STEP_MS = 60000

UNARY = [tf.tanh, tf.abs, tf.negative, tf.square, tf.sigmoid, tf.nn.relu, tf.identity, tf.zeros_like, tf.ones_like,
         tf.stop_gradient, lambda x: tf.exp(-tf.abs(x)),
         lambda x: tf.reshape(x, [-1]), lambda x: tf.reduce_sum(x), lambda x: tf.reduce_max(x, axis=0) if x.shape.ndims else x,
         lambda x: tf.reduce_mean(x, axis=-1, keepdims=True) if x.shape.ndims else x, lambda x: tf.transpose(x),
         lambda x: tf.expand_dims(x, 0), lambda x: tf.cast(tf.size(x), tf.float32), lambda x: tf.cast(tf.shape(x), tf.float32),
         lambda x: tf.reverse(x, [0]) if x.shape.ndims else x, lambda x: tf.cumsum(x) if x.shape.ndims else x,
         lambda x: tf.unstack(tf.stack([x, x]))[1], lambda x: tf.nn.softmax(tf.reshape(x, [1, -1])),
         lambda x: tf.cast(tf.argmax(tf.reshape(x, [-1])), tf.float32), lambda x: tf.sort(tf.reshape(x, [-1]))]
BINARY = [tf.add, tf.subtract, tf.multiply, tf.maximum, tf.minimum, tf.squared_difference, lambda a, b: a / (1 + tf.abs(b)),
          lambda a, b: tf.where_v2(a > b, a, b), lambda a, b: tf.cast(tf.less(a, b), tf.float32),
          lambda a, b: tf.cast(tf.logical_and(a > 0, b > 0), tf.float32)]


class Drawn:
    """One graph: what is fetched, what is fed, and the operations that every step runs."""

    def __init__(self, seed):
        self.rng, self.np = random.Random(seed), np.random.RandomState(seed % 2**32)
        self.graph, self.feeds, self.updates, self.called = tf.Graph(), {}, [], False
        self.v2 = self.rng.random() < 0.5
        old, control_flow_util.ENABLE_CONTROL_FLOW_V2 = control_flow_util.ENABLE_CONTROL_FLOW_V2, self.v2
        try:
            with self.graph.as_default():
                self.build()
        finally:
            control_flow_util.ENABLE_CONTROL_FLOW_V2 = old

    def build(self):
        pool = [self.source() for _ in range(3)]
        makers = [self.unary] * 5 + [self.binary] * 6 + [self.rows, self.product, self.condition, self.loop, self.call,
                                                         self.variable, self.queue, self.partition, self.array, self.source]
        for _ in range(self.rng.randint(4, 14)):
            with tf.device(self.rng.choice(TASKS)):
                try:
                    pool.append(self.rng.choice(makers)(pool))
                except ValueError:
                    pass  # shapes that TensorFlow's client refuses
        picked = self.rng.sample(pool, min(4, len(pool)))
        self.fetches = [*picked, pool[-1]]
        if self.rng.random() < 0.2 and not self.called:  # TensorFlow cannot differentiate a conditional of a function
            self.fetches += [g for g in tf.gradients(pool[-1], picked[:1]) if g is not None]
        self.init = tf.global_variables_initializer()

    def value(self, shape):
        return np.round(self.np.uniform(-2, 2, shape), 2).astype(np.float32)

    def source(self, _=None):
        shape = self.rng.choice(SHAPES)
        if self.rng.random() < 0.6:
            return tf.constant(self.value(shape))
        x = tf.placeholder(tf.float32, self.rng.choice([shape, shape, [None] * len(shape)]))
        x = self.feed(x, [self.value(shape) for _ in range(STEPS)])
        return x

    def feed(self, x, values):
        self.feeds[x] = values
        return x

    def unary(self, pool):
        x = self.rng.choice(pool)
        return bounded(self.rng.choice(UNARY)(x) if x.shape.ndims is not None else tf.tanh(x))

    def binary(self, pool):
        a, b = self.rng.choice(pool), self.rng.choice(pool)
        if not compatible(a, b) and self.rng.random() < 0.9:
            b = tf.reduce_sum(b)
        elif not compatible(a, b):
            b = unknown(b)  # the step fails, not the client
        return bounded(self.rng.choice(BINARY)(a, b))

    def rows(self, pool):
        """Rows by number; at times one that does not exist."""
        x = tf.reshape(self.rng.choice(pool), [-1, 1])
        at = self.feed(tf.placeholder(tf.int32, [2]), [self.np.randint(0, 1 + (self.rng.random() < 0.1) * 9, 2) for _ in range(STEPS)])
        return tf.gather(x, at)

    def product(self, pool):
        a, b = (tf.reshape(self.rng.choice(pool), [1, -1]) for _ in range(2))
        return bounded(tf.matmul(a, b, transpose_a=True))

    def some(self, pool, x, n):
        """n operations on x, the others of the pool, and their results."""
        own = [x, self.rng.choice(pool)]
        for _ in range(n):
            a = self.rng.choice(own)
            own.append(bounded(self.rng.choice(BINARY)(a, tf.reduce_sum(self.rng.choice(own))) if self.rng.random() < 0.5
                               else self.rng.choice([tf.tanh, tf.abs, tf.negative, tf.sigmoid, tf.identity])(a)))
        return own[-1]

    def condition(self, pool):
        x = self.rng.choice(pool)
        state = self.rng.getstate()
        return tf.cond(tf.reduce_sum(x) > self.rng.uniform(-1, 1), lambda: tf.reduce_sum(self.some(pool, x, 2)),
                       lambda: tf.reduce_mean(x) + len(str(state[1][0])) * 0)

    def loop(self, pool):
        x, n = self.rng.choice(pool), self.rng.randint(0, 5)
        nested = self.rng.random() < 0.3

        def body(i, y):
            y = keep_shape(self.some(pool, y, 2), y)
            if nested:
                _, y = tf.while_loop(lambda j, _: j < i, lambda j, z: (j + 1, tf.tanh(z + 0.5)), [0, y])
            return i + 1, y
        return tf.while_loop(lambda i, y: tf.logical_and(i < n, tf.reduce_sum(y) < 1e3), body, [0, x],
                             parallel_iterations=self.rng.choice([1, 10]))[1]

    def call(self, pool):
        a, b, pick = self.rng.choice(pool), self.rng.choice(pool), self.rng.randrange(3)

        @function.Defun(tf.float32, tf.float32, func_name=f"f{self.rng.randrange(1 << 30)}")
        def f(x, y):
            s = tf.reduce_sum(y)
            return [x * s, tf.cond(s > 0, lambda: x + s, lambda: x - s) if self.v2 else tf.tanh(x) + s, tf.minimum(x, s)][pick]
        self.called = True
        return bounded(f(a, b))

    def variable(self, pool):
        x = self.rng.choice(pool)
        shape = self.rng.choice(SHAPES)
        v = tf.Variable(self.value(shape), use_resource=self.rng.random() < 0.5)
        with self.after():
            update = self.rng.choice([v.assign_add, v.assign_sub, v.assign])(tf.fill(shape, tf.tanh(tf.reduce_sum(x))))
            self.updates.append(update.op if hasattr(update, "op") else update)
        with self.after():
            read = v.read_value()
        self.updates.append(read.op)
        return tf.identity(read)

    def queue(self, pool):
        x = tf.tanh(tf.reduce_sum(self.rng.choice(pool)))
        q = self.rng.choice([tf.FIFOQueue, lambda n, *a: tf.PriorityQueue(n, [tf.float32], [()])])(4, tf.float32, [()])
        priority = isinstance(q, tf.PriorityQueue)
        item = lambda k: (tf.constant(k, tf.int64), x * k) if priority else x * k
        for k in range(self.rng.randint(1, 3)):
            with self.after():
                self.updates.append(q.enqueue(item(k)))
        with self.after():
            y = q.dequeue_many(len([u for u in self.updates if u.type.startswith("QueueEnqueue") and u.inputs[0] is q.queue_ref]))
        y = y[1] if priority else y
        self.updates.append(y.op)
        return tf.identity(y)

    def after(self):
        return tf.control_dependencies(self.updates[-1:])

    def partition(self, pool):
        x = tf.reshape(self.rng.choice(pool), [-1])
        parts = tf.dynamic_partition(x, tf.cast(x > 0, tf.int32), 2)
        at = tf.dynamic_partition(tf.range(tf.size(x)), tf.cast(x > 0, tf.int32), 2)
        return tf.dynamic_stitch(at, [parts[0] * 2, tf.negative(parts[1])])

    def array(self, pool):
        x = tf.reshape(self.rng.choice(pool), [-1])
        a = tf.TensorArray(tf.float32, tf.size(x)).unstack(x)
        return tf.while_loop(lambda i, _: i < tf.size(x), lambda i, b: (i + 1, b.write(i, tf.tanh(a.read(i)) + 1)),
                             [0, tf.TensorArray(tf.float32, tf.size(x), element_shape=[])])[1].stack()


def bounded(x):
    """Values stay small, so that rounding does not grow from operation to operation."""
    return tf.clip_by_value(x, -100.0, 100.0)


def compatible(a, b):
    try:
        tf.broadcast_static_shape(a.shape, b.shape)
        return a.shape.is_fully_defined() and b.shape.is_fully_defined()
    except ValueError:
        return False


def unknown(x):
    return tf.placeholder_with_default(x, None)


def keep_shape(y, like):
    y = y + tf.zeros_like(like) if compatible(y, like) else tf.reduce_sum(y) + tf.zeros_like(like)
    y = y if y.shape.is_compatible_with(like.shape) and y.shape.ndims == like.shape.ndims else tf.reduce_sum(y) + tf.zeros_like(like)
    y.set_shape(like.shape)
    return y


def run(drawn, target, optimise=True):
    """The values of each step, up to the error that ends them."""
    config = tf.ConfigProto(isolate_session_state=True, operation_timeout_in_ms=STEP_MS)
    config.graph_options.rewrite_options.disable_meta_optimizer = not optimise
    answer = []
    try:
        with tf.Session(target, graph=drawn.graph, config=config) as session:
            session.run(drawn.init)
            for step in range(STEPS):
                values = session.run([drawn.fetches, drawn.updates], {x: v[step] for x, v in drawn.feeds.items()})
                answer.append(values[0])
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
    tf.disable_eager_execution()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="graphs-"))
    failed = errors = optimised = 0
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
            elif why:
                failed += 1
                print(f"FAIL seed {seed} ({'new' if drawn.v2 else 'old'} control flow): {why[:1500]}", flush=True)
            if stock.died() or ours.died():
                sys.exit(f"seed {seed}: {stock.died()} {ours.died()}")
    print(f"{a.graphs} graphs, {failed} failed, {errors} end with an error on both, {optimised} that TensorFlow's optimizer breaks")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
