# SPDX-License-Identifier: Apache-2.0
"""TensorFlow 1 programs in the style of their users, each of another kind, small."""
import os
import shutil
import tempfile

import numpy as np
import tensorflow.compat.v1 as tf

from common import CLUSTER, TARGET, answer_each, forget, plain

folder = tempfile.mkdtemp()


def _setter():
    return tf.device(tf.train.replica_device_setter(worker_device="/job:worker/task:0", cluster=tf.train.ClusterSpec(CLUSTER)))


def _steps(fetches, n=5, train=()):
    """Fetches in n steps, with a training step after each fetch. They are separate steps, so the fetched values do
    not change during a step."""
    with tf.control_dependencies(None):
        start = [tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()]
    with tf.Session(TARGET) as s:
        s.run(start)
        return [plain((s.run(fetches), s.run(train))[0]) for _ in range(n)]


def _init(shape, seed, scale=0.3):
    return tf.constant(np.random.RandomState(seed).uniform(-scale, scale, shape).astype(np.float32))


def word2vec():
    """nce_loss and sampled_softmax_loss on partitioned embeddings."""
    with _setter():
        parts = tf.get_variable("emb", [50, 8], initializer=tf.random_uniform_initializer(-1, 1, seed=3), partitioner=tf.fixed_size_partitioner(2))
        w = tf.get_variable("w", [50, 8], initializer=tf.truncated_normal_initializer(stddev=0.3, seed=5))
        b = tf.get_variable("b", [50], initializer=tf.zeros_initializer())
        words, labels = tf.constant([1, 7, 3, 3, 20, 41]), tf.constant([[2], [8], [4], [2], [21], [42]], tf.int64)
        x = tf.nn.embedding_lookup(parts, words)
        sampled = tf.nn.log_uniform_candidate_sampler(labels, 1, 6, True, 50, seed=9)
        nce = tf.reduce_mean(tf.nn.nce_loss(w, b, labels, x, 6, 50, sampled_values=sampled))
        soft = tf.reduce_mean(tf.nn.sampled_softmax_loss(w, b, labels, x, 6, 50, seed=4))
        step = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(0.5).minimize(nce + soft, global_step=step)
        norm = tf.sqrt(tf.reduce_sum(tf.square(tf.convert_to_tensor(parts)), 1, keepdims=True))
        similar = tf.nn.top_k(tf.matmul(tf.nn.embedding_lookup(parts / norm, [1, 2]), parts / norm, transpose_b=True), 3)
        return _steps([nce, soft, step, similar.indices], train=train)


def a_gan():
    """Two optimizers over two scopes in alternation, a gradient penalty, the update ops of batch norm, and
    tf.cond."""
    with _setter():
        z, real = _init([16, 4], 1, 1.0), _init([16, 6], 2, 1.0)
        training = tf.placeholder_with_default(True, [])

        def generator():
            with tf.variable_scope("g"):
                h = tf.layers.dense(z, 8, kernel_initializer=tf.glorot_uniform_initializer(3))
                h = tf.nn.leaky_relu(tf.layers.batch_normalization(h, training=training))
                return tf.layers.dense(h, 6, activation=tf.tanh, kernel_initializer=tf.glorot_uniform_initializer(4))

        def critic(x, reuse):
            with tf.variable_scope("d", reuse=reuse):
                h = tf.nn.elu(tf.layers.dense(x, 8, kernel_initializer=tf.glorot_uniform_initializer(5)))
                return tf.layers.dense(h, 1, kernel_initializer=tf.glorot_uniform_initializer(6))
        fake = generator()
        on_real, on_fake = critic(real, False), critic(fake, True)
        mixed = real + 0.3 * (fake - real)
        slope = tf.gradients(critic(mixed, True), mixed)[0]
        penalty = tf.reduce_mean((tf.norm(slope, axis=1) - 1) ** 2)
        d_loss = tf.losses.sigmoid_cross_entropy(tf.ones_like(on_real), on_real, label_smoothing=0.1) + tf.losses.sigmoid_cross_entropy(tf.zeros_like(on_fake), on_fake) + penalty
        g_loss = tf.losses.sigmoid_cross_entropy(tf.ones_like(on_fake), on_fake)
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            d = tf.train.RMSPropOptimizer(0.01).minimize(d_loss, var_list=tf.trainable_variables("d"))
        with tf.control_dependencies([d]):
            g = tf.train.AdamOptimizer(0.01, 0.5).minimize(g_loss, var_list=tf.trainable_variables("g"))
        with tf.control_dependencies([g]):
            clip = [v.assign(tf.clip_by_value(v, -0.5, 0.5)) for v in tf.trainable_variables("d")]
        turn = tf.cond(g_loss > d_loss, lambda: tf.constant("g"), lambda: tf.constant("d"))
        return _steps([d_loss, g_loss, turn, penalty], train=clip)


