# SPDX-License-Identifier: Apache-2.0
"""In-graph replication: one program builds one graph in which each worker has a copy of the model.

The parameters are on the ps task.  Each worker computes the gradient on its half of the batch, and one step applies
the average of both: synchronous by construction.

    python -m muster in_graph.py
"""
import argparse

import numpy as np
import tensorflow as tf

p = argparse.ArgumentParser()
p.add_argument("--ps_hosts", default="localhost:2222")
p.add_argument("--worker_hosts", default="localhost:2223,localhost:2224")
args = p.parse_args()

cluster = tf.train.ClusterSpec({"ps": args.ps_hosts.split(","), "worker": args.worker_hosts.split(",")})
servers = {(job, index): tf.train.Server(cluster, job_name=job, task_index=index)
           for job in cluster.jobs for index in cluster.task_indices(job)}


def waves(rows, columns, amplitude, phase):
    """Deterministic pseudo-random numbers."""
    return (amplitude * np.sin((phase + np.arange(rows * columns)) ** 2)).reshape(rows, columns).astype(np.float32)


with tf.device("/job:ps/task:0"):
    w = tf.Variable(waves(3, 1, 0.1, 1))
    x = tf.placeholder(tf.float32, [16, 3])
    halves = tf.split(x, 2)

losses, gradients = [], []
for i, part in enumerate(halves):
    with tf.device(f"/job:worker/task:{i}"):
        true_weights = tf.constant([[2.0], [-1.0], [0.5]])
        losses.append(tf.reduce_mean(tf.square(tf.matmul(part, w) - tf.matmul(part, true_weights))))
        gradients.append(tf.gradients(losses[i], w)[0])

with tf.device("/job:ps/task:0"):
    average = (gradients[0] + gradients[1]) * 0.5
    loss = (losses[0] + losses[1]) * 0.5
    train = tf.train.GradientDescentOptimizer(0.2).apply_gradients([(average, w)])

with tf.Session(servers["worker", 0].target) as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(101):
        _, loss_value = sess.run([train, loss], {x: waves(16, 3, 1, step)})
        if step % 25 == 0:
            print(f"step {step}: loss {loss_value:.6f}")
