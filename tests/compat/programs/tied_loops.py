# SPDX-License-Identifier: Apache-2.0
"""While loops that depend on control edges or on state that they update in place; For loops on nested functions."""
from common import TARGET, answer_each, error_of, forget, plain, tf

from tensorflow.python.framework import function
from tensorflow.python.ops import functional_ops, gen_functional_ops, state_ops


def _run(ops, feed=None, times=1):
    with tf.Session(TARGET) as sess:
        sess.run(tf.global_variables_initializer())
        out = [plain(sess.run(ops, feed)) for _ in range(times)]
    return out[0] if times == 1 else out


def _count(n, after=(), step=1):
    with tf.control_dependencies(after):
        return tf.while_loop(lambda i: i < n, lambda i: i + step, [tf.constant(0)])


def functional_branches_and_loops_run_what_is_needed():
    """If and While run only the stateful ops that the fetched output depends on."""
    tf.enable_control_flow_v2()
    try:
        p, i = tf.placeholder_with_default(True, []), tf.constant(0)
        v = [tf.get_variable(f"v{k}", initializer=7, use_resource=True) for k in range(6)]

        def unneeded():
            v[3].assign(1)
            return tf.constant(5)

        def body(i):
            v[4].assign(9)
            with tf.control_dependencies([v[5].assign_add(1)]):
                return i + 1
        branch = tf.cond(p, lambda: [v[0].assign(1), v[1].assign(2)], lambda: [v[2].assign(3), tf.constant(10)])
        fetches = [branch[1], tf.cond(p, unneeded, lambda: tf.constant(6)), tf.while_loop(lambda i: i < 3, body, [i])]
        with tf.Session(TARGET) as sess:
            sess.run(tf.global_variables_initializer())
            return [[plain(sess.run([fetch])), plain(sess.run(v))] for fetch in fetches + [branch[0].op]]
    finally:
        tf.disable_control_flow_v2()


def branch_with_an_uninitialized_variable():
    """Only the taken branch reads the variable, which is on another task than the predicate."""
    tf.enable_control_flow_v2()
    try:
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(7.0, use_resource=False)
        p = tf.placeholder(tf.bool, [])
        fetches = [v.initialized_value(), tf.cond(p, lambda: [v.value(), v + 1], lambda: [tf.constant(5.0), 6.0])]
        with tf.Session(TARGET) as sess:
            before = [plain(sess.run(fetches, {p: False})), error_of(lambda: sess.run(fetches[1], {p: True}))]
            sess.run(v.initializer)
            return before, [plain(sess.run(fetches, {p: value})) for value in (True, False)]
    finally:
        tf.disable_control_flow_v2()


def second_after_first():
    first = _count(5)
    second = _count(3, [first])
    return _run([first, second])


def _condition_reads_what_the_body_assigns(resource):
    v = tf.get_variable("v", initializer=0, use_resource=resource)

    def body(i):
        with tf.control_dependencies([v.assign_add(2)]):
            return i + 1

    out = tf.while_loop(lambda i: tf.less(v.read_value(), 7), body, [tf.constant(0)], parallel_iterations=1)
    with tf.control_dependencies([out]):
        after = v.read_value()
    return _run([out, after])


def condition_reads_a_variable_that_the_body_assigns():
    return _condition_reads_what_the_body_assigns(False)


def condition_reads_a_resource_that_the_body_assigns():
    return _condition_reads_what_the_body_assigns(True)


def two_loops_update_one_variable():
    v = tf.get_variable("v", initializer=1.0, use_resource=True)

    def loop(n, f, after):
        def body(i):
            with tf.control_dependencies([v.assign(f(v.read_value()))]):
                return i + 1
        with tf.control_dependencies(after):
            return tf.while_loop(lambda i: i < n, body, [tf.constant(0)], parallel_iterations=1)

    one = loop(3, lambda x: x * 2, [])
    two = loop(2, lambda x: x + 10, [one])
    with tf.control_dependencies([two]):
        after = v.read_value()
    return _run([one, two, after], times=2)


