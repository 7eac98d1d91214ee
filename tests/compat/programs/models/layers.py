# SPDX-License-Identifier: Apache-2.0
"""Layers, variables and training loops for the programs old_models.py, old_pictures.py, old_input.py and
old_answers.py."""
import numpy as np
import tensorflow.compat.v1 as tf

from common import CLUSTER, TARGET, plain


def on_ps():
    return tf.device(tf.train.replica_device_setter(worker_device="/job:worker/task:0", cluster=tf.train.ClusterSpec(CLUSTER)))


def balanced():
    """Places each variable on the ps with the fewest bytes so far."""
    size = lambda op: 0 if None in (op.outputs[0].shape.as_list() or []) else 4 * int(np.prod(op.outputs[0].shape.as_list()))
    load = [0] * len(CLUSTER["ps"])

    def least(op):
        at = load.index(min(load))
        load[at] += size(op)
        return at
    return tf.device(tf.train.replica_device_setter(worker_device="/job:worker/task:0", cluster=tf.train.ClusterSpec(CLUSTER), ps_strategy=least))


def start_all():
    with tf.control_dependencies(None):
        return [tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()]


def steps(fetches, n=4, train=(), feed=lambda step: None):
    """Fetches in n steps, with a training step after each fetch. They are separate steps, so the fetched values do
    not change during a step."""
    start = start_all()
    with tf.Session(TARGET) as s:
        s.run(start)
        return [plain((s.run(fetches, feed(k)), s.run(train, feed(k)))[0]) for k in range(n)]


def some(shape, seed, low=-1.0, high=1.0):
    return tf.constant(np.random.RandomState(seed).uniform(low, high, shape).astype(np.float32))


def dense(x, n, seed, activation=None, **more):
    return tf.layers.dense(x, n, activation, kernel_initializer=tf.glorot_uniform_initializer(seed), **more)


def conv(x, n, k, seed, activation=None, **more):
    return tf.layers.conv2d(x, n, k, padding="same", activation=activation, kernel_initializer=tf.glorot_uniform_initializer(seed), **more)


def var(name, shape, seed=0, **more):
    return tf.get_variable(name, shape, initializer=tf.random_normal_initializer(stddev=0.3, seed=seed) if seed else tf.zeros_initializer(), **more)
