# SPDX-License-Identifier: Apache-2.0
"""Stateful ops that few programs use: staging maps, half accumulators, saved readers, and tables under their older names.

One file, because the cases share the folder, the files and the names of queues below."""
import itertools
import tempfile
import threading
import time

import numpy as np

from common import TARGET, answer_each, error_of, forget, plain, tf
from draining import drain
from tensorflow.python.framework import function
from tensorflow.python.data.ops.dataset_ops import _VariantDataset as variant_dataset
from tensorflow.python.ops import map_ops  # the import registers gradients

raw = tf.raw_ops
folder = tempfile.mkdtemp(prefix="muster-")
FILES = []
QUEUES = itertools.count()  # TensorFlow's queue of a name keeps the sizes of its first call
for i in range(3):
    FILES.append(f"{folder}/{i}")
    with open(FILES[-1], "w") as f:
        f.write(f"line {i}\nend")


def _text(value):
    """Removes the folder from strings, and the node names from error texts."""
    if isinstance(value, list):
        return [_text(v) for v in value]
    return value.replace(folder, "").split(" [[")[0].split("\n\t")[0] if isinstance(value, str) else value


def _staging(prefix, types=(tf.float32, tf.int32, tf.string)):
    more = {"shared_name": f"{prefix}map", "container": ""}

    def op(name, key=None, indices=None, **others):
        given = {} if key is None else {"key": np.int64(key)}
        given.update({} if indices is None else {"indices": np.array(indices, np.int32)})
        return getattr(raw, prefix + name)(**given, **others, **more)

    def stage(key, *indices):
        values = [tf.constant([key + 0.5]), tf.constant(key), tf.constant(f"value {key}")]
        return op("MapStage", key, indices, values=[values[i] for i in indices], dtypes=list(types))

    def take(name, key, *indices):
        return op(name, key, indices, dtypes=[types[i] for i in indices])

    sizes = [op("MapSize", dtypes=list(types)), op("MapIncompleteSize", dtypes=list(types))]
    steps = [stage(3, 0, 1, 2), stage(3, 0, 1, 2), stage(4, 0), stage(4, 0), stage(5, 1), stage(4, 2, 1), stage(4, 1, 2), take("MapPeek", 4, 0, 2),
             take("MapUnstage", 3, 1), take("MapUnstage", 3, 1), take("MapPeek", 3, 0, 1), take("MapUnstage", 3, 2, 0), take("MapUnstage", 3, 0, 2),
             take("MapUnstageNoKey", None, 0, 1), take("MapUnstageNoKey", None, 2)]
    bad = [op("MapStage", 9, [7], values=[1.0], dtypes=list(types))]
    with tf.Session(TARGET) as s:
        out = [[error_of(lambda: s.run(step)), plain(s.run(sizes))] for step in steps]
        out += [error_of(lambda: s.run(step)) for step in bad]
        s.run(op("MapClear", dtypes=list(types)))
        return _text(plain(out + [s.run(sizes)]))


def staging_map():
    return _staging("")


def ordered_staging_map():
    return _staging("Ordered")


def staging_map_in_order():
    """Elements leave an ordered map by ascending key, also a tuple that is staged later."""
    area = {"capacity": 2, "shared_name": "bounded"}
    key = tf.placeholder(tf.int64, [])
    stage = raw.OrderedMapStage(key=key, indices=[0], values=[tf.cast(key, tf.float32)], dtypes=[tf.float32], **area)
    take = raw.OrderedMapUnstageNoKey(indices=[0], dtypes=[tf.float32], **area)
    with tf.Session(TARGET) as s:
        for k in (8, 2):
            s.run(stage, {key: k})
        out = [s.run(take)]
        s.run(stage, {key: 5})
        return plain(out + [s.run(take), s.run(take)])


def half_accumulators():
    out = []
    with tf.Session(TARGET) as s:
        for kind in ("MEAN", "SUM"):
            dense = tf.ConditionalAccumulator(tf.float16, [3], shared_name=f"d{kind}", reduction_type=kind)
            sparse = tf.SparseConditionalAccumulator(tf.float16, [4, 2], shared_name=f"s{kind}", reduction_type=kind)
            for k in range(3):
                g = np.array([0.1, 1000.5, 3], np.float16) * (k + 1)
                s.run(dense.apply_grad(g))
                s.run(sparse.apply_grad([k, 3], np.stack([g[:2], g[1:]])))
            got = s.run(sparse.take_indexed_slices_grad(2))
            out += [plain(s.run(dense.take_grad(3))), plain([got.indices, got.values])]
    return out


def sums_of_variants():
    """AddN on variants: scalars and tensor lists."""
    from tensorflow.core.framework import attr_value_pb2, tensor_pb2

    def number(n):
        value = tensor_pb2.TensorProto(dtype=tf.variant.as_datatype_enum)
        value.tensor_shape.SetInParent()
        value.variant_val.add(type_name=b"int", metadata=np.array(n, np.int32).tobytes())
        return tf.get_default_graph().create_op("Const", [], [tf.variant], attrs={
            "value": attr_value_pb2.AttrValue(tensor=value), "dtype": attr_value_pb2.AttrValue(type=value.dtype)}, name="c").outputs[0]

    total = tf.add_n([number(3), number(4), number(-9)])
    lists = [tf.raw_ops.TensorListFromTensor(tensor=tf.constant(v), element_shape=[2]) for v in ([[1., 2.], [3., 4.]], [[10., 20.], [30., 40.]])]
    both = tf.raw_ops.TensorListStack(input_handle=tf.add_n(lists), element_shape=[2], element_dtype=tf.float32)
    with tf.Session(TARGET) as s:
        s.run(total.op)
        return plain(s.run(both))