def scatter_in_a_loop():
    v = tf.get_variable("v", initializer=[0.0] * 5, use_resource=False)

    def body(i):
        with tf.control_dependencies([tf.scatter_update(v, i, tf.cast(i * i, tf.float32))]):
            return i + 1

    out = tf.while_loop(lambda i: i < 5, body, [tf.constant(0)], parallel_iterations=1)
    with tf.control_dependencies([out]):
        after = tf.identity(v)
    return _run([out, after])


def one_iteration_at_a_time():
    """Only parallel_iterations orders the scatters, because their indices are known before the values."""
    v = tf.get_variable("one_at_a_time", initializer=[3.0, 4.0, 5.0], use_resource=True)

    def body(k, _):
        with tf.control_dependencies([tf.scatter_update(v, k, 10.0)]):
            return k + 1, v.read_value()

    return _run(tf.while_loop(lambda k, _: k < 3, body, [tf.constant(0), v.read_value()], parallel_iterations=1)[1])


def loop_variable_is_a_reference():
    v = tf.get_variable("v", initializer=0, use_resource=False)
    out = tf.while_loop(lambda i, r: i < 3, lambda i, r: (i + 1, r), [0, v._ref()])
    return _run(out)


def reference_updated_through_the_loop():
    v = tf.get_variable("v", initializer=0, use_resource=False)

    def body(i, r):
        return i + 1, state_ops.assign_add(r, 2)

    i, r = tf.while_loop(lambda i, r: i < 3, body, [tf.constant(0), v._ref()], parallel_iterations=1)
    with tf.control_dependencies([r]):
        after = tf.identity(v)
    return _run([i, r, after])


def reference_in_the_condition():
    v = tf.get_variable("v", initializer=0, use_resource=False)

    def body(i, r):
        return i + 1, state_ops.assign_add(r, 2)

    i, r = tf.while_loop(lambda i, r: tf.less(r, 9), body, [tf.constant(0), v._ref()], parallel_iterations=1)
    return _run([i, r])


def one_variable_updated_from_another():
    a = tf.get_variable("a", initializer=1.0, use_resource=False)
    b = tf.get_variable("b", initializer=2.0, use_resource=False)

    def body(i):
        asn1 = tf.assign_add(a, tf.cast(i, tf.float32) + 1, name="a1")
        with tf.control_dependencies([asn1]):
            asn2 = tf.assign_add(b, a * 1.0, name="b1")
        with tf.control_dependencies([asn2]):
            return i + 1

    out = tf.while_loop(lambda i: i < 4, body, [tf.constant(0)], parallel_iterations=1)
    with tf.control_dependencies([out]):
        after = [tf.identity(a), tf.identity(b)]
    return _run([out, after])


def body_control_dependency_on_outside():
    v = tf.get_variable("v", initializer=0, use_resource=True)
    bump = v.assign_add(1)

    def body(i):
        with tf.control_dependencies([bump]):
            return i + 1

    out = tf.while_loop(lambda i: i < 3, body, [tf.constant(0)])
    with tf.control_dependencies([out]):
        after = v.read_value()
    return _run([out, after], times=2)


def loop_after_a_group():
    v = tf.get_variable("v", initializer=0, use_resource=True)
    with tf.control_dependencies([tf.group(v.assign_add(3))]):
        out = tf.while_loop(lambda i: i < v.read_value(), lambda i: i + 1, [tf.constant(0)])
    return _run(out)


def condition_of_one_from_the_other():
    first, x = tf.while_loop(lambda i, x: i < 4, lambda i, x: (i + 1, x * 2.0), [0, 1.0])
    second, y = tf.while_loop(lambda i, y: y < x, lambda i, y: (i + 1, y + 3.0), [0, 0.0])
    return _run([first, x, second, y])


