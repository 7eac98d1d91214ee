# SPDX-License-Identifier: Apache-2.0
"""Graph constructs besides plain operations: datasets, random numbers, training, tables, sparse tensors, strings.

A maker takes a graph_draw.Drawn and the existing tensors, and returns a new float tensor.
"""
import tensorflow.compat.v1 as tf
from tensorflow.python.ops import data_flow_ops


def scalar(d, pool):
    return tf.tanh(tf.reduce_sum(d.rng.choice(pool)))


def in_order(d, make):
    """Makes an op that runs after the previous use of the state, and records it as the latest use."""
    with d.after():
        x = make()
    d.updates.append(x if isinstance(x, tf.Operation) else x.op)
    return x


def new_variable(d, shape):
    return tf.Variable(d.value(shape), use_resource=d.v2 or d.rng.random() < 0.5)


def indices(d, shape, end):
    """Feeds row indices; in one of twenty draws some may be out of range."""
    end += 9 * (d.rng.random() < 0.05)
    return d.feed(tf.placeholder(tf.int32, shape), [d.np.randint(0, end, shape) for _ in range(d.steps)])


# ---- numbers ----
def random_numbers(d, pool):
    seed, shape, x = d.rng.randrange(1 << 20), d.rng.choice([(), (3,), (2, 3)]), d.rng.choice(pool)
    return d.rng.choice([
        lambda: tf.random_uniform(shape, -1, 1, seed=seed), lambda: tf.random_normal(shape, seed=seed),
        lambda: tf.truncated_normal(shape, seed=seed), lambda: tf.random.stateless_uniform(shape, [seed, 1]),
        lambda: tf.random.stateless_normal(shape, [1, seed]), lambda: tf.random_shuffle(tf.reshape(x, [-1]), seed=seed),
        lambda: tf.nn.dropout(x, rate=0.5, seed=seed), lambda: tf.random_gamma(shape, 2.0, seed=seed),
        lambda: tf.cast(tf.random_uniform(shape, 0, 9, tf.int32, seed=seed), tf.float32)])()


def wider_types(d, pool):
    x = d.rng.choice(pool)
    n = tf.shape(x, out_type=d.rng.choice([tf.int32, tf.int64]))
    return tf.cast(d.rng.choice([
        lambda: tf.cast(x, tf.float64) * 2 - 1, lambda: tf.real(tf.complex(x, x) * tf.conj(tf.complex(x, x + 1))),
        lambda: n // 2, lambda: tf.floormod(n, 3), lambda: tf.bitwise.bitwise_xor(n, n + 1), lambda: tf.reduce_prod(n),
        lambda: tf.logical_not(tf.equal(n, 3)), lambda: tf.one_hot(n, 4), lambda: tf.range(tf.size(x)),
        lambda: tf.cast(n, tf.float16) / 4, lambda: tf.math.angle(tf.complex(x, x * 0 + 1))])(), tf.float32)


def layers(d, pool):
    x = tf.reshape(d.rng.choice(pool), [1, -1, 1, 1])
    w, b = tf.constant(d.value((3, 1, 1, 2))), tf.constant(d.value((2,)))
    y = tf.nn.bias_add(tf.nn.conv2d(x, w, 1, "SAME"), b)
    return d.rng.choice([
        lambda: y, lambda: tf.nn.max_pool2d(y, [1, 2, 1, 1], 1, "SAME"), lambda: tf.nn.avg_pool2d(y, [1, 3, 1, 1], 2, "SAME"),
        lambda: tf.nn.fused_batch_norm(y, b, b)[0], lambda: tf.nn.lrn(y), lambda: tf.stack(tf.nn.moments(y, [0, 1])),
        lambda: tf.nn.softmax_cross_entropy_with_logits_v2(labels=tf.nn.softmax(y), logits=y), lambda: tf.nn.l2_loss(y),
        lambda: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.zeros([tf.size(x)], tf.int32), logits=tf.reshape(y, [-1, 2])),
        lambda: tf.nn.top_k(tf.reshape(y, [-1]), 2)[0], lambda: tf.nn.elu(y), lambda: tf.nn.log_softmax(y)])()


