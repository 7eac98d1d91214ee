"""One stock TensorFlow task: stock_server.py CLUSTER_JSON JOB INDEX. Runs until killed."""
import json
import sys

import tensorflow as tf

cluster = tf.train.ClusterSpec(json.loads(sys.argv[1]))
tf.distribute.Server(cluster, job_name=sys.argv[2], task_index=int(sys.argv[3])).join()