def reader_state():
    out = []
    for name in ("WholeFileReaderV2", "IdentityReaderV2", "TextLineReaderV2"):
        reader = getattr(raw, name)(shared_name=name)
        queue = raw.FIFOQueueV2(component_types=[tf.string], shared_name=f"q{name}")
        fill = raw.QueueEnqueueManyV2(handle=queue, components=[FILES])
        read = raw.ReaderReadV2(reader_handle=reader, queue_handle=queue)
        upto = raw.ReaderReadUpToV2(reader_handle=reader, queue_handle=queue, num_records=4)
        counts = [raw.ReaderNumRecordsProducedV2(reader_handle=reader), raw.ReaderNumWorkUnitsCompletedV2(reader_handle=reader)]
        save = raw.ReaderSerializeStateV2(reader_handle=reader)
        state = tf.placeholder(tf.string)
        restore = raw.ReaderRestoreStateV2(reader_handle=reader, state=state)
        with tf.Session(TARGET) as s:
            s.run(fill)
            out.append([plain(s.run(read)), plain(s.run(counts)), plain(s.run(upto)), plain(s.run(counts)), error_of(lambda: s.run(save))])
            for text in (b"\x08\x05\x10\x05\x18\x07", b"\x08\x05\x10\x04", b"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"no state", [b"", b""]):
                out.append([error_of(lambda: s.run(restore, {state: text}))[0], plain(s.run(counts))])
            s.run(raw.ReaderResetV2(reader_handle=reader))
            out.append(plain(s.run(counts)))
    return _text(out)


def record_input():
    """Batches come in random order, and each epoch has each record once."""
    for i in range(3):
        with tf.python_io.TFRecordWriter(f"{folder}/part-{i}", tf.io.TFRecordOptions(compression_type="GZIP")) as w:
            for k in range(8):
                w.write(b"%d/%d" % (i, k))
    records = raw.RecordInput(file_pattern=f"{folder}/part-*", batch_size=6, file_buffer_size=7, file_parallelism=2, compression_type="GZIP")
    none = raw.RecordInput(file_pattern=f"{folder}/absent-*")
    with tf.Session(TARGET) as s:
        epochs = [sorted(plain([r for _ in range(4) for r in plain(s.run(records))])) for _ in range(3)]
        return [epochs, error_of(lambda: s.run(none))[0]]


def old_tables():
    table = raw.MutableHashTableOfTensors(key_dtype=tf.int64, value_dtype=tf.float32, value_shape=[2], shared_name="rows")
    insert = raw.LookupTableInsert(table_handle=table, keys=np.array([1, 5]), values=np.array([[1, 2], [3, 4]], np.float32))
    find = raw.LookupTableFind(table_handle=table, keys=np.array([5, 2]), default_value=np.array([-1, -2], np.float32))
    with tf.Session(TARGET) as s:
        s.run(insert)
        return plain([s.run(find), s.run(raw.LookupTableSize(table_handle=table))])


def a_chain_of_two_hundred_maps():
    plus_one = function.Defun(tf.int64, func_name="plus_one")(lambda x: x + 1)
    d = tf.data.Dataset.range(1)._variant_tensor
    for _ in range(200):
        d = raw.MapDataset(input_dataset=d, other_arguments=[], f=plus_one, output_types=[tf.int64], output_shapes=[[]])
    with tf.Session(TARGET) as s:
        return plain(s.run(raw.DatasetToSingleElement(dataset=d, output_types=[tf.int64], output_shapes=[[]])))


def tables_with_keys_of_two():
    """Keys are vectors, as in SDCA, whose keys are example ids."""
    def table(value_shape):
        return raw.MutableDenseHashTableV2(empty_key=np.array([-1, -1]), deleted_key=np.array([-2, -2]), value_dtype=tf.float32,
                                           value_shape=value_shape, initial_num_buckets=4)

    one, rows = table([]), table([2])
    keys = np.array([[1, 2], [3, 4]])
    put = [raw.LookupTableInsertV2(table_handle=one, keys=keys, values=np.array([5, 6], np.float32)),
           raw.LookupTableInsertV2(table_handle=rows, keys=keys, values=np.array([[5, 6], [7, 8]], np.float32))]
    asked = np.array([[1, 2], [2, 1], [3, 4]])
    find = [raw.LookupTableFindV2(table_handle=one, keys=asked, default_value=np.float32(9)),
            raw.LookupTableFindV2(table_handle=rows, keys=asked, default_value=np.array([9, 9], np.float32))]
    sizes = [raw.LookupTableSizeV2(table_handle=t) for t in (one, rows)]
    remove = raw.LookupTableRemoveV2(table_handle=rows, keys=keys[:1])
    wrong = tf.placeholder(tf.int64)
    with tf.Session(TARGET) as s:
        s.run(put)
        answers = [s.run(find), s.run(sizes), s.run(remove), s.run(sizes), s.run(find)]
        saved = sorted(plain(s.run(raw.LookupTableExportV2(table_handle=rows, Tkeys=tf.int64, Tvalues=tf.float32).keys)))[-1:]
        for keys in ([1, 2, 3], [[-1, -1]], [[1]], 1):
            answers.append(error_of(lambda: s.run(raw.LookupTableFindV2(table_handle=one, keys=wrong, default_value=np.float32(9)), {wrong: keys})))
        return plain(answers + [saved])


def cardinality_of_a_dataset_doubled_sixty_times():
    d = tf.data.Dataset.range(2)._variant_tensor
    for _ in range(60):
        d = raw.ConcatenateDataset(input_dataset=d, another_dataset=d, output_types=[tf.int64], output_shapes=[[]])
    with tf.Session(TARGET) as s:
        return plain(s.run(raw.DatasetCardinality(input_dataset=d)))


def defaults_for_each_key():
    """A dense table uses only the first default value."""
    hashed = raw.MutableHashTableOfTensorsV2(key_dtype=tf.int64, value_dtype=tf.float32, value_shape=[2])
    dense = raw.MutableDenseHashTableV2(empty_key=np.int64(-1), deleted_key=np.int64(-2), value_dtype=tf.float32, value_shape=[2])
    answers = []
    with tf.Session(TARGET) as s:
        for table in (hashed, dense):
            s.run(raw.LookupTableInsertV2(table_handle=table, keys=np.int64([1]), values=np.ones([1, 2], np.float32)))
            find = raw.LookupTableFindV2(table_handle=table, keys=np.int64([5, 1, 6]), default_value=np.arange(6, dtype=np.float32).reshape(3, 2))
            answers.append(plain(s.run(find)))
    return answers


def tables_as_buckets():
    """A dense table exports TensorFlow's bucket layout, which TensorFlow's import accepts."""
    def export(keys, empty, deleted, buckets):
        keys = np.array(keys)
        dtype = tf.string if keys.dtype.kind == "U" else tf.as_dtype(keys.dtype)
        t = raw.MutableDenseHashTableV2(empty_key=tf.constant(empty, dtype), deleted_key=tf.constant(deleted, dtype), value_dtype=tf.float32, value_shape=[2],
                                        initial_num_buckets=buckets)
        values = np.arange(2.0 * len(keys), dtype=np.float32).reshape(-1, 2)
        with tf.control_dependencies([raw.LookupTableInsertV2(table_handle=t, keys=keys, values=values)]):
            return raw.LookupTableExportV2(table_handle=t, Tkeys=dtype, Tvalues=tf.float32)

    exports = [export([3, 100, -7, 2 ** 40], 0, -1, 64), export(np.array([5, -9], np.int32), 0, -1, 16), export([[1, 2], [-3, 4]], [0, 0], [-1, -1], 32),
               export(["a", "word", "nine chars and more"], "", "-", 64)]
    grown = export(range(1, 11), 0, -1, 4)
    with tf.Session(TARGET) as s:
        return plain([s.run(exports), s.run(tf.shape(grown.keys)), s.run(tf.shape(grown.values))])


def gradient_of_a_split_array():
    """The gradient array has as many elements as the split wrote, even if the array is larger now."""
    handle, flow = raw.TensorArrayV3(size=3, dtype=tf.float32, dynamic_size=True)
    flow = raw.TensorArraySplitV3(handle=handle, value=[1.0, 2.0, 3.0, 4.0], lengths=np.int64([1, 2, 1]), flow_in=flow)
    flow = raw.TensorArrayWriteV3(handle=handle, index=3, value=[5.0], flow_in=flow)
    sums, flow = raw.TensorArrayGradV3(handle=handle, flow_in=flow, source="gradient")
    flow = raw.TensorArraySplitV3(handle=sums, value=[1.0, 2.0, 3.0, 4.0, 5.0], lengths=np.int64([1, 2, 1, 1]), flow_in=flow)
    with tf.Session(TARGET) as s:
        return plain(s.run(list(raw.TensorArrayConcatV3(handle=sums, flow_in=flow, dtype=tf.float32))))


def reads_of_another_type():
    handle, flow = raw.TensorArrayV3(size=1, dtype=tf.float32)
    flow = raw.TensorArrayWriteV3(handle=handle, index=0, value=[1.0, 2.0], flow_in=flow)
    reads = [raw.TensorArrayReadV3(handle=handle, index=0, flow_in=flow, dtype=tf.float64),
             raw.TensorArrayGatherV3(handle=handle, indices=[0], flow_in=flow, dtype=tf.float64),
             raw.TensorArrayConcatV3(handle=handle, flow_in=flow, dtype=tf.float64).value]
    with tf.Session(TARGET) as s:
        return [error_of(lambda: s.run(r))[0] for r in reads]


def iterator_states_as_strings():
    it = tf.data.make_initializable_iterator(tf.data.Dataset.range(10))
    element = it.get_next()
    state = raw.SerializeTensor(tensor=raw.SerializeIterator(resource_handle=it._iterator_resource))
    saved = tf.placeholder(tf.string, [])
    restore = raw.DeserializeIterator(resource_handle=it._iterator_resource, serialized=raw.ParseTensor(serialized=saved, out_type=tf.variant))
    with tf.Session(TARGET) as s:
        s.run(it.initializer)
        before = [s.run(element) for _ in range(3)]
        text = s.run(state)
        between = [s.run(element) for _ in range(3)]
        s.run(restore, {saved: text})
        return plain([before, between, s.run(element)])


def anonymous_iterators():
    """Each step creates an iterator, which later steps find by its string handle."""
    spec = {"output_types": [tf.int64], "output_shapes": [[]]}
    made = raw.IteratorToStringHandle(resource_handle=raw.AnonymousIterator(**spec))
    text = tf.placeholder(tf.string, [])
    handle = raw.IteratorFromStringHandleV2(string_handle=text, **spec)
    init = raw.MakeIterator(dataset=tf.data.Dataset.range(10, 20)._variant_tensor, iterator=handle)
    element = raw.IteratorGetNext(iterator=handle, **spec)
    with tf.Session(TARGET) as s:
        handles = [s.run(made) for _ in range(2)]
        for h in handles:
            s.run(init, {text: h})
        answers = [s.run(element, {text: handles[i]})[0] for i in (0, 0, 1, 0, 1)]
        s.run(raw.DestroyResourceOp(resource=handle), {text: handles[0]})
        return plain([handles[0] != handles[1], answers, error_of(lambda: s.run(element, {text: handles[0]}))[0], s.run(element, {text: handles[1]})[0]])


def files_that_no_pattern_matches():
    data = raw.MatchingFilesDataset(patterns=["/nonexistent/*", folder + "/nothing*"])
    it = tf.data.make_initializable_iterator(variant_dataset(data, tf.TensorSpec([], tf.string)))
    element = it.get_next()
    with tf.Session(TARGET) as s:
        s.run(it.initializer)
        return error_of(lambda: s.run(element))[0]


def fixed_tables_by_import():
    """Table initializers of TensorFlow 1.15 are imports."""
    keys, values = tf.placeholder(tf.string, [None]), tf.placeholder(tf.int64, [None])
    table = raw.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64, shared_name="by import")
    fill = raw.LookupTableImportV2(table_handle=table, keys=keys, values=values)
    found = raw.LookupTableFindV2(table_handle=table, keys=["a", "b"], default_value=np.int64(-1))
    with tf.Session(TARGET) as s:
        answers = [error_of(lambda: s.run(fill, {keys: ["a", "a"], values: [0, 1]}))[0]]
        for _ in range(2):
            s.run(fill, {keys: ["a", "b"], values: [0, 1]})
        return plain(answers + [s.run(found)])


