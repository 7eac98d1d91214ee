# SPDX-License-Identifier: Apache-2.0
"""Resources that store tensors between ops: tensor arrays and stacks of loops, queues, tables, sparse accumulators."""
import tempfile

import numpy as np

from common import TARGET, answer, tf


def loops():
    """A small RNN and its gradient: writes and reads tensor arrays, and accumulates their gradients."""
    x = tf.constant(np.linspace(-1, 1, 12).reshape(4, 3), tf.float32)
    w = tf.Variable(np.eye(3), dtype=tf.float32)
    rows = tf.TensorArray(tf.float32, 4).unstack(x)
    seen = tf.TensorArray(tf.float32, 0, dynamic_size=True, clear_after_read=False)

    def body(i, h, out):
        h = tf.tanh(tf.matmul(h, w) + tf.expand_dims(rows.read(i), 0))
        return i + 1, h, out.write(i, h)
    n, h, out = tf.while_loop(lambda i, h, out: i < 4, body, [0, tf.zeros([1, 3]), seen])
    row = tf.placeholder_with_default(x[:1], [None, 3])
    short = tf.TensorArray(tf.float32, 4).write(0, row * 2).write(2, row).stack()  # elements without a write read as zeros
    return [short, tf.gradients(short, row)[0],
            n, h, out.stack(), out.concat(), out.size(), tf.gradients(tf.reduce_sum(out.stack()), w)[0],
            tf.gradients(h, [w, x])]


def gradient_arrays():
    """Accumulating gradient arrays, also with an element shape that has extra leading dimensions (shape_to_prepend)."""
    out = []
    for shape, known in (([3], True), ([], True), ([2, 2], True), ([3], False)):
        handle, flow = tf.raw_ops.TensorArrayV3(size=3, dtype=tf.float32, element_shape=[2] if known else None, clear_after_read=False)
        flow = tf.raw_ops.TensorArrayWriteV3(handle=handle, index=0, value=[1.0, 2.0], flow_in=flow)
        sums, flow = tf.raw_ops.TensorArrayGradWithShape(handle=handle, flow_in=flow, shape_to_prepend=np.array(shape, np.int32),
                                                         source="several")
        ones = np.ones(shape + [2], np.float32)
        flow = tf.raw_ops.TensorArrayWriteV3(handle=sums, index=0, value=ones, flow_in=flow)
        flow = tf.raw_ops.TensorArrayWriteV3(handle=sums, index=0, value=2 * ones, flow_in=flow)
        again, flow = tf.raw_ops.TensorArrayGradWithShape(handle=handle, flow_in=flow, shape_to_prepend=np.array(shape, np.int32),
                                                          source="several")
        out += [tf.raw_ops.TensorArrayReadV3(handle=again, index=i, flow_in=flow, dtype=tf.float32) for i in range(2 if known else 1)]
        out.append(tf.raw_ops.TensorArraySizeV3(handle=again, flow_in=flow))
    return out


def tables():
    fixed = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(["a", "b", "c"], tf.constant([1, 2, 3], tf.int64)), -1)
    ints = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(tf.constant([5, 7], tf.int64), ["five", "seven"]), "?")
    table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, [0.5, 0.5])
    keys = tf.constant([3, 1, 3], tf.int64)
    put = table.insert(keys, tf.reshape(tf.range(6.0), [3, 2]))
    with tf.control_dependencies([put]):
        found = table.lookup(tf.constant([[1, 2], [3, 4]], tf.int64))
    with tf.control_dependencies([found]):
        drop = table.remove(tf.constant([3, 9], tf.int64))
    with tf.control_dependencies([drop]):
        left = list(table.export()) + [table.size()]
    return [fixed.lookup(tf.constant(["c", "x", "a"])), fixed.size(),
            ints.lookup(tf.constant([7, 6], tf.int64)), found, left]


def vocabularies():
    with tempfile.NamedTemporaryFile("w", prefix="muster-", suffix=".tsv", delete=False) as f:
        f.write("red\t3\t0.5\ngreen\t4\t1.5\r\nblue\t-1\t2e3")
    line, number, where = tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER, tf.constant(["blue", "red", "x", "green\t4\t1.5"])
    def lookup(keys, key_type, key, value_type, value, other, **more):
        return tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(f.name, key_type, key, value_type, value, **more), other).lookup(keys)
    return [lookup(where, tf.string, 0, tf.int64, number, -1), lookup(where, tf.string, line, tf.int64, number, -1),
            lookup(where, tf.string, 0, tf.int64, 1, -9, vocab_size=2), lookup(where, tf.string, 0, tf.float32, 2, 0.0),
            lookup(tf.constant([0, 2, 5], tf.int64), tf.int64, number, tf.string, line, "?"),
            lookup(tf.constant([0, 2, 4], tf.int64), tf.int64, 1, tf.string, 0, "?")]


