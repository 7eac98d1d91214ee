# SPDX-License-Identifier: Apache-2.0
"""A trainer that looks to the package like TensorFlow 1.4 on Python 3.6.

It has no fork hooks, and the registry of Python functions takes no device argument.
"""
import os

import tensorflow as tf
from tensorflow.python.ops import script_ops

tf.disable_eager_execution()
del os.register_at_fork
registry = type(script_ops._py_funcs)
call = registry.__call__
registry.__call__ = lambda self, token, arguments: call(self, token, None, arguments)
server = tf.train.Server.create_local_server()
with tf.Session(server.target) as session:
    print(session.run(tf.py_func(lambda x: x + 1, [6], tf.int64)), flush=True)
