# SPDX-License-Identifier: Apache-2.0
"""Sessions whose ConfigProto.cluster_def names other jobs and tasks than the servers were started with.

Run under `python -m muster`.
"""
import json

import tensorflow as tf
from tensorflow.python.framework import errors_impl as errors

SERVERS = [tf.train.Server.create_local_server() for _ in range(3)]
ADDRESSES = [s.target[len("grpc://"):] for s in SERVERS]


def config_of(**jobs):
    """Returns a ConfigProto; `jobs` maps a job name to its server numbers."""
    config = tf.ConfigProto()
    for name, servers in jobs.items():
        job = config.cluster_def.job.add(name=name)
        for index, server in enumerate(servers):
            job.tasks[index] = ADDRESSES[server]
    return config


def names_of(sess):
    return sorted(d.name for d in sess.list_devices())


def error_of(run):
    try:
        run()
        return "no error"
    except errors.OpError as e:
        return type(e).__name__


def two_servers():
    with tf.device("/job:worker/task:1"):
        a = tf.constant(17.0)
    with tf.device("/job:worker/task:0"):
        b = a + 1
    with tf.Session(SERVERS[0].target, config=config_of(worker=[0, 1])) as sess:
        return [names_of(sess), [float(v) for v in sess.run([a, b])]]


def other_master():
    with tf.device("/job:worker/task:0"):
        a = tf.constant(17.0) * 2
    with tf.device("/job:ps/task:0"):
        b = a + 1
    with tf.device("/job:worker/task:1"):
        c = a * b
    with tf.Session(SERVERS[1].target, config=config_of(worker=[0, 1], ps=[2])) as sess:
        return [names_of(sess), [float(v) for v in sess.run([a, b, c])]]


def several_times():
    results = []
    for turn in range(4):
        order = [(turn + i) % 3 for i in range(3)]
        with tf.Graph().as_default():
            values = []
            for i in range(3):
                with tf.device(f"/job:turn{turn % 2}/task:{i}"):
                    values.append(tf.constant(float(i)) + turn)
            with tf.device(f"/job:turn{turn % 2}/task:2"):
                total = tf.add_n(values)
            with tf.Session(SERVERS[order[0]].target, config=config_of(**{f"turn{turn % 2}": order})) as sess:
                results.append([names_of(sess), float(sess.run(total))])
    return results


def two_sessions_at_once():
    with tf.device("/task:1"):
        x = tf.placeholder(tf.float32, [])
        y = x * 2
    with tf.device("/task:0"):
        z = y + 1
    with tf.Session(SERVERS[0].target, config=config_of(a=[0, 1])) as one, \
            tf.Session(SERVERS[1].target, config=config_of(b=[1, 0])) as two:
        return [float(s.run(z, {x: v})) for v in (1.0, 2.0) for s in (one, two)]


def beside_a_session_without():
    a = tf.constant(3.0)
    with tf.Session(SERVERS[0].target, config=config_of(w=[0, 1])) as one, tf.Session(SERVERS[0].target) as two:
        return [float(one.run(a)), float(two.run(a)), names_of(two)]


def training():
    with tf.device("/job:ps/task:0"):
        w = tf.get_variable("w", initializer=[1.0, 2.0])
    with tf.device("/job:worker/task:0"):
        loss = tf.reduce_sum(tf.square(w - 3))
        step = tf.train.GradientDescentOptimizer(0.25).minimize(loss)
    with tf.Session(SERVERS[0].target, config=config_of(worker=[0], ps=[1])) as sess:
        sess.run(w.initializer)
        for _ in range(3):
            sess.run(step)
        return [sess.run(w).tolist(), float(sess.run(loss))]


def loops_over_tasks():
    with tf.device("/job:worker/task:0"):
        i = tf.constant(0)

    def body(i, x):
        with tf.device("/job:worker/task:1"):
            y = x * 2
        with tf.device("/job:worker/task:0"):
            return i + 1, y + 1

    with tf.device("/job:worker/task:0"):
        out = tf.while_loop(lambda i, x: i < 4, body, [i, tf.constant(1.0)])
    with tf.Session(SERVERS[0].target, config=config_of(worker=[0, 1])) as sess:
        return [float(v) for v in sess.run(out)]


