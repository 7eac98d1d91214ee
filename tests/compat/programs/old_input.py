# SPDX-License-Identifier: Apache-2.0
"""Input of old scripts: queues and readers, tf.data with every kind of iterator, and the formats that they decode."""
import io
import os
import shutil
import struct
import tempfile
import wave

import numpy as np
import tensorflow.compat.v1 as tf

from common import TARGET, answer_each, error_of, forget, plain

folder = tempfile.mkdtemp()
WORKER, PS = "/job:worker/task:0", "/job:ps/task:0"


def _example(k):
    here = np.random.RandomState(k)
    feature = {"id": tf.train.Feature(int64_list=tf.train.Int64List(value=[k])), "x": tf.train.Feature(float_list=tf.train.FloatList(value=here.uniform(size=3))),
               "tags": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"t%d" % i for i in range(k % 4)]))}
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()


def _records(name, n=10, kind=""):
    path = f"{folder}/{name}"
    with tf.python_io.TFRecordWriter(path, tf.io.TFRecordOptions(kind) if kind else None) as out:
        for k in range(n):
            out.write(_example(k))
    return path


def _all(fetches, start=(), limit=100):
    """Runs the fetches until the input ends, with the threads of the queue runners."""
    out = []
    with tf.Session(TARGET) as s:
        s.run([tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()])
        s.run(start)
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(s, coordinator)
        try:
            while len(out) < limit:
                out.append(plain(s.run(fetches)))
        except tf.errors.OutOfRangeError:
            out.append("end")
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=20, ignore_live_threads=True)
    forget()
    return out


FEATURES = {"id": tf.FixedLenFeature([], tf.int64), "x": tf.FixedLenFeature([3], tf.float32), "tags": tf.VarLenFeature(tf.string)}


def packed_records_through_queues():
    """TFRecordReader with options; reads several records at a time and parses them together."""
    out = {}
    for kind in ("GZIP", "ZLIB"):
        with tf.Graph().as_default():
            names = tf.train.string_input_producer([_records("a." + kind, 7, kind), _records("b." + kind, 4, kind)], shuffle=False, num_epochs=1)
            reader = tf.TFRecordReader(options=tf.io.TFRecordOptions(kind))
            keys, values = reader.read_up_to(names, 3)
            rows = tf.parse_example(values, FEATURES)
            with tf.control_dependencies([values]):
                count = reader.num_records_produced()
            got = _all([keys, rows["id"], rows["x"], tf.sparse_tensor_to_dense(rows["tags"], "")])
            out[kind] = [[[os.path.basename(k) for k in g[0]], *g[1:]] if g != "end" else g for g in got]
    return out


def pictures_from_whole_files():
    """WholeFileReader: labels from file names, decoded PNG files, shuffle_batch_join."""
    with tf.Graph().as_default(), tf.Session() as s:
        for k in range(4):
            pixels = np.random.RandomState(k).randint(0, 255, (6, 8, 3)).astype(np.uint8)
            with open(f"{folder}/p{k}.png", "wb") as f:
                f.write(s.run(tf.image.encode_png(pixels)))
    names = tf.train.string_input_producer(tf.train.match_filenames_once(folder + "/p*.png"), shuffle=False, num_epochs=1)
    key, data = tf.WholeFileReader().read(names)
    picture = tf.image.resize_images(tf.image.decode_png(data, 3), [4, 4])
    label = tf.string_split([key], "/").values[-1]
    pictures, labels = tf.train.shuffle_batch_join([[picture, label]], 2, 10, 1, allow_smaller_final_batch=True)
    got = _all([labels, tf.reduce_sum(pictures, [1, 2, 3])])
    return sorted([l, round(v, 2)] for g in got if g != "end" for l, v in zip(*g)), got[-1]


def _bmp(pixels):
    h, w, _ = pixels.shape
    rows = b"".join(r[:, ::-1].tobytes() + b"\0" * (-3 * w % 4) for r in pixels[::-1])
    return b"BM" + struct.pack("<IHHI", 54 + len(rows), 0, 0, 54) + struct.pack("<IiiHHIIiiII", 40, w, h, 1, 24, 0, len(rows), 0, 0, 0, 0) + rows


def pictures_of_other_kinds():
    pixels = np.random.RandomState(1).randint(0, 255, (5, 7, 3)).astype(np.uint8)
    data = tf.placeholder(tf.string, [])
    bmp, any_ = tf.image.decode_bmp(data), tf.image.decode_image(data)
    with tf.Session(TARGET) as s:
        out = [plain(s.run(bmp, {data: _bmp(pixels)})), plain(s.run(any_, {data: _bmp(pixels)})), error_of(lambda: s.run(bmp, {data: b"BMxx"}))[0]]
        return out


