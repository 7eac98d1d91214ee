# SPDX-License-Identifier: Apache-2.0
"""Readers on queues of file names, and sparse tensors that are passed as integer handles."""
import gzip
import tempfile
import threading

import numpy as np

from common import TARGET, answer, tf

folder = tempfile.mkdtemp(prefix="muster-")
lines, short, records, truncated, raw, zipped = (
    f"{folder}/{name}" for name in ("lines.txt", "short.txt", "records", "truncated", "raw", "raw.gz"))
with open(lines, "w") as f:
    f.write("head\n1,a\n2,b\n3,c")
for opened in (open(raw, "wb"), gzip.open(zipped, "wb")):
    with opened as f:
        f.write(b"HHaaabbbcccF")
with open(short, "w") as f:
    f.write("only")
with tf.python_io.TFRecordWriter(records) as w:
    for i in range(4):
        w.write(b"record %d" % i)

READERS = {
    "lines": (tf.TextLineReader(skip_header_lines=1), lines),
    "records": (tf.TFRecordReader(), records),
    "whole": (tf.WholeFileReader(), lines),
    "names": (tf.IdentityReader(), "any"),
    "fixed": (tf.FixedLengthRecordReader(3, header_bytes=2, footer_bytes=1), raw),
    "fixed, compressed": (tf.FixedLengthRecordReader(3, header_bytes=2, footer_bytes=1, hop_bytes=2, encoding="GZIP"), zipped),
}


def plain(v):
    if isinstance(v, (list, tuple)):
        return [plain(x) for x in v]
    text = np.asarray(v)
    return (text.astype(str) if text.dtype.kind in "OS" else text).tolist()


def strip(v):
    return [strip(x) for x in v] if isinstance(v, list) else (
        v.replace(folder, "") if isinstance(v, str) else v)


def read(sess, reader, name):
    queue = tf.FIFOQueue(10, tf.string)
    sess.run(queue.enqueue_many([[name, name]]))
    key, value = reader.read(queue)
    more = reader.read_up_to(queue, 3)
    seen = [sess.run([key, value]), sess.run(more), sess.run(reader.num_records_produced())]
    sess.run(queue.close())
    while True:
        try:
            seen.append(sess.run([key, value], options=tf.RunOptions(timeout_in_ms=200000)))
        except tf.errors.OutOfRangeError as e:
            seen.append("closed and has insufficient" in e.message)
            break
    seen.append(sess.run([reader.num_records_produced(), reader.num_work_units_completed()]))
    sess.run(reader.reset())
    return strip(plain(seen + [sess.run(reader.num_records_produced())]))


def names_of(sess, *names):
    """A queue that has these file names and stays open."""
    queue = tf.FIFOQueue(10, tf.string, shapes=[[]])
    sess.run(queue.enqueue_many([list(names)]))
    return queue


def all_of(sess, op, limit=100000):
    """Runs the op until it fails; returns the results and the class of the error."""
    seen = []
    while True:
        try:
            seen += [plain(sess.run(op, options=tf.RunOptions(timeout_in_ms=limit)))]
        except tf.errors.OpError as e:
            return strip(seen + [type(e).__name__])


def with_a_file_open(sess):
    """A reader with an open file does not wait behind a reader that needs a file name."""
    queue = names_of(sess, short, lines)
    first, second = (tf.TextLineReader().read(queue).value for _ in range(2))
    seen = plain([sess.run(first), sess.run(second)])
    waiting = []
    thread = threading.Thread(target=lambda: waiting.append(all_of(sess, first)))
    thread.start()
    thread.join(0.5)
    seen += [all_of(sess, second, 1000), waiting == []]
    sess.run(queue.close())
    thread.join()
    return seen + waiting


def from_many_threads(sess):
    """Concurrent calls on one reader return each record once."""
    queue = names_of(sess, lines, short, lines, lines)
    sess.run(queue.close())
    line, seen = tf.TextLineReader().read(queue).value, []
    threads = [threading.Thread(target=lambda: seen.append(all_of(sess, line))) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return sorted(v for one in seen for v in one)


def of_truncated_files(sess):
    """A truncated file is an error, not the end of the data."""
    seen = []
    for options in (None, tf.python_io.TFRecordOptions(tf.python_io.TFRecordCompressionType.GZIP)):
        with tf.python_io.TFRecordWriter(truncated, options) as w:
            for i in range(3):
                w.write(np.random.RandomState(i).bytes(500))
        with open(truncated, "r+b") as f:
            f.truncate(1300)
        queue = names_of(sess, truncated)
        sess.run(queue.close())
        seen += [all_of(sess, tf.TFRecordReader(options=options).read(queue).key)]
    queue = names_of(sess, folder)
    return seen + [all_of(sess, tf.TextLineReader().read(queue).value)]


def sparse():
    from tensorflow.python.ops import sparse_ops
    one = tf.SparseTensor([[0, 1], [2, 0]], [1.0, 2.0], [3, 4])
    many = tf.SparseTensor([[0, 1, 0], [2, 0, 3]], [5.0, 6.0], [3, 2, 6])
    a = sparse_ops._add_sparse_to_tensors_map(one, shared_name="kept")
    b = sparse_ops._add_many_sparse_to_tensors_map(many, shared_name="kept")
    taken = sparse_ops._take_many_sparse_from_tensors_map(a.op, tf.concat([b, [a]], 0),
                                                          rank=2)
    return [taken.indices, taken.values, taken.dense_shape]


with tf.Session(TARGET) as session:
    out = {k: read(session, *v) for k, v in READERS.items()}
    out["with a file open"] = with_a_file_open(session)
    out["from many threads"] = from_many_threads(session)
    out["of truncated files"] = of_truncated_files(session)
    out["sparse"] = plain(session.run(sparse()))
tf.Session.reset(TARGET)
answer(out)