def nested_tied():
    v = tf.get_variable("v", initializer=0, use_resource=True)

    def inner(j):
        with tf.control_dependencies([v.assign_add(1)]):
            return j + 1

    def outer(i):
        one = tf.while_loop(lambda j: j < i, inner, [tf.constant(0)], parallel_iterations=1)
        with tf.control_dependencies([one]):
            two = tf.while_loop(lambda j: j < 2, inner, [tf.constant(0)], parallel_iterations=1)
        with tf.control_dependencies([two]):
            return i + 1

    out = tf.while_loop(lambda i: i < 4, outer, [tf.constant(0)], parallel_iterations=1)
    with tf.control_dependencies([out]):
        after = v.read_value()
    return _run([out, after], times=2)


def condition_with_side_effects():
    v = tf.get_variable("v", initializer=0, use_resource=True)

    def cond(i):
        with tf.control_dependencies([v.assign_add(1)]):
            return tf.identity(i) < 3

    out = tf.while_loop(cond, lambda i: i + 1, [tf.constant(0)], parallel_iterations=1)
    with tf.control_dependencies([out]):
        after = v.read_value()
    return _run([out, after], times=2)


def queue_in_a_loop():
    q = tf.FIFOQueue(20, [tf.int32], shapes=[[]])

    def put(i):
        with tf.control_dependencies([q.enqueue(i * i)]):
            return i + 1

    def take(i, s):
        return i + 1, s * 3 + q.dequeue()

    with tf.control_dependencies([tf.while_loop(lambda i: i < 5, put, [tf.constant(0)], parallel_iterations=1)]):
        out = tf.while_loop(lambda i, s: i < q.size() + i, take, [tf.constant(0), tf.constant(0)], parallel_iterations=1)
    return _run(out)


def tensor_array_through_two_loops():
    array = tf.TensorArray(tf.float32, 4, clear_after_read=False)
    _, filled = tf.while_loop(lambda i, a: i < 4, lambda i, a: (i + 1, a.write(i, tf.cast(i, tf.float32))), [0, array])
    _, total = tf.while_loop(lambda i, s: i < 4, lambda i, s: (i + 1, s + filled.read(i)), [0, 0.0])
    return _run([filled.stack(), total])


def gradient_of_two_tied_loops():
    x = tf.constant(2.0)
    _, y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), [0, tf.constant(1.0)])
    with tf.control_dependencies([y]):
        _, z = tf.while_loop(lambda i, z: i < 2, lambda i, z: (i + 1, z * y + x), [0, tf.constant(1.0)])
    return _run([y, z] + tf.gradients(z, [x, y]))


def loops_with_stop_between():
    x = tf.placeholder(tf.float32, [])
    _, y = tf.while_loop(lambda i, y: y < 100, lambda i, y: (i + 1, y * x), [0, x])
    c = tf.cond(y > 120, lambda: tf.while_loop(lambda z: z > 1, lambda z: z / 2, [y]), lambda: y)
    return [_run([y, c], {x: v}) for v in (2.0, 3.0, 11.0)]


def swapped_variables():
    return _run(tf.while_loop(lambda i, a, b: i < 5, lambda i, a, b: (i + 1, b, a + b), [0, 0, 1]))


def no_iteration():
    v = tf.get_variable("v", initializer=5, use_resource=True)

    def body(i):
        with tf.control_dependencies([v.assign(0)]):
            return i + 1

    out = tf.while_loop(lambda i: i < 0, body, [tf.constant(0)])
    with tf.control_dependencies([out]):
        after = v.read_value()
    return _run([out, after])


# ---- old variables read before an update, used after it ----
def body_assigns_in_place():
    v = tf.get_variable("v", initializer=[1.0, 2.0], use_resource=False)

    def body(i, s):
        new = tf.assign(v, v * 2)
        return i + 1, s + tf.reduce_sum(new)

    i, s = tf.while_loop(lambda i, s: i < 4, body, [0, 0.0], parallel_iterations=1)
    with tf.control_dependencies([s]):
        after = v.read_value()
    return _run([i, s, after], times=2)


def two_loops_update_one_old_variable():
    v = tf.get_variable("v", initializer=1.0, use_resource=False)

    def loop(n, f, after):
        def body(i):
            with tf.control_dependencies([tf.assign(v, f(v))]):
                return i + 1
        with tf.control_dependencies(after):
            return tf.while_loop(lambda i: i < n, body, [tf.constant(0)], parallel_iterations=1)

    one = loop(3, lambda x: x * 2, [])
    two = loop(2, lambda x: x + 10, [one])
    with tf.control_dependencies([two]):
        after = tf.identity(v)
    return _run([one, two, after], times=2)