def matrices(d, pool):
    x = tf.reshape(d.rng.choice(pool), [1, -1])
    a = tf.matmul(x, x, transpose_a=True) / (1 + tf.reduce_sum(tf.square(x))) + 2 * tf.eye(tf.size(x))
    return d.rng.choice([tf.linalg.cholesky, tf.linalg.inv, tf.linalg.trace, tf.linalg.diag_part, tf.linalg.det,
                         lambda a: tf.linalg.solve(a, tf.transpose(x)), lambda a: tf.einsum("ij,kj->ik", a, x),
                         lambda a: tf.linalg.band_part(a, 1, 0), lambda a: tf.tensordot(a, a, [[0], [1]])])(a)


def sparse(d, pool):
    x = d.rng.choice(pool)
    x = tf.reshape(x, [1, -1]) if x.shape.ndims != 2 else x
    at = tf.where(x > 0)
    s = tf.SparseTensor(at, tf.gather_nd(x, at), tf.shape(x, out_type=tf.int64))
    return d.rng.choice([
        lambda: tf.sparse.to_dense(s), lambda: tf.sparse.reduce_sum(s, 1), lambda: tf.sparse.to_dense(tf.sparse.transpose(s)),
        lambda: tf.sparse.sparse_dense_matmul(s, tf.transpose(x)), lambda: tf.sparse.to_dense(tf.sparse.softmax(s)),
        lambda: tf.sparse.to_dense(tf.sparse.add(s, s)), lambda: tf.sparse.to_dense(tf.sparse.reshape(s, [-1, 1])),
        lambda: tf.sparse.to_dense(tf.sparse.concat(0, [s, s])), lambda: tf.sparse.to_dense(tf.sparse.slice(s, [0, 0], [1, 2])),
        lambda: tf.sparse.fill_empty_rows(s, 1.0)[0].values, lambda: tf.sparse.to_dense(tf.sparse.retain(s, s.values > 0.5)),
        lambda: tf.sparse.segment_sum(x, tf.constant([0, 0]), tf.constant([0, 1])), lambda: tf.cast(tf.size(at), tf.float32)])()


def texts(d, pool):
    s = tf.as_string(tf.range(tf.size(d.rng.choice(pool)) + 1))
    line = tf.strings.reduce_join(s, separator=",")
    return tf.cast(d.rng.choice([
        lambda: tf.strings.to_number(tf.strings.split([line], ",").values), lambda: tf.strings.length(tf.strings.join([s, line])),
        lambda: tf.strings.to_number(tf.strings.substr(s, 0, 1)), lambda: tf.strings.length(tf.strings.regex_replace(line, "[1-3],", "")),
        lambda: tf.strings.to_hash_bucket_fast(s, 7), lambda: tf.equal(s, "1"), lambda: tf.unique(tf.strings.substr(s, 0, 1))[1],
        lambda: tf.io.decode_raw(line, tf.uint8), lambda: tf.strings.to_number(tf.io.decode_csv(s, [["0"]])[0]),
        lambda: tf.strings.length(tf.io.decode_base64(tf.io.encode_base64(line)))])(), tf.float32)


# ---- calls of bodies ----
def over_rows(d, pool):
    x, z = tf.reshape(d.rng.choice(pool), [-1]), scalar(d, pool)
    return d.rng.choice([
        lambda: tf.map_fn(lambda y: tf.tanh(y) * 2 + z, x), lambda: tf.scan(lambda a, y: tf.tanh(a + y * z), x),
        lambda: tf.foldl(lambda a, y: a + tf.tanh(y), x, 0.5), lambda: tf.foldr(lambda a, y: tf.tanh(a - y), x, z),
        lambda: tf.map_fn(lambda y: tf.cond(y > z, lambda: y - z, lambda: tf.square(y)), x)])()


def numbered_branch(d, pool):
    x = scalar(d, pool)
    at = d.feed(tf.placeholder(tf.int32, []), [d.np.randint(0, 4) for _ in range(d.steps)])
    return tf.switch_case(at, [lambda: x + 1, lambda: tf.square(x), lambda: d.some(pool, x, 1)])


def checked(d, pool):
    x = d.rng.choice(pool)
    with tf.control_dependencies([d.rng.choice([
            lambda: tf.Assert(tf.reduce_all(tf.abs(x) < 1e6), [x]), lambda: tf.debugging.assert_less_equal(x, 1e6),
            lambda: tf.check_numerics(x, "a number"), lambda: tf.debugging.assert_rank(x, 1), tf.no_op])()]):
        return tf.identity(x)


