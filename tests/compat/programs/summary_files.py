# SPDX-License-Identifier: Apache-2.0
"""Event files that the server writes: TensorFlow 2's tf.summary in a graph, and the ops that implement it."""
import glob
import tempfile

import numpy as np
import tensorflow

from common import TARGET, answer_each, error_of, forget, tf

raw = tf.raw_ops
STEP = np.int64(3)
IMAGES = (np.arange(24).reshape(2, 2, 2, 3) * 10).astype(np.uint8)
SOUNDS = np.sin(np.arange(80).reshape(2, 20, 2) / 3.0).astype(np.float32)
RED = np.array([255, 0, 0, 255], np.uint8)


def _pixels(png):
    with tf.Graph().as_default(), tf.Session() as s:
        return s.run(tf.image.decode_png(png)).tolist()


def _value(v):
    kind = v.WhichOneof("value")
    if kind == "image":
        return [v.tag, v.image.height, v.image.width, v.image.colorspace, _pixels(v.image.encoded_image_string)]
    if kind == "audio":
        return [v.tag, v.audio.sample_rate, v.audio.num_channels, v.audio.length_frames, v.audio.content_type, list(v.audio.encoded_audio_string)]
    if kind == "histo":
        return [v.tag, v.histo.min, v.histo.max, v.histo.num, v.histo.sum]
    if kind == "tensor":
        return [v.tag, tf.make_ndarray(v.tensor).tolist(), v.metadata.plugin_data.plugin_name]
    return [v.tag, v.simple_value]


def _events(folder):
    """Returns the events of the only file in the folder, without their wall time."""
    names = glob.glob(folder + "/*")
    return [[n.endswith(".v") for n in names]] + [
        [e.step, e.WhichOneof("what"), e.file_version, len(e.graph_def), [_value(v) for v in e.summary.value]] for n in names for e in tf.train.summary_iterator(n)]


def _written(*makers):
    """Creates a writer, runs the ops on it, and returns the events that they write."""
    folder = tempfile.mkdtemp(prefix="summary-")
    writer = raw.SummaryWriter(shared_name=folder)
    create = raw.CreateSummaryFileWriter(writer=writer, logdir=folder, max_queue=2, flush_millis=100000, filename_suffix=".v")
    ops = [m(writer) for m in makers]
    close = raw.CloseSummaryWriter(writer=writer)
    with tf.Session(TARGET) as s:
        s.run(create)
        errors = [error_of(lambda o=o: s.run(o))[0] for o in ops]
        s.run(raw.FlushSummaryWriter(writer=writer))
        s.run(close)
        return [errors, _events(folder), error_of(lambda: s.run(ops[0]))[0]]


def images():
    return _written(lambda w: raw.WriteAudioSummary(writer=w, step=STEP, tag="a", tensor=SOUNDS, sample_rate=8000.0),
                    lambda w: raw.WriteAudioSummary(writer=w, step=STEP, tag="a", tensor=SOUNDS[0], sample_rate=8000.0, max_outputs=1),
                    lambda w: raw.WriteImageSummary(writer=w, step=STEP, tag="i", tensor=IMAGES[0], bad_color=RED),
                    lambda w: raw.WriteImageSummary(writer=w, step=STEP, tag="i", tensor=IMAGES[..., :2], bad_color=RED),
                    lambda w: raw.WriteImageSummary(writer=w, step=STEP, tag="i", tensor=IMAGES.astype(np.float32), bad_color=RED[:2]))


def graphs():
    event = tf.Event(wall_time=5, step=9)
    event.summary.value.add(tag="x", simple_value=2)
    return _written(lambda w: raw.WriteGraphSummary(writer=w, step=STEP, tensor=tf.GraphDef(versions={"producer": 3}).SerializeToString()),
                    lambda w: raw.WriteGraphSummary(writer=w, step=STEP, tensor=b"\xff\xff"),
                    lambda w: raw.ImportEvent(writer=w, event=event.SerializeToString()),
                    lambda w: raw.ImportEvent(writer=w, event=b"\xff\xff"),
                    lambda w: raw.WriteRawProtoSummary(writer=w, step=STEP, tensor=event.summary.SerializeToString()),
                    lambda w: raw.WriteScalarSummary(writer=w, step=STEP, tag="s", value=np.float64(1.5)),
                    lambda w: raw.WriteHistogramSummary(writer=w, step=STEP, tag="h", values=[1.0, 2, 2, 5]),
                    lambda w: raw.WriteHistogramSummary(writer=w, step=STEP, tag="h", values=[1.0, np.nan]))


def second_version():
    """A session runs a graph that writes with tf.summary.create_file_writer."""
    folder, summary = tempfile.mkdtemp(prefix="summary-"), tensorflow.summary
    step = tf.Variable(0, dtype=tf.int64)
    writer = summary.create_file_writer(folder, filename_suffix=".v")
    with writer.as_default():
        written = [summary.scalar("loss", tf.cast(step, tf.float32) * 2, step), summary.text("words", "w", step),
                   summary.write("raw", tf.constant([1, 2]), step), summary.histogram("h", tf.constant([1.0, 2, 5]), step, buckets=3)]
    with tf.control_dependencies(written):
        go = tf.assign_add(step, 1).op
    with tf.Session(TARGET) as s:
        s.run(tf.global_variables_initializer())
        s.run(writer.init())
        for _ in range(3):
            s.run(go)
        s.run(writer.flush())
        s.run(writer.close())
    events = _events(folder)
    return [events[0], events[1], sorted(events[2:], key=repr)]


if __name__ == "__main__":
    answer_each(forget)