def _translator():
    n, width, words = 3, 6, 11
    source = tf.constant(np.random.RandomState(0).randint(3, words, (n, 5)))
    lengths = tf.constant([5, 3, 4])
    emb = tf.get_variable("emb", [words, width], initializer=tf.random_normal_initializer(seed=1))
    cell = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.LSTMCell(width, use_peepholes=True, initializer=tf.glorot_uniform_initializer(k)), 1.0) for k in (2, 3)])
    with tf.variable_scope("enc"):
        memory, state = tf.nn.dynamic_rnn(cell, tf.nn.embedding_lookup(emb, source), lengths, dtype=tf.float32)
        back = tf.nn.rnn_cell.GRUCell(width, kernel_initializer=tf.glorot_uniform_initializer(8))
        (fw, bw), _ = tf.nn.bidirectional_dynamic_rnn(back, tf.nn.rnn_cell.BasicRNNCell(width), memory, lengths, dtype=tf.float32)
    return source, lengths, emb, tf.concat([memory, 0 * fw], 2) + 0 * tf.reduce_sum(bw), state, words, width


def a_sequence_to_sequence_model_with_beams():
    """Attention in a decoder's while loop, its gradient, and beam search in another loop."""
    with _setter():
        source, lengths, emb, memory, state, words, width = _translator()
        n = 3
        query = tf.get_variable("q", [width, 2 * width], initializer=tf.glorot_uniform_initializer(5))
        out = tf.get_variable("o", [3 * width, words], initializer=tf.glorot_uniform_initializer(6))
        cell = tf.nn.rnn_cell.GRUCell(width, kernel_initializer=tf.glorot_uniform_initializer(7))

        def attend(h, memory, lengths):
            score = tf.squeeze(tf.matmul(memory, tf.expand_dims(tf.matmul(h, query), 2)), 2)
            score = tf.where(tf.sequence_mask(lengths, 5), score, tf.fill(tf.shape(score), -1e9))
            return tf.concat([h, tf.reduce_sum(tf.expand_dims(tf.nn.softmax(score), 2) * memory, 1)], 1)
        target = tf.reverse_sequence(source, tf.cast(lengths, tf.int64), 1, 0)
        inputs = tf.TensorArray(tf.float32, 5).unstack(tf.transpose(tf.nn.embedding_lookup(emb, target), [1, 0, 2]))

        def turn(t, h, logits):
            _, h = cell(inputs.read(t), h)
            return t + 1, h, logits.write(t, tf.matmul(attend(h, memory, lengths), out))
        with tf.variable_scope("dec"):
            cell.build([n, width])
            _, _, logits = tf.while_loop(lambda t, *_: t < tf.reduce_max(lengths), turn, [0, state[1].h, tf.TensorArray(tf.float32, 5)], parallel_iterations=4, swap_memory=True)
        logits = tf.transpose(logits.stack(), [1, 0, 2])
        loss = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=target, logits=logits) * tf.sequence_mask(lengths, 5, tf.float32)) / 12
        optimizer = tf.train.AdamOptimizer(0.02)
        gradients, variables = zip(*optimizer.compute_gradients(loss))
        clipped, norm = tf.clip_by_global_norm(gradients, 1.0)
        train = optimizer.apply_gradients(zip(clipped, variables))
        k = 2
        tile = lambda x: tf.reshape(tf.tile(tf.expand_dims(x, 1), [1, k] + [1] * (len(x.shape) - 1)), [n * k] + x.shape.as_list()[1:])
        wide, long_ = tile(memory), tile(lengths)

        def beam(t, h, scores, last, steps, parents):
            _, h = cell(tf.nn.embedding_lookup(emb, tf.reshape(last, [-1])), h)
            p = tf.nn.log_softmax(tf.matmul(attend(h, wide, long_), out))
            total = tf.reshape(tf.expand_dims(scores, 2) + tf.reshape(p, [n, k, words]), [n, -1])
            scores, at = tf.nn.top_k(total, k)
            parent, last = at // words, at % words
            h = tf.reshape(tf.batch_gather(tf.reshape(h, [n, k, width]), parent), [n * k, width])
            return t + 1, h, scores, last, steps.write(t, last), parents.write(t, parent)
        start = [0, tile(state[1].h), tf.constant([[0.0, -1e9]] * n), tf.ones([n, k], tf.int32), tf.TensorArray(tf.int32, 4), tf.TensorArray(tf.int32, 4)]
        found = tf.while_loop(lambda t, *_: t < 4, beam, start)
        steps, parents = found[4].stack(), found[5].stack()
        beams = tf.raw_ops.GatherTree(step_ids=steps, parent_ids=parents, max_sequence_lengths=tf.fill([n], 4), end_token=0) if hasattr(tf.raw_ops, "GatherTree") else steps
        return _steps([loss, norm, found[2], beams, tf.edit_distance(tf.sparse.from_dense(source), tf.sparse.from_dense(target))], train=train)


