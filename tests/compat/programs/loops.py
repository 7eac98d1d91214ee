# SPDX-License-Identifier: Apache-2.0
"""Loops and branches whose nodes are on several tasks, one function each."""
from common import TARGET, answer_each, error_of, plain, tf

PS, OTHER = "/job:ps/task:0", "/job:worker/task:1"


def _run(fetches, **more):
    with tf.Session(TARGET) as sess:
        sess.run(tf.global_variables_initializer())
        return plain([sess.run(fetches, **more) for _ in range(3)])


def _count(limit, body, start=1.0, **more):
    """A loop of `limit` iterations that applies body(i, x) repeatedly."""
    return tf.while_loop(lambda i, x: i < limit, lambda i, x: (i + 1, body(i, x)), [0, start], **more)


def _on(device, compute):
    with tf.device(device):
        return compute()


def a_body_on_the_ps():
    return _run(_count(5, lambda i, x: _on(PS, lambda: x * 2.0) + 1.0))


def a_body_on_three_tasks():
    return _run(_count(50, lambda i, x: _on(OTHER, lambda: _on(PS, lambda: x * 1.5) + tf.cast(i, tf.float32))))


def a_hundred_turns_one_at_a_time():
    return _run(_count(100, lambda i, x: _on(PS, lambda: x + 1.0), parallel_iterations=1))


def a_loop_that_never_turns():
    return _run(_count(0, lambda i, x: _on(PS, lambda: x * 2.0)))


def a_variable_of_the_ps_in_the_body():
    with tf.device(PS):
        v = tf.Variable(3.0)
    return _run(_count(5, lambda i, x: x * v))


def _with_functions(make):
    """Builds functional loops and branches, as TensorFlow 2 programs do."""
    tf.enable_control_flow_v2()
    try:
        return make()
    finally:
        tf.disable_control_flow_v2()


def a_resource_variable_of_the_ps_in_a_function_elsewhere():
    with tf.device(PS):
        v = tf.get_variable("v", initializer=3.0, use_resource=True)
    return _run(_on(OTHER, lambda: _with_functions(lambda: _count(5, lambda i, x: x * v))))


def a_resource_variable_of_the_ps_in_a_functions_condition():
    with tf.device(PS):
        v = tf.get_variable("v", initializer=3.0, use_resource=True)
    return _run(_with_functions(lambda: tf.while_loop(lambda x: x < v * 100.0, lambda x: x * 2.0, [1.0])))


def a_variable_that_each_turn_updates():
    with tf.device(PS):
        v = tf.Variable(3.0)

    def body(i):
        with tf.device(PS), tf.control_dependencies([v.assign_add(1.0)]):
            return tf.identity(i) + 1
    turns = tf.while_loop(lambda i: i < 5, body, [0])
    with tf.control_dependencies([turns]):
        return _run([turns, v.read_value()])


def a_function_in_a_branch_of_each_turn():
    """The function's nodes without inputs run only in the iterations that take the branch."""
    counter = lambda: tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[], shared_name="calls")

    @tf.function(autograph=False)
    def count(x):
        tf.raw_ops.AssignAddVariableOp(resource=counter(), value=tf.constant(1.0))
        return x + 3.0
    start = tf.raw_ops.AssignVariableOp(resource=counter(), value=tf.constant(0.0))
    turns = _count(5, lambda i, x: tf.cond(i < 2, lambda: count(x), lambda: x * 2.0))
    with tf.Session(TARGET) as sess:
        sess.run(start)
        return plain([sess.run(turns), sess.run(tf.raw_ops.ReadVariableOp(resource=counter(), dtype=tf.float32))])


def a_condition_on_the_ps():
    return _run(tf.while_loop(lambda x: _on(PS, lambda: x < 100.0), lambda x: x * 3.0, [1.0]))


def a_loop_within_a_loop():
    def body(i, x):
        inner = tf.while_loop(lambda j, y: j < i, lambda j, y: (j + 1, _on(PS, lambda: y + 1.0)), [0, x])[1]
        return _on(OTHER, lambda: inner * 2.0)
    return _run(_count(5, body))


def a_branch_within_a_loop():
    def body(i, x):
        return tf.cond(tf.equal(i % 2, 0), lambda: _on(PS, lambda: x * 2.0), lambda: _on(OTHER, lambda: x + 1.0))
    return _run(_count(6, body))


def a_loop_within_a_branch():
    taken = tf.placeholder_with_default(False, [])
    make = lambda: _count(3, lambda i, x: _on(PS, lambda: x * 2.0))[1]
    return _run([tf.cond(taken, make, lambda: tf.constant(-1.0)), tf.cond(tf.logical_not(taken), make, lambda: tf.constant(-1.0))])


def the_gradient_of_a_loop_over_tasks():
    with tf.device(PS):
        v = tf.Variable(2.0)
    x = _count(6, lambda i, x: _on(PS, lambda: x * v) + _on(OTHER, lambda: tf.sin(x)))[1]
    return _run([x] + tf.gradients(x, [v]))


def a_tensor_array_filled_from_the_ps():
    array = tf.while_loop(lambda i, a: i < 4, lambda i, a: (i + 1, a.write(i, _on(PS, lambda: tf.cast(i, tf.float32) * 2.0))),
                          [0, tf.TensorArray(tf.float32, 4)])[1]
    return _run(array.stack())


def a_dynamic_rnn_with_its_weights_on_the_ps():
    with tf.device(tf.train.replica_device_setter(ps_tasks=1, worker_device=OTHER)):
        w = tf.get_variable("w", [4, 4], initializer=tf.constant_initializer(0.1))
        rows = tf.constant([[0.1 * i] * 4 for i in range(7)])
        state = _count(7, lambda i, h: tf.tanh(tf.matmul(h, w) + rows[i]), tf.zeros([1, 4]))[1]
        loss = tf.reduce_sum(state * state)
    return _run([loss] + tf.gradients(loss, [w]))


def an_error_in_a_turn():
    with tf.device(PS):
        table = tf.Variable([1.0, 2.0, 3.0])
    x = _count(9, lambda i, x: _on(PS, lambda: tf.gather(table, [i])[0]) + x)[1]
    with tf.Session(TARGET) as sess:
        sess.run(tf.global_variables_initializer())
        return [error_of(lambda: sess.run(x))[0], plain(sess.run(table))]


def a_loop_that_never_ends():
    x = tf.while_loop(lambda x: x >= 0.0, lambda x: _on(PS, lambda: x * 1.0), [1.0])
    with tf.Session(TARGET) as sess:
        out = error_of(lambda: sess.run(x, options=tf.RunOptions(timeout_in_ms=1000)))[0]
        return [out, plain(sess.run(tf.constant(4.0)))]


answer_each()
