# SPDX-License-Identifier: Apache-2.0
"""Graphs with function libraries on two tasks: functional branches and loops, calls, gradients."""
import numpy as np

from common import TARGET, answer, tf

from tensorflow.python.framework import function

tf.enable_control_flow_v2()
x = tf.placeholder(tf.float32, [])
i = tf.placeholder(tf.int32, [])


def branches():
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(2.0, use_resource=True)
    bump = lambda: tf.identity(v.assign_add(x))
    y = tf.cond(x > 0, lambda: v * x, lambda: tf.constant(-1.0))
    nested = tf.cond(x > 0, lambda: tf.cond(x > 10, lambda: x * 100, lambda: x * 10), lambda: -x)
    case = tf.switch_case(i, [lambda: tf.constant(10.0), lambda: x + 20, lambda: v + 30])
    none = tf.cond(x > 0, lambda: tf.no_op(), lambda: tf.no_op())
    with tf.control_dependencies([none]):
        after = tf.identity(x)
    with tf.control_dependencies([y, nested, case]):
        bumped = tf.cond(x > 0, bump, lambda: tf.constant(0.0))
    return v, [y, nested, case, after, bumped, tf.gradients(y, [v.handle, x])[1],
               tf.gradients(nested, x)[0]]


def loops():
    total = tf.while_loop(lambda k, s: k < 10, lambda k, s: (k + 1, s + x * tf.cast(k, tf.float32)),
                          [0, 0.0])
    grown = tf.while_loop(lambda k, s: k < 3, lambda k, s: (k + 1, tf.concat([s, s], 0)),
                          [0, tf.ones([1])],
                          shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])])
    inner = tf.while_loop(
        lambda k, s: k < 3,
        lambda k, s: (k + 1, tf.while_loop(lambda j, t: j < k, lambda j, t: (j + 1, t * x + 1),
                                           [0, s])[1]), [0, 1.0])
    mixed = tf.while_loop(lambda k, s: k < 5,
                          lambda k, s: (k + 1, tf.cond(k % 2 > 0, lambda: s + x, lambda: s * 2)),
                          [0, 1.0])
    w = tf.get_variable("w", initializer=np.eye(3, dtype=np.float32) * 0.5, use_resource=True)
    rows = tf.TensorArray(tf.float32, 4).unstack(tf.reshape(tf.range(12.0), [4, 3]) * x)
    end, state, kept = tf.while_loop(
        lambda k, h, o: k < 4, lambda k, h, o: (
            k + 1, tf.tanh(tf.matmul(h, w) + tf.expand_dims(rows.read(k), 0)), o.write(k, h)),
        [0, tf.zeros([1, 3]), tf.TensorArray(tf.float32, 4, element_shape=[1, 3])])
    rnn = [end, state, kept.stack(), kept.size(), tf.gradients(state, [w.handle, x])[1],
           tf.gradients(tf.reduce_sum(kept.concat()), x)[0]]
    return w, list(total) + list(grown) + list(inner) + list(mixed) + rnn + [
        tf.gradients(mixed[1], x)[0], tf.gradients(inner[1], x)[0]]


def calls():
    @tf.function
    def square(a, b):
        return a * a + b, a - b

    @tf.function
    def twice(a):
        return square(a, square(a, 1.0)[0])[0]

    @function.Defun(tf.float32, tf.float32)
    def old(a, b):
        return a * b + 1.0, a

    @function.Defun(tf.float32, func_name="with_side")
    def side(a):
        with tf.control_dependencies([tf.Assert(a > -100, [a])]):
            return tf.identity(a) * 3

    a, b = square(x, 2.0)
    c, d = old(x, tf.constant(4.0))
    with tf.device("/job:worker/task:1"):
        far = twice(x)
    return [a, b, far, c, d, side(x), tf.gradients(a, x)[0], tf.gradients(far, x)[0]]


def merged():
    """A Merge with control inputs from both branches, of which only one is taken."""
    branch = tf.raw_ops.Switch(data=x, pred=x > 0)
    with tf.control_dependencies([tf.identity(branch.output_true), tf.identity(branch.output_false)]):
        return list(tf.raw_ops.Merge(inputs=[branch.output_false, branch.output_true]))


def placed_by_users():
    """Variables without a device, whose users in a branch and a loop have one. Other steps initialize and read them."""
    with tf.variable_scope("homeless"):
        v, w = [tf.get_variable(n, initializer=2.0, use_resource=True) for n in "vw"]

    def there():
        with tf.device("/job:ps/task:0"):
            return tf.identity(v.assign_add(x))

    def turn(k):
        with tf.device("/job:ps/task:0"):
            with tf.control_dependencies([w.assign_add(x)]):
                return k + 1

    with tf.control_dependencies([tf.cond(x > 0, there, lambda: tf.constant(0.0)), tf.while_loop(lambda k: k < 3, turn, [0])]):
        bump = tf.no_op()
    return [v, w], bump, [v.read_value(), w.read_value()]