def averages_and_other_numbers_of_ps():
    """Moving averages with a Scaffold. Restores the checkpoint into other partitions, by name and from the averages."""
    where = folder + "/averages"

    def model(parts):
        with _setter():
            step = tf.train.get_or_create_global_step()
            w = tf.get_variable("w", [7, 3], initializer=tf.random_normal_initializer(seed=3), partitioner=tf.fixed_size_partitioner(parts))
            b = tf.get_variable("b", [3], initializer=tf.ones_initializer())
            rate = tf.train.exponential_decay(0.5, step, 2, 0.7, staircase=True)
            loss = tf.reduce_mean((tf.matmul(_init([4, 7], 1), w) * b - _init([4, 3], 2)) ** 2) + tf.nn.l2_loss(w) * 0.01
            train = tf.train.MomentumOptimizer(rate, 0.9, use_nesterov=True).minimize(loss, global_step=step)
            average = tf.train.ExponentialMovingAverage(0.8, step)
            with tf.control_dependencies([train]):
                return loss, average.apply([b]), average, w, b, rate
    loss, train, average, w, b, rate = model(2)
    scaffold = tf.train.Scaffold(saver=tf.train.Saver(max_to_keep=2, sharded=True))
    with tf.train.MonitoredTrainingSession(TARGET, True, where, scaffold, save_checkpoint_steps=3, save_summaries_steps=None) as s:
        out = [plain(s.run([loss, train, rate])[::2]) for _ in range(6)]
    for parts in (3, 1):
        forget()
        with tf.Graph().as_default():
            loss, train, average, w, b, rate = model(parts)
            with tf.Session(TARGET) as s:
                tf.train.Saver(tf.trainable_variables(), sharded=True).restore(s, tf.train.latest_checkpoint(where))
                out.append(plain(s.run(tf.convert_to_tensor(w))))
    forget()
    with tf.Graph().as_default():
        loss, train, average, w, b, rate = model(2)
        with tf.Session(TARGET) as s:
            tf.train.Saver({average.average_name(b): b}).restore(s, tf.train.latest_checkpoint(where))
            out.append(plain(s.run(b)))
    return out + [sorted(plain(v) for v, _ in tf.train.list_variables(where))]


def pictures_of_fixed_length():
    """The CIFAR-10 tutorial: fixed-length records, distortions, queues and summaries."""
    path = folder + "/data.bin"
    with open(path, "wb") as f:
        f.write(np.random.RandomState(0).randint(0, 256, 12 * (1 + 8 * 8 * 3)).astype(np.uint8).tobytes())
    names = tf.train.string_input_producer([path], shuffle=False, num_epochs=2)
    _, record = tf.FixedLengthRecordReader(1 + 8 * 8 * 3).read(names)
    record = tf.decode_raw(record, tf.uint8)
    label = tf.reshape(tf.cast(tf.strided_slice(record, [0], [1]), tf.int32) % 10, [1])
    picture = tf.cast(tf.transpose(tf.reshape(tf.strided_slice(record, [1], [193]), [3, 8, 8]), [1, 2, 0]), tf.float32)
    picture = tf.random_crop(picture, [6, 6, 3], seed=1)
    picture = tf.image.random_flip_left_right(picture, seed=2)
    picture = tf.image.random_contrast(tf.image.random_brightness(picture, 63, seed=3), 0.2, 1.8, seed=4)
    picture = tf.image.per_image_standardization(picture)
    pictures, labels = tf.train.batch([picture, label], 4, num_threads=1, capacity=20, allow_smaller_final_batch=True)
    tf.summary.image("pictures", pictures, 2)
    tf.summary.histogram("labels", labels)
    tf.summary.scalar("zero", tf.nn.zero_fraction(pictures))
    text = tf.summary.text("shown", tf.as_string(labels))
    out = []
    with tf.train.MonitoredSession(tf.train.ChiefSessionCreator(master=TARGET)) as s:
        while not s.should_stop():
            p, l, t = s.run([pictures, labels, tf.get_default_graph().get_tensor_by_name(text.name)])
            out.append([plain(l), round(float(np.abs(p).sum()), 2), len(t) > 10])
    return out