def tables_filled_twice():
    """A second initialization keeps the first content. It is ignored if it is a file or has as many keys as the
    table."""
    def table(name):
        return raw.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64, shared_name=name)

    def file(name, text):
        with open(f"{folder}/vocabulary", "wb") as f:
            f.write(text)
        return [error_of(lambda: s.run(raw.InitializeTableFromTextFileV2(table_handle=table(name), filename=f.name, key_index=-2, value_index=-1)))[0], name, found(name)]

    def found(name):
        return error_of(lambda: s.run(raw.LookupTableFindV2(table_handle=table(name), keys=["a", "b", "c", ""], default_value=np.int64(-1))))

    keys, values = tf.placeholder(tf.string, [None]), tf.placeholder(tf.int64, [None])
    out = []
    with tf.Session(TARGET) as s:
        for name, steps in {"pairs": ["ab", "ba", "ac", "abc", "a", "aa", "aab"], "equal": ["aa", "a"]}.items():
            for fill in (raw.InitializeTableV2, raw.LookupTableImportV2):
                op = fill(table_handle=table(name + fill.__name__), keys=keys, values=values)
                for step in steps:
                    answer = error_of(lambda: s.run(op, {keys: list(step), values: [int(c == "b") for c in step]}))
                    out.append([_text(answer), found(name + fill.__name__)])
        for text in (b"a\nb\n", b"a\n", b"c\nb\na\n"):
            out.append(file("file", text))
        for i, text in enumerate((b"a\nb\na\n", b"a\n\nb\n", b"a\n\n", b"", b"a\r\nb")):
            out.append(file(f"file {i}", text))
        return plain(out)


