# SPDX-License-Identifier: Apache-2.0
"""Constants, variables, matmul and add on three tasks; two masters share the variables."""
from common import CLUSTER, TARGET, answer, tf

with tf.device("/job:ps/task:0"):
    w = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="w")
    b = tf.Variable([0.5, -0.5], name="b")
    k = tf.constant(15.0)
with tf.device("/job:worker/task:0"):
    y0 = tf.nn.relu(tf.matmul(tf.constant([[1.0, 1.0]]), w) + b)
    s0 = k + 1.0
with tf.device("/job:worker/task:1"):
    y1 = tf.matmul(y0, w)
    s1 = s0 + k
more = w.assign_add([[1.0, 0.0], [0.0, 1.0]])
init = tf.global_variables_initializer()

out = {}
with tf.Session(TARGET) as sess:
    out["constants"] = sess.run([s0, s1, k], options=tf.RunOptions(timeout_in_ms=200000))
    sess.run(init)
    out["variables"] = sess.run([w, b])
    out["matmul"] = sess.run([y0, y1])
    out["assign_add"] = sess.run(more)
    out["after"] = sess.run(y1)
    with tf.device("/job:ps/task:0"):
        z = w + 10.0  # extends the graph after the first run
    out["extended"] = sess.run(z)
    out["fed"] = sess.run(y1, {y0: [[2.0, 3.0]]})
with tf.Session("grpc://" + CLUSTER["worker"][1]) as sess:
    out["other master"] = sess.run([w, y1])
    call = sess.make_callable([y0, y1])
    out["callable"] = [call(), call()]
tf.Session.reset(TARGET)
plain = lambda v: [plain(x) for x in v] if isinstance(v, list) else v.tolist()
answer({key: plain(value) for key, value in out.items()})
