# SPDX-License-Identifier: Apache-2.0
"""Two layers whose parameters are on two parameter servers, while a worker computes.

tf.device defines the placement.  The runtime sends tensors between tasks automatically.  This process starts all tasks,
so that the example runs without other programs:

    python -m muster place_ps_worker.py
"""
import argparse

import numpy as np
import tensorflow as tf

p = argparse.ArgumentParser()
p.add_argument("--ps_hosts", default="localhost:2222,localhost:2223")
p.add_argument("--worker_hosts", default="localhost:2224")
args = p.parse_args()

cluster = tf.train.ClusterSpec({"ps": args.ps_hosts.split(","), "worker": args.worker_hosts.split(",")})
servers = {(job, index): tf.train.Server(cluster, job_name=job, task_index=index)
           for job in cluster.jobs for index in cluster.task_indices(job)}


def waves(rows, columns, amplitude, phase):
    """Deterministic pseudo-random numbers."""
    return (amplitude * np.sin((phase + np.arange(rows * columns)) ** 2)).reshape(rows, columns).astype(np.float32)


with tf.device("/job:ps/task:0"):
    weights_1 = tf.Variable(waves(4, 8, 0.5, 1))
    biases_1 = tf.Variable(tf.zeros([8]))
with tf.device("/job:ps/task:1"):
    weights_2 = tf.Variable(waves(8, 1, 0.5, 2))
    biases_2 = tf.Variable(tf.zeros([1]))

with tf.device("/job:worker/task:0"):
    inputs = tf.placeholder(tf.float32, [None, 4])
    targets = tf.placeholder(tf.float32, [None, 1])
    hidden = tf.nn.relu(tf.matmul(inputs, weights_1) + biases_1)
    outputs = tf.matmul(hidden, weights_2) + biases_2
    loss = tf.reduce_mean(tf.square(outputs - targets))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)

with tf.Session(servers["worker", 0].target) as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(201):
        x = waves(16, 4, 1, step)
        _, loss_value = sess.run([train, loss], {inputs: x, targets: x.sum(axis=1, keepdims=True)})
        if step % 50 == 0:
            print(f"step {step}: loss {loss_value:.6f}")