def resources_of_one_name():
    """Resources of different types may share a name, as may a reference and a resource variable."""
    one = {"shared_name": "one name", "container": ""}
    queue = raw.FIFOQueueV2(component_types=[tf.int32], shapes=[[]], **one)
    reference = raw.VariableV2(shape=[], dtype=tf.float32, **one)
    variable = raw.VarHandleOp(dtype=tf.float32, shape=[], **one)
    table = raw.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64, **one)
    reader = raw.TextLineReaderV2(**one)
    mutex = raw.MutexV2(**one)
    read = raw.ReadVariableOp(resource=variable, dtype=tf.float32)
    state = [reference, read, raw.QueueSizeV2(handle=queue)]
    steps = [raw.QueueEnqueueV2(handle=queue, components=[7]).name, raw.Assign(ref=reference, value=1.5), raw.AssignVariableOp(resource=variable, value=2.5).name,
             raw.InitializeTableV2(table_handle=table, keys=["a"], values=np.array([1])).name, raw.LookupTableSizeV2(table_handle=table),
             raw.ReaderNumRecordsProducedV2(reader_handle=reader), raw.ConsumeMutexLock(mutex_lock=raw.MutexLock(mutex=mutex)).name, state,
             raw.LookupTableSizeV2(table_handle=queue), raw.QueueSizeV2(handle=table), raw.ReadVariableOp(resource=queue, dtype=tf.float32),
             raw.VarIsInitializedOp(resource=queue)]
    for handle in (queue, variable, variable, table):
        steps += [raw.DestroyResourceOp(resource=handle, ignore_lookup_error=False).name, state[2], raw.VarIsInitializedOp(resource=variable)]
    steps += [raw.DestroyResourceOp(resource=variable).name, reference, raw.LookupTableSizeV2(table_handle=table)]
    with tf.Session(TARGET) as s:
        return [[kind, "" if kind.endswith("Error") else plain(what)] for kind, what in (error_of(lambda: s.run(step)) for step in steps)]


def elements_that_fail():
    """take, skip and shard after an element that fails: which elements they count."""
    def bad(x):
        return raw.CheckNumerics(tensor=tf.cond(tf.equal(x % 3, 0), lambda: np.float32("nan"), lambda: tf.cast(x, tf.float32)), message="bad")

    data, out = tf.data.Dataset.range(10).map(bad), {}
    with tf.Session(TARGET) as s:
        for name, n in (("take", 4), ("take", -1), ("skip", 4), ("skip", 1), ("skip", -1), ("shard", (3, 1)), ("shard", (2, 1)), ("shard", (4, 0))):
            element = tf.data.make_one_shot_iterator(getattr(data, name)(*np.atleast_1d(n))).get_next()
            got = [error_of(lambda: s.run(element)) for _ in range(14)]
            out[f"{name} {n}"] = [what if kind == "no error" else kind for kind, what in got]
        return out


def counts_that_are_asserted():
    out = []
    with tf.Session(TARGET) as s:
        for n in (1, 2, 5, -1):
            data = tf.data.Dataset.range(2).apply(tf.data.experimental.assert_cardinality(n))
            element = tf.data.make_one_shot_iterator(data).get_next()
            out += [_text(error_of(lambda: s.run(element))) for _ in range(3)]
    return plain(out)


def lines_with_carriage_returns():
    path, out = f"{folder}/returns", []
    with open(path, "wb") as f:
        f.write(b"a\r\r\nb\rc\r\n\r\n\rd\r")
    queue = tf.FIFOQueue(2, tf.string, shapes=[[]])
    lines = tf.TextLineReader().read_up_to(queue, 10).values
    line = tf.data.make_one_shot_iterator(tf.data.TextLineDataset(path)).get_next()
    with tf.Session(TARGET) as s:
        s.run(queue.enqueue(path))
        return plain([s.run(lines), [s.run(line) for _ in range(4)]])


def transfers_of_no_elements():
    """Enqueues and dequeues of 0 elements end at once, on a full, empty or closed queue."""
    def without_elements():
        out.extend(error_of(lambda: s.run(op, options=tf.RunOptions(timeout_in_ms=20000))) for op in (enqueue, *dequeues))

    out, limit = [], {"capacity": 1, "dtypes": tf.int64, "shapes": [[]]}
    for queue in (tf.FIFOQueue(**limit), tf.RandomShuffleQueue(min_after_dequeue=0, **limit), tf.PriorityQueue(1, tf.int64, [[]]),
                  tf.PaddingFIFOQueue(1, tf.int64, [[None]])):
        part = np.zeros(([2] if isinstance(queue, tf.PaddingFIFOQueue) else []), np.int64)
        parts = [part] * len(queue.dtypes)
        fill = queue.enqueue(parts)
        enqueue, dequeues = queue.enqueue_many([p[None][:0] for p in parts]).name, [queue.dequeue_many(0), queue.dequeue_up_to(0)]
        with tf.Session(TARGET) as s:
            without_elements()
            s.run(fill)
            waiting = threading.Thread(target=lambda: out.append(error_of(lambda: s.run(fill))[0]))
            waiting.start()
            waiting.join(0.3)
            without_elements()
            s.run(queue.close(cancel_pending_enqueues=True))
            waiting.join()
            without_elements()
            s.run(queue.dequeue())
            without_elements()
    taken = raw.BarrierTakeMany(handle=raw.Barrier(component_types=[tf.float32], shapes=[[]], shared_name="of none"), num_elements=0,
                                component_types=[tf.float32])
    with tf.Session(TARGET) as s:
        return out + plain(list(s.run([taken.indices, taken.keys, taken.values])))


def temporary_variables():
    """Each loop iteration has its own temporary variable."""
    def body(i, total):
        v = raw.TemporaryVariable(shape=[], dtype=tf.float32, var_name="of an iteration")
        v = raw.Assign(ref=v, value=tf.cast(i, tf.float32))
        for _ in range(5):
            v = raw.AssignAdd(ref=v, value=1.0)
        return i + 1, total + raw.DestroyTemporaryVariable(ref=v, var_name="of an iteration")

    steps = [tf.while_loop(lambda i, total: i < 50, body, [0, 0.0])]
    for name, destroyed in (("", ""), ("", "by node"), ("name", "other")):
        v = raw.Assign(ref=raw.TemporaryVariable(shape=[], dtype=tf.float32, var_name=name, name="by_node"), value=1.0)
        steps.append(raw.DestroyTemporaryVariable(ref=v, var_name=v.op.inputs[0].op.name if destroyed == "by node" else destroyed))
    with tf.Session(TARGET) as s:
        return plain([[kind, "" if kind.endswith("Error") else what] for kind, what in (error_of(lambda: s.run(step)) for step in steps)])


