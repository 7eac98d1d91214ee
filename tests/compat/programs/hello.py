# SPDX-License-Identifier: Apache-2.0
"""A string constant from a task server."""
from common import TARGET, answer, tf

hello = tf.constant("Hello, distributed TensorFlow!")
numbers = [tf.constant(2), tf.constant([1.5, -2.5]), tf.constant([[True], [False]]), tf.constant([], tf.int64)]
with tf.Session(TARGET) as sess:
    devices = sorted((d.name, d.device_type) for d in sess.list_devices() if d.device_type == "CPU")
    answer({
        "hello": sess.run(hello).decode(),
        "again": sess.run(hello).decode(),
        "numbers": [[v.tolist(), str(v.dtype), list(v.shape)] for v in sess.run(numbers)],
        "devices": devices,
    })
