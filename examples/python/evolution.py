# SPDX-License-Identifier: Apache-2.0
"""Evolution strategies: ten perturbed networks are evaluated in parallel on two workers, and their
losses update the weights on the ps task.

A trial is the shared weights plus noise.  The ps task sums the noise of all trials, weighted by their losses.  This
sum is an estimate of the gradient; nothing is differentiated.

    python -m muster evolution.py
"""
import argparse

import numpy as np
import tensorflow as tf

TRIALS, NOISE, RATE = 10, 0.1, 0.05

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
    noise = tf.placeholder(tf.float32, [3, TRIALS])
    parts = tf.split(w + noise * NOISE, 2, axis=1)

worker_losses = []
for i, part in enumerate(parts):
    with tf.device(f"/job:worker/task:{i}"):
        target = tf.reduce_sum(x, axis=1, keepdims=True)
        worker_losses.append(tf.reduce_mean(tf.square(tf.matmul(x, part) - target), axis=0, keepdims=True))

with tf.device("/job:ps/task:0"):
    losses = tf.concat(worker_losses, axis=1)
    loss = tf.reduce_mean(losses)
    gradient = tf.matmul(noise, losses - loss, transpose_b=True)
    update = w.assign_sub(gradient * (RATE / TRIALS / NOISE))

with tf.Session(servers["ps", 0].target) as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(301):
        _, loss_value = sess.run([update, loss], {x: waves(16, 3, 1, step), noise: waves(3, TRIALS, 1.4142135, 7 * step)})
        if step % 50 == 0:
            print(f"step {step}: loss {loss_value:.6f}")
