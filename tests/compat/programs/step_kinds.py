# SPDX-License-Identifier: Apache-2.0
"""Steps other than plain runs: partial runs, callables, traced steps. One function each."""
import numpy as np
from tensorflow.core.protobuf import config_pb2

from common import TARGET, answer_each, error_of, forget, plain, tf
from step_picture import picture

PS = "/job:ps/task:0"


def partial_run():
    a, b, c = (tf.placeholder(tf.float32, []) for _ in range(3))
    r1 = a + b
    with tf.device(PS):
        r2 = r1 * c
    with tf.Session(TARGET) as sess:
        handle = sess.partial_run_setup([r1, r2], [a, b, c])
        first = sess.partial_run(handle, r1, {a: 1.0, b: 2.0})
        second = sess.partial_run(handle, r2, {c: first * 17})
        return plain([first, second])


def partial_run_twice_at_once():
    a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    r1, r2 = a + 1.0, a * b
    with tf.Session(TARGET) as sess:
        one, two = sess.partial_run_setup([r1, r2], [a, b]), sess.partial_run_setup([r1, r2], [a, b])
        out = [sess.partial_run(one, r1, {a: 1.0}), sess.partial_run(two, r1, {a: 10.0})]
        return plain(out + [sess.partial_run(two, r2, {b: 2.0}), sess.partial_run(one, r2, {b: 3.0})])


def partial_run_done_wrong():
    a, b = tf.placeholder(tf.float32, [], name="a"), tf.placeholder(tf.float32, [], name="b")
    r1, r2 = tf.add(a, 1.0, name="r1"), tf.multiply(a, b, name="r2")
    with tf.Session(TARGET) as sess:
        handle = sess.partial_run_setup([r1, r2], [a, b])
        out = [error_of(lambda: sess.partial_run(handle, r2, {a: 1.0})), error_of(lambda: sess.partial_run(handle, [r1, r2]))]
        handle = sess.partial_run_setup([r1], [a])
        out.append(error_of(lambda: sess.partial_run(handle, r2, {a: 1.0})))
        out.append(error_of(lambda: sess.partial_run(handle, r1, {a: 1.0, b: 1.0})))
        handle = sess.partial_run_setup([r1, r2], [a, b])
        sess.partial_run(handle, r1, {a: 1.0})
        out.append(error_of(lambda: sess.partial_run(handle, r1)))
        out.append(error_of(lambda: sess.partial_run(handle, r2, {a: 1.0, b: 1.0})))
        out.append(error_of(lambda: sess.partial_run("no such handle", r1, {a: 1.0})))
        out.append(error_of(lambda: sess.partial_run_setup([], [a])))
        return out


def partial_run_is_left_unfinished():
    a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    r1, r2 = a + 1.0, a * b
    with tf.Session(TARGET) as sess:
        handle = sess.partial_run_setup([r1, r2], [a, b])
        out = sess.partial_run(handle, r1, {a: 1.0})
    return plain(out)


def callables():
    x = tf.placeholder(tf.float32, [2])
    v = tf.Variable([1.0, 1.0])
    with tf.device(PS):
        y = x * v
    with tf.Session(TARGET) as sess:
        run = sess.make_callable([y, x], feed_list=[x])
        nothing = sess.make_callable(v.initializer)
        before = error_of(lambda: run([1, 2]))[0]
        out = [nothing(), run([1, 2]), run(np.array([3, 4], np.float32))]
        sess.run(tf.constant(0))
        out.append(sess.make_callable(y, feed_list=[x], accept_options=True)([5, 6], options=tf.RunOptions(), run_metadata=None))
        return [before, plain(out)]


def callables_of_options():
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.identity(x * 3.0, name="y")
    with tf.Session(TARGET) as sess:
        make = lambda fetch: sess._make_callable_from_options(config_pb2.CallableOptions(feed=[x.name], fetch=fetch))
        call = make([y.name])
        out = [call(np.array([1, 2], np.float32)), call(np.array([3, 4], np.float32))]
        return plain(out) + error_of(lambda: make([y.name, x.name])(np.array([1, 2], np.float32)))


def callables_are_checked_when_they_are_made():
    x = tf.placeholder(tf.float32, [2], name="x")
    tf.identity(x * 3.0, name="y")
    with tf.Session(TARGET) as sess:
        def made(feed, fetch):
            sess._make_callable_from_options(config_pb2.CallableOptions(feed=feed, fetch=fetch))
            return "made"
        return [error_of(lambda: made(*names)) for names in (
            (["x:0"], ["y:0"]), (["x:0"], ["none:0"]), (["none:0"], ["y:0"]), (["x:0"], []), ([], ["y:0"]))]