def barrier_without_shapes():
    """A barrier without shapes has scalar components."""
    b = raw.Barrier(component_types=[tf.float32], shapes=[None], shared_name="no shapes")
    with tf.control_dependencies([raw.BarrierInsertMany(handle=b, keys=["k"], values=[1.5], component_index=0)]):
        taken = raw.BarrierTakeMany(handle=b, num_elements=1, component_types=[tf.float32])
    with tf.Session(TARGET) as s:
        return plain([s.run(taken.values)])


def datasets_as_graphs():
    """DatasetToGraph: compares the nodes of the GraphDef and the functions that they call."""
    data = tf.data.Dataset
    r = data.range(4)
    some = {"map": r.map(lambda x: x + 1), "none": data.range(3), "random": r.map(lambda x: tf.random.uniform([])),
            "of datasets": r.flat_map(lambda x: data.range(x).map(lambda y: y * x)).shuffle(3).prefetch(2),
            "zip": data.zip((r, data.from_tensor_slices((["a", "b"], [1.0, 2.0])).repeat())).batch(3)}
    answers = []
    with tf.Session(TARGET) as s:
        for name, dataset in some.items():
            graph = tf.GraphDef.FromString(s.run(raw.DatasetToGraphV2(input_dataset=dataset._variant_tensor)))
            functions = {f.signature.name: sorted(n.op for n in f.node_def) for f in graph.library.function}
            answers.append([name, [[n.name, n.op, list(n.input), sorted(n.attr), functions.get(n.attr["f"].func.name, "")] for n in graph.node
                                   if n.op != "Const"], len(functions), tf.make_ndarray(graph.node[0].attr["value"].tensor)])
        strict = raw.DatasetToGraphV2(input_dataset=some["random"]._variant_tensor, external_state_policy=2)
        return plain(answers + [error_of(lambda: s.run(strict))])


def datasets_from_graphs():
    """DatasetFromGraph on another task, as distribution strategies copy their inputs, and ComputeBatchSize."""
    data = tf.data.Dataset
    r = data.range(10)
    some = [r.map(lambda x: x * x + 1).batch(4).prefetch(2), r.take(4).flat_map(lambda x: data.range(x).map(lambda y: y * 2)),
            data.zip((r.batch(3), data.from_tensors(["a"]).repeat())), r.batch(4).rebatch([1, 3])]
    batches = some + [r, r.batch(4).filter(lambda x: True).shuffle(3), r.batch(4).map(lambda x: x), data.zip((r.batch(4), r.batch(5))),
                      r.padded_batch(3, []).repeat(), r.batch(4).unbatch(), r.apply(tf.data.experimental.map_and_batch(lambda x: x, 5)).skip(1)]
    out = []
    given = tf.placeholder(tf.string, [])  # TensorFlow folds a dataset made of a constant, and cannot read the result
    with tf.Session(TARGET) as s:
        for dataset in some:
            graph = raw.DatasetToGraphV2(input_dataset=dataset._variant_tensor)
            with tf.device("/job:worker/task:0"):
                again = variant_dataset(raw.DatasetFromGraph(graph_def=given), dataset.element_spec)
                iterator = tf.data.make_initializable_iterator(again)
                element = iterator.get_next()
            s.run(iterator.initializer, {given: s.run(graph)})
            out.append(drain(s, element, 30))
        sizes = s.run([raw.ComputeBatchSize(input_dataset=d._variant_tensor) for d in batches])
        bad = [error_of(lambda: s.run(raw.DatasetFromGraph(graph_def=given).op, {given: g}))[0] for g in (b"", tf.Graph().as_graph_def().SerializeToString())]
    return plain([out, sizes, bad])


def _list_of(*rows):
    return raw.TensorListFromTensor(tensor=np.array(rows, np.float32).reshape(-1, 2), element_shape=[2])


def _rows(handle):
    return raw.TensorListStack(input_handle=handle, element_shape=[2], element_dtype=tf.float32)


def lists_of_lists():
    """Concatenates tensor lists pairwise, and pushes a row to each list of a batch."""
    a, b = tf.stack([_list_of([1, 2]), _list_of()]), tf.stack([_list_of([3, 4]), _list_of([5, 6], [7, 8])])
    wide = raw.TensorListFromTensor(tensor=np.ones((1, 3), np.float32), element_shape=[-1])
    joined = raw.TensorListConcatLists(input_a=a, input_b=b, element_dtype=tf.float32)
    pushed = raw.TensorListPushBackBatch(input_handles=joined, tensor=np.array([[9, 9], [8, 8]], np.float32))
    out = [[_rows(h) for h in tf.unstack(t, num=2)] for t in (joined, pushed, a)]
    bad = (raw.TensorListConcatLists(input_a=_list_of([1, 2]), input_b=wide, element_dtype=tf.float32),
           raw.TensorListPushBackBatch(input_handles=a, tensor=tf.placeholder_with_default(np.ones((2, 3), np.float32), None)),
           raw.TensorListPushBackBatch(input_handles=a, tensor=tf.placeholder_with_default(np.ones((3, 2), np.float32), None)))
    with tf.Session(TARGET) as s:
        return [plain(s.run(out)), [error_of(lambda: s.run(x.op))[0] for x in bad]]


def tables_from_datasets():
    """Tables that a dataset initializes, once."""
    out, data = [], tf.data.Dataset
    for pairs in (data.from_tensor_slices((["a", "b"], np.array([3, 4]))), data.range(5).map(lambda i: (tf.as_string(i), i * i)).filter(lambda k, v: v > 3),
                  data.from_tensor_slices((["a", "b"], np.array([3, 4]))).take(0), data.from_tensor_slices((["a", "a"], np.array([3, 4])))):
        table = raw.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64)
        fill = raw.InitializeTableFromDataset(table_handle=table, dataset=pairs._variant_tensor)
        find = raw.LookupTableFindV2(table_handle=table, keys=["a", "3", "b"], default_value=np.int64(-1))
        with tf.Session(TARGET) as s:
            out.append([error_of(lambda: s.run(fill)) and error_of(lambda: s.run(fill))[0], error_of(lambda: [s.run(find), s.run(raw.LookupTableSizeV2(table_handle=table))])[-1:]])
    return out