def condition_of_a_read_before_the_loop():
    a = tf.get_variable("a", initializer=0, use_resource=False)
    b = tf.get_variable("b", initializer=0, use_resource=False)

    def body(i):
        with tf.control_dependencies([tf.assign_add(a, 1), tf.assign_add(b, 1)]):
            return tf.identity(b)

    out = tf.while_loop(lambda i: tf.less(b, 10), body, [b], parallel_iterations=1)
    with tf.control_dependencies([out]):
        after = [a.read_value(), b.read_value()]
    return _run([out, after])


def one_updated_from_another_read_before_the_loop():
    a = tf.get_variable("a", initializer=0, use_resource=False)
    b = tf.get_variable("b", initializer=0, use_resource=False)

    def body(i):
        with tf.control_dependencies([tf.assign_add(a, 1)]):
            new = tf.assign_add(b, a)
        with tf.control_dependencies([new]):
            return tf.identity(b)

    out = tf.while_loop(lambda i: tf.less(a, 10), body, [b], parallel_iterations=1)
    with tf.control_dependencies([out]):
        after = [a.read_value(), b.read_value()]
    return _run([out, after])


def read_before_an_assignment():
    v = tf.get_variable("v", initializer=1.0, use_resource=False)
    with tf.control_dependencies([tf.assign(v, v + 4)]):
        after = v * 2
    with tf.control_dependencies([after]):
        with tf.control_dependencies([tf.assign_add(v, 10.0)]):
            later = v + after
    return _run([after, later], times=2)


def read_before_an_assignment_in_a_branch():
    v = tf.get_variable("v", initializer=1.0, use_resource=False)
    p = tf.placeholder(tf.bool, [])

    def then():
        with tf.control_dependencies([tf.assign_add(v, 5.0)]):
            return v * 2

    out = tf.cond(p, then, lambda: v * 3)
    with tf.Session(TARGET) as sess:
        sess.run(tf.global_variables_initializer())
        return [plain(sess.run(out, {p: x})) for x in (True, False, True)]


def read_before_a_scatter():
    v = tf.get_variable("v", initializer=[1.0, 2.0, 3.0], use_resource=False)
    with tf.control_dependencies([tf.scatter_add(v, [0, 2], [10.0, 20.0])]):
        after = tf.reduce_sum(v)
    return _run(after, times=2)


def read_before_a_gradient_step():
    v = tf.get_variable("v", initializer=[4.0, 2.0], use_resource=False)
    loss = tf.reduce_sum(tf.square(v))
    with tf.control_dependencies([tf.train.GradientDescentOptimizer(0.25).minimize(loss)]):
        after = tf.reduce_sum(v)
    return _run(after, times=3)


def nested_loops_over_a_read():
    v = tf.get_variable("v", initializer=1.0, use_resource=False)

    def inner(j):
        with tf.control_dependencies([tf.assign(v, v + 1.0)]):
            return j + 1

    def outer(i, s):
        j = tf.while_loop(lambda j: j < 2, inner, [tf.constant(0)], parallel_iterations=1)
        with tf.control_dependencies([j]):
            return i + 1, s * 2 + v

    out = tf.while_loop(lambda i, s: i < 3, outer, [tf.constant(0), tf.constant(0.0)], parallel_iterations=1)
    with tf.control_dependencies([out[1]]):
        after = v.read_value()
    return _run([out, after], times=2)


def on_another_task():
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("v", initializer=1.0, use_resource=False)

        def body(i):
            with tf.control_dependencies([tf.assign(v, v * 2)]):
                return i + 1

        out = tf.while_loop(lambda i: i < 3, body, [tf.constant(0)], parallel_iterations=1)
        with tf.control_dependencies([out]):
            after = v * 10
    return _run([out, after], times=2)