def sounds():
    """The speech commands tutorial: decodes a WAV file, computes its spectrogram and MFCCs, and encodes it again."""
    where = io.BytesIO()
    with wave.open(where, "wb") as w:
        w.setnchannels(1)
        w.setsampwidth(2)
        w.setframerate(16000)
        w.writeframes((np.sin(np.arange(1600) / 5.0) * 12000).astype(np.int16).tobytes())
    data = tf.placeholder(tf.string, [])
    sound = tf.audio.decode_wav(data, desired_channels=1, desired_samples=1200)
    ops = tf.raw_ops
    spectrum = ops.AudioSpectrogram(input=sound.audio, window_size=480, stride=160, magnitude_squared=True)
    mfcc = ops.Mfcc(spectrogram=spectrum, sample_rate=sound.sample_rate, dct_coefficient_count=13)
    again = tf.audio.encode_wav(sound.audio, sound.sample_rate)
    with tf.Session(TARGET) as s:
        got = s.run([sound.audio, sound.sample_rate, spectrum, mfcc, again], {data: where.getvalue()})
        return plain([got[0][::50], got[1], got[2][0, :, ::20] / 1e3, got[3], len(got[4]), sum(got[4])])


def iterators_of_every_kind():
    """Iterators that are initialized with a feed, made from a structure, selected by a handle, and reset between
    epochs."""
    n = tf.placeholder(tf.int64, [])
    train = tf.data.Dataset.range(n).map(lambda x: x * 10).shuffle(3, seed=5).batch(2)
    test = tf.data.Dataset.from_tensor_slices(np.arange(5, dtype=np.int64)).batch(2)
    shared = tf.data.Iterator.from_structure(tf.data.get_output_types(train), tf.data.get_output_shapes(train))
    starts = [shared.make_initializer(train), shared.make_initializer(test)]
    nxt = shared.get_next()
    handle = tf.placeholder(tf.string, [])
    fed = tf.data.Iterator.from_string_handle(handle, tf.data.get_output_types(test)).get_next()
    one, init = tf.data.make_one_shot_iterator(test.repeat()), tf.data.make_initializable_iterator(train, "kept")
    out = []
    with tf.Session(TARGET) as s:
        for _ in range(2):
            for start in starts:
                s.run(start, {n: 4})
                try:
                    while True:
                        out.append(plain(s.run(nxt)))
                except tf.errors.OutOfRangeError:
                    out.append("end")
        a, b = s.run([one.string_handle(), init.string_handle()])
        s.run(init.initializer, {n: 3})
        for h in (a, b, a, b, a):
            out.append(plain(s.run(fed, {handle: h})))
        out.append(error_of(lambda: s.run(fed, {handle: b}))[0])
    return out


def iterators_on_another_task():
    """The pipeline is on the ps and the step on the worker. An iterator handle of another task is rejected."""
    with tf.device(PS):
        it = tf.data.make_initializable_iterator(tf.data.Dataset.range(6).batch(2).prefetch(1))
        nxt = it.get_next()
        handle = it.string_handle()
    with tf.device(WORKER):
        y = tf.reduce_sum(nxt) * 2
        far = tf.data.Iterator.from_string_handle(handle, tf.int64, [None])
    with tf.Session(TARGET) as s:
        s.run(it.initializer)
        out = [plain(s.run(y)), plain(s.run(y))]
        out.append(error_of(lambda: s.run(far.get_next()))[0])
        return out


def sequences_in_buckets():
    """SequenceExamples, and padded batches of variable length."""
    path = folder + "/sequences"
    with tf.python_io.TFRecordWriter(path) as out:
        for k in range(8):
            e = tf.train.SequenceExample()
            e.context.feature["n"].int64_list.value.append(k)
            for i in range(1 + k % 3):
                e.feature_lists.feature_list["t"].feature.add().int64_list.value.append(10 * k + i)
            out.write(e.SerializeToString())
    names = tf.train.string_input_producer([path], shuffle=False, num_epochs=1)
    _, record = tf.TFRecordReader().read(names)
    context, rows = tf.parse_single_sequence_example(record, {"n": tf.FixedLenFeature([], tf.int64)}, {"t": tf.FixedLenSequenceFeature([], tf.int64)})
    n, length, tokens = tf.train.batch([context["n"], tf.size(rows["t"]), rows["t"]], 3, dynamic_pad=True, allow_smaller_final_batch=True)
    return _all([n, length, tokens])


if __name__ == "__main__":
    answer_each(forget)
    shutil.rmtree(folder, ignore_errors=True)
