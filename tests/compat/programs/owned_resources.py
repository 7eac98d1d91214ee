# SPDX-License-Identifier: Apache-2.0
"""Anonymous resources: the server deletes them with their last handle."""
from common import TARGET, answer_each, error_of, np, plain, tf

raw = tf.raw_ops
SPEC = {"output_types": [tf.int64], "output_shapes": [[]]}


def _squares():
    return tf.data.Dataset.range(6).map(lambda x: x * x)


def loop_over_a_dataset_in_a_function():
    @tf.function
    def total(first):
        for x in _squares():
            first += x
        return first

    with tf.Session(TARGET) as s:
        value = total(tf.constant(1, tf.int64))
        return plain([s.run(value) for _ in range(3)])


def iterator_in_a_function():
    """Each call creates its own iterator."""
    @tf.function
    def some():
        it = iter(_squares())
        values = [next(it), next(it)]
        optional = it.get_next_as_optional()
        return values, optional.has_value(), optional.get_value()

    with tf.Session(TARGET) as s:
        value = some()
        return plain([s.run(value) for _ in range(2)])


def iterator_with_a_deleter():
    it = raw.AnonymousIteratorV2(**SPEC)
    with tf.control_dependencies([raw.MakeIterator(dataset=tf.data.Dataset.range(3, 9)._variant_tensor, iterator=it.handle)]):
        first = raw.IteratorGetNext(iterator=it.handle, **SPEC)[0]
    with tf.control_dependencies([first]):
        delete = raw.DeleteIterator(handle=it.handle, deleter=it.deleter)
    with tf.control_dependencies([delete]):
        second = raw.IteratorGetNext(iterator=it.handle, **SPEC)[0]
    with tf.Session(TARGET) as s:
        return plain([s.run([first, delete, second]) for _ in range(2)])


def iterator_of_an_earlier_step():
    """The string handle of an anonymous iterator does not keep it alive."""
    name = tf.placeholder(tf.string, [])
    element = raw.IteratorGetNext(iterator=raw.IteratorFromStringHandleV2(string_handle=name, **SPEC), **SPEC)
    out = []
    with tf.Session(TARGET) as s:
        for make in (lambda: raw.AnonymousIteratorV2(**SPEC).handle, lambda: raw.AnonymousIteratorV3(**SPEC)):
            out.append(error_of(lambda: s.run(raw.IteratorGetNext(iterator=make(), **SPEC)))[0])
            text = s.run(raw.IteratorToStringHandle(resource_handle=make()))
            out.append(error_of(lambda: s.run(element, {name: text}))[0])
            out.append(error_of(lambda: s.run(raw.DestroyResourceOp(resource=make(), ignore_lookup_error=False)))[0])
    return out


def iterators_of_several_devices():
    with tf.device("/job:worker/task:0/device:CPU:0"):
        devices = {"devices": ["/job:worker/task:0/device:CPU:0"] * 2, **SPEC}
        plain_one = raw.AnonymousMultiDeviceIteratorV3(**devices)
        other = raw.AnonymousMultiDeviceIterator(**devices)
        out = []
        for handle in (plain_one, other.handle):
            round_ = raw.MultiDeviceIteratorInit(dataset=_squares()._variant_tensor, multi_device_iterator=handle, max_buffer_size=1)
            got = [raw.MultiDeviceIteratorGetNextFromShard(multi_device_iterator=handle, shard_num=i, incarnation_id=round_, **SPEC)[0] for i in (1, 0)]
            out.append(got)
        with tf.control_dependencies(out[1]):
            delete = raw.DeleteMultiDeviceIterator(multi_device_iterator=other.handle, iterators=[plain_one], deleter=other.deleter)
        with tf.Session(TARGET) as s:
            return plain(s.run([out, delete]))


def tables():
    """Each step creates its own tables."""
    types = {"key_dtype": tf.int64, "value_dtype": tf.float32}
    keys, out = tf.constant([1, 2], tf.int64), []
    fixed = raw.AnonymousHashTable(**types)
    tables = [raw.AnonymousMutableHashTable(**types), raw.AnonymousMutableHashTableOfTensors(**types, value_shape=[2]),
              raw.AnonymousMutableDenseHashTable(empty_key=np.int64(-1), deleted_key=np.int64(-2), value_dtype=tf.float32, value_shape=[2])]
    fills = [raw.InitializeTableV2(table_handle=fixed, keys=keys, values=[3.0, 4.0])]
    for i, table in enumerate(tables):
        fills.append(raw.LookupTableInsertV2(table_handle=table, keys=keys, values=[[3.0, 4.0], [5.0, 6.0]] if i else [3.0, 4.0]))
    with tf.control_dependencies(fills):
        for i, table in enumerate([fixed, *tables]):
            found = raw.LookupTableFindV2(table_handle=table, keys=np.int64([2, 7]), default_value=[9.0, 9.0] if i > 1 else 9.0)
            out.append([found, raw.LookupTableSizeV2(table_handle=table)])
    empty = [raw.LookupTableSizeV2(table_handle=t) for t in [fixed, *tables]]
    with tf.Session(TARGET) as s:
        return plain([s.run(out), s.run(out), s.run(empty), [str(found.shape) for found, _ in out]])


answer_each()