def state_of_two_sessions():
    v = tf.get_variable("shared", initializer=7.0)
    is_set = tf.is_variable_initialized(v)
    with tf.Session(SERVERS[0].target, config=config_of(worker=[0])) as one, \
            tf.Session(SERVERS[0].target, config=config_of(worker=[0])) as two:
        before = bool(one.run(is_set))
        one.run(v.initializer)
        return [before, bool(one.run(is_set)), bool(two.run(is_set))]


def shared_state_of_two_sessions():
    v = tf.get_variable("very_shared", initializer=7.0)
    is_set = tf.is_variable_initialized(v)
    config = config_of(worker=[0])
    config.experimental.share_session_state_in_clusterspec_propagation = True
    with tf.Session(SERVERS[0].target, config=config) as one, tf.Session(SERVERS[0].target, config=config) as two:
        one.run(v.initializer)
        return [bool(one.run(is_set)), bool(two.run(is_set))]


def partial_runs():
    with tf.device("/job:worker/task:1"):
        a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
        x = a + 1
    with tf.device("/job:worker/task:0"):
        y = x * b
    with tf.Session(SERVERS[0].target, config=config_of(worker=[0, 1])) as sess:
        run = sess.partial_run_setup([x, y], [a, b])
        first = sess.partial_run(run, x, {a: 1.0})
        return [float(first), float(sess.partial_run(run, y, {b: 5.0}))]


def callables_and_extension():
    with tf.device("/job:worker/task:1"):
        x = tf.placeholder(tf.float32, [])
        y = x + 1
    with tf.Session(SERVERS[0].target, config=config_of(worker=[0, 1])) as sess:
        call = sess.make_callable(y, [x])
        first = float(call(1.0))
        with tf.device("/job:worker/task:0"):
            z = y * 3
        return [first, float(sess.run(z, {x: 2.0}))]


def queues():
    with tf.device("/job:worker/task:1"):
        queue = tf.FIFOQueue(3, [tf.float32])
    with tf.device("/job:worker/task:0"):
        put, take = queue.enqueue(tf.constant(4.0)), queue.dequeue() + 1
    with tf.Session(SERVERS[0].target, config=config_of(worker=[0, 1])) as sess:
        sess.run(put)
        return float(sess.run(take))


def unnamed_task():
    with tf.device("/job:worker/task:5"):
        a = tf.constant(1.0)
    with tf.Session(SERVERS[0].target, config=config_of(worker=[0, 1])) as sess:
        return error_of(lambda: sess.run(a))


def original_name():
    with tf.device(f"/job:{SERVERS[0].server_def.job_name}/task:0"):
        a = tf.constant(1.0)
    with tf.Session(SERVERS[0].target, config=config_of(worker=[0, 1])) as sess:
        return error_of(lambda: sess.run(a))


def master_is_not_in_it():
    return error_of(lambda: tf.Session(SERVERS[0].target, config=config_of(worker=[1])).run(tf.constant(1.0)))


def same_name_as_at_start():
    job = SERVERS[0].server_def.job_name
    return error_of(lambda: tf.Session(SERVERS[0].target, config=config_of(**{job: [0]})).run(tf.constant(1.0)))


def master_twice():
    return error_of(lambda: tf.Session(SERVERS[0].target, config=config_of(worker=[0, 0])).run(tf.constant(1.0)))


def failure_on_a_task():
    with tf.device("/job:worker/task:1"):
        a = tf.placeholder(tf.float32, [None])
        b = tf.reshape(a, [2])
    with tf.device("/job:worker/task:0"):
        c = b * 2
    with tf.Session(SERVERS[0].target, config=config_of(worker=[0, 1])) as sess:
        return [error_of(lambda: sess.run(c, {a: [1.0]})), sess.run(c, {a: [1.0, 2.0]}).tolist()]


results = {}
for name, test in list(globals().items()):
    if getattr(test, "__module__", "") == "__main__" and callable(test) and name not in ("config_of", "names_of", "error_of"):
        with tf.Graph().as_default():
            try:
                results[name] = test()
            except Exception as e:
                results[name] = f"raises {type(e).__name__}: {e}"
print(json.dumps(results), flush=True)