def callables_with_connected_tensors():
    """Callables with tensor_connection, as Keras makes them when a tensor replaces an array."""
    x, z = tf.placeholder(tf.float32, [None], name="x"), tf.placeholder(tf.float32, [None], name="z")
    ones, tens = tf.constant([1.0, 2.0], name="ones"), tf.constant([10.0, 20.0], name="tens")
    with tf.control_dependencies([x]):
        after = tf.identity(z, name="after")
    tf.add(x * 2, z, name="sum")
    fed = np.array([5, 6], np.float32)
    calls = [("sum", [], ["ones:0 x:0", "tens:0 z:0"]), ("sum", [], ["ones:0 z:0", "tens:0 x:0"]), ("sum", ["z"], ["ones:0 x:0"]),
             ("after", ["z"], ["tens:0 x:0"]), ("sum", ["z"], ["tens:0 x:0"]), ("sum", ["x"], ["ones:0 x:0"]),
             ("sum", ["z"], ["ones:0 x:0", "tens:0 x:0"]), ("sum", ["z"], ["none:0 x:0"]), ("sum", ["z"], ["ones:0 none:0"]), ("x", ["z"], ["ones:0 x:0"])]

    def call(sess, fetch, feeds, connections):
        options = config_pb2.CallableOptions(feed=[f + ":0" for f in feeds], fetch=[fetch + ":0"])
        for source, target in map(str.split, connections):
            options.tensor_connection.add(from_tensor=source, to_tensor=target)
        return plain(sess._make_callable_from_options(options)(*[fed for _ in feeds]))

    with tf.Session(TARGET) as sess:
        return [error_of(lambda: call(sess, *c)) if i > 4 else call(sess, *c) for i, c in enumerate(calls)]


def _over_two_tasks():
    with tf.device(PS):
        a, big = tf.Variable([[1.0]], name="a"), tf.Variable(tf.ones([300, 300]), name="big")
    with tf.device("/job:worker/task:1"):
        return [a, big], [tf.matmul(a, a, name="product"), tf.reduce_sum(big + 1.0, name="sum")]


def partition_graphs():
    variables, wanted = _over_two_tasks()
    with tf.Session(TARGET) as sess:
        sess.run([v.initializer for v in variables])
        metadata = tf.RunMetadata()
        out = sess.run(wanted, options=tf.RunOptions(output_partition_graphs=True), run_metadata=metadata)
        graphs = sorted((sorted({n.device for n in g.node}), sorted(n.op for n in g.node)) for g in metadata.partition_graphs)
        return [plain(out), graphs, len(metadata.step_stats.dev_stats)]


def a_trace_of_a_step():
    variables, wanted = _over_two_tasks()
    with tf.Session(TARGET) as sess:
        sess.run([v.initializer for v in variables])
        out = []
        for level in (tf.RunOptions.NO_TRACE, tf.RunOptions.SOFTWARE_TRACE, tf.RunOptions.HARDWARE_TRACE, tf.RunOptions.FULL_TRACE):
            metadata = tf.RunMetadata()
            out += [sess.run(wanted, options=tf.RunOptions(trace_level=level), run_metadata=metadata), picture(metadata.step_stats)]
        return plain(out)


def a_trace_of_a_loop_and_a_queue():
    with tf.device(PS):
        queue = tf.FIFOQueue(3, [tf.float32], shapes=[[]])
        put, got = queue.enqueue(4.0), queue.dequeue(name="got")
    with tf.device("/job:worker/task:1"):
        x = tf.while_loop(lambda x: x < 30.0, lambda x: tf.multiply(x, 2.0, name="twice"), [got])
    with tf.Session(TARGET) as sess:
        sess.run(put)
        metadata = tf.RunMetadata()
        out = sess.run(x, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
        labels = [n.timeline_label.split("(")[0] for d in metadata.step_stats.dev_stats for n in d.node_stats]
        return [plain(out), labels.count("while/twice = Mul"), labels.count("got = QueueDequeueV2")]


def a_trace_of_a_callable():
    variables, wanted = _over_two_tasks()
    with tf.Session(TARGET) as sess:
        sess.run([v.initializer for v in variables])
        run = sess.make_callable(wanted, accept_options=True)
        metadata = tf.RunMetadata()
        out = run(options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
        return [plain(out), picture(metadata.step_stats)]


answer_each(forget)