# ---- For, While and functions ----
def for_calls_functions():
    @function.Defun(tf.float32, func_name="double")
    def double(a):
        return a * 2

    @function.Defun(tf.int32, tf.float32, func_name="body1")
    def body(i, s):
        return double(s) + tf.cast(i, tf.float32)

    return _run(gen_functional_ops._for(start=0, limit=4, delta=1, input=[tf.constant(1.0)], body=body))


def for_calls_partitioned():
    inner = tf.function(lambda a: a * 3)

    @function.Defun(tf.int32, tf.float32, func_name="body2")
    def body(i, s):
        return inner(s) + tf.cast(i, tf.float32)

    return _run(gen_functional_ops._for(start=0, limit=4, delta=1, input=[tf.constant(1.0)], body=body))


def for_in_for():
    @function.Defun(tf.int32, tf.float32, func_name="inner3")
    def inner(i, s):
        return s + tf.cast(i, tf.float32)

    @function.Defun(tf.int32, tf.float32, func_name="outer3")
    def outer(i, s):
        return gen_functional_ops._for(start=0, limit=i, delta=1, input=[s], body=inner)[0] * 2

    return _run(gen_functional_ops._for(start=0, limit=4, delta=1, input=[tf.constant(1.0)], body=outer))


def for_with_cond_and_while():
    @function.Defun(tf.int32, tf.float32, func_name="body4")
    def body(i, s):
        s = tf.cond(s > 10, lambda: s / 2, lambda: s + 3)
        return tf.while_loop(lambda x: x < 5, lambda x: x + 2, [s])

    return _run(gen_functional_ops._for(start=0, limit=6, delta=1, input=[tf.constant(1.0)], body=body))


def functional_for():
    @function.Defun(tf.int32, tf.float32, func_name="body5")
    def body(i, s):
        return s * 2 + tf.cast(i, tf.float32)

    return [_run(functional_ops.For(0, 5, 1, [tf.constant(1.0)], body, rewrite_with_while=w)) for w in (None, True)]


def functional_for_with_captures():
    x = tf.placeholder(tf.float32, [])

    @function.Defun(tf.int32, tf.float32, func_name="body6")
    def body(i, s):
        return s * x + tf.cast(i, tf.float32)

    return _run(functional_ops.For(0, 5, 1, [tf.constant(1.0)], body), {x: 3.0})


def functional_while():
    @function.Defun(tf.float32, tf.float32, func_name="cond7")
    def cond(a, b):
        return a < b

    @function.Defun(tf.float32, tf.float32, func_name="body7")
    def body(a, b):
        return a * 2 + 1, b + 1

    return _run(functional_ops.While([tf.constant(1.0), tf.constant(50.0)], cond, body))


def functional_if():
    @function.Defun(tf.float32, func_name="then8")
    def then(a):
        return a * 2

    @function.Defun(tf.float32, func_name="else8")
    def other(a):
        return a - 2

    p = tf.placeholder(tf.bool, [])
    return [_run(functional_ops.If(p, [tf.constant(7.0)], then, other), {p: v}) for v in (True, False)]


def if_of_numbers_and_strings():
    @function.Defun(tf.float32, func_name="then9")
    def then(a):
        return a * 2

    @function.Defun(tf.float32, func_name="else9")
    def other(a):
        return a - 2

    return [_run(functional_ops.If(tf.constant(v), [tf.constant(7.0)], then, other)) for v in (3, 0, 0.0, 2.5, "x", "", [], [0], [1.0, 2.0])]


def functional_remote():
    @function.Defun(tf.float32, func_name="triple10")
    def triple(a):
        return a * 3

    @function.Defun(tf.int32, tf.float32, func_name="body10")
    def body(i, s):
        return triple(s) + 1

    with tf.device("/job:worker/task:1"):
        r = functional_ops.For(0, 3, 1, [tf.constant(1.0)], body)
    c = functional_ops.remote_call(args=[r[0]], Tout=[tf.float32], f=triple, target="/job:ps/task:0/cpu:0")
    return _run([r[0], c[0]])


answer_each(after=forget)
