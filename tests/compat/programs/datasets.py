# SPDX-License-Identifier: Apache-2.0
"""tf.data pipelines on one-shot and initializable iterators; compares every element and the end of each sequence."""
import tempfile

import numpy as np

from common import tf
from draining import drain_all

data = tf.data.Dataset
folder = tempfile.mkdtemp(prefix="muster-")
lines, records = f"{folder}/lines.txt", f"{folder}/records"
with open(lines, "w") as f:
    f.write("1,a\n2,b\r\n\n3,c")
with tf.python_io.TFRecordWriter(records) as w:
    for i in range(5):
        w.write(b"record %d" % i)


def pipelines():
    r = data.range(20)
    yield "tensors", data.from_tensors((tf.constant([1.0, 2.0]), tf.constant("x")))
    yield "slices", data.from_tensor_slices({"a": np.arange(6).reshape(3, 2), "b": ["x", "y", "z"]})
    yield "range", data.range(10, 0, -3)
    yield "map", r.map(lambda x: (x * 2, tf.as_string(x))).take(4)
    yield "captured", r.map(lambda x: tf.cast(x, tf.float32) * tf.constant(0.5)).skip(17)
    yield "parallel", r.map(lambda x: x + 1, num_parallel_calls=4).take(3)
    yield "loop in a legacy function", r.map_with_legacy_function(lambda x: tf.map_fn(lambda y: y * y, tf.range(x))).take(4)
    yield "prefetch of less than nothing", r.prefetch(tf.constant(-2, tf.int64))
    yield "filter", r.filter(lambda x: tf.equal(x % 3, 1))
    yield "batch", r.batch(6)
    yield "whole batches", r.batch(6, drop_remainder=True).prefetch(2)
    lists = data.range(1, 6).map(lambda x: (tf.fill([x, 2], x), tf.fill([x], tf.as_string(x)), x))
    yield "padded batch", lists.padded_batch(2, ([None, 2], [None], []))
    yield "padded to a size", lists.padded_batch(2, ([6, 3], [None], []), padding_values=(tf.constant(-1, tf.int64), "-", tf.constant(0, tf.int64)), drop_remainder=True)
    yield "padded to too little", lists.padded_batch(2, ([4, 2], [None], []))
    yield "repeat", data.range(3).repeat(3)
    yield "shuffle", r.shuffle(7, seed=3).repeat(2).batch(5)
    yield "fixed shuffle", r.shuffle(30, seed=4, reshuffle_each_iteration=False).repeat(2)
    twice = data.range(6).shuffle(6, seed=5)
    yield "two uses of a shuffle", data.zip((twice, twice.skip(1))).repeat(2)
    yield "parts of a shuffle", twice.take(4).concatenate(twice.skip(4))
    yield "repeat, shuffle", data.range(5).repeat(3).shuffle(4, seed=11)
    yield "zip", data.zip((data.range(4), data.from_tensor_slices(["a", "b", "c"])))
    yield "concatenate", data.range(2).concatenate(data.range(5, 7))
    yield "shard", r.shard(4, 1)
    yield "cache", data.range(4).map(lambda x: x * x).cache().repeat(2)
    yield "cache that is not filled", data.range(9).shuffle(9, seed=3).cache().take(3).repeat(2)
    kept = data.range(9).shuffle(9, seed=3).cache()
    yield "two uses of a cache", kept.take(3).concatenate(kept)
    yield "flat map", data.range(4).flat_map(lambda x: data.range(x))
    yield "interleave", data.range(1, 5).interleave(
        lambda x: data.from_tensors(x).repeat(3), cycle_length=2, block_length=2)
    yield "lines", data.from_tensor_slices([lines, lines]).flat_map(tf.data.TextLineDataset)
    yield "csv", tf.data.TextLineDataset(lines).filter(
        lambda s: tf.not_equal(s, "")).map(lambda s: tuple(tf.io.decode_csv(s, [[0], [""]])))
    yield "records", tf.data.TFRecordDataset(records)
    yield "branch", data.range(4).map(lambda x: tf.cond(x > 1, lambda: x * 10, lambda: -x))
    yield "fails", data.range(4).map(lambda x: tf.debugging.check_numerics(
        1.0 / tf.cast(x - 1, tf.float32), "bad"))


if __name__ == "__main__":
    drain_all(pipelines)
