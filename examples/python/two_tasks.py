# SPDX-License-Identifier: Apache-2.0
"""A job named "local" with two tasks in two processes.  Both run a server; task 0 also uses both.

    python -m muster two_tasks.py --task_index=1 &
    python -m muster two_tasks.py --task_index=0
"""
import argparse

import tensorflow as tf

p = argparse.ArgumentParser()
p.add_argument("--hosts", default="localhost:2222,localhost:2223", help="address of task 0, address of task 1")
p.add_argument("--task_index", type=int, required=True)
args = p.parse_args()

cluster = tf.train.ClusterSpec({"local": args.hosts.split(",")})
server = tf.train.Server(cluster, job_name="local", task_index=args.task_index)
if args.task_index != 0:
    server.join()
    raise SystemExit

with tf.device("/job:local/task:1"):
    numbers = tf.Variable([1, 2, 3, 4], name="numbers")  # on the other process
with tf.device("/job:local/task:0"):
    total = tf.reduce_sum(numbers)
    doubled = numbers.assign(numbers * 2)

with tf.Session(server.target) as sess:
    print("devices:", ", ".join(d.name for d in sess.list_devices() if d.device_type == "CPU"))
    sess.run(tf.global_variables_initializer())
    print("total:", sess.run(total))
    print("doubled:", sess.run(doubled).tolist())
    print("total:", sess.run(total))
