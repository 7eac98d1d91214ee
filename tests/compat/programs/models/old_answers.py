# SPDX-License-Identifier: Apache-2.0
"""Inputs for which servers of TensorFlow 1.15 return other results than later versions."""
import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.ops import gen_array_ops, gen_linalg_ops

from common import TARGET, answer_each, error_of, forget
from layers import on_ps


def _each(make, values):
    """Applies the op to each value, and returns the results or errors."""
    x = tf.placeholder(values[0].dtype)
    with on_ps():
        y = make(x)
        if y.dtype.is_complex:
            y = tf.stack([tf.real(y), tf.imag(y)])
        y = tf.where(tf.is_nan(y), tf.fill(tf.shape(y), tf.constant(-99, y.dtype)), y)
    with tf.Session(TARGET) as s:
        return [error_of(lambda: s.run(y, {x: value})) for value in values]


def decompositions_of_matrices_that_are_not_positive():
    good, bad = np.array([[2.0, 1], [1, 2]]), np.array([[1.0, 2], [2, 1]])
    return [_each(tf.cholesky, [v.astype(t) for v in (good, bad, np.stack([good, bad]), np.zeros([2, 2]), np.full([2, 2], np.nan))])
            for t in (np.float32, np.float64, np.complex64)]


def triangular_systems_without_a_solution():
    good, bad = np.array([[2.0, 1], [1, 2]]), np.array([[1.0, 2], [2, 0]])
    return [_each(lambda x: tf.matrix_triangular_solve(x, x, lower=lower, adjoint=adjoint), [v.astype(t) for v in (good, bad, np.stack([good, bad]))])
            for t in (np.float32, np.complex128) for lower in (False, True) for adjoint in (False, True)]


def tridiagonal_systems_without_a_solution():
    good, bad = np.array([[1.0, 2, 0], [3, 3, 3], [0, 1, 2]]), np.array([[3.0, 1, 0], [-1, -1, -1], [0, 3, 1]])
    start = np.array([[1.0, 2, 0], [0, 3, 3], [0, 1, 2]])
    return [_each(lambda x: gen_linalg_ops.tridiagonal_solve(x, tf.ones([3, 1], x.dtype), partial_pivoting=pivoting), [good, bad * 0, start])
            for pivoting in (True, False)] + [_each(lambda x: gen_linalg_ops.tridiagonal_solve(x, tf.ones([1, 1], x.dtype)), [bad[:, :1] * 0])]


def gradient_of_a_mirrored_pad_of_nothing():
    return [_each(lambda x: gen_array_ops.mirror_pad_grad(x, [[0, 0], [1, 1]], mode), [np.zeros([0, 4]), np.zeros([2, 4])]) for mode in ("SYMMETRIC", "REFLECT")]


def diagonals_without_a_dimension():
    return _each(lambda x: gen_array_ops.matrix_set_diag([[1.0]], x), [np.float32([2]), np.float32(2)])


answer_each(forget)