def accumulator():
    acc = tf.SparseConditionalAccumulator(tf.float32, shape=[6, 2], shared_name="acc")
    ones = acc.apply_grad([0, 4], [[1.0, 2.0], [3.0, 4.0]], [6, 2])
    twos = acc.apply_grad([4, 5], [[10.0, 10.0], [7.0, 7.0]], [6, 2])
    with tf.control_dependencies([ones, twos]):
        count = acc.num_accumulated()
    with tf.control_dependencies([count]):
        taken = acc.take_grad(2)
    with tf.control_dependencies(list(taken)):
        later = acc.set_global_step(5)
        with tf.control_dependencies([later]):
            stale = acc.apply_grad([0], [[1.0, 1.0]], [6, 2], 3)
        with tf.control_dependencies([stale]):
            none = acc.num_accumulated()
    return [count, list(taken), none]


def priorities():
    """A PriorityQueue returns the smallest key first, whatever the order of insertion."""
    queue = tf.PriorityQueue(20, [tf.string, tf.float32], [[], [2]], shared_name="priorities")
    numbers = tf.constant([7, -3, 12, 0, 5, 9223372036854775807, -9223372036854775808, 4, 3, 11], tf.int64)
    many = queue.enqueue_many([numbers, tf.as_string(numbers), tf.reshape(tf.range(20.0), [10, 2])])
    with tf.control_dependencies([many]):
        first = queue.dequeue()
    with tf.control_dependencies(first):
        one = queue.enqueue([tf.constant(1, tf.int64), "one", [0.5, 0.5]])
    with tf.control_dependencies([one]):
        some = queue.dequeue_many(4)
    with tf.control_dependencies(some):
        closed = queue.close()
    with tf.control_dependencies([closed]):
        rest = queue.dequeue_many(6)
    with tf.control_dependencies(rest):
        left = queue.size()
    return [first, some, rest, left]


def stacks():
    """The first stack ops, whose handles are references."""
    from tensorflow.python.ops import gen_data_flow_ops as ops
    stack = ops._stack(tf.float32)
    with tf.control_dependencies([ops.stack_push(stack, [1.0, 2.0])]):
        second = ops.stack_push(stack, 3.0)
    with tf.control_dependencies([second]):
        top = ops.stack_pop(stack, tf.float32)
    with tf.control_dependencies([top]):
        rest = ops.stack_pop(stack, tf.float32)
    with tf.control_dependencies([rest]):
        ops.stack_close(stack)
    return [second, top, rest]