def pools_of_threads():
    """Datasets with a private thread pool, IteratorGetDevice, and FakeQueue."""
    kind, out = {"output_types": [tf.int64], "output_shapes": [[]]}, []
    for prefix, sizes in ("", (2, -1)), ("", (-1, 2)), ("", (65536, 1)), ("Experimental", (0, -2)):
        pool = getattr(raw, prefix + "ThreadPoolHandle")(num_threads=sizes[0], max_intra_op_parallelism=sizes[1], display_name="pool")
        pooled = getattr(raw, prefix + "ThreadPoolDataset")(input_dataset=tf.data.Dataset.range(3)._variant_tensor, thread_pool=pool, **kind)
        numbers = tf.data.make_initializable_iterator(variant_dataset(pooled, tf.TensorSpec([], tf.int64)))
        device = getattr(raw, prefix + "IteratorGetDevice")(resource=numbers._iterator_resource)
        with tf.Session(TARGET) as s:
            out += [error_of(lambda: s.run(numbers.initializer))[0], drain(s, numbers.get_next()), plain(s.run(device))]
    queue = tf.FIFOQueue(3, tf.int32)
    with tf.Session(TARGET) as s:
        s.run(queue.enqueue(1))
        return _text(out + [plain(s.run(raw.QueueSize(handle=raw.FakeQueue(resource=queue.queue_ref))))])


def _batches(body, *rows, apart=0.0, captured=(), **attrs):
    """Sends each row through the body in its own step, with `apart` seconds between the starts. Returns values, or
    the class of the error."""
    given = {"num_batch_threads": 2, "max_batch_size": 4, "batch_timeout_micros": 400000, "max_enqueued_batches": 10, "allowed_batch_sizes": [],
             "shared_name": f"batches{next(QUEUES)}", **attrs}
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32)
        f = function.Defun(*[tf.float32] * (1 + len(captured)))(body)
        y = raw.BatchFunction(in_tensors=[x], captured_tensors=[tf.constant(c) for c in captured], f=f, **given,
                              Tout=[tf.float32] * len(f.definition.signature.output_arg))
        out = [None] * len(rows)
        with tf.Session(TARGET) as s:
            def step(i):
                time.sleep(apart * i)
                out[i] = error_of(lambda: s.run(y, {x: rows[i]}))
            steps = [threading.Thread(target=step, args=(i,)) for i in range(len(rows))]
            for t in steps:
                t.start()
            for t in steps:
                t.join()
    return [o[1] if o[0] == "no error" else o[0] for o in out]


def batched_functions():
    """BatchFunction combines calls of several steps: sizes, padding, several outputs, errors."""
    size = lambda a: a * 0 + tf.cast(tf.shape(a)[0], tf.float32)
    one, two, three = [[1.0]], [[2.0]], [[3.0]]
    return [
        _batches(lambda a: a * 2, one), _batches(lambda a: a * 2, [[1.0], [2.0], [3.0], [4.0]], batch_timeout_micros=10**9),
        _batches(lambda a: a + tf.reduce_sum(a), one, two, max_batch_size=2, batch_timeout_micros=10**9),
        _batches(size, one, two, three, max_batch_size=3, batch_timeout_micros=10**9),
        _batches(size, one, allowed_batch_sizes=[2, 4]), _batches(size, [[1.0]] * 3, allowed_batch_sizes=[2, 4]),
        _batches(lambda a: a * 0 + tf.reduce_sum(a), three, allowed_batch_sizes=[4]),
        _batches(lambda a, c: [a * c, -a], [[1.0], [5.0]], captured=[3.0]), _batches(lambda a: a * 2, np.zeros([0, 2])),
        _batches(lambda a: a * 2, one, two, three, batch_timeout_micros=0, apart=0.1),
        _batches(lambda a: tf.concat([a, a], 0), one), _batches(lambda a: tf.reduce_sum(a), one), _batches(lambda a: a, 1.0),
        _batches(lambda a: tf.check_numerics(a, "bad"), one, [[np.nan]], max_batch_size=2, batch_timeout_micros=10**9),
        _batches(lambda a: a, [[1.0]] * 5), _batches(lambda a: a, one, [[2.0, 3.0]], max_batch_size=2, batch_timeout_micros=10**9),
        _batches(lambda a: a, one, allowed_batch_sizes=[3, 2, 4]), _batches(lambda a: a, one, allowed_batch_sizes=[2, 3]),
        _batches(lambda a: a, one, max_batch_size=0), _batches(lambda a: a, one, batch_timeout_micros=-1)]


def _map(*pairs):
    handle = raw.EmptyTensorMap()
    for k, v in pairs:
        handle = raw.TensorMapInsert(input_handle=handle, key=k, value=v)
    return handle


def tensor_maps():
    """Tensor maps: replaced values, shared maps, keys of several types, errors, sums and gradients."""
    def look(m, k, t=tf.float32):
        return raw.TensorMapLookup(input_handle=m, key=k, value_dtype=t)

    def erase(m, k):
        return raw.TensorMapErase(input_handle=m, key=k, value_dtype=tf.float32)

    one = _map((1.0, [2.0, 3.0]))
    mixed = _map((1.0, [2.0, 3.0]), ([1, 2], "text"), ("key", 7), (1.0, [5.0, 6.0]), (["key"], 8), (np.int64(1), 9))
    size = lambda m: raw.TensorMapSize(input_handle=m)
    has = lambda m, k: raw.TensorMapHasKey(input_handle=m, key=k)
    keys = [raw.TensorMapStackKeys(input_handle=_map(("b", 1), ("a", 2), ("b", 3)), key_dtype=tf.string),
            raw.TensorMapStackKeys(input_handle=_map(([1.0, 2.0], 1), ([0.5, 2.0], 2)), key_dtype=tf.float32)]
    total = raw.AddN(inputs=[_map((1, [1.0, 2.0]), (2, [5.0])), _map((1, [10.0, 20.0]), (3, [7.0]))])
    x = tf.constant([1.0, 2.0])
    through = look(raw.TensorMapInsert(input_handle=one, key=2.0, value=x), 2.0) * 3
    values = [size(raw.EmptyTensorMap()), size(one), size(mixed), size(erase(mixed, 1.0)), look(mixed, 1.0), look(one, 1.0), look(mixed, [1, 2], tf.string),
              look(mixed, "key", tf.int32), look(mixed, ["key"], tf.int32), look(mixed, np.int64(1), tf.int32), has(mixed, 1.0), has(mixed, 2.0),
              has(mixed, [1.0]), has(mixed, np.float64(1)), has(erase(mixed, 1.0), 1.0), size(total), look(total, 1), look(total, 2), look(total, 3),
              size(_map(("", 1), (tf.constant([], tf.string), 2))), size(raw.ZerosLike(x=mixed)), tf.gradients(through, x)[0]]
    bad = [look(one, 2.0), look(one, "no"), erase(one, [1.0]), raw.TensorMapStackKeys(input_handle=raw.EmptyTensorMap(), key_dtype=tf.string),
           raw.TensorMapStackKeys(input_handle=mixed, key_dtype=tf.float32), raw.TensorMapStackKeys(input_handle=_map((1.0, 1), ([2.0], 2)), key_dtype=tf.float32),
           size(_list_of([1, 2])), raw.TensorMapSize(input_handle=tf.stack([one, one])),
           raw.AddN(inputs=[_map((1, [1.0])), _map((1, [1.0, 2.0]))])]
    with tf.Session(TARGET) as s:
        return [plain(s.run(values)), [sorted(plain(k)) for k in s.run(keys)], [error_of(lambda: s.run(x.op))[0] for x in bad]]


