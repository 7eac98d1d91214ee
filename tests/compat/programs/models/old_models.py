# SPDX-License-Identifier: Apache-2.0
"""Models as they were written for TensorFlow 1 between 2016 and 2020, each of another kind, small. Each trains a few
steps."""
import numpy as np
import tensorflow.compat.v1 as tf

from common import TARGET, answer_each, forget, plain
from layers import balanced, dense, on_ps, some, start_all, steps, var


def a_variational_autoencoder():
    with balanced():
        x = some([6, 12], 1, 0, 1)
        h = dense(x, 8, 1, tf.nn.softplus)
        mean, logvar = dense(h, 3, 2), dense(h, 3, 3)
        z = mean + tf.exp(0.5 * logvar) * tf.random_normal(tf.shape(mean), seed=4)
        out = dense(dense(z, 8, 5, tf.nn.softplus), 12, 6)
        seen = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=out), 1)
        far = -0.5 * tf.reduce_sum(1 + logvar - tf.square(mean) - tf.exp(logvar), 1)
        cost = tf.reduce_mean(seen + far)
        train = tf.train.AdamOptimizer(0.01).minimize(cost)
        return steps([far, tf.reduce_mean(mean)], train=train)


def a_crf_by_scan():
    """The forward algorithm with tf.scan, and Viterbi decoding with backpointers."""
    with on_ps():
        scores, tags, n = some([2, 5, 3], 1), tf.constant([[0, 1, 2, 1, 0], [2, 2, 0, 0, 0]]), tf.constant([5, 3])
        w = var("transitions", [3, 3], 2)
        emit = tf.layers.dense(scores, 3, kernel_initializer=tf.glorot_uniform_initializer(2))
        by_time = tf.transpose(emit, [1, 0, 2])
        mask = tf.transpose(tf.sequence_mask(n, 5))

        def turn(state, now):
            x, m = now
            new = x + tf.reduce_logsumexp(tf.expand_dims(state, 2) + w, 1)
            return tf.where(m, new, state)
        alphas = tf.scan(turn, (by_time[1:], mask[1:]), by_time[0])
        norm = tf.reduce_logsumexp(alphas[-1], 1)
        flat = tf.gather(tf.reshape(emit, [-1]), tf.range(10) * 3 + tf.reshape(tags, [-1]))
        fmask = tf.sequence_mask(n, 5, tf.float32)
        unary = tf.reduce_sum(tf.reshape(flat, [2, 5]) * fmask, 1)
        pair = tf.reduce_sum(tf.gather_nd(w, tf.stack([tags[:, :-1], tags[:, 1:]], 2)) * fmask[:, 1:], 1)
        loss = tf.reduce_mean(norm - unary - pair)
        best = tf.scan(lambda s, x: (x + tf.reduce_max(tf.expand_dims(s[0], 2) + w, 1), tf.argmax(tf.expand_dims(s[0], 2) + w, 1)), by_time[1:], (by_time[0], tf.zeros([2, 3], tf.int64)))
        last = tf.argmax(best[0][-1], 1)
        way = tf.scan(lambda at, back: tf.gather_nd(back, tf.stack([tf.range(2, dtype=tf.int64), at], 1)), tf.reverse(best[1], [0]), last)
        return steps([loss, last, way, alphas], train=tf.train.RMSPropOptimizer(0.05).minimize(loss))