def barriers():
    """A barrier with two components; one key never gets its second component."""
    from tensorflow.python.ops import data_flow_ops
    b = data_flow_ops.Barrier([tf.float32, tf.string], shapes=[[2], []], shared_name="barrier")
    one = b.insert_many(0, ["a", "b", "c"], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with tf.control_dependencies([one]):
        sizes = [b.incomplete_size(), b.ready_size()]
    with tf.control_dependencies(sizes):
        two = b.insert_many(1, ["c"], ["see"])
    with tf.control_dependencies([two]):
        three = b.insert_many(1, ["a"], ["ay"])
    with tf.control_dependencies([three]):
        later = [b.incomplete_size(), b.ready_size()]
    with tf.control_dependencies(later):
        one_of_them = b.take_many(2)
    with tf.control_dependencies(one_of_them[0:2]):
        closed = b.close()
    with tf.control_dependencies([closed]):
        last = b.insert_many(1, ["b"], ["bee"])
    with tf.control_dependencies([last]):
        few = b.take_many(5, allow_small_batch=True)
    order = tf.argsort(tf.strings.to_hash_bucket_fast(one_of_them[1], 1000))
    return [sizes, later, one_of_them[0], [tf.gather(t, order) for t in [one_of_them[1]] + one_of_them[2]], few[0], few[1], few[2]]


def stages():
    from tensorflow.python.ops import data_flow_ops
    area = data_flow_ops.StagingArea([tf.int32, tf.float32], shared_name="area", capacity=2)

    def put(number, reals):
        return area.put([tf.constant(number), tf.constant(reals)])
    first = put(1, [0.5, 1.5])
    with tf.control_dependencies([first]):
        second = put(2, [2.5])
    with tf.control_dependencies([second]):
        look, size = area.peek(1), area.size()
    with tf.control_dependencies(look + [size]):
        took = area.get()
    with tf.control_dependencies(took):
        third = put(3, [3.5, 4.5, 5.5])
    with tf.control_dependencies([third]):
        rest = area.get()
    with tf.control_dependencies(rest):
        gone = area.clear()
    with tf.control_dependencies([gone]):
        none = area.size()
    return [look, size, took, rest, none]


def dense_tables():
    from tensorflow.python.ops import gen_lookup_ops
    t = tf.lookup.experimental.DenseHashTable(tf.int64, tf.float32, [-1.0, -2.0], tf.constant(0, tf.int64), tf.constant(-1, tf.int64), initial_num_buckets=4)
    keys = tf.constant([3, 1, 8, 3, 700], tf.int64)
    with tf.control_dependencies([t.insert(keys, tf.reshape(tf.range(10.0), [5, 2]))]):
        found = t.lookup(tf.constant([1, 2, 3, 700], tf.int64))
    with tf.control_dependencies([found]):
        size = t.size()
    with tf.control_dependencies([size]):
        drop = t.erase(tf.constant([8, 9], tf.int64))
    with tf.control_dependencies([drop]):
        names, values = t.export()
        copy = tf.lookup.experimental.DenseHashTable(tf.int64, tf.float32, [-1.0, -2.0], tf.constant(0, tf.int64), tf.constant(-1, tf.int64), initial_num_buckets=4)
        moved = gen_lookup_ops.lookup_table_import_v2(copy.resource_handle, names, values)
        kept = tf.squeeze(tf.where(names[:, 0] > 0), 1)  # stock also exports empty buckets
        order = tf.gather(kept, tf.argsort(tf.gather(names[:, 0], kept)))
        left = [tf.gather(names, order), tf.gather(values, order), t.size()]
    with tf.control_dependencies([moved]):
        left += [copy.lookup(keys), copy.size()]
    return [found, size, left]


def refusals():
    """Invalid calls on each kind of resource."""
    from tensorflow.python.ops import data_flow_ops
    t = tf.lookup.experimental.DenseHashTable(tf.string, tf.int64, 0, "", "-")
    b = data_flow_ops.Barrier([tf.float32], shapes=[[]], shared_name="refusing")
    area = data_flow_ops.StagingArea([tf.int32], shared_name="small", memory_limit=8)
    twice = b.insert_many(0, ["k", "k"], [1.0, 2.0])
    shut = b.close()
    with tf.control_dependencies([shut]):
        after = b.insert_many(0, ["new"], [1.0])
    with tf.control_dependencies([b.close()]):
        empty = b.take_many(1)
    return [t.lookup(["a", ""]), t.insert(["-"], [1]), twice, after, empty[0], area.put([tf.constant([1, 2, 3])])]


def plain(v):
    if isinstance(v, (list, tuple)):
        return [plain(x) for x in v]
    v = np.asarray(v)
    return v.astype(str).tolist() if v.dtype.kind in "OS" else v.tolist()


with tf.device("/job:ps/task:0"):
    ops = {"loops": loops(), "gradient_arrays": gradient_arrays(), "tables": tables(), "vocabularies": vocabularies(), "accumulator": accumulator(), "priorities": priorities(), "stacks": stacks(),
           "barriers": barriers(), "stages": stages(), "dense": dense_tables()}
    refused = refusals()
    init = [tf.global_variables_initializer(), tf.tables_initializer()]
out = {}
with tf.Session(TARGET) as sess:
    sess.run(init)
    for name, op in ops.items():
        out[name] = plain(sess.run(op, options=tf.RunOptions(timeout_in_ms=200000)))
    out["refused"] = []
    for op in refused:
        try:
            out["refused"].append(plain(sess.run(op, options=tf.RunOptions(timeout_in_ms=20000))))
        except tf.errors.OpError as e:
            out["refused"].append(type(e).__name__)
    try:
        sess.run(tf.Assert(tf.constant(False), [tf.constant([1, 2])]))
    except tf.errors.InvalidArgumentError as e:
        out["assert"] = e.message.split("\n")[0]
tf.Session.reset(TARGET)
answer(out)
