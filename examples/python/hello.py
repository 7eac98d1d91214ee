# SPDX-License-Identifier: Apache-2.0
"""The smallest cluster: one task, with a session that runs on it.

    python -m muster hello.py
"""
import tensorflow as tf

greeting = tf.constant("Hello, distributed TensorFlow!")
server = tf.train.Server.create_local_server()
with tf.Session(server.target) as sess:
    print(sess.run(greeting).decode())