def matrix_factorization():
    """Ratings as a SparseTensor, partitioned factors, alternating least squares and gradient descent."""
    with on_ps():
        at = tf.constant([[0, 1], [1, 3], [2, 0], [4, 2], [5, 5], [5, 1]], tf.int64)
        ratings = tf.SparseTensor(at, tf.constant([5.0, 3, 4, 1, 2, 5]), [6, 7])
        users = tf.get_variable("users", [6, 3], initializer=tf.random_uniform_initializer(seed=1), partitioner=tf.fixed_size_partitioner(2))
        items = tf.get_variable("items", [7, 3], initializer=tf.random_uniform_initializer(seed=2), partitioner=tf.variable_axis_size_partitioner(60))
        u = tf.nn.embedding_lookup(users, ratings.indices[:, 0], partition_strategy="div")
        i = tf.nn.embedding_lookup(items, ratings.indices[:, 1], partition_strategy="div")
        guess = tf.reduce_sum(u * i, 1)
        loss = tf.reduce_sum((guess - ratings.values) ** 2) + 0.1 * (tf.nn.l2_loss(u) + tf.nn.l2_loss(i))
        dense = tf.sparse_tensor_to_dense(ratings, validate_indices=False)
        right = tf.convert_to_tensor(items)
        solved = tf.matrix_solve(tf.matmul(right, right, transpose_a=True) + 0.1 * tf.eye(3), tf.matmul(right, dense, transpose_a=True, transpose_b=True))
        product = tf.sparse_tensor_dense_matmul(ratings, right)
        train = tf.train.AdagradOptimizer(0.5).minimize(loss)
        return steps([loss, guess, solved, product, tf.linalg.norm(right)], train=train) + [[p.shape.as_list(), p.device] for p in list(users) + list(items)]


def a_language_model_with_truncated_backpropagation():
    """static_rnn over unrolled steps; feeds the state back, shares the softmax weights, assigns the rate between
    epochs."""
    with on_ps():
        words, n, turns, width = 12, 3, 4, 5
        data = np.random.RandomState(2).randint(0, words, (n, 3 * turns + 1))
        x, y = tf.placeholder(tf.int32, [n, turns]), tf.placeholder(tf.int32, [n, turns])
        cell = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.BasicLSTMCell(width, forget_bias=0.0), output_keep_prob=0.9, seed=k) for k in (1, 2)])
        first = cell.zero_state(n, tf.float32)
        emb = tf.get_variable("emb", [words, width], initializer=tf.random_uniform_initializer(-0.2, 0.2, seed=3))
        with tf.variable_scope("lm", initializer=tf.random_uniform_initializer(-0.3, 0.3, seed=4)):
            outs, last = tf.nn.static_rnn(cell, tf.unstack(tf.nn.embedding_lookup(emb, x), axis=1), first)
        out = tf.reshape(tf.stack(outs, 1), [-1, width])
        logits = tf.matmul(out, emb, transpose_b=True)
        loss = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(y, [-1]), logits=logits)) / n
        rate = tf.Variable(1.0, trainable=False)
        new_rate = tf.placeholder(tf.float32, [])
        assign = tf.assign(rate, new_rate)
        tv = tf.trainable_variables()
        grads, norm = tf.clip_by_global_norm(tf.gradients(loss, tv), 0.5)
        train = tf.train.GradientDescentOptimizer(rate).apply_gradients(zip(grads, tv), tf.train.get_or_create_global_step())
        start = start_all()
        out = []
        with tf.Session(TARGET) as s:
            s.run(start)
            for epoch in range(2):
                s.run(assign, {new_rate: 0.5 ** epoch})
                state = s.run(first)
                for k in range(3):
                    feed = {x: data[:, k * turns:(k + 1) * turns], y: data[:, k * turns + 1:(k + 1) * turns + 1]}
                    for (c, h), now in zip(first, state):
                        feed[c], feed[h] = now.c, now.h
                    cost, state, _, size = s.run([loss, last, train, norm], feed)
                    out.append(plain([cost, size]))
            return out, plain(s.run(emb))