def distorted_pictures():
    """Inception's preprocessing: samples a bounding box, crops, resizes, shifts the colours, and draws the boxes."""
    pixels = tf.constant(np.random.RandomState(1).randint(0, 256, (24, 30, 3)).astype(np.uint8))
    marked = tf.constant([[[0.1, 0.2, 0.7, 0.8]]])
    begin, size, box = tf.image.sample_distorted_bounding_box(tf.shape(pixels), marked, seed=5, min_object_covered=0.1, aspect_ratio_range=[0.75, 1.33], area_range=[0.05, 1.0], use_image_if_no_bounding_boxes=True)
    real = tf.image.convert_image_dtype(tf.image.decode_png(tf.image.encode_png(pixels)), tf.float32)
    cut = tf.slice(real, begin, size)
    cut.set_shape([None, None, 3])
    out = [tf.image.resize_images(cut, [9, 9], m) for m in (0, 1, 2, 3)]
    one = tf.clip_by_value(tf.image.random_hue(tf.image.random_saturation(out[0], 0.5, 1.5, seed=2), 0.2, seed=3), 0, 1)
    shown = tf.image.draw_bounding_boxes(tf.expand_dims(real, 0), box)
    more = [tf.image.ssim(real, tf.image.flip_left_right(real), 1.0, filter_size=5), tf.image.total_variation(real), tf.image.sobel_edges(tf.expand_dims(real, 0)), tf.image.rot90(one), tf.image.central_crop(real, 0.5),
            tf.image.resize_image_with_crop_or_pad(one, 12, 5), tf.image.rgb_to_grayscale(one), tf.image.adjust_gamma(one, 0.7), tf.image.rgb_to_yiq(one), tf.image.psnr(real, real * 0.9, 1.0),
            tf.image.non_max_suppression(tf.constant([[0, 0, 1, 1], [0, 0, 1, 0.9], [0.5, 0.5, 1, 1]]), [0.3, 0.9, 0.5], 2),
            tf.image.extract_patches(tf.expand_dims(real, 0), [1, 3, 3, 1], [1, 5, 5, 1], [1, 1, 1, 1], "VALID")]
    return [round(float(np.sum(v)), 2) for v in _steps([begin, box, *out, one, shown, *more], 1)[0]]


def hooks():
    """Hooks that users add to a MonitoredTrainingSession."""
    with _setter():
        step = tf.train.get_or_create_global_step()
        w = tf.get_variable("w", [3], initializer=tf.ones_initializer())
        x = tf.placeholder(tf.float32, [3], "x")
        loss = tf.reduce_sum((w - x) ** 2, name="loss")
        train = tf.train.AdagradDAOptimizer(0.1, step).minimize(loss, global_step=step)
        tf.summary.scalar("loss", loss)
    where = folder + "/hooks"
    kept = {}

    class Kept(tf.train.SessionRunHook):
        def before_run(self, context):
            return tf.train.SessionRunArgs({"l": loss, "s": step}, {x: [1, 2, 3]})

        def after_run(self, context, values):
            kept.setdefault("at", []).append([values.results["s"] >= 0, bool(values.run_metadata is not None)])
    final = tf.train.FinalOpsHook({"w": w, "step": step})
    more = [tf.train.StopAtStepHook(last_step=12), tf.train.NanTensorHook(loss), tf.train.StepCounterHook(5, output_dir=where), tf.train.LoggingTensorHook({"loss": "loss:0"}, 4, at_end=False),
            tf.train.SummarySaverHook(4, output_dir=where, summary_op=tf.summary.merge_all()), tf.train.ProfilerHook(6, output_dir=where), tf.train.CheckpointSaverHook(where, save_steps=5), Kept(), final, tf.train.GlobalStepWaiterHook(0)]
    with tf.train.MonitoredTrainingSession(TARGET, True, hooks=more, save_summaries_steps=None, log_step_count_steps=None) as s:
        while not s.should_stop():
            s.run(train)
    events = [v.tag for f in sorted(os.listdir(where)) if "events" in f for e in tf.train.summary_iterator(where + "/" + f) for v in e.summary.value if v.tag == "loss"]
    # the hook reads the step while the step increments it, so it traces steps 6 and 12, or only 7, on either server
    return plain(final.final_ops_values), len(kept["at"]), len(events), sorted({f.split("-")[0] for f in os.listdir(where) if f.startswith(("timeline", "checkpoint"))})


