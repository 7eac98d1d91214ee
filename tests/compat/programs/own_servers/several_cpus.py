# SPDX-License-Identifier: Apache-2.0
"""Tasks with several CPU devices (device_count); run under `python -m muster`."""
import json
import socket

import tensorflow as tf
from tensorflow.python.framework import function
from tensorflow.python.ops import gen_functional_ops


def port():
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return s.getsockname()[1]


CONFIG = tf.ConfigProto(device_count={"CPU": 2})
CLUSTER = {"ps": [f"localhost:{port()}"], "worker": [f"localhost:{port()}"]}
PS = tf.train.Server(CLUSTER, job_name="ps", task_index=0, config=CONFIG)
SERVER = tf.train.Server(CLUSTER, job_name="worker", task_index=0, config=CONFIG)


def list_devices():
    with tf.Session(SERVER.target) as sess:
        return sorted(d.name for d in sess.list_devices())


def constants_and_transfers():
    with tf.device("/cpu:1"):
        a = tf.constant([1.0, 2.0]) * 3
    with tf.device("/cpu:0"):
        b = a + 1
    with tf.device("/job:ps/cpu:1"):
        c = b * a
    with tf.device("/job:worker/cpu:1"):
        d = c - b
    with tf.Session(SERVER.target) as sess:
        return [v.tolist() for v in sess.run([a, b, c, d])]


def variables_on_each_device():
    names = ["/cpu:0", "/cpu:1", "/job:ps/cpu:0", "/job:ps/cpu:1"]
    variables = []
    for i, name in enumerate(names):
        with tf.device(name):
            variables.append(tf.get_variable(f"v{i}", initializer=float(i), use_resource=i % 2 == 1))
    total = tf.add_n([v.read_value() if i % 2 else v for i, v in enumerate(variables)])
    step = tf.group(*[v.assign_add(total) for v in variables])
    with tf.Session(SERVER.target) as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(step)
        return [float(v) for v in sess.run(variables)]


def shared_name_on_two_devices():
    with tf.Session(SERVER.target) as sess:
        values = []
        for i in range(2):
            with tf.device(f"/cpu:{i}"):
                queue = tf.FIFOQueue(2, [tf.float32], shared_name="both")
            sess.run(queue.enqueue(float(i)))
            values.append([int(sess.run(queue.size())), float(sess.run(queue.dequeue()))])
        return values


def variable_shared_name_on_two_devices():
    from tensorflow.python.ops import gen_resource_variable_ops as ops
    handles = []
    for i in range(2):
        with tf.device(f"/cpu:{i}"):
            handles.append(ops.var_handle_op(dtype=tf.float32, shape=[], shared_name="same", container="c"))
    with tf.Session(SERVER.target) as sess:
        for i, h in enumerate(handles):
            sess.run(ops.assign_variable_op(h, float(i)))
        return [float(v) for v in sess.run([ops.read_variable_op(h, tf.float32) for h in handles])]


def remote_calls():
    @function.Defun(tf.float32, func_name="three_times")
    def three_times(a):
        return a * 3

    x = tf.constant(2.0)
    calls = [gen_functional_ops.remote_call(target=t, args=[x], Tout=[tf.float32], f=three_times)[0]
             for t in ("/cpu:1", "/job:worker/replica:0/task:0/cpu:1", "/job:worker/replica:0/task:0/device:CPU:0")]
    with tf.Session(SERVER.target) as sess:
        return [float(v) for v in sess.run(calls)]


def remote_call_with_devices_in_its_function():
    with tf.device("/cpu:0"):
        queue = tf.FIFOQueue(2, [tf.float32], shared_name="near")

    @function.Defun(tf.resource, func_name="size_there")
    def size_there(handle):
        with tf.device("/cpu:1"):
            return tf.raw_ops.QueueSizeV2(handle=handle)

    with tf.device("/cpu:1"):
        size = gen_functional_ops.remote_call(target="/cpu:0", args=[queue.queue_ref], Tout=[tf.int32], f=size_there)[0]
    with tf.Session(SERVER.target) as sess:
        sess.run(queue.enqueue(1.0))
        return int(sess.run(size))


def multi_device_iterator():
    from tensorflow.python.data.ops import multi_device_iterator_ops
    with tf.device("/cpu:0"):
        it = multi_device_iterator_ops.MultiDeviceIterator(tf.data.Dataset.range(7), ["/cpu:0", "/cpu:1"], 1, 1, "/cpu:0")
    both = it.get_next()
    with tf.Session(SERVER.target) as sess:
        values = []
        for _ in range(2):
            sess.run(it.initializer)
            for i in range(3):
                values.append([int(v) for v in sess.run(both)])
            values.append(int(sess.run(both[0])))
            for element in both:
                try:
                    sess.run(element)
                except tf.errors.OutOfRangeError:
                    values.append("end")
        return values


def multi_device_iterator_out_of_step():
    from tensorflow.python.ops import gen_dataset_ops as ops
    shapes = {"output_types": [tf.int64], "output_shapes": [[]]}
    with tf.device("/cpu:0"):
        it = ops.multi_device_iterator(["/cpu:0", "/cpu:1", "/cpu:1"], "", "c", **shapes)
        begin = ops.multi_device_iterator_init(tf.data.Dataset.range(9)._variant_tensor, it, 2)
        round_ = tf.placeholder(tf.int64, [])
        shards = [ops.multi_device_iterator_get_next_from_shard(it, i, round_, **shapes)[0] for i in range(3)]
    with tf.Session(SERVER.target) as sess:
        n = sess.run(begin)
        values = [int(sess.run(shards[i], {round_: n})) for i in (0, 0, 2, 1, 1, 2, 0, 1, 2)]
        try:
            sess.run(shards[1], {round_: n + 1})
        except tf.errors.OpError as e:
            values.append(type(e).__name__)
        return values


def control_flow():
    with tf.device("/cpu:1"):
        i, total = tf.while_loop(lambda i, s: i < 5, lambda i, s: (i + 1, s + tf.cast(i, tf.float32)), [0, 0.0])
    with tf.device("/cpu:0"):
        c = tf.cond(total > 5, lambda: total * 2, lambda: total)
    with tf.Session(SERVER.target) as sess:
        return [float(v) for v in sess.run([i, total, c])]


def no_such_device():
    with tf.device("/cpu:2"):
        a = tf.constant(1.0)
    try:
        with tf.Session(SERVER.target) as sess:
            return float(sess.run(a))
    except tf.errors.OpError as e:
        return type(e).__name__


def soft_placement():
    with tf.device("/cpu:2"):
        a = tf.constant(1.0)
    with tf.Session(SERVER.target, config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        return float(sess.run(a))


def devices_in_a_trace():
    with tf.device("/cpu:1"):
        a = tf.placeholder(tf.float32, [], name="a") * 2
    data = tf.RunMetadata()
    with tf.Session(SERVER.target) as sess:
        sess.run(a, {"a:0": 1.0}, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=data)
    return any(d.device.endswith("worker/replica:0/task:0/device:CPU:1") for d in data.step_stats.dev_stats)


results = {}
for name, test in list(globals().items()):
    if getattr(test, "__module__", "") == "__main__" and callable(test) and name != "port":
        with tf.Graph().as_default():
            try:
                results[name] = test()
            except Exception as e:
                results[name] = f"raises {type(e).__name__}: {e}"
print(json.dumps(results), flush=True)
