# SPDX-License-Identifier: Apache-2.0
"""tf.train.Server: its attributes and errors; run under `python -m muster`."""
import json
import socket

import tensorflow as tf


def port():
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return s.getsockname()[1]


def error_of(run):
    try:
        run()
        return "no error"
    except Exception as e:
        return type(e).__name__


def local_server():
    server = tf.train.Server.create_local_server()
    with tf.Session(server.target) as sess:
        return [server.target.startswith("grpc://localhost:"), server.server_def.job_name, server.server_def.task_index,
                server.server_def.protocol, int(sess.run(tf.constant(7))), sess.list_devices()[0].name]


def two_local_servers_share_nothing():
    one, two = tf.train.Server.create_local_server(), tf.train.Server.create_local_server()
    v = tf.Variable(1.0, name="local_v")
    with tf.Session(one.target) as a, tf.Session(two.target) as b:
        a.run(v.initializer)
        return [float(a.run(v)), bool(b.run(tf.is_variable_initialized(v)))]


def not_started_at_once():
    server = tf.train.Server.create_local_server(start=False)
    server.start()
    with tf.Session(server.target) as sess:
        return int(sess.run(tf.constant(5)))


def sparse_job():
    address = f"localhost:{port()}"
    cluster = tf.train.ClusterSpec({"local": {37: address}})
    server = tf.train.Server(cluster, job_name="local", task_index=37)
    with tf.device("/job:local/task:37"):
        a = tf.constant(1.0)
    with tf.Session(server.target) as sess:
        return [float(sess.run(a)), sess.list_devices()[0].name, dict(server.server_def.cluster.job[0].tasks) == {37: address}]


def job_without_tasks():
    server = tf.train.Server({"ps": [], "worker": [f"localhost:{port()}"]}, job_name="worker", task_index=0)
    with tf.Session(server.target) as sess:
        return [int(sess.run(tf.constant(4))), len(sess.list_devices())]


def only_task_needs_no_name():
    server = tf.train.Server({"lonely": [f"localhost:{port()}"]})
    return [server.server_def.job_name, server.server_def.task_index]


def from_a_server_def():
    made = tf.train.ServerDef(cluster=tf.train.ClusterSpec({"a": [f"localhost:{port()}"]}).as_cluster_def(), job_name="a",
                              task_index=0, protocol="grpc")
    with tf.Session(tf.train.Server(made).target) as sess:
        return int(sess.run(tf.constant(3)))


def its_configuration_is_the_sessions_default():
    config = tf.ConfigProto(operation_timeout_in_ms=500)
    server = tf.train.Server.create_local_server(config=config)
    queue = tf.FIFOQueue(1, [tf.float32])
    with tf.Session(server.target) as sess:
        return [error_of(lambda: sess.run(queue.dequeue())), server.server_def.default_session_config.operation_timeout_in_ms]


def port_is_taken():
    with socket.socket() as s:
        s.bind(("0.0.0.0", 0))
        s.listen()
        return error_of(lambda: tf.train.Server({"a": [f"localhost:{s.getsockname()[1]}"]}))


def address_without_a_port():
    return error_of(lambda: tf.train.Server({"a": ["localhost"]}))


def wrong_arguments():
    cluster = {"a": ["localhost:1", "localhost:2"], "b": ["localhost:3"]}
    return [error_of(lambda: tf.train.Server(cluster)), error_of(lambda: tf.train.Server(cluster, job_name="a")),
            error_of(lambda: tf.train.Server("nonsense"))]


def a_layer_under_its_target():
    server = tf.train.Server.create_local_server()
    w = tf.get_variable("kernel", [2, 3], initializer=tf.ones_initializer())
    x = tf.nn.bias_add(tf.matmul(tf.constant([[1.0, 2.0]]), w), tf.get_variable("bias", [3], initializer=tf.zeros_initializer()))
    with tf.Session(server.target) as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(x).tolist()


results = {}
for name, function in list(globals().items()):
    if getattr(function, "__module__", "") == "__main__" and callable(function) and name not in ("port", "error_of"):
        with tf.Graph().as_default():
            try:
                results[name] = function()
            except Exception as e:
                results[name] = f"raises {type(e).__name__}: {e}"
print(json.dumps(results), flush=True)