def a_supervisor():
    """tf.train.Supervisor, which preceded MonitoredTrainingSession."""
    with _setter():
        step = tf.train.get_or_create_global_step()
        w = tf.get_variable("w", [3], initializer=tf.zeros_initializer())
        train = tf.train.ProximalAdagradOptimizer(0.5, l1_regularization_strength=0.01).minimize(tf.reduce_sum((w - [1.0, 2, 3]) ** 2), global_step=step)
        tf.summary.scalar("w", w[0])
        boss = tf.train.Supervisor(is_chief=True, logdir=folder + "/boss", global_step=step, summary_op=tf.summary.merge_all(), save_model_secs=1)
    with boss.managed_session(TARGET, config=tf.ConfigProto(allow_soft_placement=True)) as s:
        while not boss.should_stop():
            at = s.run([train, step])[1]
            if s.run(step) >= 10:
                boss.request_stop()
        out = plain(s.run(w))
    return out, at >= 9


def metrics():
    labels, guesses = tf.constant([0, 1, 1, 0, 1]), tf.constant([0.1, 0.4, 0.8, 0.6, 0.9])
    logits = _init([5, 6], 3, 2.0)
    many = [tf.metrics.auc(labels, guesses), tf.metrics.accuracy(labels, tf.round(guesses)), tf.metrics.precision(labels, guesses > 0.5), tf.metrics.recall(labels, guesses > 0.5),
            tf.metrics.mean_iou(labels, tf.cast(guesses > 0.5, tf.int32), 2), tf.metrics.precision_at_k(tf.constant([[1], [2], [3], [0], [5]], tf.int64), logits, 2), tf.metrics.recall_at_k(tf.constant([[1], [2], [3], [0], [5]], tf.int64), logits, 3),
            tf.metrics.average_precision_at_k(tf.constant([[1], [2], [3], [0], [5]], tf.int64), logits, 3), tf.metrics.mean_squared_error(tf.cast(labels, tf.float32), guesses), tf.metrics.mean_cosine_distance(logits, logits * 0.5, 1),
            tf.metrics.sensitivity_at_specificity(labels, guesses, 0.5), tf.metrics.precision_at_thresholds(labels, guesses, [0.3, 0.7]), tf.metrics.mean_per_class_accuracy(labels, tf.cast(guesses > 0.5, tf.int32), 2),
            tf.metrics.false_positives_at_thresholds(labels, guesses, [0.3]), tf.metrics.percentage_below(guesses, 0.5), tf.metrics.root_mean_squared_error(guesses, guesses * 2), tf.metrics.mean_tensor(logits), tf.metrics.auc(labels, guesses, curve="PR", summation_method="careful_interpolation")]
    values, updates = zip(*many)
    with tf.Session(TARGET) as s:
        s.run(tf.local_variables_initializer())
        for _ in range(2):
            s.run(updates)
        return plain(s.run(values)) + plain(s.run([tf.math.confusion_matrix(labels, [0, 1, 0, 0, 1]), tf.nn.in_top_k(logits, [0, 1, 2, 3, 4], 2)]))