# ---- state ----
def rows_of_variable(d, pool):
    v, x, at = new_variable(d, (4, 3)), scalar(d, pool), indices(d, (2,), 4)
    change = d.rng.choice([tf.scatter_add, tf.scatter_sub, tf.scatter_update, tf.scatter_max, tf.scatter_min, tf.scatter_mul])
    n = 1 if change == tf.scatter_update else 2  # rows, possibly repeated
    in_order(d, lambda: tf.identity(change(v, at[:n], tf.fill((n, 3), x))))
    return in_order(d, lambda: tf.gather(v, at) if d.rng.random() < 0.5 else v.read_value())


def training(d, pool):
    v, x = new_variable(d, d.rng.choice([(), (3,), (2, 3)])), scalar(d, pool)
    rate = d.rng.choice([0.1, 0.01])
    optimizer = d.rng.choice([
        lambda: tf.train.GradientDescentOptimizer(rate), lambda: tf.train.MomentumOptimizer(rate, 0.9),
        lambda: tf.train.MomentumOptimizer(rate, 0.9, use_nesterov=True), lambda: tf.train.AdamOptimizer(rate),
        lambda: tf.train.AdagradOptimizer(rate), lambda: tf.train.RMSPropOptimizer(rate), lambda: tf.train.FtrlOptimizer(rate),
        lambda: tf.train.RMSPropOptimizer(rate, centered=True), lambda: tf.train.AdadeltaOptimizer(rate),
        lambda: tf.train.ProximalAdagradOptimizer(rate), lambda: tf.train.ProximalGradientDescentOptimizer(rate)])()
    in_order(d, lambda: optimizer.minimize(tf.reduce_sum(tf.square(v - x)) + 0.1 * tf.reduce_sum(v), var_list=[v]))
    return in_order(d, v.read_value)


def embedding(d, pool):
    v = tf.get_variable(f"embedding{len(d.updates)}_{len(pool)}", (5, 2), use_resource=d.v2 or d.rng.random() < 0.5,
                        initializer=tf.random_uniform_initializer(-1, 1, seed=d.rng.randrange(1000)),
                        partitioner=tf.fixed_size_partitioner(d.rng.choice([1, 2])))
    way, at = d.rng.choice(["mod", "div"]), indices(d, (3,), 5)
    if d.rng.random() < 0.5:
        return tf.nn.embedding_lookup(v, at, partition_strategy=way)
    ids = tf.SparseTensor(tf.constant([[0, 0], [0, 1], [1, 0]], tf.int64), tf.cast(at, tf.int64), [2, 2])
    return tf.nn.embedding_lookup_sparse(v, ids, None, partition_strategy=way, combiner=d.rng.choice(["sum", "mean", "sqrtn"]))


def branch_with_state(d, pool):
    v, u = new_variable(d, ()), d.rng.uniform(-1, 1)

    def make():
        x = scalar(d, pool)
        return tf.identity(tf.cond(x > u, lambda: tf.identity(v.assign_add(x)), lambda: tf.identity(v.assign_sub(0.5))))
    return in_order(d, make)


def loop_with_state(d, pool):
    v, n = new_variable(d, ()), d.rng.randint(0, 4)

    def make():
        x = tf.identity(scalar(d, pool))
        return tf.identity(tf.while_loop(lambda i, _: i < n, lambda i, y: (i + 1, tf.tanh(tf.identity(v.assign_add(y)))),
                                         [0, x], parallel_iterations=1)[1])
    return in_order(d, make)


def accumulator(d, pool):
    a, n = tf.ConditionalAccumulator(tf.float32, shape=()), d.rng.randint(1, 3)
    for k in range(n):
        in_order(d, lambda: a.apply_grad(scalar(d, pool) * k, local_step=1000))
    return in_order(d, lambda: a.take_grad(n))


def staging(d, pool):
    area = data_flow_ops.StagingArea([tf.float32], [()])
    in_order(d, lambda: area.put([scalar(d, pool)]))
    with d.after():
        y = area.get()
    y = y[0] if isinstance(y, list) else y
    d.updates.append(y.op)
    return tf.identity(y)


def wide_queue(d, pool):
    x, k = scalar(d, pool), d.rng.randint(1, 3)
    rows = tf.fill([k, 2], x)
    q = d.rng.choice([lambda: tf.FIFOQueue(9, [tf.float32, tf.int32], [(2,), ()]),
                      lambda: tf.RandomShuffleQueue(9, 0, [tf.float32, tf.int32], [(2,), ()], seed=k),
                      lambda: tf.PaddingFIFOQueue(9, [tf.float32, tf.int32], [(None,), ()])])()
    in_order(d, lambda: q.enqueue_many([rows, tf.range(k)]))
    with d.after():
        many, n = d.rng.choice([lambda: q.dequeue_many(k), lambda: q.dequeue_up_to(k)])()
    d.updates.append(many.op)
    return many + tf.expand_dims(tf.cast(n, tf.float32), 1)


