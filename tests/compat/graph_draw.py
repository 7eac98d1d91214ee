# SPDX-License-Identifier: Apache-2.0
"""Draws a small graph from a seed: fetches, feeds, and the operations that every step runs.

A seed names the same graph until this file changes.
"""
import random

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.autograph.core import ag_ctx
from tensorflow.python.framework import function
from tensorflow.python.ops import control_flow_util

import graph_makers

SHAPES = [(), (3,), (2, 3), (3, 2), (1, 3)]
STEPS = 3
TASKS = ["/job:worker/task:0", "/job:worker/task:1"]

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
    """A graph with its fetches, its feeds, and the operations that every step runs."""

    def __init__(self, seed):
        self.rng, self.np = random.Random(seed), np.random.RandomState(seed % 2**32)
        self.graph, self.feeds, self.updates, self.initializers = tf.Graph(), {}, [], []
        self.called, self.steps = False, STEPS
        self.way = self.rng.choice(["run"] * 7 + ["traced", "callable", "partial"])
        self.v2 = self.rng.random() < 0.5
        old, control_flow_util.ENABLE_CONTROL_FLOW_V2 = control_flow_util.ENABLE_CONTROL_FLOW_V2, self.v2
        try:
            with self.graph.as_default(), ag_ctx.ControlStatusCtx(ag_ctx.Status.DISABLED):
                self.build()
        finally:
            control_flow_util.ENABLE_CONTROL_FLOW_V2 = old

    def build(self):
        pool = [self.source() for _ in range(3)]
        makers = [self.unary] * 5 + [self.binary] * 6 + [self.rows, self.product, self.condition, self.loop, self.call,
                                                         self.variable, self.queue, self.partition, self.array, self.source]
        makers += [lambda pool, make=make: bounded(make(self, pool)) for make in graph_makers.MAKERS]
        for _ in range(self.rng.randint(4, 14)):
            with tf.device(self.rng.choice(TASKS)):
                try:
                    pool.append(self.rng.choice(makers)(pool))
                except ValueError:
                    pass  # TensorFlow's client rejects the shapes
        picked = self.rng.sample(pool, min(4, len(pool)))
        self.fetches = [*picked, pool[-1]]
        if self.rng.random() < 0.2 and not self.called:  # TensorFlow cannot differentiate a conditional with function calls
            self.fetches += [g for g in tf.gradients(pool[-1], picked[:1]) if g is not None]
        x = self.rng.choice(pool)
        if self.rng.random() < 0.1 and x.op.type != "Placeholder" and x.shape.is_fully_defined() and self.graph.is_feedable(x):
            self.feed(x, [self.value(x.shape.as_list()) for _ in range(STEPS)])
        self.inits = [[tf.global_variables_initializer(), tf.tables_initializer()], self.initializers]

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
            b = unknown(b)  # the step fails and not the client
        return bounded(self.rng.choice(BINARY)(a, b))

    def rows(self, pool):
        """Gathers rows by index; sometimes an index is out of range."""
        x = tf.reshape(self.rng.choice(pool), [-1, 1])
        at = self.feed(tf.placeholder(tf.int32, [2]), [self.np.randint(0, 1 + (self.rng.random() < 0.1) * 9, 2) for _ in range(STEPS)])
        return tf.gather(x, at)

    def product(self, pool):
        a, b = (tf.reshape(self.rng.choice(pool), [1, -1]) for _ in range(2))
        return bounded(tf.matmul(a, b, transpose_a=True))

    def some(self, pool, x, n):
        """Applies n operations to x, combined with another tensor of the pool and earlier results."""
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
    """Limits the values, so that rounding errors do not grow from operation to operation."""
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
