"""The measured programs: cases.py CASE TARGET SECONDS prints one JSON object.

Plain tf.compat.v1 clients, the same for stock servers and ours; TARGET is worker 0 of a cluster of one ps
and two workers. Steps are counted for SECONDS after a warm-up.
"""
import json
import sys
import threading
import time

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()


def timed(step, seconds, warm=50):
    for _ in range(warm):
        step()
    times = []
    end = time.perf_counter() + seconds
    while True:
        start = time.perf_counter()
        step()
        now = time.perf_counter()
        times.append(now - start)
        if now > end:
            break
    times.sort()
    return {"p50_us": 1e6 * times[len(times) // 2], "p99_us": 1e6 * times[int(len(times) * 0.99)],
            "per_s": len(times) / sum(times)}


def constant(target, seconds):
    with tf.Graph().as_default():
        c = tf.constant(b"hello")
        with tf.Session(target) as s:
            return timed(s.make_callable(c), seconds)


def null_step(target, seconds):
    """The worker fetches a scalar from the ps, computes, and the ps adds the result."""
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            v = tf.get_variable("bench_null", [], initializer=tf.zeros_initializer())
        with tf.device("/job:worker/task:0"):
            push = v + 1.0
        with tf.device("/job:ps/task:0"):
            op = v.assign_add(push).op
        with tf.Session(target) as s:
            s.run(v.initializer)
            return timed(s.make_callable(op), seconds)


def transfer(target, seconds, mib=16):
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            v = tf.get_variable("bench_big", [mib << 18], initializer=tf.ones_initializer())
        with tf.device("/job:worker/task:0"):
            use = tf.slice(v, [0], [1])
        with tf.Session(target) as s:
            s.run(v.initializer)
            r = timed(s.make_callable(use.op), seconds)
            r["gb_per_s"] = (mib << 20) / r["p50_us"] / 1e3
            return r


def mlp_graph(task, batch):
    rng = np.random.RandomState(task)
    with tf.device(tf.train.replica_device_setter(ps_tasks=1, worker_device=f"/job:worker/task:{task}")):
        x = tf.constant(rng.rand(batch, 784).astype(np.float32))
        y = tf.constant(rng.randint(0, 10, batch).astype(np.int32))
        w1 = tf.get_variable("w1", [784, 128], initializer=tf.random_normal_initializer(0, 0.05, seed=1))
        b1 = tf.get_variable("b1", [128], initializer=tf.zeros_initializer())
        w2 = tf.get_variable("w2", [128, 10], initializer=tf.random_normal_initializer(0, 0.05, seed=2))
        b2 = tf.get_variable("b2", [10], initializer=tf.zeros_initializer())
        h = tf.nn.relu(tf.matmul(x, w1) + b1)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=y, logits=tf.matmul(h, w2) + b2))
        return tf.train.GradientDescentOptimizer(0.01).minimize(loss)


def mlp(target, seconds, batch=32, other=None):
    """Both workers at once, each with a client thread of its own graph and session."""
    results = {}

    def client(task, where):
        graph = tf.Graph()
        with graph.as_default():
            op = mlp_graph(task, batch)
            init = tf.global_variables_initializer()
            with tf.Session(where, graph=graph) as s:
                if task == 0:
                    s.run(init)
                    ready.set()
                ready.wait()
                results[task] = timed(s.make_callable(op), seconds)

    ready = threading.Event()
    threads = [threading.Thread(target=client, args=(t, w)) for t, w in enumerate([target, other])]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return {"per_s": sum(r["per_s"] for r in results.values()),
            "p50_us": max(r["p50_us"] for r in results.values())}


def conv_graph(batch):
    """Two convolutions and two dense layers, as the digits tutorials have them; Adam."""
    rng = np.random.RandomState(0)

    def var(name, *shape):
        return tf.get_variable(name, shape, initializer=tf.random_normal_initializer(0, 0.1, seed=1))

    with tf.variable_scope("bench_conv"), tf.device(tf.train.replica_device_setter(
            ps_tasks=1, worker_device="/job:worker/task:0")):
        h = tf.constant(rng.rand(batch, 28, 28, 1).astype(np.float32))
        y = tf.constant(rng.randint(0, 10, batch).astype(np.int32))
        for i, (k, channels, filters) in enumerate([(5, 1, 32), (5, 32, 64)]):
            h = tf.nn.conv2d(h, var(f"c{i}", k, k, channels, filters), 1, "SAME")
            h = tf.nn.relu(tf.nn.bias_add(h, var(f"d{i}", filters)))
            h = tf.nn.max_pool(h, 2, 2, "SAME")
        h = tf.reshape(h, [batch, 7 * 7 * 64])
        h = tf.nn.relu(tf.matmul(h, var("f0", 7 * 7 * 64, 128)) + var("g0", 128))
        logits = tf.matmul(h, var("f1", 128, 10)) + var("g1", 10)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        return tf.train.AdamOptimizer(1e-4).minimize(loss)


def conv(target, seconds, batch=64):
    with tf.Graph().as_default():
        op = conv_graph(batch)
        init = tf.global_variables_initializer()
        with tf.Session(target) as s:
            s.run(init)
            r = timed(s.make_callable(op), seconds, warm=5)
            r["images_per_s"] = r["per_s"] * batch
            return r


CASES = {
    "constant": constant,
    "null_step": null_step,
    "transfer_16MiB": transfer,
    "mlp_b32": mlp,
    "conv_b64": conv,
    "mlp_b1024": lambda *a, **k: mlp(*a, batch=1024, **k),
}

if __name__ == "__main__":
    case, target, seconds, other = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4]
    args = {"other": other} if case.startswith("mlp") else {}
    print(json.dumps(CASES[case](target, seconds, **args)))