def deep_q_learning():
    """A target network that is copied periodically, a replay buffer, the Huber loss, and clipping of each gradient."""
    def net(x, scope, trainable=True):
        with tf.variable_scope(scope):
            return dense(dense(x, 6, 1, tf.nn.relu, trainable=trainable), 3, 2, trainable=trainable)
    with on_ps():
        s0, a, r, s1, done = (tf.placeholder(t, [None] + d) for t, d in ((tf.float32, [4]), (tf.int32, []), (tf.float32, []), (tf.float32, [4]), (tf.bool, [])))
        q, target = net(s0, "q"), net(s1, "t", False)
        with tf.variable_scope("", reuse=True):
            online = net(s1, "q")
        best = tf.one_hot(tf.argmax(online, 1), 3)
        want = tf.stop_gradient(r + 0.9 * tf.reduce_sum(target * best, 1) * (1 - tf.to_float(done)))
        error = tf.reduce_sum(q * tf.one_hot(a, 3), 1) - want
        loss = tf.reduce_mean(tf.where(tf.abs(error) < 0.3, 0.5 * tf.square(error), 0.3 * (tf.abs(error) - 0.15)))
        optimizer = tf.train.AdamOptimizer(0.05)
        pairs = [(tf.clip_by_norm(g, 0.1), v) for g, v in optimizer.compute_gradients(loss, tf.trainable_variables("q"))]
        train = optimizer.apply_gradients(pairs)
        copy = tf.group(*[tf.assign(t, o) for t, o in zip(tf.global_variables("t"), tf.trainable_variables("q"))])
        eps = tf.placeholder(tf.float32, [])
        chance = tf.random_uniform([tf.shape(q)[0]], 0, 3, tf.int32, seed=3)
        act = tf.where(tf.random_uniform([tf.shape(q)[0]], seed=4) < eps, chance, tf.argmax(q, 1, output_type=tf.int32))
        start = start_all()
        here = np.random.RandomState(7)
        out = []
        with tf.Session(TARGET) as s:
            s.run(start)
            for k in range(5):
                if k % 2 == 0:
                    s.run(copy)
                x = here.normal(0, 1, (6, 4))
                acts = s.run(act, {s0: x, eps: 0.5})
                feed = {s0: x, a: acts, r: x.sum(1), s1: np.roll(x, 1, 0), done: x[:, 0] > 1}
                out.append(plain([acts, s.run([loss, train], feed)[0]]))
            return out


def an_actor_and_a_critic():
    """A3C: a model on the ps and a local copy that the worker pushes to and pulls from; an entropy term; sampled
    actions."""
    def model(x):
        h = dense(x, 6, 1, tf.nn.elu)
        return dense(h, 3, 2), tf.squeeze(dense(h, 1, 3), 1)
    with on_ps():
        x, act, back = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.int64, [None]), tf.placeholder(tf.float32, [None])
        with tf.variable_scope("global"):
            model(x)
        step = tf.train.get_or_create_global_step()
    with tf.device("/job:worker/task:0"), tf.variable_scope("local"):
        logits, value = model(x)
        drawn = tf.squeeze(tf.multinomial(logits - tf.reduce_max(logits, 1, keepdims=True), 1, seed=3), 1)
        logp = tf.nn.log_softmax(logits)
        gain = -tf.reduce_sum(tf.reduce_sum(logp * tf.one_hot(act, 3), 1) * (back - tf.stop_gradient(value)))
        loss = gain + 0.5 * tf.nn.l2_loss(value - back) - 0.01 * -tf.reduce_sum(tf.nn.softmax(logits) * logp)
        mine, theirs = tf.trainable_variables("local"), tf.trainable_variables("global")
        grads, _ = tf.clip_by_global_norm(tf.gradients(loss, mine), 40.0)
        pull = tf.group(*[a.assign(b) for a, b in zip(mine, theirs)])
        push = tf.group(tf.train.AdamOptimizer(1e-2).apply_gradients(list(zip(grads, theirs))), step.assign_add(tf.cast(tf.shape(x)[0], tf.int64)))
    start = start_all()
    here, out = np.random.RandomState(1), []
    with tf.Session(TARGET, config=tf.ConfigProto(device_filters=["/job:ps", "/job:worker/task:0"])) as s:
        s.run(start)
        for _ in range(4):
            s.run(pull)
            seen = here.normal(0, 1, (5, 4))
            acts, v = s.run([drawn, value], {x: seen})
            out.append(plain([acts, v, s.run([loss, push], {x: seen, act: acts, back: seen.sum(1)})[0]]))
        return out, plain(s.run(step))


