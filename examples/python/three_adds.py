# SPDX-License-Identifier: Apache-2.0
"""One parameter server and two workers in one process: the workers add to a value on the parameter server.

A constant belongs to the program that created it; only a variable is shared.  So worker 1 can replace `a` for itself,
but all tasks see a change of the variable `sum`.

    python -m muster three_adds.py
"""
import argparse

import tensorflow as tf

p = argparse.ArgumentParser()
p.add_argument("--hosts", default="localhost:2222,localhost:2223,localhost:2224", help="ps, worker 0, worker 1")
args = p.parse_args()
hosts = args.hosts.split(",")

cluster = tf.train.ClusterSpec({"ps": hosts[:1], "worker": hosts[1:]})
ps = tf.train.Server(cluster, job_name="ps", task_index=0)
worker0 = tf.train.Server(cluster, job_name="worker", task_index=0)
worker1 = tf.train.Server(cluster, job_name="worker", task_index=1)

with tf.device("/job:ps/task:0"):
    a = tf.constant(3.0)
    b = tf.constant(4.0)
    total = tf.Variable(0.0, name="sum")

with tf.device("/job:worker/task:0"):
    sum0 = tf.add(a, b)
with tf.Session(worker0.target) as sess:
    sess.run(tf.global_variables_initializer())
    print("worker 0:", sess.run(sum0))

with tf.device("/job:worker/task:1"):
    a = tf.constant(9.0)
    sum1 = tf.add(a, b)
    assign = total.assign(sum1)
with tf.Session(worker1.target) as sess:
    print("worker 1:", sess.run(sum1))
    sess.run(assign)

with tf.Session(ps.target) as sess:
    print("seen on the ps:", sess.run(total))
