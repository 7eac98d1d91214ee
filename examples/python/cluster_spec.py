# SPDX-License-Identifier: Apache-2.0
"""A cluster specification: created from a dictionary, queried for its jobs and tasks, and written in two formats.

    python cluster_spec.py
"""
import json

import tensorflow.compat.v1 as tf

cluster = tf.train.ClusterSpec({
    "ps": ["ps0.example.com:2222", "ps1.example.com:2222"],
    "worker": ["worker0.example.com:2222", "worker1.example.com:2222", "worker2.example.com:2222"]})

print("jobs:", *cluster.jobs)
print("num_tasks:", cluster.num_tasks("worker"))
print("task_indices:", *cluster.task_indices("worker"))
print("task_address:", cluster.task_address("worker", 2))
print("job_tasks:", *cluster.job_tasks("worker"))
print("as_dict:", json.dumps(cluster.as_dict(), separators=(",", ":")))
print("as_cluster_def:", cluster.as_cluster_def().SerializeToString(deterministic=True).hex())
