# SPDX-License-Identifier: Apache-2.0
"""Model parallelism: a network too large for one machine, with one layer on each of two tasks.

The variables of a layer, its computation and its updates are on one task.  Only activations and their gradients cross
the network.

    python -m muster model_parallel.py
"""
import argparse

import numpy as np
import tensorflow as tf

p = argparse.ArgumentParser()
p.add_argument("--hosts", default="localhost:2222,localhost:2223")
args = p.parse_args()

cluster = tf.train.ClusterSpec({"layer": args.hosts.split(",")})
servers = [tf.train.Server(cluster, job_name="layer", task_index=i) for i in cluster.task_indices("layer")]


def waves(rows, columns, amplitude, phase):
    """Deterministic pseudo-random numbers."""
    return (amplitude * np.sin((phase + np.arange(rows * columns)) ** 2)).reshape(rows, columns).astype(np.float32)


with tf.device("/job:layer/task:0"):
    inputs = tf.placeholder(tf.float32, [None, 4])
    first = tf.Variable(waves(4, 8, 0.5, 1))
    hidden = tf.tanh(tf.matmul(inputs, first))
with tf.device("/job:layer/task:1"):
    second = tf.Variable(waves(8, 1, 0.5, 2))
    outputs = tf.reshape(tf.matmul(hidden, second), [-1])
    loss = tf.reduce_mean(tf.square(outputs - tf.reduce_sum(inputs, axis=1)))
train = tf.train.AdagradOptimizer(0.1).minimize(loss, colocate_gradients_with_ops=True)

with tf.Session(servers[0].target) as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(201):
        _, loss_value = sess.run([train, loss], {inputs: waves(16, 4, 1, step)})
        if step % 50 == 0:
            print(f"step {step}: loss {loss_value:.6f}")