def functions_of_functions():
    """map_fn, scan, foldr, case, custom gradients, Hessians, and the gradient of a loop inside a loop."""
    x = tf.constant([1.0, 2.0, 3.0])
    mapped = tf.map_fn(lambda v: (v * 2, v + 1), x, dtype=(tf.float32, tf.float32), parallel_iterations=2)
    scanned = tf.scan(lambda a, v: a * 0.5 + v, x, initializer=0.0)
    folded = tf.foldr(lambda a, v: a - v, x)

    @tf.custom_gradient
    def odd(v):
        return tf.sin(v), lambda g: g * 7
    chosen = tf.case([(x[0] > 5, lambda: x), (x[1] > 1, lambda: x * 3)], default=lambda: -x, exclusive=False)
    hessian = tf.hessians(tf.reduce_sum(x ** 3 + x * tf.sin(x)), x)[0]
    inner = lambda i, v: (i + 1, tf.while_loop(lambda j, u: j < 2, lambda j, u: (j + 1, u * v), [0, v])[1])
    outer = tf.while_loop(lambda i, v: i < 2, inner, [0, x[1]])[1]
    checked = tf.Print(tf.identity(x), [x], "seen: ", first_n=1)
    with tf.control_dependencies([tf.assert_equal(tf.shape(x)[0], 3), tf.assert_less(x, 9.0), tf.verify_tensor_all_finite(x, "no")]):
        last = tf.identity(checked)
    return _steps([mapped, scanned, folded, tf.gradients(odd(x), x), chosen, hessian, tf.gradients(outer, x), tf.gradients(scanned, x), last, tf.reduce_logsumexp(x), tf.linalg.expm(tf.diag(x))], 1)


def columns():
    """Feature columns of every kind, and the input layer that combines them."""
    f = tf.feature_column
    words = f.categorical_column_with_vocabulary_list("w", ["a", "b", "c"], num_oov_buckets=2)
    hashed, number = f.categorical_column_with_hash_bucket("h", 7), f.numeric_column("x", (2,), normalizer_fn=lambda v: v / 3)
    cut = f.bucketized_column(f.numeric_column("y"), [0.0, 1.0, 2.0])
    weighted = f.weighted_categorical_column(f.categorical_column_with_identity("i", 5, default_value=0), "wt")
    shared = f.shared_embedding_columns([f.categorical_column_with_identity("s", 6), f.categorical_column_with_identity("t", 6)], 3, initializer=tf.ones_initializer())
    many = [f.indicator_column(words), f.embedding_column(hashed, 3, combiner="sqrtn", initializer=tf.ones_initializer()), number, cut, f.indicator_column(weighted), f.indicator_column(f.crossed_column([cut, "h"], 9)), *shared]
    features = {"w": tf.constant([["a", "z"], ["c", ""]]), "h": tf.constant([["p"], ["q"]]), "x": tf.constant([[1.0, 2], [3, 4]]), "y": tf.constant([[0.5], [3.0]]),
                "i": tf.constant([[1, 2], [4, 9]], tf.int64), "wt": tf.constant([[0.5, 1], [2, 1]]), "s": tf.constant([[1], [2]]), "t": tf.constant([[3], [5]])}
    with _setter(), tf.variable_scope("c", partitioner=tf.fixed_size_partitioner(2)):
        dense = f.input_layer(features, many)
        line = f.linear_model(features, [words, hashed, cut, weighted], units=2, sparse_combiner="mean")
        loss = tf.reduce_sum(dense ** 2) + tf.reduce_sum((line - 1) ** 2)
        train = tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01).minimize(loss)
        return _steps([loss, dense, line], 3, train=train)


def a_parameter_server_strategy():
    """tf.distribute's first ParameterServerStrategy: between-graph replication with one worker."""
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(tf.train.ClusterSpec(CLUSTER), task_type="worker", task_id=0, num_accelerators={"GPU": 0}, master=TARGET)
    strategy = tf.distribute.experimental.ParameterServerStrategy(resolver)
    with strategy.scope():
        w = tf.get_variable("w", [4, 2], initializer=tf.ones_initializer())
        step = tf.train.get_or_create_global_step()
        data = tf.data.Dataset.from_tensor_slices(np.arange(24).reshape(6, 4).astype(np.float32) / 24).repeat().batch(2)
        it = strategy.make_dataset_iterator(data)
        start = it.initialize()
        optimizer = tf.train.GradientDescentOptimizer(0.1)

        def one(x):
            loss = tf.reduce_mean((tf.matmul(x, w) - 1) ** 2)
            with tf.control_dependencies([optimizer.minimize(loss, global_step=step)]):
                return tf.identity(loss)
        loss = strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.extended.call_for_each_replica(one, (it.get_next(),)), axis=None)
        with tf.Session(TARGET) as s:
            s.run([tf.global_variables_initializer(), start])
            return [plain(s.run(loss)) for _ in range(4)], plain(s.run(step)), w.device


