"""The measured programs: cases.py CASE TARGET SECONDS prints one JSON object.

Plain tf.compat.v1 clients, the same for stock servers and ours; TARGET is worker 0 of a cluster of one ps
and two workers. Steps are counted for SECONDS after a warm-up.
"""
import json
import os
import subprocess
import sys
import tempfile
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
    """The worker fetches a scalar from the ps and negates it; the ps adds the result."""
    with tf.Graph().as_default():
        v, op = null_graph()
        with tf.Session(target) as s:
            s.run(v.initializer)
            return timed(s.make_callable(op), seconds)


def raw(target, seconds, graph, init="-", fetch="-", step="-", connections=1):
    """Requests steps of the graph with a C client (raw_client.c), to measure only the RPC and the server."""
    host, port = target.removeprefix("grpc://").rsplit(":", 1)
    with tempfile.NamedTemporaryFile() as f:
        f.write(graph.as_graph_def().SerializeToString())
        f.flush()
        out = subprocess.run([os.environ["MUSTER_RAW_CLIENT"], host, port, f.name, init, fetch, step,
                              str(connections), str(seconds)], stdout=subprocess.PIPE, check=True)
    return json.loads(out.stdout)


def raw_constant(target, seconds, connections=1):
    with tf.Graph().as_default() as g:
        c = tf.constant(b"hello")
    return raw(target, seconds, g, fetch=c.name, connections=connections)


def null_graph():
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("bench_null", [], initializer=tf.zeros_initializer())
    with tf.device("/job:worker/task:0"):
        push = v + 1.0
    with tf.device("/job:ps/task:0"):
        return v, v.assign_add(push).op


def raw_null(target, seconds):
    with tf.Graph().as_default() as g:
        v, op = null_graph()
    return raw(target, seconds, g, init=v.initializer.name, step=op.name)


def transfer(target, seconds, mib=16):
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            v = tf.get_variable(f"bench_big{mib}", [mib << 18], initializer=tf.ones_initializer())
        with tf.device("/job:worker/task:0"):
            use = tf.slice(v, [0], [1])
        with tf.Session(target) as s:
            s.run(v.initializer)
            r = timed(s.make_callable(use.op), seconds)
            r["gb_per_s"] = (mib << 20) / r["p50_us"] / 1e3
            return r


def sparse_rows(target, seconds, rows=32):
    """The worker gathers random rows of 4 KiB from a table of 1 GiB on the ps."""
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            table = tf.get_variable("bench_table", [1 << 18, 1 << 10], initializer=tf.ones_initializer())
        with tf.device("/job:worker/task:0"):
            ids = tf.random_uniform([rows], 0, 1 << 18, tf.int32)
        with tf.device("/job:ps/task:0"):
            some = tf.gather(table, ids)
        with tf.device("/job:worker/task:0"):
            use = tf.slice(some, [0, 0], [1, 1])
        with tf.Session(target) as s:
            s.run(table.initializer)
            return timed(s.make_callable(use.op), seconds)


def dense_step(target, seconds, mb=100):
    """The worker fetches a large variable, and the ps adds the result."""
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            v = tf.get_variable("bench_dense", [mb * 250_000], initializer=tf.ones_initializer())
        with tf.device("/job:worker/task:0"):
            push = tf.negative(v)
        with tf.device("/job:ps/task:0"):
            op = v.assign_add(push).op
        with tf.Session(target) as s:
            s.run(v.initializer)
            return timed(s.make_callable(op), seconds, warm=3)


def mlp_loss(task, batch):
    rng = np.random.RandomState(task)
    x = tf.constant(rng.rand(batch, 784).astype(np.float32))
    y = tf.constant(rng.randint(0, 10, batch).astype(np.int32))
    w1 = tf.get_variable("w1", [784, 128], initializer=tf.random_normal_initializer(0, 0.05, seed=1))
    b1 = tf.get_variable("b1", [128], initializer=tf.zeros_initializer())
    w2 = tf.get_variable("w2", [128, 10], initializer=tf.random_normal_initializer(0, 0.05, seed=2))
    b2 = tf.get_variable("b2", [10], initializer=tf.zeros_initializer())
    h = tf.nn.relu(tf.matmul(x, w1) + b1)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=y, logits=tf.matmul(h, w2) + b2))


def mlp_graph(task, batch):
    with tf.device(tf.train.replica_device_setter(ps_tasks=1, worker_device=f"/job:worker/task:{task}")):
        return tf.train.GradientDescentOptimizer(0.01).minimize(mlp_loss(task, batch))


def single(target, seconds, batch=32):
    """Variables and computation on one worker, without a ps."""
    with tf.Graph().as_default(), tf.variable_scope("bench_single"), tf.device("/job:worker/task:0"):
        op = tf.train.GradientDescentOptimizer(0.01).minimize(mlp_loss(0, batch))
        with tf.Session(target) as s:
            s.run(tf.global_variables_initializer())
            return timed(s.make_callable(op), seconds)


