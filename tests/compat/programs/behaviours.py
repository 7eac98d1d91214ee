# SPDX-License-Identifier: Apache-2.0
"""Server behaviour beyond single steps.

Each function is one case; its return value or its exception is compared.
"""
import tempfile
import threading
import time

import numpy as np

from common import CLUSTER, TARGET, answer_each, error_of, plain, tf

OTHER = "grpc://" + CLUSTER["worker"][1]
HUGE = 120 << 20
PS = "/job:ps/task:0"


def initialised(variables, target=TARGET, **more):
    with tf.Session(target, **more) as sess:
        return [bool(sess.run(tf.is_variable_initialized(v))) for v in variables]


def int32_matmul():
    a = tf.constant([[1, 2], [3, 4]])
    with tf.device(PS):
        product = tf.matmul(a, a)
    with tf.Session(TARGET) as sess:
        return plain(sess.run(product))


def two_sessions_share_variables():
    with tf.device(PS):
        v = tf.Variable(2.0)
    more = v.assign_add(1.5)
    with tf.Session(TARGET) as one, tf.Session(TARGET) as two, tf.Session(OTHER) as three:
        one.run(v.initializer)
        return plain([two.run(v), two.run(more), one.run(v), three.run(more), two.run(v)])


def state_outlives_its_session():
    v = tf.Variable([1, 2, 3])
    with tf.Session(TARGET) as sess:
        sess.run(v.initializer)
        sess.run(v.assign_add([1, 1, 1]))
    with tf.Session(TARGET) as sess:
        return plain(sess.run(v))


def an_error_names_its_task():
    out = []
    for device in ("/job:worker/task:0", "/job:worker/task:1", PS):
        with tf.device(device):
            more = tf.Variable(1.0).assign_add(1.0)
        with tf.Session(TARGET) as sess:
            # a fetch from another task sometimes fails in stock's RecvTensor, which hides the failing task
            code, text = error_of(lambda: sess.run(more if device.endswith("worker/task:0") else more.op))
        out.append([code, [line for line in text.splitlines() if line.startswith("From /job:")]])
    return out


def isolated_sessions_share_nothing():
    v = tf.Variable(1.0)
    config = tf.ConfigProto(isolate_session_state=True)
    with tf.Session(TARGET, config=config) as one, tf.Session(TARGET, config=config) as two:
        one.run(v.initializer)
        return [plain(one.run(v)), bool(two.run(tf.is_variable_initialized(v))), initialised([v])]


def _three_containers():
    with tf.container("red"):
        red = tf.Variable(1.0, name="red")
        also = tf.Variable(5.0, name="also")
    with tf.container("blue"):
        blue = tf.Variable(2.0, name="blue")
    grey = tf.Variable(3.0, name="grey")
    return [red, also, blue, grey]


def after_reset(containers):
    variables = _three_containers()
    with tf.Session(TARGET) as sess:
        sess.run(tf.global_variables_initializer())
    tf.Session.reset(TARGET, containers)
    return initialised(variables)


def reset_of_the_default_container():
    return after_reset(None)


def reset_of_one_container():
    return after_reset(["red"])


def reset_of_two_containers():
    return after_reset(["red", "blue"])


def reset_of_a_container_that_is_not_there():
    return after_reset(["green"])


def reset_of_all_containers():
    return [after_reset(["red", "blue"]), after_reset([])]


def reset_of_containers_named_like_jobs():
    out = []
    for containers in ([""], ["ps"], ["worker"], ["localhost"], ["ps", "red"]):
        with tf.Graph().as_default(), tf.device(PS):
            variables = _three_containers()
            with tf.container("worker"):
                variables.append(tf.Variable(1.0, name="of_the_worker"))
            with tf.container("localhost"):
                variables.append(tf.Variable(1.0, name="of_localhost"))
            with tf.Session(TARGET) as sess:
                sess.run(tf.global_variables_initializer())
            tf.Session.reset(TARGET, containers)
            out.append(initialised(variables))
    return out


