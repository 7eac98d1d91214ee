# SPDX-License-Identifier: Apache-2.0
"""One task of TensorFlow 1.15 with the ops of tf.contrib: contrib_server.py CLUSTER_JSON JOB INDEX. Runs until killed."""
import json
import sys

import tensorflow as tf

import contrib_ops

assert contrib_ops
cluster = tf.train.ClusterSpec(json.loads(sys.argv[1]))
tf.train.Server(cluster, job_name=sys.argv[2], task_index=int(sys.argv[3])).join()
