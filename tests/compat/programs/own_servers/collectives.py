# SPDX-License-Identifier: Apache-2.0
"""Collective ops between two workers, each with its own session; run under `python -m muster`."""
import json
import socket
import threading

import tensorflow as tf
from tensorflow.python.ops import collective_ops as ops

LEADER = "/job:worker/replica:0/task:0"


def port():
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return s.getsockname()[1]


def start_workers(n=2):
    config = tf.ConfigProto()
    config.experimental.collective_group_leader = LEADER
    cluster = {"worker": [f"localhost:{port()}" for _ in range(n)]}
    return [tf.train.Server(cluster, job_name="worker", task_index=i, config=config) for i in range(n)]


WORKERS = start_workers()


def member(workers, build, i, steps, results):
    config = tf.ConfigProto()
    config.experimental.collective_group_leader = LEADER
    try:
        with tf.Graph().as_default() as graph, tf.device(f"/job:worker/task:{i}/cpu:0"):
            fetches = build(i)
        with tf.Session(workers[i].target, graph=graph, config=config) as sess:
            results[i] = [[v.tolist() for v in sess.run(fetches)] for _ in range(steps)]
    except tf.errors.OpError as e:
        results[i] = type(e).__name__


def run(build, steps=1, workers=None):
    """Runs the list of tensors that build(i) returns on each worker i, at the same time."""
    workers = workers or WORKERS
    results = [None] * len(workers)
    threads = [threading.Thread(target=member, args=(workers, build, i, steps, results)) for i in range(len(workers))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return results


def value(i, dtype=tf.float32):
    return tf.constant([2, -3, 5], dtype) * (i + 1)


def reductions():
    return run(lambda i: [ops.all_reduce(value(i), 2, 1, 10 + 3 * k + d, merge, final)
                          for k, merge in enumerate(["Add", "Mul", "Max", "Min"]) for d, final in enumerate(["Id", "Div"])])


def reduced_types():
    types = [tf.float64, tf.float16, tf.bfloat16, tf.int32, tf.int64]
    return run(lambda i: [tf.cast(ops.all_reduce(value(i, t), 2, 1, 30 + k, "Add", "Div"), tf.float64)
                          for k, t in enumerate(types)])


def keys_as_inputs():
    return run(lambda i: [ops.all_reduce_v2(value(i), 2, 1, 40, "Add", "Id"), ops.all_gather_v2(value(i), 2, 1, 41),
                          ops.broadcast_send_v2(value(i), 2, 1, 42) if i == 1
                          else ops.broadcast_recv_v2(tf.constant([3]), tf.float32, 2, 1, 42)])


def gathers():
    return run(lambda i: [ops.all_gather(tf.reshape(value(i), [1, 3]), 2, 1, 50), ops.all_gather(value(i, tf.int64), 2, 1, 51)])


def broadcasts():
    return run(lambda i: [ops.broadcast_send(value(i), [3], tf.float32, 2, 1, 60) if i == 0
                          else ops.broadcast_recv([3], tf.float32, 2, 1, 60)])


def small_and_large():
    return run(lambda i: [ops.all_reduce(tf.constant(3.0) * (i + 1), 2, 1, 70, "Add", "Id"),
                          ops.all_reduce(tf.zeros([0, 2]), 2, 1, 71, "Add", "Id"),
                          tf.reduce_sum(ops.all_reduce(tf.ones([1 << 20]) * (i + 1), 2, 1, 72, "Add", "Div"))])


def groups():
    """Group 2 has both workers, groups 3 and 4 one each."""
    return run(lambda i: [ops.all_reduce(value(i), 2, 2, 80, "Add", "Id"), ops.all_reduce(value(i), 1, 3 + i, 81, "Add", "Id")])


def repeated_steps():
    return run(lambda i: [ops.all_reduce(ops.all_reduce(value(i), 2, 1, 90, "Add", "Div") + i, 2, 1, 91, "Max", "Id")], steps=20)


def shapes_differ():
    results = run(lambda i: [ops.all_reduce(tf.zeros([2 + i]), 2, 1, 100, "Add", "Id", timeout=5)], workers=start_workers())
    return "InvalidArgumentError" in results


def member_fails():
    """The step of worker 1 fails before its op."""
    def build(i):
        x = tf.check_numerics(tf.constant([1.0]) / tf.constant([1.0 - i]), "worker 1 divides by zero")
        return [ops.all_reduce(x, 2, 1, 110, "Add", "Id", timeout=5)]
    results = run(build, workers=start_workers())
    return [isinstance(results[0], str), results[1]]


def member_misses():
    return run(lambda i: [ops.all_reduce(value(i), 2, 1, 120, "Add", "Id", timeout=2)] if i == 0 else [value(i)],
               workers=start_workers())


results = {}
for name, test in list(globals().items()):
    if getattr(test, "__module__", "") == "__main__" and callable(test) and test.__code__.co_argcount == 0 and name != "port":
        try:
            results[name] = test()
        except Exception as e:
            results[name] = f"raises {type(e).__name__}: {e}"
print(json.dumps(results), flush=True)