def local(target, seconds, batch=32):
    """TensorFlow's in-process session in the client, without a server."""
    with tf.Graph().as_default():
        op = tf.train.GradientDescentOptimizer(0.01).minimize(mlp_loss(0, batch))
        with tf.Session() as s:
            s.run(tf.global_variables_initializer())
            return timed(s.make_callable(op), seconds)


def mlp(target, seconds, batch=32, other=None):
    """Both workers at the same time; each has a client thread with its own graph and session."""
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


def sync(target, seconds, batch=32, other=None):
    """Both workers synchronously with SyncReplicasOptimizer; counts global steps."""
    counts, chief_ready, steps_done, finished = {}, threading.Event(), [0, 0], []
    own = f"sync-{os.getpid()}"  # closing the token queue at the end is permanent, so each run has its own container

    def client(task, where):
        setter = tf.train.replica_device_setter(ps_tasks=1, worker_device=f"/job:worker/task:{task}")
        with tf.Graph().as_default(), tf.variable_scope("bench_sync"), tf.container(own), tf.device(setter):
            loss = mlp_loss(task, batch)
            step = tf.train.get_or_create_global_step()
            opt = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.01), 2, 2)
            op = opt.minimize(loss, global_step=step)
            # the time-out ends the worker that is alone in the last step, which then sets chief_ready
            config = tf.ConfigProto(operation_timeout_in_ms=10000)
            if task:
                chief_ready.wait()  # a worker that precedes the initialization sleeps for half a minute
            try:
                with tf.train.MonitoredTrainingSession(
                        where, is_chief=task == 0, hooks=[opt.make_session_run_hook(task == 0)], config=config,
                        save_checkpoint_secs=None, save_summaries_steps=None, log_step_count_steps=None,
                        stop_grace_period_secs=2) as s:
                    chief_ready.set()
                    first = start = None
                    # the workers may only wait for each other inside a step: one can be two steps ahead
                    while 1 - task not in finished:
                        s.run(op)
                        steps_done[task] += 1
                        if task or 0 in finished:
                            continue
                        if start is None and min(steps_done) >= 20:
                            first, start = s.run(step), time.perf_counter()
                        elif start is not None and time.perf_counter() > start + seconds:
                            counts["per_s"] = (s.run(step) - first) / (time.perf_counter() - start)
                            finished.append(0)
                    finished.append(task)
            except (tf.errors.DeadlineExceededError, tf.errors.CancelledError):
                pass
            finally:
                chief_ready.set()

    threads = [threading.Thread(target=client, args=(t, w)) for t, w in enumerate([target, other])]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if not counts:
        sys.exit("the two workers stood still before anything could be measured")
    return {"per_s": counts["per_s"], "p50_us": 1e6 / counts["per_s"]}


def conv_graph(batch):
    """Two convolutions and two dense layers, as in tutorials on digits, with Adam."""
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


def checkpoint(target, seconds, restores):
    """Saves or restores 256 MiB on the ps through a Saver: 16 random variables, which a file system cannot compress."""
    with tf.Graph().as_default(), tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        with tf.device("/job:ps/task:0"):
            parts = [tf.get_variable(f"bench_saved{i}", [4 << 20], initializer=tf.random_uniform_initializer())
                     for i in range(16)]
            saver = tf.train.Saver(parts, sharded=True, max_to_keep=1)
        with tf.Session(target) as s:
            s.run(tf.global_variables_initializer())
            path = os.path.join(folder, "ck")
            saved = saver.save(s, path, global_step=0, write_meta_graph=False)
            steps = iter(range(1, 1000))
            r = timed((lambda: saver.restore(s, saved)) if restores else
                      lambda: saver.save(s, path, global_step=next(steps), write_meta_graph=False), seconds, warm=1)
            r["gb_per_s"] = (256 << 20) / r["p50_us"] / 1e3
            return r


CASES = {
    "constant": constant,
    "raw_constant": raw_constant,
    "raw_clients_4": lambda *a: raw_constant(*a, connections=4),
    "raw_clients_8": lambda *a: raw_constant(*a, connections=8),
    "null_step": null_step,
    "raw_null": raw_null,
    "single": single,
    "local": local,
    "transfer_1MiB": lambda *a: transfer(*a[:2], mib=1),
    "transfer_16MiB": lambda *a: transfer(*a[:2]),
    "transfer_64MiB": lambda *a: transfer(*a[:2], mib=64),
    "dense_100MB": dense_step,
    "sparse_rows": sparse_rows,
    "save_256MiB": lambda *a: checkpoint(*a[:2], restores=False),
    "restore_256MiB": lambda *a: checkpoint(*a[:2], restores=True),
    "mlp_b32": mlp,
    "sync": sync,
    "conv_b64": conv,
    "mlp_b1024": lambda *a, **k: mlp(*a, batch=1024, **k),
}

if __name__ == "__main__":
    case, target, seconds, other = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4]
    args = {"other": other} if case.startswith(("mlp", "sync")) else {}
    print(json.dumps(CASES[case](target, seconds, **args)))
