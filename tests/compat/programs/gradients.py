# SPDX-License-Identifier: Apache-2.0
"""Gradients of functions without a gradient function; the server derives them (SymbolicGradient)."""
from common import TARGET, answer_each, forget, plain, tf

from tensorflow.python.framework import function

REAL = tf.float32
MATRIX = [[1.0, 2.0], [3.0, 4.0]]


@function.Defun(REAL, REAL, func_name="product")
def _product(a, b):
    return a * b + tf.sin(a)


def _run(ops):
    with tf.Session(TARGET) as sess:
        sess.run(tf.global_variables_initializer())
        return plain(sess.run([o for o in ops if o is not None]))


def _values_and_gradients(f, *values):
    args = [tf.constant(v, REAL) for v in values]
    ys = f(*args)
    ys = list(ys) if isinstance(ys, (list, tuple)) else [ys]
    return _run(ys + tf.gradients(ys, args))


def scalars():
    return _values_and_gradients(_product, 2.0, 3.0)


def calls_of_functions():
    @function.Defun(REAL, REAL)
    def f(a, b):
        return _product(_product(a, b), b), a - b

    return _values_and_gradients(f, 2.0, 3.0)


def partitioned_calls():
    square = tf.function(lambda a: a * a * 3)

    @function.Defun(REAL)
    def f(a):
        return square(a) + a

    return _values_and_gradients(f, 2.0)


def noinline():
    @function.Defun(REAL, noinline=True)
    def f(a):
        return a * a * a

    return _values_and_gradients(f, 2.0)


def gradient_function_of_a_called_function():
    @function.Defun(REAL, REAL)
    def fifty(a, dy):
        return dy * 50

    @function.Defun(REAL, grad_func=fifty)
    def inner(a):
        return a * a

    @function.Defun(REAL)
    def f(a):
        return inner(a) * 3

    return _values_and_gradients(f, 2.0)


def matrices():
    @function.Defun(REAL, REAL)
    def f(a, b):
        return tf.reduce_sum(tf.nn.relu(tf.matmul(a, b)))

    return _values_and_gradients(f, MATRIX, MATRIX)


def elementwise():
    @function.Defun(REAL)
    def f(a):
        return [tf.exp(a), tf.log(a), tf.tanh(a), tf.sigmoid(a), tf.sqrt(a), tf.square(a), tf.abs(a), tf.rsqrt(a),
                tf.pow(a, 3.0), a / 3, tf.maximum(a, 2.5), tf.where(a > 2, a, -a), tf.floor(a), tf.stop_gradient(a) * a]

    return _values_and_gradients(f, MATRIX)


def reductions():
    @function.Defun(REAL)
    def f(a):
        return tf.reduce_sum(a, 0), tf.reduce_mean(a, 1), tf.reduce_max(a, 1), tf.reduce_min(a), tf.nn.softmax(a)

    return _values_and_gradients(f, MATRIX)


def parts():
    @function.Defun(REAL)
    def f(a):
        return [tf.concat([a, a * 2], 0), tf.reshape(a, [4]), tf.transpose(a), tf.slice(a, [0, 1], [2, 1]), tf.stack([a, a]),
                tf.strided_slice(a, [0, 0], [2, 2], [1, 1]), *tf.split(a, 2), *tf.unstack(a, 2)]

    return _values_and_gradients(f, MATRIX)


def variables():
    v = tf.get_variable("v", initializer=3.0, use_resource=False)

    @function.Defun(REAL)
    def f(a):
        return a * v * v

    a = tf.constant(2.0)
    return _run([f(a)] + tf.gradients(f(a), [a, v]))


def other_types():
    """Nested functions on half and bfloat16, and a cast of complex numbers."""
    def twice(t):
        inner = function.Defun(t, func_name=f"inner_{t.name}", noinline=True)(lambda a: a * a)
        return function.Defun(t, func_name=f"outer_{t.name}")(lambda a: inner(a) * 3)

    real = function.Defun(tf.complex64, func_name="real_square")(lambda z: tf.cast(z * z, REAL))
    z = tf.constant([1 + 2j, 3], tf.complex64)
    values = [(twice(t), tf.constant([1, 2, 3], t)) for t in (tf.float16, tf.bfloat16)] + [(real, z)]
    found = _run([tf.gradients(f(x), x)[0] for f, x in values])
    return [str(v) for v in found]


def another_task():
    with tf.device("/job:worker/task:1"):
        return _values_and_gradients(_product, 2.0, 3.0)


def a_descent():
    x = tf.get_variable("x", initializer=[4.0, -2.0])

    @function.Defun(REAL)
    def loss(a):
        return tf.reduce_sum(tf.square(a - 1))

    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss(x))
    with tf.Session(TARGET) as sess:
        sess.run(x.initializer)
        return [plain(sess.run([step, x])[1:]) for _ in range(5)], plain(sess.run(x))


answer_each(after=forget)