def a_text_network():
    """A vocabulary table, embeddings, convolutions of several widths, and max pooling over time."""
    with on_ps():
        table = tf.lookup.StaticVocabularyTable(tf.lookup.KeyValueTensorInitializer(["the", "cat", "sat", "on", "mat"], tf.range(5, dtype=tf.int64)), 3)
        lines = tf.constant(["the cat sat", "on the mat yes", "", "dog sat on the cat"])
        tokens = tf.string_split(lines)
        ids = tf.SparseTensor(tokens.indices, table.lookup(tokens.values) + 1, tokens.dense_shape)
        dense = tf.sparse_tensor_to_dense(ids)
        dense = tf.pad(dense, [[0, 0], [0, 6 - tf.shape(dense)[1]]])
        dense.set_shape([4, 6])
        emb = var("emb", [9, 4], 1, regularizer=tf.keras.regularizers.l2(0.01))
        x = tf.expand_dims(tf.nn.embedding_lookup(emb, dense), 3)
        pools = []
        for k in (2, 3):
            h = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, var(f"w{k}", [k, 4, 1, 3], k + 5), [1] * 4, "VALID"), var(f"b{k}", [3])))
            pools.append(tf.nn.max_pool(h, [1, 6 - k + 1, 1, 1], [1] * 4, "VALID"))
        h = tf.nn.dropout(tf.reshape(tf.concat(pools, 3), [-1, 6]), keep_prob=0.7, seed=3)
        scores = tf.nn.xw_plus_b(h, var("w", [6, 2], 3), var("b", [2]))
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(logits=scores, labels=tf.one_hot([0, 1, 1, 0], 2))) + tf.losses.get_regularization_loss()
        return steps([dense], train=[tf.train.AdamOptimizer(0.01).minimize(loss), loss])