def every_optimizer():
    out = {}
    for name, make in {"adadelta": lambda: tf.train.AdadeltaOptimizer(0.5), "ftrl": lambda: tf.train.FtrlOptimizer(0.3), "proximal": lambda: tf.train.ProximalGradientDescentOptimizer(0.2, 0.01, 0.01),
                       "centered": lambda: tf.train.RMSPropOptimizer(0.1, momentum=0.5, centered=True), "adam": lambda: tf.train.AdamOptimizer(0.1), "adagrad": lambda: tf.train.AdagradOptimizer(0.2), "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9)}.items():
        for resource in (False, True):
            with tf.Graph().as_default(), _setter():
                w = tf.get_variable("w", [9, 3], initializer=tf.random_normal_initializer(seed=2), use_resource=resource, partitioner=tf.fixed_size_partitioner(2))
                b = tf.get_variable("b", [3], initializer=tf.ones_initializer(), use_resource=resource)
                x = tf.nn.embedding_lookup_sparse(w, tf.SparseTensor([[0, 0], [0, 1], [1, 0]], tf.constant([1, 5, 5], tf.int64), [2, 2]), None, combiner="mean")
                loss = tf.reduce_sum((x * b - 2) ** 2)
                out[f"{name} {resource}"] = _steps(loss, 4, make().minimize(loss))
    return out


def zeros_keep_their_sign():
    """L1 regularisation sets weights to zero; the sign of a zero is compared."""
    out = {}
    for name, make in {"proximal": lambda: tf.train.ProximalGradientDescentOptimizer(0.1, 5.0), "adagrad": lambda: tf.train.ProximalAdagradOptimizer(0.1, l1_regularization_strength=5.0),
                       "dual averaging": lambda: tf.train.AdagradDAOptimizer(0.1, step, l1_regularization_strength=5.0)}.items():
        with tf.Graph().as_default(), _setter():
            step = tf.train.get_or_create_global_step()
            w = tf.get_variable("w", initializer=[0.1, -0.1, 9.0])
            train = make().minimize(tf.reduce_sum(w ** 2), global_step=step)
            with tf.Session(TARGET) as s:
                s.run(tf.global_variables_initializer())
                s.run(train)
                out[name] = [str(x) for x in s.run(w)]
    return out


def old_producers():
    """Slice and range input producers, also shuffled; batch_join, maybe_batch, padded batches, a seeded
    RandomShuffleQueue."""
    a, b = tf.train.slice_input_producer([tf.range(10), tf.range(10) * 2], shuffle=False, num_epochs=1)
    joined = tf.train.batch_join([[a, b]], 3, allow_smaller_final_batch=True)
    kept = tf.train.maybe_batch([tf.train.range_input_producer(8, shuffle=False, num_epochs=1).dequeue()], tf.constant(True), 4)
    ragged = tf.train.batch([tf.fill([tf.train.range_input_producer(6, shuffle=False, num_epochs=1).dequeue() + 1], 7)], 3, dynamic_pad=True)
    shuffled = tf.train.slice_input_producer([tf.range(7), tf.range(7) * 2], num_epochs=3, seed=4)
    out = {"joined": [], "kept": [], "ragged": [], "shuffled": []}
    for name, what in (("joined", joined), ("kept", kept), ("ragged", ragged), ("shuffled", shuffled)):
        with tf.Session(TARGET) as s:
            s.run([tf.local_variables_initializer(), tf.global_variables_initializer()])
            coordinator = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(s, coordinator)
            try:
                while not coordinator.should_stop():
                    out[name].append(plain(s.run(what)))
            except tf.errors.OutOfRangeError:
                coordinator.request_stop()
            coordinator.join(threads, stop_grace_period_secs=20, ignore_live_threads=True)
        forget()
    queue = tf.RandomShuffleQueue(40, 3, [tf.int32], [[]], seed=5)
    fill, some, one, close = queue.enqueue_many([tf.range(20)]), queue.dequeue_many(6), queue.dequeue(), queue.close()
    with tf.Session(TARGET) as s:
        s.run(fill)
        out["drawn"] = plain([s.run(some), s.run(one), s.run(some), s.run(fill), s.run(close), s.run(queue.dequeue_up_to(30))])
    return out


def gradients_debugger():
    """GradientsDebugger of tfdbg on tensors and on reference variables."""
    from tensorflow.python.debug.lib.debug_gradients import GradientsDebugger
    x = tf.Variable([1.0, 2.0], use_resource=False)
    y = tf.square(x._variable)
    debugger = GradientsDebugger()
    with debugger:
        z = tf.reduce_sum(debugger.identify_gradient(y) * 3)
        by_x, = tf.gradients(z, [x])
    reference = tf.raw_ops.DebugGradientRefIdentity(input=x._variable)
    with tf.Session(TARGET) as s:
        s.run(tf.global_variables_initializer())
        return [plain(s.run([z, by_x, debugger.gradient_tensor(y)])), plain(s.run(tf.assign_add(reference, [1.0, 1.0])))]


def first_tensor_arrays():
    """The first two versions of TensorArray, with string handles. Only a GraphDef with an old producer version may
    use them."""
    out = {}
    for version in ("", "V2"):
        g = tf.GraphDef()
        g.versions.producer = 15

        def node(name, op, *inputs, **attrs):
            n = g.node.add(name=name, op=op, input=inputs)
            for key, value in attrs.items():
                attr = n.attr[key]
                if key == "value":
                    attr.tensor.CopyFrom(tf.make_tensor_proto(value))
                elif isinstance(value, tf.DType):
                    attr.type = value.as_datatype_enum
                elif isinstance(value, bool):
                    attr.b = value
                else:
                    attr.s = value
            return name

        def const(name, value):
            return node(name, "Const", value=value, dtype=tf.as_dtype(np.asarray(value).dtype))

        def array(op, name, *inputs, **attrs):
            return node(name, f"TensorArray{op}{version}", *inputs, **attrs)
        zero, one, f = const("zero", np.int32(0)), const("one", np.int32(1)), tf.float32
        both, lengths, flow = const("both", np.int32([1, 0])), const("lengths", np.int64([2, 1])), const("flow", np.float32(0))
        x, rows = const("x", np.float32([1, 2])), const("rows", np.float32([[1, 2], [3, 4], [5, 6]]))
        a = array("", "a", const("two", np.int32(2)), dtype=f, clear_after_read=False)
        wrote = array("Write", "w1", a, one, x, array("Write", "w0", a, zero, x, flow, T=f), T=f)
        array("Read", "read", a, one, wrote, dtype=f)
        array("Gather", "gather", a, both, wrote, dtype=f)
        array("Concat", "concat", a, wrote, dtype=f)
        array("Size", "size", a, wrote)
        grad = array("Grad", "grad", a, wrote, source=b"g")
        summed = array("Write", "g1", grad, one, x, array("Write", "g0", grad, one, x, wrote, T=f), T=f)
        array("Gather", "sums", array("Grad", "again", a, summed, source=b"g"), both, summed, dtype=f)
        s = array("", "s", const("most", np.int32(0)), dtype=f, dynamic_size=True)
        array("Concat", "parts", s, array("Split", "split", s, rows, lengths, flow, T=f), dtype=f)
        s = array("", "t", "most", dtype=f, dynamic_size=True)
        array("Read", "scattered", s, zero, array("Scatter", "scatter", s, both, const("pair", np.float32([[1, 2], [3, 4]])), flow, T=f), dtype=f)
        array("Read", "missing", a, const("far", np.int32(7)), wrote, dtype=f)
        array("Close", "close", a)
        names = ["read:0", "gather:0", "concat:0", "concat:1", "size:0", "sums:0", "parts:0", "parts:1", "scattered:0"]
        if not version:
            s = array("", "u", "most", dtype=f, dynamic_size=True)
            node("packed", "TensorArrayPack", s, node("unpacked", "TensorArrayUnpack", s, rows, flow, T=f), dtype=f)
            names.append("packed:0")
        with tf.Graph().as_default():
            tf.import_graph_def(g, name="")
            with tf.Session(TARGET) as session:
                out[version] = [plain(session.run(names)), plain(session.run("close"))]
                try:
                    session.run("missing:0")
                except tf.errors.InvalidArgumentError as e:
                    out[version].append("Tried to read from index 7 but array size is: 2" in str(e))
    return out


if __name__ == "__main__":
    answer_each(forget)
    shutil.rmtree(folder, ignore_errors=True)
