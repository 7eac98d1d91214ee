# SPDX-License-Identifier: Apache-2.0
"""Python functions in a graph (py_func, py_function, from_generator), on the task of the program that defines them.

Run under `python -m muster`.
"""
import json
import resource
import threading
import time

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.ERROR)
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
server = tf.train.Server.create_local_server()
PATIENCE = 20  # seconds


def plain(value):
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return [str(value.dtype), list(value.shape), plain(value.tolist())]
    if isinstance(value, np.generic):
        return [type(value).__name__, plain(value.item())]
    return value.hex() if isinstance(value, bytes) else str(value) if isinstance(value, complex) else value


def run(fetches, feed=None):
    """Returns the fetched values, or the class and text of the error without Python's traceback."""
    with tf.Session(server.target) as sess:
        try:
            return plain(sess.run(fetches, feed))
        except tf.errors.OpError as e:
            return [type(e).__name__, e.message.split("task:0:\n")[-1].split("\nTraceback")[0].split("\n\t [[")[0]]


def elements(dataset, most=20):
    """Returns the first elements of the dataset, and the error at the end."""
    element = tf.data.make_one_shot_iterator(dataset).get_next()
    got = []
    with tf.Session(server.target) as sess:
        try:
            for _ in range(most):
                got.append(plain(sess.run(element)))
        except tf.errors.OpError as e:
            got += [type(e).__name__, e.message.split("task:0:\n")[-1].split("\nTraceback")[0]] if "Traceback" in e.message else [type(e).__name__]
    return got


def arguments():
    """Class, type, shape and value of each argument that the function gets."""
    given = [1.0, [1, 2], "a", [b"a", b"b\0\xff"], True, np.float64(3), tf.constant(1.5, tf.bfloat16), tf.constant([1.5], tf.half),
             tf.constant(1 + 2j), tf.zeros([0, 3]), tf.constant([1], tf.uint8), tf.constant([[[1]]], tf.int64), ""]
    seen = []

    def look(*values):
        seen.extend([type(v).__name__, str(getattr(v, "dtype", "")), list(np.shape(v)), plain(np.asarray(v).tolist())] for v in values)
        return np.float32(7)
    return [run(tf.py_func(look, given, tf.float32)), seen]


def arguments_may_be_changed():
    x = tf.constant([1.0, 2.0])

    def change(value):
        value += 1
        return value
    return run(tf.py_func(change, [x], tf.float32))


RESULTS = {
    "scalar": (lambda: np.float32(1), tf.float32), "python float": (lambda: 1.0, tf.float64), "python int": (lambda: 1, tf.int64),
    "python bool": (lambda: True, tf.bool), "list": (lambda: [[1, 2], [3, 4]], [tf.int64, tf.int64]), "half": (lambda: np.float16([1, 2]), tf.half),
    "bfloat16": (lambda: tf.bfloat16.as_numpy_dtype(1.5), tf.bfloat16), "complex": (lambda: np.complex64([1j]), tf.complex64),
    "empty": (lambda: np.zeros((0, 2), np.int32), tf.int32), "transposed": (lambda: np.arange(6).reshape(2, 3).T, tf.int64),
    "every second": (lambda: np.arange(6)[::2], tf.int64), "uint32": (lambda: np.arange(3).astype("u4"), tf.uint32),
    "bytes": (lambda: b"a\0", tf.string), "text": (lambda: "h\u00e9", tf.string), "texts": (lambda: [["a", "bcd"]], [tf.string]),
    "array of bytes": (lambda: np.array([b"a", b"bcd"]), tf.string), "array of text": (lambda: np.array(["a", "bcd"]), tf.string),
    "objects": (lambda: np.array([b"a", b"b\0"], object), tf.string), "none": (lambda: None, []), "none for one": (lambda: None, tf.float32),
    "two for one": (lambda: (1.0, 2.0), tf.float32), "one for two": (lambda: 1.0, [tf.float32] * 2), "other type": (lambda: 1.0, tf.float32),
    "second of other type": (lambda: [np.float32(1), 1.0], [tf.float32] * 2), "object": (lambda: object(), tf.float32),
    "dictionary": (lambda: {}, tf.float32), "objects that are no text": (lambda: np.array([1, None]), tf.float32), "nothing in a list": (lambda: [1.0, None], [tf.float64] * 2),
    "ragged list": (lambda: [[1, 2], [3]], tf.int64), "matrix": (lambda: np.matrix([[1.0, 2.0]]), tf.float64), "large": (lambda: np.arange(1 << 20).reshape(2, -1)[:, -2:], tf.int64),
}


def results():
    return {name: run(tf.py_func(function, [], types)) for name, (function, types) in RESULTS.items()}


class Mine(Exception):
    pass


def results_of_no_type():
    """Returns only the error class, because TensorFlow's texts differ by type."""
    return [run(tf.py_func(function, [], tf.float32))[0] for function in (
        lambda: np.array([], [("x", np.float32)]), lambda: np.array(["2020-01-01"], "datetime64[D]"), lambda: np.longdouble(1))]


