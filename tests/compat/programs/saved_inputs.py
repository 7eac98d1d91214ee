# SPDX-License-Identifier: Apache-2.0
"""Saves and restores the iterators of input pipelines.

Each pipeline reads some elements, saves its iterator, reads to the end, restarts, restores, and reads to the end
again. Then a program trains, stops in the middle and starts again.
"""
import sys
import tempfile

import datasets
import pipelines
from common import TARGET, answer, tf
from draining import drain

data, more = tf.data.Dataset, tf.data.experimental
folder = tempfile.mkdtemp(prefix="muster-")


# TensorFlow cannot save pipelines that call stateful ops, loses its position among lines that end in \r, and repeats an empty batch at the end.
ELSEWHERE = {"fails", "reduced windows", "single elements", "resampled", "table with a head",
             "loop in a legacy function", "rebatch [12, 0]"}


def taken(sess, element, n):
    return [x for _ in range(n) for x in drain(sess, element, 1)]


def goes_on(sess, name, dataset):
    """Stops the pipeline at some positions, and returns the elements after the restore."""
    iterator = tf.data.make_initializable_iterator(dataset)
    element = iterator.get_next()
    saver = tf.train.Saver([more.make_saveable_from_iterator(iterator)])
    out = []
    for stop in (0, 1, 4):
        sess.run(iterator.initializer)
        before = taken(sess, element, stop)
        path = saver.save(sess, f"{folder}/{len(name)}-{stop}", write_meta_graph=False, write_state=False)
        rest = drain(sess, element, 60)
        sess.run(iterator.initializer)
        taken(sess, element, 2)
        saver.restore(sess, path)
        again = drain(sess, element, 60)
        out.append([before, again, again == rest])
    return out


def beyond():
    """Pipelines with nested state, which the other programs do not have."""
    r = data.range(24)
    yield "shuffled by turns", data.range(3).interleave(
        lambda x: data.range(x * 10, x * 10 + 6).shuffle(3, seed=7), cycle_length=2, block_length=2).shuffle(5, seed=3).batch(2)
    yield "turns within turns", data.range(3).interleave(lambda x: data.range(3).flat_map(
        lambda y: data.from_tensors(x * 10 + y).repeat(2)), cycle_length=2)
    yield "drawn ahead", r.shuffle(6, seed=9).repeat(2).map(lambda x: x * 2).batch(3).prefetch(4)
    yield "kept in the first round", r.take(5).cache().repeat(3)
    yield "kept in a file", r.take(5).cache(f"{folder}/cache").repeat(3)
    yield "two behind each other, shuffled", r.take(4).shuffle(4, seed=1).concatenate(data.range(30, 35).shuffle(2, seed=2))
    yield "a running sum, zipped", data.zip((r.apply(more.scan(tf.constant(0, tf.int64), lambda s, x: (s + x, s + x))), r.shuffle(24, seed=4))).batch(4)


def every(out, *parts):
    for part in parts:
        with tf.Graph().as_default(), tf.device("/job:worker/task:0"):
            with tf.Session(TARGET, config=tf.ConfigProto(isolate_session_state=True)) as sess:
                for name, dataset in part():
                    if name in ELSEWHERE or name.startswith("ignored errors") or sys.argv[1:] and name not in sys.argv[1:]:
                        continue
                    try:
                        out[name] = goes_on(sess, name, dataset)
                    except tf.errors.OpError as e:
                        out[name] = [type(e).__name__]
                        print(name, e, file=sys.stderr)


def trained(steps, container):
    """Trains some steps, and returns the elements and the global step of each. The container separates the runs."""
    with tf.Graph().as_default(), tf.device("/job:worker/task:0"), tf.container(container):
        iterator = tf.data.make_one_shot_iterator(
            data.range(40).shuffle(16, seed=5).repeat(2).map(lambda x: tf.cast(x, tf.float32)).batch(4).prefetch(2))
        element = iterator.get_next()
        tf.add_to_collection(tf.GraphKeys.SAVEABLE_OBJECTS, more.make_saveable_from_iterator(iterator))
        w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        step = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(0.01).minimize(tf.reduce_mean(tf.square(w - element)), global_step=step)
        seen = []
        with tf.train.MonitoredTrainingSession(TARGET, checkpoint_dir=f"{folder}/train", save_checkpoint_steps=5,
                                               save_summaries_steps=None, log_step_count_steps=None) as sess:
            for _ in range(steps):
                seen.append([x.tolist() for x in sess.run([element, train, step, w])[::2] if x is not None])
        return seen


if __name__ == "__main__":
    out = {}
    every(out, datasets.pipelines, beyond, pipelines.files, pipelines.functions, pipelines.orders, pipelines.shapes, pipelines.sparse, pipelines.ragged,
          pipelines.tables, pipelines.parsed)
    if not sys.argv[1:] or "trained" in sys.argv[1:]:
        out["trained"] = [trained(7, "first"), trained(6, "second")]
    answer(out)
