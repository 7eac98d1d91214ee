# SPDX-License-Identifier: Apache-2.0
"""Less common tf.data pipelines: file formats, shuffles, windows, groups, mixtures.

Compares every element, the order and the end.
"""
import gzip
import tempfile
import zlib

import numpy as np

from common import tf
from draining import drain_all
from tensorflow.python.data.experimental.ops import distribute
from tensorflow.python.data.ops import dataset_ops

data, more = tf.data.Dataset, tf.data.experimental
folder = tempfile.mkdtemp(prefix="muster-")
body = b"HEAD" + bytes(range(65, 65 + 24)) + b"FOOT!"
FILES = {
    "fixed": body, "fixed2": body.lower(), "fixed.gz": gzip.compress(body), "fixed.z": zlib.compress(body),
    "a.txt": b"a1\na2\na3\n", "b.txt": b"b1\nb2\n", "c.txt": b"c1\nc2\nc3\nc4\nc5",
    "lines.gz": gzip.compress(b"one\r\ntwo\n\nthree"), "lines.z": zlib.compress(b"x\ny\n"),
}
CSV = {
    "t.csv": '1.5,2,"a ""b"", c"\n-3,4,"two\nlines"\r\n5e3,6,', "h.csv": 'x,n,s\n1,2,a\n3,4,b\r5,6,"c"\n', "gaps.csv": ',,\n1,,NA\n,2,b\n',
    "tabs": 'a\tb"c\n"d"\te\n', "wrong.csv": "1,a\n2\nx,b\n6,i\n", "made.csv": "x,n,s\n1,2,a\n3,4,b\n5,6,c\n", "one.csv": 'a\n\nb\n""\n',
}
FILES.update({k: v.encode() for k, v in CSV.items()})
FILES["t.csv.gz"] = gzip.compress(FILES["t.csv"])
for name, content in FILES.items():
    with open(f"{folder}/{name}", "wb") as f:
        f.write(content)
with tf.python_io.TFRecordWriter(f"{folder}/records.gz", tf.python_io.TFRecordOptions("GZIP")) as w:
    for i in range(5):
        w.write(b"record %d" % i)
EXAMPLES = [tf.train.Example(features=tf.train.Features(feature={
    "n": tf.train.Feature(int64_list=tf.train.Int64List(value=range(i % 3))),
    "w": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"w%d" % i] * (i % 2))),
    "x": tf.train.Feature(float_list=tf.train.FloatList(value=[i, -i]))})).SerializeToString() for i in range(5)]
with tf.python_io.TFRecordWriter(f"{folder}/examples") as w:
    for example in EXAMPLES:
        w.write(example)
texts = [f"{folder}/{c}.txt" for c in "abc"]


def rows(x):
    return data.from_tensors(x).repeat(x + 1)


def files():
    fixed = lambda names, **k: tf.data.FixedLengthRecordDataset([f"{folder}/{n}" for n in names], 6, 4, 5, **k)
    yield "fixed records", fixed(["fixed", "fixed2"])
    yield "fixed records of gzip", fixed(["fixed.gz"], compression_type="GZIP")
    yield "fixed records of zlib", fixed(["fixed.z"], compression_type="ZLIB")
    yield "images of cifar", fixed(["fixed"]).map(lambda s: tf.transpose(tf.reshape(tf.decode_raw(s, tf.uint8), [2, 3])))
    yield "lines of gzip", tf.data.TextLineDataset(f"{folder}/lines.gz", compression_type="GZIP")
    yield "lines of zlib", tf.data.TextLineDataset([f"{folder}/lines.z"] * 2, compression_type="ZLIB")
    yield "records of gzip", tf.data.TFRecordDataset(f"{folder}/records.gz", compression_type="GZIP")
    yield "names of files", data.list_files(f"{folder}/*.txt", shuffle=False).map(lambda s: tf.strings.substr(s, -5, 5))
    yield "names in the order drawn", data.list_files(f"{folder}/*.txt", seed=5).map(lambda s: tf.strings.substr(s, -5, 5))
    yield "readers by turns", data.from_tensor_slices(texts).interleave(tf.data.TextLineDataset, cycle_length=2, num_parallel_calls=2)
    yield "readers by turns, sloppy", data.from_tensor_slices(texts[:1]).apply(
        more.parallel_interleave(tf.data.TextLineDataset, cycle_length=2, sloppy=True))