class WithoutText(Exception):
    def __str__(self):
        raise ValueError("no text")


def errors():
    def fail(error):
        def function():
            raise error
        return run(tf.py_func(function, [], tf.float32))
    return [fail(e) for e in (
        ValueError("bad"), TypeError("t"), StopIteration(), StopIteration("x"), NotImplementedError("n"), KeyError("k"),
        ZeroDivisionError("z"), Mine("mine"), OSError(2, "no", "file"), SystemExit(3), ValueError("h\u00e9"), ValueError(), WithoutText(),
        tf.errors.OutOfRangeError(None, None, "o"), tf.errors.AbortedError(None, None, "a"))]


def error_of_much_text():
    class_name, text = run(tf.py_func(lambda: [][1], [], tf.float32))
    return [class_name, text, run(tf.py_func(lambda: int("x" * 5000), [], tf.float32))[1][:200]]


def eager():
    x = tf.constant([1.0, 2.0])
    y = tf.py_function(lambda v: v * v, [x], tf.float32)
    seen = []

    def look(v, w):
        seen.append([type(v).__name__, v.dtype.name, v.shape.as_list(), w.numpy().hex()])
        return v * 2, tf.strings.join([w, "!"])
    return [run([y] + tf.gradients(y, x)), run(tf.py_function(look, [x, "a"], [tf.float32, tf.string])), seen,
            run(tf.py_function(lambda: None, [], [])), run(tf.py_function(lambda: 1.5, [], tf.int32))[0],
            run(tf.py_function(lambda: tf.data.Dataset.range(2)._variant_tensor, [], tf.variant))[0],
            run(tf.py_function(lambda: tf.constant(1), [], [tf.int32] * 2))]


def in_loops_branches_and_functions():
    def half(v):
        return np.int32(v // 2)

    def body(i, n):
        return i + 1, tf.reshape(tf.py_func(half, [n], tf.int32), [])
    loop = tf.while_loop(lambda i, n: n > 1, body, [0, 100])
    flag = tf.placeholder(tf.bool)
    calls = []
    branch = tf.cond(flag, lambda: tf.py_func(lambda: calls.append("yes") or np.int32(1), [], tf.int32),
                     lambda: tf.py_func(lambda: calls.append("no") or np.int32(2), [], tf.int32))
    return [run(loop), run(branch, {flag: True}), run(branch, {flag: False}), calls]


def without_a_state_is_not_folded():
    count = []
    y = tf.py_func(lambda v: count.append(1) or v, [tf.constant(1.0)], tf.float32, stateful=False)
    with tf.Session(server.target) as sess:
        for _ in range(3):
            sess.run(y + 1)
    return len(count)


def functions_wait_for_each_other():
    barrier = threading.Barrier(2, timeout=PATIENCE)  # TensorFlow runs one on each inter-op thread
    calls = [tf.py_func(lambda: barrier.wait() * 0 + np.int64(1), [], tf.int64) for _ in range(2)]
    return run(tf.add_n(calls))


def function_in_two_sessions():
    barrier = threading.Barrier(2, timeout=PATIENCE)
    y = tf.py_func(lambda: np.int32(barrier.wait() * 0), [], tf.int32)
    got = []
    threads = [threading.Thread(target=lambda: got.append(run(y))) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return got


def more_calls_than_files():
    """Runs 1,500 concurrent calls, more than the usual limit of open files allows descriptors."""
    calls = [tf.py_func(lambda: time.sleep(0.01) or np.int64(1), [], tf.int64) for _ in range(1500)]
    return run(tf.add_n(calls))


def a_step_that_times_out():
    """The function continues after the time-out. Its result is discarded, and later calls get their own results."""
    released, ended = threading.Event(), threading.Event()

    def function(wait):
        if wait:
            released.wait(PATIENCE)
            ended.set()
        return wait
    flag = tf.placeholder(tf.bool)
    y = tf.py_func(function, [flag], tf.bool)
    with tf.Session(server.target) as sess:
        try:
            sess.run(y, {flag: True}, options=tf.RunOptions(timeout_in_ms=500))
            error = None
        except tf.errors.OpError as e:
            error = type(e).__name__
        released.set()
        ended.wait(PATIENCE)
        return [error, [plain(sess.run(y, {flag: False})) for _ in range(3)]]


def gradient_of_its_own():
    """A py_func with a registered gradient function, as in old programs."""
    @tf.RegisterGradient("TripleGrad")
    def triple(op, grad):
        return tf.py_func(lambda g: g * 3, [grad], tf.float32)
    x = tf.Variable([1.0, 2.0])
    with tf.get_default_graph().gradient_override_map({"PyFunc": "TripleGrad"}):
        y = tf.py_func(lambda v: v * 3, [x], tf.float32)
    y.set_shape([2])
    train = tf.train.GradientDescentOptimizer(0.5).minimize(tf.reduce_sum(y))
    with tf.Session(server.target) as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train)
        return plain(sess.run(x))


def queue_runners():
    """tf.train.batch on a py_func, as in old input pipelines."""
    lock, numbers = threading.Lock(), iter(range(1000))

    def number():
        with lock:
            return np.int64(next(numbers))
    one = tf.py_func(number, [], tf.int64)
    one.set_shape([])
    batch = tf.train.batch([one], 5)
    with tf.Session(server.target) as sess:
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coordinator)
        got = [plain(sess.run(batch)) for _ in range(3)]
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=PATIENCE)
    return got