def reset_of_resource_variables():
    with tf.container("oak"):
        oak = tf.get_variable("oak", initializer=1.0, use_resource=True)
    elm = tf.get_variable("elm", initializer=2.0, use_resource=True)
    with tf.Session(TARGET) as sess:
        sess.run([oak.initializer, elm.initializer])
    tf.Session.reset(TARGET, ["oak"])
    with tf.Session(TARGET) as sess:
        return plain(sess.run([oak.is_initialized(), elm.is_initialized(), elm]))


def reset_ends_the_sessions():
    v = tf.Variable(1.0)
    sess = tf.Session(TARGET)
    sess.run(v.initializer)
    tf.Session.reset(TARGET)
    return error_of(lambda: sess.run(v))[0]


def container_of_a_block_names_the_variable_apart():
    with tf.device(PS):
        with tf.container("left"):
            left = tf.Variable(1.0, name="same")
        right_graph = tf.Graph()
        with right_graph.as_default(), right_graph.device(PS), right_graph.container("right"):
            right = tf.Variable(2.0, name="same")
            init = right.initializer
    with tf.Session(TARGET) as one, tf.Session(TARGET, graph=right_graph) as two:
        one.run(left.initializer)
        two.run(init)
        return plain([one.run(left), two.run(right)])


def large_constant():
    values = np.arange(HUGE // 4, dtype=np.float32) % 7
    big = tf.constant(values)
    with tf.device(PS):
        picked = tf.gather(big, [0, 5, 1000, HUGE // 4 - 1])
        size = tf.size(big)
    with tf.Session(TARGET) as sess:
        return plain(sess.run([picked, size]))


def large_constant_in_an_extension():
    with tf.Session(TARGET) as sess:
        sess.run(tf.constant(1))
        big = tf.constant(np.arange(HUGE // 8, dtype=np.float32) % 5)
        return plain(sess.run(tf.reduce_max(big)))


def large_feed_and_fetch():
    x = tf.placeholder(tf.int32, [None])
    with tf.device(PS):
        y = x + 1
    values = np.arange(HUGE // 4, dtype=np.int32)
    with tf.Session(TARGET) as sess:
        got = sess.run(y, {x: values})
    return [got.shape[0], int(got[0]), int(got[-1]), bool((got == values + 1).all())]


def feeds_and_fetches():
    a = tf.placeholder(tf.float32, [2])
    b = tf.placeholder(tf.string)
    c = tf.constant([1.0, 2.0])
    with tf.device(PS):
        d = a + c
    e = d * 2.0
    with tf.Session(TARGET) as sess:
        return plain([
            sess.run(e, {a: [1, 2]}), sess.run(e, {d: [5, 6]}), sess.run([e, e, d], {a: [0, 0], c: [9, 9]}),
            sess.run({"x": (a, [d]), "y": e}, {a: [3, 4]}), sess.run(tf.identity(b), {b: ["a", "", "long" * 500]}),
            sess.run([a, d], {a: [7, 8]}), sess.run([], {a: [7, 8]}), sess.run(e.op, {a: [1, 1]})])


def empty_and_scalar_feeds():
    out = []
    with tf.Session(TARGET) as sess:
        for dtype in (tf.float32, tf.float64, tf.int32, tf.int64, tf.bool, tf.uint8, tf.string, tf.float16):
            x = tf.placeholder(dtype)
            with tf.device(PS):
                y = tf.identity(x)
            np_type = dtype.as_numpy_dtype
            for shape in ([], [0], [2, 0, 3], [2]):
                value = np.ones(shape, np_type) if dtype != tf.string else np.full(shape, "s", object)
                got = sess.run(y, {x: value})
                out.append([dtype.name, list(np.shape(got)), plain(np.asarray(got).astype(str).ravel()[:2])])
    return out


def the_untaken_branch_on_another_task():
    taken = tf.placeholder(tf.bool, [])
    with tf.device(PS):
        v = tf.Variable(2.0)

    def here():
        with tf.device(PS):
            return v * 3.0

    def there():
        with tf.device("/job:worker/task:1"):
            return tf.constant(7.0)

    out = [tf.cond(taken, here, there), tf.cond(taken, there, here)]
    with tf.Session(TARGET) as sess:
        sess.run(v.initializer)
        return [plain(sess.run(out, {taken: i % 2 == 0})) for i in range(40)]


def close_cancels_a_blocked_dequeue():
    queue = tf.FIFOQueue(1, [tf.float32], shared_name="blocked for ever")
    got = queue.dequeue()
    sess = tf.Session(TARGET)
    answers = []

    def wait():
        answers.append(error_of(lambda: sess.run(got)))

    sess.run(queue.size())
    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(2)  # the dequeue must be blocked by then, also on a busy machine
    sess.close()
    thread.join(200)
    return answers or "still blocked"


def a_timeout_of_a_step():
    queue = tf.FIFOQueue(1, [tf.float32])
    start = time.time()
    with tf.Session(TARGET) as sess:
        got = error_of(lambda: sess.run(queue.dequeue(), options=tf.RunOptions(timeout_in_ms=1000)))[0]
        return [got, 0.9 < time.time() - start < 100, plain(sess.run(queue.size()))]


def a_timeout_of_the_session():
    with tf.device(PS):
        queue = tf.FIFOQueue(1, [tf.float32])
    config = tf.ConfigProto(operation_timeout_in_ms=1000)
    with tf.Session(TARGET, config=config) as sess:
        return error_of(lambda: sess.run(queue.dequeue()))[0]


def a_queue_runner_and_then_more_graph():
    x = tf.constant(0.0, name="x")
    queue = tf.FIFOQueue(10, [tf.float32], shapes=[[]])
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(x + 1.0)] * 2))
    with tf.Session(TARGET) as sess:
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coordinator)
        out = [sess.run(queue.dequeue() + float(i)) for i in range(5)]  # each run extends the graph
        out.append(sess.run(queue.dequeue_many(20)))
        coordinator.request_stop()
        sess.run(queue.close(cancel_pending_enqueues=True))
        coordinator.join(threads, stop_grace_period_secs=10)
        return plain(out)


def a_variable_that_changes_its_shape():
    v = tf.Variable([1.0, 2.0], name="v", validate_shape=False)
    with tf.Session(TARGET) as sess:
        sess.run(v.initializer)
        out = [sess.run(v)]
        out.append(sess.run(tf.assign(v, [[1.0], [2.0], [3.0]], validate_shape=False)))
        out.append(sess.run(tf.shape(v)))
        out.append(error_of(lambda: sess.run(tf.assign(v, [1.0], validate_shape=True)))[0])
        return plain(out)


def sent_values_are_unaffected_by_later_updates():
    """The worker reads a large value, the ps then updates the variable, and the worker uses the value that it read."""
    out = []
    for resource in (False, True):
        with tf.Graph().as_default():
            with tf.device(PS):
                v = tf.get_variable(f"large{resource}", [50000],
                                    initializer=tf.ones_initializer(), use_resource=resource)
            with tf.device("/job:worker/task:0"):
                before = tf.identity(v)
            with tf.device(PS), tf.control_dependencies([before]):
                more = tf.group(v.assign_add(2.0 * tf.ones([50000])))
            with tf.device("/job:worker/task:0"), tf.control_dependencies([more]):
                used = tf.negative(before)
                kept = tf.get_variable(f"kept{resource}", [50000],
                                       initializer=tf.zeros_initializer(), use_resource=resource)
                keep = tf.group(kept.assign(before))
            with tf.Session(TARGET) as sess:
                sess.run([v.initializer, kept.initializer])
                for _ in range(3):
                    got = sess.run([used, keep])[0]
                    out.append([float(got[0]), float(got[-1]), float(sess.run(kept[7])), float(sess.run(v[0]))])
    return out


def a_variable_declared_again_with_another_shape():
    out = []
    for value in ([1.0, 2.0], [[5.0], [6.0], [7.0]]):
        with tf.Graph().as_default(), tf.device(PS):
            v = tf.Variable(value, name="w")
            with tf.Session(TARGET) as sess:
                if out:
                    out.append(error_of(lambda: sess.run(v)))
                sess.run(v.initializer)
                out.append(sess.run(v))
    return plain(out)


def the_list_of_devices():
    with tf.Session(TARGET) as sess:
        before = sorted((d.name, d.device_type) for d in sess.list_devices())
        sess.run(tf.constant(1))
        incarnations = {d.name: d.incarnation for d in sess.list_devices()}
        again = {d.name: d.incarnation for d in sess.list_devices()}
        return [plain(before), incarnations == again, 0 not in incarnations.values()]


def queues_are_shared_by_name():
    def queue():
        return tf.FIFOQueue(5, [tf.int32], shapes=[[]], shared_name="one queue")

    with tf.device(PS):
        put = queue().enqueue_many([[1, 2, 3]])
    other = tf.Graph()
    with other.as_default(), other.device(PS):
        got = queue().dequeue_many(2)
        size = queue().size()
    with tf.Session(TARGET) as one, tf.Session(OTHER, graph=other) as two:
        one.run(put)
        return plain([two.run(got), two.run(size)])


def a_dequeue_waits_for_another_sessions_enqueue():
    with tf.device(PS):
        queue = tf.FIFOQueue(5, [tf.int32], shapes=[[]], shared_name="handed over")
    put, got = queue.enqueue(42), queue.dequeue()
    out = []
    with tf.Session(TARGET) as one, tf.Session(OTHER) as two:
        two.run(queue.size())
        thread = threading.Thread(target=lambda: out.append(two.run(got)))
        thread.start()
        time.sleep(0.3)
        waited = not out
        one.run(put)
        thread.join(200)
    return [waited, plain(out)]


def a_closed_queue():
    queue = tf.FIFOQueue(5, [tf.int32], shapes=[[]])
    with tf.Session(TARGET) as sess:
        sess.run(queue.enqueue_many([[1, 2]]))
        sess.run(queue.close())
        out = [sess.run(queue.dequeue()), sess.run(queue.dequeue_up_to(5))]
        return plain(out) + [error_of(lambda: sess.run(queue.dequeue()))[0], error_of(lambda: sess.run(queue.enqueue(1)))[0],
                             plain(sess.run(queue.is_closed()))]


def a_task_that_is_not_there():
    with tf.device("/job:worker/task:7"):
        c = tf.constant(1.0)
    with tf.Session(TARGET) as sess:
        return error_of(lambda: sess.run(c))[0]


def filtered_devices():
    config = tf.ConfigProto(device_filters=["/job:ps", "/job:worker/task:0"])
    with tf.Session(TARGET, config=config) as sess:
        return sorted(d.name for d in sess.list_devices())


def soft_placement():
    with tf.device("/job:worker/task:1/device:GPU:0"):
        c = tf.constant(2.0) * 3.0
    hard = tf.Session(TARGET)
    with tf.Session(TARGET, config=tf.ConfigProto(allow_soft_placement=True)) as soft:
        return [error_of(lambda: hard.run(c))[0], plain(soft.run(c))]


def soft_placement_of_variables():
    """Variables on a missing GPU, reference and resource variables; the ops that use them request the GPU too."""
    with tf.device("/job:worker/task:1/device:GPU:0"):
        held = [tf.Variable(1.0, name=f"held{r}", use_resource=r) for r in (False, True)]
        more = [tf.assign_add(v, 2.0) for v in held]
        branch = tf.cond(held[0] > 2.0, lambda: tf.assign_add(held[0], 1.0), lambda: tf.identity(held[1]))
    with tf.Session(TARGET, config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        sess.run(tf.global_variables_initializer())
        return plain([sess.run(more), sess.run(branch), sess.run(held)])


def floats_are_sent_as_bfloat16():
    """Sets enable_bfloat16_sendrecv. It affects float variables, constants, fetches and feeds, and no other type."""
    values = np.array([1 / 3, 1 + 2 ** -8, 1e-30, 3.4e38, -0.1, np.inf], np.float32)
    config = tf.ConfigProto(graph_options=tf.GraphOptions(enable_bfloat16_sendrecv=True))
    with tf.device("/job:ps/task:0"):
        held = [tf.Variable(values, name=f"held{r}", use_resource=r) for r in (False, True)]
        fed = tf.placeholder(tf.float32, [6])
        here = [tf.constant(values), fed + 0.0, *held, tf.cast(held[0], tf.float64)]
        with tf.control_dependencies([tf.assign(held[0], held[0] + held[0])]):
            doubled = held[0].read_value()
    with tf.device("/job:worker/task:1"):
        there = [x + 0 for x in here] + [tf.while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, x + held[1]), [0, held[1]])[1]]
        late = doubled + 0
    with tf.Session(TARGET, config=config) as sess:
        sess.run(tf.global_variables_initializer())
        out = [sess.run([here, there], {fed: values}), sess.run(late)]
    return [[str(x) for x in np.ravel(v)] for v in tf.nest.flatten(out)]


def a_graph_grows_between_steps():
    out = []
    with tf.Session(TARGET) as sess:
        value = tf.constant(1.0)
        for i in range(8):
            with tf.device(f"/job:worker/task:{i % 2}"):
                value = value + float(i)
            out.append(plain(sess.run(value)))
    return out


def a_hundred_sessions():
    v = tf.Variable(0)
    more = v.assign_add(1)
    with tf.Session(TARGET) as sess:
        sess.run(v.initializer)
    for _ in range(100):
        with tf.Session(TARGET) as sess:
            last = sess.run(more)
    return plain(last)


def two_threads_in_one_session():
    with tf.device(PS):
        v = tf.Variable(0)
    more = v.assign_add(1, use_locking=True)
    with tf.Session(TARGET) as sess:
        sess.run(v.initializer)

        def work():
            for _ in range(100):
                sess.run(more.op)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return plain(sess.run(v))


def a_checkpoint_of_the_v1_format():
    """A task's SaveSlices writes the checkpoint, and TensorFlow in the client reads it."""
    with tempfile.TemporaryDirectory() as folder:
        kinds = [np.float32, np.float64, np.int32, np.int64, np.uint8, np.int16, np.int8]
        wanted = {f"x/{np.dtype(k).name}": np.arange(-3, 9).reshape(3, 4).astype(k) for k in kinds}
        wanted["words"] = np.array([b"a", b"", b"long" * 99], object)
        top, bottom = np.arange(8.0).reshape(2, 4), np.arange(4.0).reshape(1, 4)
        parts = {"3 4 0,2:-": top, "3 4 2,1:-": bottom}
        save = tf.raw_ops.SaveSlices(
            filename=folder + "/first.ckpt", tensor_names=[*wanted, "parted", "parted"],
            shapes_and_slices=[""] * len(wanted) + [*parts], data=[*wanted.values(), *parts.values()])
        plainly = tf.raw_ops.Save(filename=folder + "/plain.ckpt", tensor_names=["one"], data=[np.float32(1)])
        misfit = tf.raw_ops.SaveSlices(filename=folder + "/misfit.ckpt", tensor_names=["a"],
                                       shapes_and_slices=["4 0,3"], data=[np.ones(2, np.float32)])
        with tf.Session(TARGET) as sess:
            sess.run([save, plainly])
            got = tf.train.load_checkpoint(folder + "/first.ckpt")
            back = {name: np.array_equal(got.get_tensor(name), value) for name, value in wanted.items()}
            whole = tf.raw_ops.RestoreSlice(file_pattern=folder + "/first.ckpt", tensor_name="parted", shape_and_slice="",
                                            dt=tf.float64)
            with tf.Session() as here:
                parted = plain(here.run(whole))
            return [back, parted,
                    plain(tf.train.load_checkpoint(folder + "/plain.ckpt").get_tensor("one")),
                    error_of(lambda: sess.run(misfit))[0]]


def _forget():
    tf.Session.reset(TARGET)
    tf.Session.reset(TARGET, ["red", "blue", "oak", "left", "right", "worker", "localhost"])


answer_each(_forget)