def functions():
    r = data.range(12)
    yield "parallel interleave", r.interleave(rows, cycle_length=4, block_length=2, num_parallel_calls=4)
    yield "parallel interleave, tuned", r.take(5).interleave(rows, cycle_length=3, num_parallel_calls=more.AUTOTUNE)
    yield "older parallel interleave", r.take(6).apply(more.parallel_interleave(rows, cycle_length=2, block_length=2))
    yield "map and batch", r.apply(more.map_and_batch(lambda x: (x * x, tf.as_string(x)), 5))
    yield "map and whole batches", r.apply(more.map_and_batch(lambda x: x * x, 5, drop_remainder=True, num_parallel_calls=2))
    yield "scan", r.apply(more.scan(np.int64(100), lambda s, x: (s + x, (s, x))))
    yield "take while", r.apply(more.take_while(lambda x: x < 5))
    yield "group by window", r.apply(more.group_by_window(lambda x: x % 3, lambda k, d: d.batch(3), window_size=3))
    yield "group by windows of sizes", r.apply(more.group_by_window(
        lambda x: x % 2, lambda k, d: d.map(lambda x: x * 10).batch(4), window_size_func=lambda k: k + 2))
    reducer = more.Reducer(lambda k: (0.0, tf.as_string(k)), lambda s, x: (s[0] + tf.cast(x, tf.float32), s[1] + "+" + tf.as_string(x)),
                           lambda total, text: (text, total * 2))
    yield "groups reduced", r.apply(more.group_by_reducer(lambda x: x % 5 - 2, reducer))
    yield "groups reduced for ever", r.apply(more.group_by_reducer(lambda x: x % 3, reducer)).repeat(2)
    yield "no groups reduced", r.take(0).apply(more.group_by_reducer(lambda x: x, reducer))
    yield "a reducer that fails", r.apply(more.group_by_reducer(lambda x: x % 3, more.Reducer(
        lambda k: np.int64(0), lambda s, x: s + 6 // (x - 4), lambda s: s)))
    lists = data.range(1, 14).map(lambda x: tf.fill([x * 5 % 9], x))
    yield "buckets by length", lists.apply(more.bucket_by_sequence_length(tf.size, [3, 6], [4, 3, 2]))
    yield "buckets padded to bounds", lists.filter(lambda x: tf.size(x) < 6).apply(more.bucket_by_sequence_length(
        tf.size, [4, 7], [2, 2, 2], pad_to_bucket_boundary=True))
    yield "windows", r.window(4, shift=3, stride=2).flat_map(lambda d: d.batch(4))
    yield "whole windows", r.window(5, drop_remainder=True).flat_map(lambda d: d.batch(5))
    yield "windows of pairs", data.zip((r, r.map(tf.as_string))).window(3).flat_map(
        lambda a, b: data.zip((a, b)).batch(2))
    yield "reduced windows", r.window(5).map(lambda d: d.reduce(np.int64(1), lambda s, x: s * 2 + x))
    yield "single elements", r.map(lambda x: more.get_single_element(data.range(x, x + 3).batch(3)))


def orders():
    r = data.range(20)
    yield "shuffle and repeat", r.take(7).apply(more.shuffle_and_repeat(4, 3, seed=5))
    yield "shuffle and repeat for ever", r.take(7).apply(more.shuffle_and_repeat(3, seed=6)).take(30)
    yield "sampled", more.sample_from_datasets([r.repeat(), r.map(lambda x: -x).repeat()], [0.3, 0.7], seed=9).take(30)
    yield "sampled to the end", more.sample_from_datasets([data.range(4), data.range(10, 16), data.range(20, 22)], seed=2)
    yield "sampled by weights that change", more.sample_from_datasets(
        [data.range(40), data.range(100, 140)], data.from_tensor_slices([[0.2, 0.8], [0.9, 0.1]]).repeat(), seed=3).take(25)
    yield "chosen", more.choose_from_datasets([data.range(9), data.range(100, 109)], data.from_tensor_slices(np.int64([0, 1, 1, 0, 1])))
    yield "random numbers", more.RandomDataset(seed=42).take(6)
    yield "resampled", r.repeat().apply(more.rejection_resample(lambda x: tf.cast(x % 2, tf.int32), [0.1, 0.9], [0.5, 0.5], seed=4)).take(20)
    yield "unique", data.from_tensor_slices([3, 1, 3, 2, 1, 5]).apply(more.unique())
    yield "unique strings", data.from_tensor_slices(["a", "b", "a", ""]).apply(more.unique())
    yield "snapshot of options", r.take(3).with_options(tf.data.Options()).prefetch(more.AUTOTUNE)
    options = tf.data.Options()
    options.threading.private_threadpool_size = 2
    options.threading.max_intra_op_parallelism = 1
    yield "thread options", r.take(4).with_options(options).map(lambda x: x + 1)


def shapes():
    r = data.range(12)
    yield "unbatch", r.batch(5).apply(more.unbatch())
    for sizes, whole in (([3, 1], False), ([2, 0, 3], True), ([12, 0], False), ([5], True)):
        yield f"rebatch {sizes}", r.batch(4).rebatch(sizes, whole)
    for parts in (1, 3, 5):
        yield f"parts of batches {parts}", distribute._LegacyRebatchDataset(r.take(10).batch(4), parts)
    yield "unbatch pairs", data.from_tensors((np.arange(6).reshape(3, 2), ["a", "b", "c"])).apply(more.unbatch())
    yield "unbatch what does not fit", data.range(3, 6).map(lambda x: (tf.range(x), tf.range(x * 2 - 4))).apply(more.unbatch())
    yield "ignored errors", data.from_tensor_slices([1.0, 2.0, 0.0, 4.0]).map(
        lambda x: tf.check_numerics(1.0 / x, "bad")).apply(more.ignore_errors())

    def bad(x):
        return tf.check_numerics(1.0 / tf.cast((x - 3) * (x - 12), tf.float32), "bad")
    for name, batches in (("map and batch", more.map_and_batch(bad, 5)), ("map, then batch", lambda d: d.map(bad).batch(5)),
                          ("whole batches", lambda d: d.map(bad).batch(5, drop_remainder=True)),
                          ("parallel map, then batch", lambda d: d.map(bad, num_parallel_calls=2).batch(5)),
                          ("map, filter, batch", lambda d: d.map(bad).filter(lambda x: x < 9).batch(5))):
        yield f"ignored errors: {name}", data.range(22).apply(batches).apply(more.ignore_errors())
    repeated = lambda x: data.from_tensors(x).repeat(x)
    five = lambda x: x + tf.cast(0 * tf.check_numerics(1.0 / tf.cast(x - 5, tf.float32), "bad"), tf.int64)
    for name, source, function in (("input", data.range(4, 7).map(five), repeated), ("function", data.range(4, 7), lambda x: repeated(five(x))),
                                   ("elements", data.range(1, 4), lambda x: data.range(x * 2, x * 2 + 4).map(five))):
        for block in (1, 3):
            yield f"ignored errors: {name}, interleaved {block}", source.interleave(function, 2, block).apply(more.ignore_errors())
            yield f"ignored errors: {name}, interleaved in parallel {block}", source.interleave(
                function, 2, block, num_parallel_calls=2, deterministic=True).apply(more.ignore_errors())
    yield "shapes of more values", data.range(1, 3).map(tf.range).batch(2)
    yield "cardinality", data.from_tensors(more.cardinality(r.batch(5)))
    yield "cardinalities", data.from_tensors(tf.stack([more.cardinality(d) for d in (
        r, r.repeat(), r.filter(lambda x: x > 3), r.take(3).repeat(4), r.skip(20), r.shard(5, 1), data.zip((r, r.take(2))),
        r.concatenate(r), r.batch(5, drop_remainder=True), r.flat_map(rows), r.map(lambda x: x).shuffle(3).prefetch(1))]))
    yield "asserted cardinality", r.filter(lambda x: x >= 0).apply(more.assert_cardinality(12))
    yield "too few", r.take(2).apply(more.assert_cardinality(3))
    yield "too many", r.apply(more.assert_cardinality(11))
    yield "enumerated", r.skip(9).apply(more.enumerate_dataset(5))


def caches():
    r = data.range(7).map(lambda x: (x, tf.as_string(x), tf.fill([x % 3], 0.5)))
    yield "cache in a file", r.cache(f"{folder}/cache").repeat(2)
    yield "elements from a file", r.take(0).cache(f"{folder}/cache")
    yield "cache of nothing", r.take(0).cache(f"{folder}/nothing").repeat(2)
    yield "beginning of a cache", r.cache(f"{folder}/beginning").take(4).repeat(2)
    yield "cache with two writers", data.zip((r.cache(f"{folder}/twice"), r.cache(f"{folder}/twice")))
    yield "cache in no folder", r.cache(f"{folder}/none/cache")
    yield "cache with errors", data.range(5).map(lambda x: 6 // (x - 2)).cache(f"{folder}/errors").apply(more.ignore_errors()).repeat(2)
    wide = data.range(3).map(lambda x: (x,) * 12)
    yield "cache of wide elements", wide.cache(f"{folder}/wide").repeat(2)
    yield "files of a cache", data.list_files(f"{folder}/cache*", shuffle=False).map(lambda s: tf.strings.substr(s, -5, 5))
    restored = lambda name, keys, kind: data.range(1).map(
        lambda _: tf.raw_ops.RestoreV2(prefix=f"{folder}/{name}", tensor_names=keys, shape_and_slices=[""], dtypes=[kind])[0])
    yield "cached tensor", restored("cache", ["      6_1"], tf.string)
    yield "cached tensor of a wide element", restored("wide", ["      2_ 3"], tf.int64)


def written(name, kind=""):
    """A dataset that writes records, then reads them."""
    path = f"{folder}/{name}"

    def write(x):
        with tf.control_dependencies([more.TFRecordWriter(path, kind).write(data.range(4).map(tf.as_string))]):
            return tf.identity(x)
    return data.range(1).map(write).flat_map(lambda x: tf.data.TFRecordDataset(path, kind))


def writers():
    for kind in ("", "GZIP", "ZLIB"):
        yield "records written " + kind, written("written" + kind, kind)
    yield "records written to no folder", written("none/x")
    v = data.range(5).map(lambda x: x * x)._variant_tensor
    wrapped = tf.raw_ops.UnwrapDatasetVariant(input_handle=tf.raw_ops.WrapDatasetVariant(input_handle=v))
    yield "dataset in a wrap", dataset_ops._VariantDataset(wrapped, tf.TensorSpec([], tf.int64))
    yield "padded to a negative size", data.range(3).map(lambda x: tf.fill([x], x)).padded_batch(2, tf.constant([-5], tf.int64))


def few(x):
    """A sparse row with x % 3 elements."""
    at = tf.range(x % 3)
    return tf.SparseTensor(tf.expand_dims(at, 1), tf.as_string(at + x), [4])


def sparse():
    r = data.range(7).map(few)
    yield "sparse rows", r
    yield "sparse rows in batches", r.batch(3)
    yield "sparse rows in batches of batches", r.batch(2).batch(2)
    yield "sparse rows kept and mixed", r.cache().shuffle(4, seed=3).repeat(2)
    yield "sparse rows with others", data.zip((r, data.range(7))).filter(lambda s, i: i % 2 > 0).batch(2).map(
        lambda s, i: (tf.sparse.to_dense(s, default_value="-"), i))
    yield "sparse rows of a batch", r.batch(7).apply(more.unbatch())
    yield "sparse slices", data.from_tensor_slices(tf.SparseTensor([[0, 1], [2, 0], [2, 3]], [1.0, 2.0, 3.0], [4, 5]))
    yield "examples with sparse features", data.range(5).batch(2).map(lambda i: tf.parse_example(
        tf.gather([EXAMPLES[k] for k in range(5)], i), {"n": tf.VarLenFeature(tf.int64), "x": tf.FixedLenFeature([2], tf.float32)}))


def back(encoded, ranks, kind, rank_before=-1):
    return tf.raw_ops.RaggedTensorFromVariant(
        encoded_ragged=encoded, input_ragged_rank=rank_before, output_ragged_rank=ranks, Tvalues=kind, Tsplits=tf.int64)


def there_and_back(splits, values, batched=True):
    x = tf.raw_ops.RaggedTensorToVariant(rt_nested_splits=splits, rt_dense_values=values, batched_input=batched)
    made = back(x, len(splits), values.dtype)
    return tuple(made.output_nested_splits) + (made.output_dense_values,)


def ragged():
    rows = tf.ragged.constant([[1, 2], [], [3, 4, 5], [6], [7, 8]])
    texts = tf.ragged.constant([[["a"], ["b", "c"]], [], [[], ["d"]]])
    wide = tf.RaggedTensor.from_row_lengths(np.arange(12.0).reshape(6, 2), np.int32([2, 0, 3, 1]))
    yield "ragged slices", data.from_tensor_slices(rows)
    yield "ragged tensors", data.from_tensors((rows, texts, wide)).repeat(2)
    yield "ragged slices of texts", data.from_tensor_slices(texts)
    yield "ragged slices with two columns", data.from_tensor_slices((wide, rows[:4])).filter(lambda w, r: tf.size(r) != 1)
    yield "ragged rows in batches", data.from_tensor_slices(rows).batch(3)
    yield "ragged rows in batches of batches", data.from_tensor_slices(texts).batch(2).batch(2)
    yield "ragged rows of a batch", data.from_tensors(texts).apply(more.unbatch())
    yield "ragged rows made, mixed and kept", data.range(6).map(lambda x: tf.ragged.range(tf.range(x))).cache().shuffle(4, seed=2).repeat(2).batch(4)
    yield "rows of all lengths", data.range(5).map(tf.range).apply(more.dense_to_ragged_batch(2))
    numbers = tf.constant([[1.0], [2.0], [3.0]])
    splits = data.from_tensor_slices(np.int64([[0, 1, 3], [0, 2, 1], [1, 2, 3], [0, 1, 4]]))
    yield "ragged splits, right and wrong", splits.map(lambda s: there_and_back([s], numbers))
    yield "ragged splits of one tensor", splits.map(lambda s: there_and_back([s], numbers, batched=False))
    yield "ragged gradient", splits.take(1).map(
        lambda s: tf.gradients(tf.reduce_sum(there_and_back([s, np.int64([0, 0, 2, 3])], numbers)[-1] ** 3), numbers)[0])
    variants = lambda: tf.raw_ops.RaggedTensorToVariant(
        rt_nested_splits=[np.int64([0, 1, 2])], rt_dense_values=tf.constant([5, 6]), batched_input=True)
    one = data.range(1)
    yield "ragged variants as a vector", one.map(lambda _: back(tf.raw_ops.RaggedTensorToVariant(
        rt_nested_splits=[], rt_dense_values=numbers, batched_input=True), 0, tf.float32).output_dense_values)
    yield "ragged variants as a matrix", one.map(lambda _: tuple(back(tf.stack([variants()] * 3), 2, tf.int32).output_nested_splits))
    yield "ragged variants of another type", one.map(lambda _: back(variants(), 1, tf.float32).output_dense_values)
    yield "ragged variants of another rank", one.map(lambda _: back(variants(), 2, tf.int32).output_dense_values)
    yield "variants that are not ragged", one.map(lambda _: back(one._variant_tensor, 0, tf.int32).output_dense_values)


def tables():
    csv = lambda name, types, **k: more.CsvDataset(f"{folder}/{name}", types, **k)
    kinds = [tf.float32, tf.int64, tf.string]
    yield "table", csv("t.csv", kinds)
    yield "table with a head", csv("h.csv", kinds, header=True)
    yield "table of gzip", csv("t.csv.gz", kinds, compression_type="GZIP")
    yield "table's columns", csv("t.csv", [tf.string, tf.float32], select_cols=[2])
    yield "some columns of a table", csv("t.csv", [tf.float32, tf.string], select_cols=[0, 2])
    yield "tables with defaults", csv("gaps.csv", [[1.5], [7], ["-"]])
    yield "gaps that may not be", csv("gaps.csv", kinds).apply(more.ignore_errors())
    yield "gaps by another name", csv("gaps.csv", [[1.5], [7], ["-"]], na_value="NA")
    yield "tables of tabs", csv("tabs", [tf.string, tf.string], field_delim="\t", use_quote_delim=False)
    yield "no quotes", csv("t.csv", [tf.string] * 3, use_quote_delim=False).apply(more.ignore_errors())
    yield "wrong tables", csv("wrong.csv", [tf.int32, tf.string]).apply(more.ignore_errors())
    yield "one column", csv("one.csv", ["none"])
    yield "two tables", more.CsvDataset([f"{folder}/one.csv", f"{folder}/t.csv"], [["none"]], select_cols=[0])
    yield "made from a table", more.make_csv_dataset(
        f"{folder}/made.csv", 2, label_name="n", num_epochs=2, shuffle=False, column_names=["x", "n", "s"])
    yield "a table's own columns", more.make_csv_dataset(f"{folder}/made.csv", 2, num_epochs=1, shuffle=True, shuffle_seed=5)


def parsed():
    wanted = {"n": tf.VarLenFeature(tf.int64), "x": tf.FixedLenFeature([2], tf.float32), "w": tf.FixedLenSequenceFeature(
        [], tf.string, allow_missing=True), "a": tf.VarLenFeature(tf.string)}
    records = data.from_tensor_slices(EXAMPLES)
    yield "parsed examples", records.batch(2).apply(more.parse_example_dataset(wanted))
    yield "examples parsed by four", records.batch(3).apply(more.parse_example_dataset(wanted, num_parallel_calls=4))
    yield "examples that lack", records.batch(2).apply(more.parse_example_dataset({"z": tf.FixedLenFeature([], tf.float32)}))
    ragged = {"n": tf.io.RaggedFeature(tf.int64), "t": tf.io.RaggedFeature(tf.string, value_key="w", row_splits_dtype=tf.int64),
              "x": tf.FixedLenFeature([2], tf.float32), "a": tf.VarLenFeature(tf.string)}
    yield "examples with ragged features", records.batch(3).apply(more.parse_example_dataset(ragged))
    yield "examples of one ragged feature", records.batch(2).apply(more.parse_example_dataset({"n": ragged["n"]}, num_parallel_calls=2))
    yield "ragged features of another type", records.batch(2).apply(more.parse_example_dataset({"n": tf.io.RaggedFeature(tf.float32)}))
    yield "ragged features with partitions", records.batch(2).apply(more.parse_example_dataset({"p": tf.io.RaggedFeature(
        tf.string, value_key="w", partitions=[tf.io.RaggedFeature.UniformRowLength(1)])}))
    yield "batches of features", more.make_batched_features_dataset(
        f"{folder}/examples", 2, wanted, reader=tf.data.TFRecordDataset, num_epochs=1, shuffle=False, label_key="x")
    yield "sparse batches", data.range(7).map(lambda x: tf.fill([x % 3], x)).apply(more.dense_to_sparse_batch(3, [4]))
    yield "sparse batches of what is too wide", data.range(4).map(lambda x: tf.fill([x], x)).apply(more.dense_to_sparse_batch(2, [1]))
    yield "sparse slices as tuples", data.from_sparse_tensor_slices(
        tf.SparseTensor([[0, 1], [2, 0], [2, 3]], [1.0, 2.0, 3.0], [4, 5]))


def over(op, **inputs):
    """Applies a dataset op that returns its input elements to a range."""
    d = op(input_dataset=data.range(3)._variant_tensor, output_types=[tf.int64], output_shapes=[[]], **inputs)
    return dataset_ops._VariantDataset(d, tf.TensorSpec([], tf.int64))


def drawn():
    draw = lambda *_: tf.random.uniform([], seed=3)
    inner = lambda *_: data.range(2).map(draw)
    yield "random numbers in each epoch", data.range(2).map(draw).repeat(2)
    yield "random numbers in datasets of a function", data.range(3).flat_map(inner)
    yield "random numbers two functions deep", data.range(2).flat_map(lambda x: data.range(2).flat_map(inner))
    yield "random numbers in datasets side by side", data.range(4).interleave(inner, cycle_length=2)
    yield "random numbers in windows", data.range(6).window(2).flat_map(lambda w: w.map(draw))
    yield "random numbers in groups", data.range(6).apply(more.group_by_window(lambda x: x % 2, lambda _, d: d.map(draw).batch(3), 3))
    yield "random numbers of reductions", data.range(3).map(lambda x: data.range(2).reduce(0.0, lambda a, _: a + draw()))


def sleeps():
    yield "sleeps", over(tf.raw_ops.SleepDataset, sleep_microseconds=1000)
    yield "sleeps by an old name", over(tf.raw_ops.ExperimentalSleepDataset, sleep_microseconds=1)
    yield "negative sleep", over(tf.raw_ops.SleepDataset, sleep_microseconds=-1)


def extremes():
    failing = data.range(6).map(lambda x: tf.debugging.check_numerics(tf.where(x == 2, np.nan, 1.0), "") + tf.cast(x, tf.float32))
    yield "zip after an error", data.zip((failing, data.range(6))).apply(more.ignore_errors())
    for t in (tf.int32, tf.float32, tf.int8, tf.float64):
        yield f"range of {t.name}", data.range(-3, 9, 4, output_type=t)
    yield "batch of all", data.range(5).batch(2**40)
    yield "window of all", data.range(5).window(2**40, 2**40, 2**40).flat_map(lambda d: d.batch(9))
    yield "groups", data.range(60).apply(more.group_by_window(lambda x: (x * 7) % 13 - 5, lambda k, d: d.batch(9).map(lambda e: (k, e)), 4))
    yield "reduced groups", data.range(60).apply(more.group_by_reducer(lambda x: (x * 7) % 13 - 5, more.Reducer(lambda k: k, lambda s, x: s + x, lambda s: s)))
    yield "many components", data.from_tensors(tuple(range(300))).repeat(2)


if __name__ == "__main__":
    drain_all(files, functions, orders, shapes, caches, writers, sparse, ragged, tables, parsed, drawn, sleeps, extremes)