def generators():
    def pairs():
        for i in range(5):
            yield i, np.ones(i, np.float32)

    def broken():
        yield 1
        raise ValueError("in the generator")

    def make(*arguments, **more):
        return tf.data.Dataset.from_generator(*arguments, **more)
    ragged = make(pairs, (tf.int64, tf.float32), ([], [None]))
    return [elements(ragged), elements(ragged.padded_batch(2, ([], [None])).repeat(2)),
            elements(make(lambda n: range(n), tf.int32, [], args=(3,))),
            elements(make(lambda: iter(["a", b"b", "\u00e9"]), tf.string, [])),
            elements(make(lambda: iter([{"x": 1, "y": [1.0]}]), {"x": tf.int32, "y": tf.float32}).map(lambda e: (e["x"], e["y"]))),
            elements(make(broken, tf.int32, [])), elements(make(lambda: iter(["a"]), tf.int32, [])),
            elements(make(lambda: iter([[1, 2]]), tf.int32, [])), elements(make(lambda: iter(range(9)), tf.int64).shuffle(9, seed=3)),
            elements(tf.data.Dataset.range(3).interleave(lambda n: make(lambda k: (k * 10 + i for i in range(3)), tf.int64, [], args=(n,)),
                                                         cycle_length=3, num_parallel_calls=2)),
            elements(tf.data.Dataset.range(4).map(lambda v: tf.py_func(lambda a: a * 10, [v], tf.int64), num_parallel_calls=3)),
            elements(tf.data.Dataset.zip((ragged, ragged)).map(lambda a, b: a[0] + b[0])),
            elements(tf.data.Dataset.range(6).filter(lambda v: tf.py_func(lambda a: a % 2 == 0, [v], tf.bool)))]


def functions_that_stop():
    """StopIteration ends the elements of a map, and is an error in other datasets."""
    def stop(i):
        if i == 3:
            raise StopIteration
        return i

    def call(x):
        return tf.py_func(stop, [x], tf.int64)

    numbers = tf.data.Dataset.range(6)
    return [elements(numbers.map(call)), elements(numbers.map(call, num_parallel_calls=2)), elements(numbers.map(call).repeat(2)),
            elements(numbers.apply(tf.data.experimental.map_and_batch(call, 2))),
            elements(numbers.apply(tf.data.experimental.scan(np.int64(0), lambda s, x: (s + x, call(x))))),
            [elements(d)[:4] for d in (numbers.filter(lambda x: call(x) >= 0),
                                       numbers.flat_map(lambda x: tf.data.Dataset.from_tensors(call(x))))]]


def generator_is_closed():
    """A generator that has not ended runs its `finally` clause when its iterator is deleted."""
    closed = threading.Event()

    def numbers():
        try:
            for i in range(1000):
                yield i
        finally:
            closed.set()
    iterator = tf.data.make_initializable_iterator(tf.data.Dataset.from_generator(numbers, tf.int64, []))
    element = iterator.get_next()
    with tf.Session(server.target) as sess:
        sess.run(iterator.initializer)
        got = [plain(sess.run(element)) for _ in range(3)]
        sess.run(iterator.initializer)
        return [got, plain(sess.run(element)), closed.wait(PATIENCE)]


def generator_trains_a_model():
    def batches():
        rng = np.random.RandomState(1)
        while True:
            x = rng.rand(8, 4).astype(np.float32)
            yield x, x @ np.float32([[1], [2], [3], [4]])
    x, y = tf.data.make_one_shot_iterator(
        tf.data.Dataset.from_generator(batches, (tf.float32, tf.float32), ([8, 4], [8, 1])).prefetch(2)).get_next()
    w = tf.get_variable("w", [4, 1], initializer=tf.zeros_initializer())
    train = tf.train.GradientDescentOptimizer(0.3).minimize(tf.reduce_mean((x @ w - y) ** 2), tf.train.get_or_create_global_step())
    with tf.train.MonitoredTrainingSession(server.target, hooks=[tf.train.StopAtStepHook(40)]) as sess:
        while not sess.should_stop():
            value = sess.run([train, w])[1]
    return [round(float(v), 3) for v in value.ravel()]


answers = {}
for name, function in list(globals().items()):
    if getattr(function, "__module__", "") == "__main__" and callable(function) and getattr(function, "__code__", None) \
            and not function.__code__.co_argcount and name not in ("plain", "run", "elements"):
        start = time.time()
        with tf.Graph().as_default():
            try:
                answers[name] = function()
            except Exception as e:
                answers[name] = f"raises {type(e).__name__}: {e}"
print(json.dumps(answers), flush=True)