def a_transformer():
    """Multi-head attention, sinusoidal positions, masks, manual layer norm, the learning rate of the paper, label
    smoothing."""
    n, t, d, heads, words = 2, 5, 8, 2, 9
    def norm(x, scope):
        with tf.variable_scope(scope):
            g, b = tf.get_variable("g", [d], initializer=tf.ones_initializer()), var("b", [d])
            mean, spread = tf.nn.moments(x, [-1], keep_dims=True)
            return g * (x - mean) / tf.sqrt(spread + 1e-6) + b
    def attend(q, k, mask, seed):
        split = lambda x: tf.transpose(tf.reshape(x, [n, t, heads, d // heads]), [0, 2, 1, 3])
        q, k, v = (split(dense(x, d, seed + i, use_bias=False)) for i, x in enumerate((q, k, k)))
        w = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * (d // heads) ** -0.5 + mask)
        return dense(tf.reshape(tf.transpose(tf.matmul(w, v), [0, 2, 1, 3]), [n, t, d]), d, seed + 4)
    with balanced():
        ids = tf.constant([[1, 5, 3, 2, 0], [4, 8, 7, 6, 2]])
        emb = var("emb", [words, d], 1)
        x = tf.gather(emb, ids) * d ** 0.5 * tf.expand_dims(tf.to_float(tf.not_equal(ids, 0)), 2)
        at = tf.expand_dims(tf.to_float(tf.range(t)), 1) * tf.expand_dims(tf.exp(tf.to_float(tf.range(d // 2)) * -(np.log(10000.0) / (d // 2 - 1))), 0)
        x += tf.concat([tf.sin(at), tf.cos(at)], 1)
        causal = -1e9 * (1 - tf.matrix_band_part(tf.ones([t, t]), -1, 0))
        pad = tf.to_float(tf.equal(ids, 0))[:, None, None, :] * -1e9
        for layer in range(2):
            with tf.variable_scope(f"layer{layer}"):
                x = norm(x + attend(x, x, causal + pad, 10 * layer + 3), "a")
                x = norm(x + dense(dense(x, 12, 10 * layer + 8, tf.nn.relu), d, 10 * layer + 9), "f")
        logits = tf.tensordot(x, emb, [[2], [1]])
        target = tf.one_hot(ids, words, 0.9, 0.1 / (words - 1))
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=target, logits=logits))
        step = tf.train.get_or_create_global_step()
        rate = d ** -0.5 * tf.minimum(tf.to_float(step + 1) * 4 ** -1.5, tf.rsqrt(tf.to_float(step + 1)))
        train = tf.train.AdamOptimizer(rate, 0.9, 0.98, 1e-9).minimize(loss, step)
        return steps([loss, tf.argmax(logits, 2)], train=train)


def a_mixture_of_densities():
    with on_ps():
        x = some([8, 1], 1)
        out = dense(dense(x, 6, 1, tf.tanh), 9, 2)
        pi, mu, s = tf.split(out, 3, 1)
        pi, s = tf.nn.softmax(pi), tf.exp(s)
        density = tf.reduce_sum(pi * tf.exp(-tf.square(tf.sin(3 * x) - mu) / (2 * s ** 2)) / (s * np.sqrt(2 * np.pi)), 1)
        loss = -tf.reduce_mean(tf.log(density))
        drawn = tf.reduce_sum(tf.one_hot(tf.squeeze(tf.random.categorical(tf.log(pi), 1, seed=2), 1), 3) * (mu + s * tf.random_normal([8, 3], seed=3)), 1)
        return steps([loss, drawn], train=tf.train.AdamOptimizer(0.02).minimize(loss))


def k_means_and_a_mixture_of_gaussians():
    """K-means with unsorted segment sums, and expectation maximisation with determinants and inverses."""
    with on_ps():
        x = tf.concat([some([7, 2], 1), some([6, 2], 2) + 3.0], 0)
        centres = tf.Variable([[0.0, 0.5], [1.0, 1.0]])
        away = tf.reduce_sum((x[:, None] - centres[None]) ** 2, 2)
        near = tf.argmin(away, 1, output_type=tf.int32)
        counts = tf.unsorted_segment_sum(tf.ones([13, 1]), near, 2)
        move = centres.assign(tf.div_no_nan(tf.unsorted_segment_sum(x, near, 2), counts))
        cov = tf.Variable(tf.stack([tf.eye(2), 2 * tf.eye(2)]))
        off = x[None] - tf.expand_dims(centres, 1)
        log_p = -0.5 * (tf.reduce_sum(off * tf.matmul(off, tf.matrix_inverse(cov)), 2) + tf.expand_dims(tf.linalg.logdet(cov), 1))
        p = tf.nn.softmax(log_p, 0)
        new = tf.matmul(off * p[:, :, None], off, transpose_a=True) / tf.reduce_sum(p, 1)[:, None, None] + 0.1 * tf.eye(2)
        widen = cov.assign(new)
        start = start_all()
        out = []
        with tf.Session(TARGET) as s:
            s.run(start)
            for _ in range(3):
                out.append(plain(s.run([near, counts, log_p])))
                s.run(move)
                s.run(widen)
        return out


def factorization_machines():
    """Wide and deep: FTRL for the wide part, Adagrad for the deep one, features parsed from records, streaming AUC."""
    def record(k):
        here = np.random.RandomState(k)
        feature = {"ids": tf.train.Feature(int64_list=tf.train.Int64List(value=here.randint(0, 30, here.randint(1, 6)))),
                   "age": tf.train.Feature(float_list=tf.train.FloatList(value=[k / 8.0])), "click": tf.train.Feature(int64_list=tf.train.Int64List(value=[k % 2])),
                   "word": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"w%d" % (k % 3)]))}
        return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()
    with on_ps():
        rows = tf.parse_example([record(k) for k in range(8)], {"ids": tf.VarLenFeature(tf.int64), "age": tf.FixedLenFeature([], tf.float32), "click": tf.FixedLenFeature([1], tf.int64), "word": tf.FixedLenFeature([], tf.string, "")})
        ids = rows["ids"]
        w = tf.get_variable("wide", [30, 1], initializer=tf.zeros_initializer(), partitioner=tf.min_max_variable_partitioner(2, min_slice_size=32))
        v = tf.get_variable("deep", [30, 4], initializer=tf.random_normal_initializer(stddev=0.1, seed=1), partitioner=tf.fixed_size_partitioner(2))
        first = tf.nn.safe_embedding_lookup_sparse(w, ids, combiner="sum")
        total = tf.nn.embedding_lookup_sparse(v, ids, None, combiner="sum")
        unique, where = tf.unique(ids.values)
        rows_of = tf.gather(tf.nn.embedding_lookup(v, unique), where)
        squares = tf.segment_sum(tf.square(rows_of), ids.indices[:, 0])
        pairs = 0.5 * tf.reduce_sum(tf.square(total) - squares, 1, keepdims=True)
        word = tf.one_hot(tf.string_to_hash_bucket_fast(rows["word"], 5), 5)
        logits = first + pairs + dense(tf.concat([total, rows["age"][:, None], word], 1), 1, 2)
        loss = tf.losses.sigmoid_cross_entropy(rows["click"], logits, weights=tf.where(rows["click"] > 0, 2.0 * tf.ones_like(logits), tf.ones_like(logits)))
        auc, update = tf.metrics.auc(rows["click"], tf.sigmoid(logits), num_thresholds=20)
        a = tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01, l2_regularization_strength=0.01, l2_shrinkage_regularization_strength=0.01).minimize(loss, var_list=list(w))
        b = tf.train.AdagradOptimizer(0.1).minimize(loss, var_list=[x for x in tf.trainable_variables() if "wide" not in x.name])
        return steps([logits, loss], train=[tf.group(a, b)]) + [steps(auc, 2, update)[-1]]


def pairs_and_triplets():
    """Hardest-triplet, centre (with scatter updates) and focal losses, and hard example mining."""
    with on_ps():
        x, labels = some([8, 5], 1), tf.constant([0, 0, 1, 1, 2, 2, 0, 1])
        e = tf.nn.l2_normalize(dense(x, 3, 1), 1)
        away = tf.maximum(2 - 2 * tf.matmul(e, e, transpose_b=True), 0)
        same = tf.equal(labels[:, None], labels[None])
        far = tf.reduce_max(tf.where(same, away, tf.zeros_like(away)), 1)
        close = tf.reduce_min(tf.where(same, tf.fill([8, 8], 9.0), away), 1)
        triplet = tf.reduce_mean(tf.nn.relu(far - close + 0.2))
        centres = tf.get_variable("centres", [3, 3], initializer=tf.zeros_initializer(), trainable=False)
        mine = tf.gather(centres, labels)
        unique, index, count = tf.unique_with_counts(labels)
        times = tf.reshape(tf.gather(count, index), [-1, 1])
        update = tf.scatter_sub(centres, labels, 0.5 * (mine - e) / tf.to_float(1 + times))
        logits = dense(e, 3, 2)
        ce = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        p = tf.exp(-ce)
        focal = tf.reduce_mean((1 - p) ** 2 * ce)
        hard = tf.reduce_mean(tf.gather(ce, tf.nn.top_k(ce, 3).indices))
        loss = triplet + 0.1 * tf.nn.l2_loss(e - mine) + focal + hard
        with tf.control_dependencies([loss]):
            train = tf.train.AdamOptimizer(0.02).minimize(loss)
        return steps([triplet, focal, hard], train=[train, update])


def speech_recognition():
    """Frames, windowed spectra, mel scales, a bidirectional RNN, CTC loss, its decoder and the edit distance."""
    with on_ps():
        sound = some([2, 400], 1)
        frames = tf.signal.frame(sound, 64, 32)
        spectrum = tf.abs(tf.signal.stft(sound, 64, 32))
        mel = tf.tensordot(spectrum, tf.signal.linear_to_mel_weight_matrix(8, 33, 8000, 80.0, 3800.0), 1)
        mfcc = tf.signal.mfccs_from_log_mel_spectrograms(tf.log(mel + 1e-3))[..., :5]
        lengths = tf.constant([11, 8])
        init = tf.glorot_uniform_initializer(4)
        with tf.variable_scope("rnn", initializer=init):
            out, _ = tf.nn.bidirectional_dynamic_rnn(tf.nn.rnn_cell.GRUCell(4, kernel_initializer=init), tf.nn.rnn_cell.LSTMCell(4, num_proj=3, initializer=init), mfcc, lengths, dtype=tf.float32)
        logits = tf.transpose(dense(tf.concat(out, 2), 5, 5), [1, 0, 2])
        labels = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], tf.constant([1, 2, 3]), [2, 2])
        loss = tf.reduce_mean(tf.nn.ctc_loss(labels, logits, lengths))
        decoded, _ = tf.nn.ctc_beam_search_decoder(logits, lengths, 4)
        wer = tf.edit_distance(tf.cast(decoded[0], tf.int32), labels)
        return steps([loss, wer, frames[0, 1, :3], mfcc], train=tf.train.AdamOptimizer(0.02).minimize(loss))


