# SPDX-License-Identifier: Apache-2.0
"""Quantization and dequantization, and ops on quantized tensors."""
import itertools

import numpy as np

from common import TARGET, answer_each, error_of, forget, plain, tf

raw = tf.raw_ops
PLAIN = {tf.quint8: tf.uint8, tf.qint8: tf.int8, tf.quint16: tf.uint16, tf.qint16: tf.int16, tf.qint32: tf.int32}
X = np.array([-1.2, -1, -0.5, 0, 0.1, 0.5, 0.99, 1, 1.7, 3], np.float32)
ROWS = np.arange(12, dtype=np.float32).reshape(3, 4) - 5


def _f(*v):
    return np.array(v if len(v) > 1 else v[0], np.float32)


def _near(values):
    return [float(np.format_float_scientific(v, 4)) for v in np.ravel(values)]


def _there_and_back(x, low, high, **attrs):
    """Returns the outputs of QuantizeV2, and the result of Dequantize on them."""
    q = raw.QuantizeV2(input=x, min_range=low, max_range=high, **attrs)
    more = {k: v for k, v in attrs.items() if k in ("mode", "narrow_range", "axis")}
    return [tf.bitcast(q.output, PLAIN[attrs["T"]]), q.output_min, q.output_max, raw.Dequantize(input=q.output, min_range=q.output_min, max_range=q.output_max, **more)]


def _run(all_of_it):
    with tf.Session(TARGET) as s:
        return [[plain(i), *map(_near, rest)] for i, *rest in s.run(all_of_it)]


def modes():
    out = []
    for t, mode, narrow, (low, high) in itertools.product(PLAIN, ("MIN_COMBINED", "MIN_FIRST", "SCALED"), (False, True),
                                                          ((-1, 1), (0, 2), (-0.3, 5), (3, 4), (-4, -3), (0, 0))):
        if mode == "SCALED" and high < 0:
            continue  # subnormal numbers, which TensorFlow flushes to zero
        out.append(_there_and_back(X, _f(low), _f(high), T=t, mode=mode, narrow_range=narrow))
        if mode == "SCALED":
            out.append(_there_and_back(X, _f(low), _f(high), T=t, mode=mode, narrow_range=narrow, round_mode="HALF_TO_EVEN"))
    return _run(out)


def axes():
    low, high = _f(-1, -2, -3, -4), _f(1, 2, 3, 4)
    return _run([_there_and_back(ROWS, a, b, T=t, mode=mode, axis=axis) for t in PLAIN for mode in ("MIN_COMBINED", "SCALED")
                 for axis, a, b in ((1, low, high), (0, low[:3], high[:3]))])


def sixteen_bits():
    q = tf.bitcast(np.arange(12, dtype=np.uint8).reshape(3, 4) * 20, tf.quint8)
    with tf.Session(TARGET) as s:
        return _near(s.run(tf.cast(raw.Dequantize(input=q, min_range=_f(-1), max_range=_f(1), dtype=tf.bfloat16), tf.float32)))


def casts():
    """A cast of a quantized type casts the underlying integers."""
    x = tf.constant([0, 1, 100, 3.5])
    with tf.Session(TARGET) as s:
        return _near(s.run([tf.cast(tf.cast(tf.cast(x, t), other), tf.float32) for t in PLAIN for other in (tf.qint32, tf.int64, tf.complex64, tf.half)]))


def wrong():
    def hidden(x):
        return tf.placeholder_with_default(x, None)

    q = tf.bitcast(np.zeros((3, 4), np.uint8), tf.quint8)
    ops = [raw.QuantizeV2(input=ROWS, min_range=hidden(a), max_range=hidden(b), T=tf.quint8, **more).output.op for a, b, more in (
        (_f(1), _f(-1), {}), (_f(-1, 2), _f(1), {}), (_f(-1, -2), _f(1, 2), {"axis": 1}), (_f(-1, -2, -3), _f(1, 2, 3), {"axis": 0, "mode": "MIN_FIRST"}))]
    ops += [raw.Dequantize(input=q, min_range=hidden(a), max_range=hidden(b), **more).op for a, b, more in (
        (_f(-1, 2), _f(1), {}), (_f(-1, -2), _f(1, 2), {"axis": 1}), (_f(-1, -2, -3), _f(1, 2, 3), {"axis": 0, "mode": "MIN_FIRST"}),
        (_f(-1), _f(1), {"mode": "SCALED", "dtype": tf.bfloat16}))]
    with tf.Session(TARGET) as s:
        return [error_of(lambda o=o: s.run(o))[0] for o in ops]


if __name__ == "__main__":
    answer_each(forget)