def table(d, pool):
    at = indices(d, (3,), 5)
    if d.rng.random() < 0.4:
        t = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(tf.range(4), tf.constant(d.value((4,)))), -1.0)
        return t.lookup(at)
    t = tf.lookup.experimental.MutableHashTable(tf.int32, tf.float32, 0.5)
    in_order(d, lambda: t.insert(at[:1], tf.reshape(scalar(d, pool), [1])))
    y = in_order(d, lambda: t.lookup(at))
    return y if d.rng.random() < 0.5 else in_order(d, lambda: tf.cast(t.size(), tf.float32))


# ---- datasets ----
def more(d, s):
    """Appends a transformation to the dataset s."""
    k, seed, c = d.rng.randint(1, 4), d.rng.randrange(100), d.rng.uniform(-1, 1)
    data = tf.data.Dataset
    return d.rng.choice([
        lambda: s.map(lambda x: tf.tanh(x) + c), lambda: s.map(lambda x: tf.reduce_sum(x) * c, num_parallel_calls=2),
        lambda: s.filter(lambda x: tf.reduce_sum(x) > c - 1), lambda: s.batch(k), lambda: s.batch(k, drop_remainder=True),
        lambda: s.repeat(k), lambda: s.take(k + 2), lambda: s.skip(k), lambda: s.shuffle(k + 1, seed=seed),
        lambda: s.shuffle(k + 1, seed=seed).repeat(2), lambda: s.prefetch(k), lambda: s.cache(), lambda: s.concatenate(s),
        lambda: data.zip((s, s.skip(1))).map(lambda x, y: tf.reduce_sum(x) - tf.reduce_sum(y)),
        lambda: s.flat_map(lambda x: data.from_tensors(x).repeat(k)), lambda: s.shard(2, k % 2),
        lambda: s.interleave(lambda x: data.range(k).map(lambda i: x + tf.cast(i, tf.float32)), 2, k),
        lambda: s.interleave(lambda x: data.from_tensors(x).repeat(k), 2, 1, num_parallel_calls=2),
        lambda: s.apply(tf.data.experimental.scan(0.0, lambda a, x: (a + 1, x + a))),
        lambda: s.enumerate().map(lambda i, x: x * tf.cast(i, tf.float32)),
        lambda: s.window(k, 1, drop_remainder=True).flat_map(lambda w: w.map(tf.reduce_sum).batch(k)),
        lambda: s.map(lambda x: tf.reshape(x, [-1])).padded_batch(k, [None]),
        lambda: s.map(lambda x: tf.reshape(x, [-1])).apply(tf.data.experimental.unbatch()),
        lambda: s.apply(tf.data.experimental.take_while(lambda x: tf.reduce_sum(x) < 2.5 + c)),
        lambda: s.map(lambda x: tf.cond(tf.reduce_sum(x) > c, lambda: x + 1, lambda: x - 1)),
        lambda: data.zip((s, data.random(seed).map(lambda r: tf.cast(r % 5, tf.float32)))).map(lambda x, r: x + r),
        lambda: s.map(lambda x: tf.reduce_max(x)).apply(tf.data.experimental.group_by_window(
            lambda x: tf.cast(x > c, tf.int64), lambda _, w: w.batch(k), window_size=k)).map(tf.reduce_sum)])()


def data_set(d, pool):
    s = tf.data.Dataset.from_tensor_slices(d.value(d.rng.choice([(6,), (5, 2), (4, 2, 2)])))
    for _ in range(d.rng.randint(1, 4)):
        s = more(d, s)
    s = s.repeat() if d.rng.random() < 0.9 else s
    if d.rng.random() < 0.5:
        iterator = tf.data.make_one_shot_iterator(s)
    else:
        iterator = tf.data.make_initializable_iterator(s)
        d.initializers.append(iterator.initializer)
    return tf.identity(in_order(d, iterator.get_next))


MAKERS = [random_numbers, wider_types, layers, matrices, sparse, texts, over_rows, numbered_branch, checked, rows_of_variable,
          training, embedding, branch_with_state, loop_with_state, accumulator, staging, wide_queue, table, data_set, data_set]