def principal_components():
    """The gradient of a decomposition, whitening, a network on the principal components, and triangular solves."""
    with on_ps():
        x = some([9, 4], 1)
        scale = tf.get_variable("scale", [4], initializer=tf.constant_initializer([1.0, 2.0, 0.5, 1.5]))
        y = x * scale
        y -= tf.reduce_mean(y, 0)
        s, u, v = tf.svd(y)
        cov = tf.matmul(y, y, transpose_a=True) / 8.0
        e, w = tf.self_adjoint_eig(cov)
        white = tf.matmul(tf.abs(tf.matmul(y, w)), tf.diag(tf.rsqrt(e)))
        l = tf.cholesky(cov + 0.1 * tf.eye(4))
        far = tf.reduce_sum(tf.matrix_triangular_solve(l, tf.transpose(y)) ** 2, 0)
        loss = tf.reduce_sum(s[0] / s[1:]) + tf.reduce_mean(far) + tf.reduce_mean(white ** 2) + tf.reduce_sum(tf.square(tf.matmul(tf.matmul(u, tf.diag(s)), v, adjoint_b=True)))
        return steps([loss, s, e, far], train=tf.train.GradientDescentOptimizer(0.001).minimize(loss))


def memory_and_pointers():
    """A memory network with several attention hops, a pointer decoder, and the gradient of gather_nd."""
    with on_ps():
        words = tf.constant(np.random.RandomState(1).randint(0, 9, (2, 4, 3)))
        asked = tf.constant([[1, 2, 3], [4, 0, 0]])
        a, c = var("a", [9, 5], 1), var("c", [9, 5], 2)
        place = tf.constant(np.fromfunction(lambda j, k: (1 - (j + 1) / 3) - (k + 1) / 5 * (1 - 2 * (j + 1) / 3), (3, 5)), tf.float32)
        m, out = (tf.reduce_sum(tf.nn.embedding_lookup(e, words) * place, 2) for e in (a, c))
        u = tf.reduce_sum(tf.nn.embedding_lookup(a, asked), 1)
        turn = var("h", [5, 5], 3)
        for _ in range(3):
            p = tf.nn.softmax(tf.squeeze(tf.matmul(m, u[:, :, None]), 2))
            u = tf.matmul(u, turn) + tf.reduce_sum(out * p[:, :, None], 1)
        at = tf.argmax(p, 1, output_type=tf.int32)
        chosen = tf.gather_nd(out, tf.stack([tf.range(2), at], 1))
        copy = tf.scatter_nd(tf.stack([tf.tile(tf.range(2)[:, None], [1, 4]), tf.cast(words[:, :, 0], tf.int32)], 2), p, [2, 9])
        loss = -tf.reduce_mean(tf.log(copy[:, 3] + 0.1)) + tf.reduce_mean(chosen ** 2) + tf.reduce_mean(u ** 2)
        opt = tf.train.GradientDescentOptimizer(0.2)
        noisy = [(g + tf.random_normal(tf.shape(g), stddev=1e-3, seed=4) if not isinstance(g, tf.IndexedSlices) else g, v) for g, v in opt.compute_gradients(loss)]
        return steps([p, at, copy], train=opt.apply_gradients(noisy))


def evolution_and_swarms():
    """Evolution without gradients: sorts the population, crosses and mutates the best, and assigns the result."""
    with on_ps():
        people = tf.get_variable("people", [8, 3], initializer=tf.random_normal_initializer(seed=1))
        fit = -tf.reduce_sum((people - [1.0, -1.0, 0.5]) ** 2, 1)
        order = tf.argsort(fit, direction="DESCENDING")
        elite = tf.gather(people, order[:2])
        a, b = (tf.gather(elite, tf.random_uniform([8], 0, 2, tf.int32, seed=k)) for k in (2, 3))
        child = tf.where(tf.random_uniform([8, 3], seed=4) < 0.5, a, b) + tf.random_normal([8, 3], stddev=0.1, seed=5)
        child = tf.tensor_scatter_nd_update(child, [[0]], elite[:1])
        best, mean = tf.reduce_max(fit), tf.reduce_mean(fit)
        ranks = tf.to_float(tf.invert_permutation(order)) / 7.0 - 0.5
        return steps([best, mean, ranks], train=people.assign(child))


if __name__ == "__main__":
    answer_each(forget)
