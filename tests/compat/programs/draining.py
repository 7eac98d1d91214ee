# SPDX-License-Identifier: Apache-2.0
"""Reads all elements of each pipeline of a program, on one-shot and initializable iterators."""
import sys

import numpy as np

from common import TARGET, answer, tf


def _plain(v):
    if isinstance(v, tf.SparseTensorValue):
        return ["sparse"] + [_plain(x) for x in v]
    if isinstance(v, tf.ragged.RaggedTensorValue):
        return ["ragged", v.row_splits.dtype.name, v.row_splits.tolist(), _plain(v.values)]
    if isinstance(v, (tuple, list)):
        return [_plain(x) for x in v]
    if isinstance(v, dict):
        return {k: _plain(x) for k, x in v.items()}
    return v.decode("latin-1") if isinstance(v, bytes) else np.asarray(v).astype(
        str if np.asarray(v).dtype.kind in "OS" else None).tolist()


def drain(sess, element, most=200):
    """Reads the elements in order, with the error at the end. Stops after three failed elements, because some
    pipelines fail forever."""
    seen, failed = [], 0
    while len(seen) < most and failed < 3:
        try:
            seen.append(_plain(sess.run(element, options=tf.RunOptions(timeout_in_ms=60000))))
        except tf.errors.OutOfRangeError as e:
            return seen + [_last_line(e)]
        except tf.errors.DeadlineExceededError as e:
            sys.exit(f"no element in a minute: {e}")
        except tf.errors.OpError as e:
            seen.append(type(e).__name__)
            failed += 1
    return seen


def _last_line(e):
    return e.message.split("\n\t")[0].split("\n")[-1]


def _optionals(sess, iterator):
    """Reads the first elements as optionals; at the end of the data the optional has no value."""
    sess.run(iterator.initializer)
    optional = tf.data.experimental.get_next_as_optional(iterator)
    has, value, seen = optional.has_value(), optional.get_value(), []
    while len(seen) < 3:
        try:
            seen.append(_plain(sess.run((has, value))))
        except tf.errors.OpError as e:
            return seen + [type(e).__name__, _plain(sess.run(has)) if "does not have a value" in e.message else None]
    return seen


def _both_iterators(sess, dataset, as_optionals):
    once, again = tf.data.make_one_shot_iterator(dataset), tf.data.make_initializable_iterator(dataset)
    a, b = once.get_next(), again.get_next()
    out = [drain(sess, a)]
    try:
        sess.run(b)
    except tf.errors.FailedPreconditionError as e:
        out.append(_last_line(e)[:60])
    for _ in range(2):
        sess.run(again.initializer)
        out.append(drain(sess, b))
    sess.run(again.initializer)
    try:
        sess.run(b)  # then the iterator is abandoned in the middle
    except tf.errors.OpError:
        pass
    sess.run(again.initializer)  # otherwise it would keep threads, of which a stock server has as many as processors
    return out + [_optionals(sess, again)] if as_optionals else out


def _drain(sess, pipelines, out):
    for name, dataset in pipelines():
        if not sys.argv[1:] or name in sys.argv[1:]:
            try:
                out[name] = _both_iterators(sess, dataset, len(out) % 8 == 0)
            except tf.errors.OpError as e:  # a failure is expected if the other kind of server fails, too
                out[name] = [type(e).__name__]
                print(name, e, file=sys.stderr)


def drain_all(*parts):
    """Drains the (name, dataset) pairs of each part; the command line may select names. Each part has its own graph,
    since a server processes the whole graph again when it grows."""
    out = {}
    for part in parts:
        with tf.Graph().as_default(), tf.device("/job:worker/task:0"):
            with tf.Session(TARGET, config=tf.ConfigProto(isolate_session_state=True)) as sess:
                _drain(sess, part, out)
    answer(out)