def _at_once(steps):
    """Runs the steps at the same time, and returns their results."""
    out = [None] * len(steps)

    def step(i):
        out[i] = error_of(steps[i])
    threads = [threading.Thread(target=step, args=(i,)) for i in range(len(steps))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return [o[1] if o[0] == "no error" else o[0] for o in out]


def rows_batched_and_given_back():
    """Batch and Unbatch join and split the rows of several steps; compares results and gradients."""
    out = []
    for n, sizes in ((1, []), (3, []), (3, [4])):
        x, weight = tf.placeholder(tf.float32, [None, 2]), tf.constant([[1.0, 2.0], [3.0, 4.0]])
        (joined,), index, key = raw.Batch(in_tensors=[x], num_batch_threads=1, max_batch_size=sizes[-1] if sizes else n, batch_timeout_micros=300000,
                                          grad_timeout_micros=10**8, allowed_batch_sizes=sizes, shared_name=f"batch{next(QUEUES)}")
        y = raw.Unbatch(batched_tensor=tf.matmul(joined, weight), batch_index=index, id=key, timeout_micros=10**8, shared_name=f"unbatch{next(QUEUES)}")
        with tf.Session(TARGET) as s:
            out.append(_at_once([lambda i=i: s.run([y, tf.shape(key), tf.shape(index)[1:]], {x: [[i, 1.0]]}) for i in range(n)]))
    x, shared = tf.placeholder(tf.float32, [None, 1]), {"shared_name": f"gradient{next(QUEUES)}"}
    (joined,), index, key = raw.Batch(in_tensors=[x], num_batch_threads=1, max_batch_size=3, batch_timeout_micros=10**8, grad_timeout_micros=10**8)
    y = raw.Unbatch(batched_tensor=joined * joined, batch_index=index, id=key, timeout_micros=10**8)
    back = raw.UnbatchGrad(original_input=joined, batch_index=index, grad=tf.ones_like(y), id=key)
    gradient = raw.Unbatch(batched_tensor=2 * joined * back, batch_index=index, id=key, timeout_micros=10**8)
    with tf.Session(TARGET) as s:
        out.append(_at_once([lambda i=i: s.run([y, gradient], {x: [[i + 1.0]]}) for i in range(3)]))
    rows, index, key = tf.placeholder(tf.float32), tf.placeholder(tf.int64), tf.placeholder(tf.int64)
    back = raw.Unbatch(batched_tensor=rows, batch_index=index, id=key, timeout_micros=200000, shared_name=f"unbatch{next(QUEUES)}")
    grad = raw.UnbatchGrad(original_input=rows, batch_index=index, grad=rows, id=key, **shared)
    none = np.zeros([0, 3], np.int64)
    with tf.Session(TARGET) as s:
        for r, i, k in (([[1.0]], none, 1), ([[1.0], [2.0]], [[1, 0, 1], [2, 1, 2]], 1), ([[7.0]], none, 2), ([[7.0]], [[1, 0, 1], [2, 1, 2]], 1),
                        ([[7.0]], [[1, 0]], 1), ([[7.0], [8.0]], [[1, 0, 2], [5, 0, 1]], 1), ([[7.0]], none, [1])):
            out.append(error_of(lambda: s.run(back, {rows: r, index: i, key: k})))
        for r, i, k in (([[1.0]], none, 1), (np.zeros([0, 2]), none, 3), (np.zeros([0, 2]), none, 3), ([[2.0]], [[4, 0, 1]], 4), ([[2.0]], [[5, 0, 1], [5, 1, 2]], 5)):
            out.append(error_of(lambda: s.run(grad, {rows: r, index: i, key: k})))
    return plain([o if o[0] == "no error" or isinstance(o[0], list) else o[0] for o in out])


def rows_through_functions():
    """MapDefun calls a function on each row of its arguments."""
    def mapped(body, args, captured=(), types=(tf.float32,), shapes=((),)):
        types_in = [tf.as_dtype(np.asarray(a).dtype) if not isinstance(a, tf.Tensor) else a.dtype for a in [*args, *captured]]
        f = function.Defun(*types_in)(body)
        return raw.MapDefun(arguments=args, captured_inputs=captured, output_types=types, output_shapes=shapes, f=f)

    rows, any_shape = np.arange(6, dtype=np.float32).reshape(3, 2), tf.TensorShape(None)
    hidden = tf.placeholder_with_default(rows, None)
    calls = [
        mapped(lambda a: tf.reduce_sum(a), [rows]), mapped(lambda a, b: a * b, [rows], [np.float32([10, 100])], shapes=([2],)),
        mapped(lambda a, b: (tf.as_string(b), tf.fill([2, 1], a[0])), [rows, np.int32([4, 5, 6])], types=(tf.string, tf.float32), shapes=((), [None, 1])),
        mapped(lambda a: a, [rows[:0]], shapes=([2],)), mapped(lambda a: a + 1, [rows], shapes=(any_shape,)),
        mapped(lambda a: tf.range(tf.cast(a, tf.int32)), [np.float32([2, 2])], types=(tf.int32,), shapes=([None],))]
    bad = [
        mapped(lambda a: tf.range(tf.cast(a, tf.int32)), [np.float32([1, 2])], types=(tf.int32,), shapes=([None],)),
        mapped(lambda a: a, [hidden], shapes=([3],)), mapped(lambda a, b: b, [hidden, tf.placeholder_with_default(np.float32([1, 2]), None)]),
        mapped(lambda a: a, [tf.placeholder_with_default(np.float32(1), None)]),
        mapped(lambda a: tf.check_numerics(a / (a - 2), "bad"), [rows], shapes=([2],))]
    with tf.Session(TARGET) as s:
        return [plain(s.run(calls)), [error_of(lambda: s.run(x[0].op))[0] for x in bad], [x[0].shape.as_list() if x[0].shape.rank is not None else None for x in calls]]


def rare_datasets():
    """ListDataset, WindowOp, ChooseFastestDataset, AssertPrevDataset and GetElementAtIndex."""
    data, out = tf.data.Dataset, []
    pairs = {"output_types": [tf.int32, tf.string], "output_shapes": [[], []]}
    pair_specs = (tf.TensorSpec([], tf.int32), tf.TensorSpec([], tf.string))
    first = tf.placeholder(tf.int32, [])  # stock constant-folds a window of constants, and fails
    number, numbers = tf.TensorSpec([], tf.int64), {"output_types": [tf.int64], "output_shapes": [[]]}
    ranges = [data.range(4)._variant_tensor, data.range(2).concatenate(data.range(2, 4))._variant_tensor]
    made = [(raw.ListDataset(tensors=[1, "a", 2, "b"], **pairs), pair_specs), (raw.WindowOp(inputs=[first, "a", 2, "b", 3, "c"], **pairs), pair_specs),
            (raw.ChooseFastestDataset(input_datasets=ranges, num_experiments=2, **numbers), number),
            (raw.ExperimentalChooseFastestDataset(input_datasets=ranges, num_experiments=1, **numbers), number),
            (raw.ChooseFastestDataset(input_datasets=[ranges[0], data.range(3)._variant_tensor], num_experiments=2, **numbers), number),
            (raw.AssertPrevDataset(input_dataset=ranges[0], transformations=tf.constant([], tf.string), **numbers), number)]
    for variant, specs in made:
        iterator = tf.data.make_initializable_iterator(variant_dataset(variant, specs))
        with tf.Session(TARGET) as s:
            start = error_of(lambda: s.run(iterator.initializer, {first: 1}))[0]
            out.append([start, drain(s, iterator.get_next()) if start == "no error" else None])
    at = [raw.GetElementAtIndex(dataset=d._variant_tensor, index=np.int64(i), output_types=[tf.int64], output_shapes=[[]])
          for d, i in ((data.range(5), 3), (data.range(5), 5), (data.range(5), -1), (data.range(9).map(lambda x: x * x).skip(2), 1), (data.range(2).repeat(), 1),
                       (data.range(4).take(2).repeat(2), 3), (data.range(9).batch(2), 1))]
    with tf.Session(TARGET) as s:
        return plain([out, [error_of(lambda: plain(s.run(x)))[:2 if i in (0, 5) else 1] for i, x in enumerate(at)]])


def approximate_top_k():
    """ApproxTopK returns the largest elements of each row, which a CPU finds exactly."""
    x = np.float32([[3, 1, 2, 5, 4], [7, 9, 8, 6, 9]])
    calls = [raw.ApproxTopK(input=x, k=k, **more) for k in (0, 1, 3) for more in ({}, {"aggregate_to_topk": False}, {"recall_target": 0.5})]
    with tf.Session(TARGET) as s:
        return plain(s.run([list(c) for c in calls + [tf.math.approx_max_k(x.astype(np.float16), 2)]]))


def tuples_as_variants():
    """Composite tensors and compressed elements as variants."""
    parts = [tf.constant([1.0, 2.0]), tf.constant("a"), tf.constant([[1], [2]])]
    types = [p.dtype for p in parts]
    class_of = lambda n: bytes([0x0a, 2, 8, n])
    packed = raw.CompressElement(components=parts)
    composite = raw.CompositeTensorVariantFromComponents(components=parts, metadata=class_of(3))
    open_up = lambda v, t, metadata=class_of(3): raw.CompositeTensorVariantToComponents(encoded=v, metadata=metadata, Tcomponents=t)
    unpack = lambda v, t: raw.UncompressElement(compressed=v, output_types=t, output_shapes=[None] * len(t))
    good = [unpack(packed, types), open_up(composite, types)]
    bad = [unpack(packed, types[:2]), unpack(packed, types[::-1]), unpack(composite, types), open_up(composite, types[:1]), open_up(composite, types[::-1]),
           open_up(composite, types, class_of(4)), open_up(composite, types, b"\x0a\x09"), open_up(packed, types)]
    with tf.Session(TARGET) as s:
        return plain([s.run(good), [error_of(lambda: s.run(x))[0] for x in bad], error_of(lambda: s.run(raw.SyncDevice()))])


def values_of_other_types():
    """A node declares another type than its queue or stack has."""
    raw, out = tf.raw_ops, []
    queue = raw.FIFOQueueV2(component_types=[tf.float64])
    stack = raw.StackV2(max_size=-1, elem_type=tf.float32)
    cases = [(raw.QueueEnqueueV2(handle=queue, components=[tf.constant(1.5, tf.float64)]), lambda: raw.QueueDequeueV2(handle=queue, component_types=[tf.string])[0]),
             (raw.StackPushV2(handle=stack, elem=tf.constant(1.5)), lambda: raw.StackPopV2(handle=stack, elem_type=tf.string))]
    for fill, take in cases:
        with tf.control_dependencies([fill]):
            value = tf.identity(take())
        with tf.Session(TARGET) as s:
            out.append(error_of(lambda: s.run(value))[0])
    return out


def queue_of_many_components():
    queue = tf.FIFOQueue(3, [tf.int32] * 100, shapes=[[]] * 100)
    with tf.control_dependencies([queue.enqueue(list(range(100)))]):
        row = queue.dequeue()
    with tf.Session(TARGET) as s:
        return plain(s.run(row))


def staging_map_out_of_order():
    keys, out = [5, -3, 9, 0, 7, 2, 8, 1], []
    raw = tf.raw_ops
    key = tf.placeholder(tf.int64, [])
    put = raw.OrderedMapStage(key=key, indices=[0], values=[key * 2], dtypes=[tf.int64], shared_name="m")
    take = raw.OrderedMapUnstageNoKey(indices=[0], dtypes=[tf.int64], shared_name="m")
    take_key = raw.OrderedMapUnstage(key=key, indices=[0], dtypes=[tf.int64], shared_name="m")
    with tf.Session(TARGET) as s:
        for k in keys:
            s.run(put, {key: k})
        out.append(plain(s.run(take_key, {key: 7})))
        out += [plain(s.run(take)) for _ in range(3)]
        s.run(put, {key: -9})
        return out + [plain(s.run(take)) for _ in range(5)]


if __name__ == "__main__":
    answer_each(forget)