def counted():
    """A For loop whose body uses the index, and a remote_call with an explicit target."""
    from tensorflow.python.ops import gen_functional_ops as ops

    @function.Defun(tf.int32, tf.float32, tf.float32, func_name="turn")
    def turn(k, s, t):
        return s + x_of(k) * t, t * 2

    def x_of(k):
        return tf.cast(k, tf.float32)

    @function.Defun(tf.float32, tf.int32, func_name="there")
    def there(a, b):
        return a * 3, tf.range(b)

    start, limit, step = (tf.placeholder(tf.int32, []) for _ in range(3))
    with tf.device("/job:worker/task:1"):
        loop = ops._for(start=start, limit=limit, delta=step, input=[x, tf.constant(1.0)], body=turn)
    with tf.control_dependencies(loop):
        after = tf.identity(x)
    near = ops.remote_call(target="/cpu:0", args=[x + 1, i], Tout=[tf.float32, tf.int32], f=there)
    return (start, limit, step), loop + [after], near


def unused():
    """Branches with an unused input. The node of the input runs only if it is a target of the step."""
    with tf.variable_scope("unused"):
        v, w = [tf.get_variable(n, initializer=0.0, use_resource=True) for n in "vw"]
    outside = tf.gather([1.0, 2.0], i)
    dead = lambda: (tf.identity(outside), v.assign_add(1.0))

    def taken():
        dead()
        return x * 2, tf.identity(w.assign_add(1.0))

    y, _ = tf.cond(x > 0, taken, lambda: (x - 1, tf.identity(outside)))
    bump = v.assign_add(10.0)
    z = tf.cond(x > 0, lambda: (tf.identity(bump) * 2, x)[1], lambda: x - 1)

    @function.Defun(tf.float32, func_name="same")
    def same(a):
        return a

    with tf.control_dependencies([v.assign_add(100.0)]):
        after = same(x)
    return [v, w], outside, y, bump, z, after


def plain(v):
    return [np.asarray(t).tolist() for t in v]


out = {}
with tf.Session(TARGET) as sess:
    v, ops = branches()
    sess.run(tf.global_variables_initializer())
    for feed in ((3.0, 1), (-2.0, 0), (20.0, 2), (1.0, 9)):
        out[f"branches {feed}"] = plain(sess.run(ops, {x: feed[0], i: feed[1]}))
    out["v"] = plain([sess.run(v)])
    w, ops = loops()  # extends the session with nodes and functions
    sess.run(w.initializer)
    out["loops"] = plain(sess.run(ops, {x: 1.5}))
    ops = calls()
    for feed in (3.0, -1.0):
        out[f"calls {feed}"] = plain(sess.run(ops, {x: feed}))
    ops = merged()
    for feed in (3.0, -1.0):
        out[f"merged {feed}"] = plain(sess.run(ops, {x: feed}))
    bounds, loop, near = counted()
    for of in ((0, 5, 1), (0, 5, 3), (5, 0, -1), (5, -2, -3), (4, 4, 1), (4, 4, 0), (-3, -3, -1)):
        out[f"for {of}"] = plain(sess.run(loop, {x: 1.5, **dict(zip(bounds, of))}))
    for of in ((0, 5, 0), (0, 5, -1), (5, 0, 1)):
        try:
            out[f"for {of}"] = plain(sess.run(loop, {x: 1.5, **dict(zip(bounds, of))}))
        except tf.errors.OpError as e:
            out[f"for {of}"] = type(e).__name__
    out["remote"] = plain(sess.run(near, {x: 2.0, i: 3}))
    vars_, bump, read = placed_by_users()
    sess.run([v.initializer for v in vars_])
    sess.run(bump, {x: 1.5})
    out["homeless"] = plain(sess.run(read))
    vars_, outside, y, bump, z, after = unused()
    sess.run([v.initializer for v in vars_])
    out["unused, after"] = plain([sess.run(after, {x: 2.0}), sess.run(vars_[0].read_value())])
    for name, targets in {"y": [], "y, outside": [outside.op], "z": [], "z, bump": [bump.op]}.items():
        for feed in (1, 5):
            try:
                value = sess.run([y if name[0] == "y" else z, targets], {x: 2.0, i: feed})[0]
            except tf.errors.OpError as e:
                value = type(e).__name__
            out[f"unused {name} {feed}"] = plain([value, *sess.run([v.read_value() for v in vars_])])
    out["one branch"] = plain(sess.run([branches()[1][1]], {x: 7.0, i: 0}))
tf.Session.reset(TARGET)
answer(out)
