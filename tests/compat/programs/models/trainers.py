# SPDX-License-Identifier: Apache-2.0
"""Complete trainers, each to its last step; compares losses, variables, checkpoints and summaries."""
import glob
import os
import tempfile

import numpy as np

from common import CLUSTER, TARGET, answer_each, forget, tf

STEPS = 12


def on_the_cluster(task=0):
    return tf.device(tf.train.replica_device_setter(cluster=tf.train.ClusterSpec(CLUSTER),
                                                    worker_device=f"/job:worker/task:{task}"))


def weights(seed):
    return tf.glorot_uniform_initializer(seed=seed)


def shown(folder):
    """Returns the summaries of the event files as [[step, tag, value]], histograms by their moments."""
    out = []
    for path in sorted(glob.glob(f"{folder}/seen/events*")):
        for event in tf.train.summary_iterator(path):
            for v in event.summary.value:
                if "fraction_" in v.tag:  # the fill level of a queue depends on timing
                    continue
                h = v.histo
                out.append([event.step, v.tag, [h.min, h.max, h.num, h.sum] if v.HasField("histo") else float(v.simple_value)])
    return out


def variables_of(folder):
    reader = tf.train.load_checkpoint(tf.train.latest_checkpoint(folder))
    return {name: reader.get_tensor(name).tolist() for name in sorted(reader.get_variable_to_shape_map())}


def trained(train_op, loss, feed=lambda step: {}, steps=STEPS, more=None, hooks=()):
    """Runs to the last step in a monitored session, and returns losses, variables, summaries and files.

        Summaries are fetched in separate steps. A step that also updates the variables could read them before or
    after.

    """
    tf.summary.scalar("loss", loss)
    for v in tf.trainable_variables():
        tf.summary.histogram(v.op.name, v)
    merged, fetched = tf.summary.merge_all(), [train_op, loss] + ([more] if more is not None else [])
    folder, losses, others = tempfile.mkdtemp(prefix="trained-"), [], []
    writer = tf.summary.FileWriter(f"{folder}/seen")  # separate from the session's own writer
    with tf.train.MonitoredTrainingSession(TARGET, checkpoint_dir=folder, save_checkpoint_steps=steps // 2,
                                           save_checkpoint_secs=None, save_summaries_steps=None, save_summaries_secs=None,
                                           log_step_count_steps=None,
                                           hooks=[tf.train.StopAtStepHook(last_step=steps), *hooks]) as sess:
        while not sess.should_stop():
            if len(losses) % 4 == 0:
                writer.add_summary(sess.run(merged, feed(len(losses))), len(losses))
            got = sess.run(fetched, feed(len(losses)))
            losses.append(float(got[1]))
            others.extend(got[2:])
    writer.close()
    return {"losses": losses, "variables": variables_of(folder), "summaries": shown(folder), "others": others,
            "files": sorted(os.path.basename(p).split("-")[1] for p in glob.glob(f"{folder}/model.ckpt-*.index"))}


def images(step, n=8):
    here = np.random.RandomState(step)
    labels = here.randint(0, 4, n)
    pictures = here.normal(0, 0.3, [n, 12, 12, 2]) + labels[:, None, None, None]
    return pictures.astype(np.float32), labels.astype(np.int64)


def cnn(optimizer, batch_norm=False, data_format="channels_last"):
    with on_the_cluster():
        x, y = tf.placeholder(tf.float32, [None, 12, 12, 2]), tf.placeholder(tf.int64, [None])
        h = tf.layers.conv2d(x, 6, 3, padding="same", kernel_initializer=weights(1), activation=tf.nn.relu)
        h = tf.layers.max_pooling2d(h, 2, 2)
        if batch_norm:
            h = tf.layers.batch_normalization(h, training=True)
        h = tf.layers.conv2d(h, 8, 3, strides=2, kernel_initializer=weights(2), activation=tf.nn.relu)
        h = tf.layers.average_pooling2d(h, 2, 1, padding="same")
        h = tf.layers.dropout(tf.layers.flatten(h), 0.4, training=True, seed=11)
        logits = tf.layers.dense(h, 4, kernel_initializer=weights(3))
        loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
        right = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), y), tf.float32))
        step = tf.train.get_or_create_global_step()
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train = optimizer.minimize(loss, global_step=step)

    def feed(s):
        pictures, labels = images(s)
        return {x: pictures, y: labels}
    return trained(train, loss, feed, more=right)


def a_cnn_with_adam_and_dropout():
    return cnn(tf.train.AdamOptimizer(0.01))


def a_cnn_with_momentum_and_batch_normalization():
    return cnn(tf.train.MomentumOptimizer(0.02, 0.9, use_nesterov=True), batch_norm=True)


def a_cnn_with_rmsprop_and_a_decayed_rate():
    rate = tf.train.exponential_decay(0.01, tf.train.get_or_create_global_step(), 3, 0.7, staircase=True)
    return cnn(tf.train.RMSPropOptimizer(rate, momentum=0.5, centered=True))


def words(step, n=16, vocabulary=40):
    here = np.random.RandomState(step)
    rows = here.randint(0, vocabulary, n)
    return rows.astype(np.int64), (rows % 3).astype(np.int64)


def embeddings(strategy, optimizer, resource=False):
    """A table in two partitions, one on each parameter server."""
    with on_the_cluster():
        rows, labels = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.int64, [None])
        table = tf.get_variable("table", [40, 5], initializer=tf.random_uniform_initializer(-1, 1, seed=4), use_resource=resource,
                                partitioner=tf.fixed_size_partitioner(2))
        h = tf.nn.embedding_lookup(table, rows, partition_strategy=strategy)
        logits = tf.layers.dense(h, 3, kernel_initializer=weights(5))
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        train = optimizer.minimize(loss, global_step=tf.train.get_or_create_global_step())
        where = [p.device for p in table]

    def feed(s):
        r, l = words(s)
        return {rows: r, labels: l}
    return {**trained(train, loss, feed), "where": where}


def embeddings_over_two_ps_div():
    return embeddings("div", tf.train.AdagradOptimizer(0.5))


def embeddings_over_two_ps_mod():
    return embeddings("mod", tf.train.AdamOptimizer(0.05))


def embeddings_over_two_ps_as_resources():
    return embeddings("div", tf.train.FtrlOptimizer(0.5, l1_regularization_strength=0.001), resource=True)


def embeddings_of_bags_of_words():
    with on_the_cluster():
        bag = tf.sparse_placeholder(tf.int64)
        labels = tf.placeholder(tf.float32, [None])
        table = tf.get_variable("table", [40, 4], initializer=tf.random_normal_initializer(seed=6),
                                partitioner=tf.fixed_size_partitioner(2))
        h = tf.nn.embedding_lookup_sparse(table, bag, None, combiner="sqrtn", max_norm=1.5)
        loss = tf.losses.mean_squared_error(labels, tf.squeeze(tf.layers.dense(h, 1, kernel_initializer=weights(7)), 1))
        train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, global_step=tf.train.get_or_create_global_step())

    def feed(s):
        here = np.random.RandomState(s)
        sizes = here.randint(1, 5, 8)
        indices = [[row, column] for row, n in enumerate(sizes) for column in range(n)]
        values = here.randint(0, 40, len(indices))
        return {bag: tf.SparseTensorValue(indices, values, [8, 5]), labels: sizes.astype(np.float32)}
    return trained(train, loss, feed)


def towers_in_one_graph():
    """In-graph replication: one client builds a copy of the model on each worker, and averages the gradients."""
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    grads, losses, feeds = [], [], []
    for task in range(2):
        with on_the_cluster(task), tf.variable_scope("model", reuse=task > 0):
            x, y = tf.placeholder(tf.float32, [8, 12]), tf.placeholder(tf.float32, [8, 1])
            h = tf.layers.dense(x, 10, tf.tanh, kernel_initializer=weights(1), name="one")
            out = tf.layers.dense(h, 1, kernel_initializer=weights(2), name="two")
            losses.append(tf.losses.mean_squared_error(y, out))
            grads.append(optimizer.compute_gradients(losses[-1]))
            feeds.append((x, y))
    with on_the_cluster():
        mean = [((a + b) / 2.0, v) for (a, v), (b, _) in zip(*grads)]
        clipped, norm = tf.clip_by_global_norm([g for g, _ in mean], 0.5)
        train = optimizer.apply_gradients(zip(clipped, [v for _, v in mean]), global_step=tf.train.get_or_create_global_step())
        loss = tf.add_n(losses) / 2.0

    def feed(step):
        out = {}
        for task, (x, y) in enumerate(feeds):
            rows = np.random.RandomState(10 * step + task).uniform(-1, 1, [8, 12]).astype(np.float32)
            out.update({x: rows, y: rows.sum(1, keepdims=True)})
        return out
    return trained(train, loss, feed, more=norm)


def sequences(step, n=6, length=7):
    here = np.random.RandomState(step)
    x = here.uniform(-1, 1, [n, length, 3]).astype(np.float32)
    sizes = here.randint(2, length + 1, n).astype(np.int32)
    return x, sizes, np.array([x[i, :k].sum() for i, k in enumerate(sizes)], np.float32)


def rnn(cell, **more):
    with on_the_cluster():
        x, sizes = tf.placeholder(tf.float32, [None, 7, 3]), tf.placeholder(tf.int32, [None])
        y = tf.placeholder(tf.float32, [None])
        with tf.variable_scope("rnn", initializer=weights(8)):
            _, state = tf.nn.dynamic_rnn(cell, x, sizes, dtype=tf.float32, **more)
        last = state.h if hasattr(state, "h") else state
        loss = tf.losses.mean_squared_error(y, tf.squeeze(tf.layers.dense(last, 1, kernel_initializer=weights(9)), 1))
        optimizer = tf.train.AdamOptimizer(0.02)
        pairs = [(tf.clip_by_norm(g, 1.0), v) for g, v in optimizer.compute_gradients(loss)]
        train = optimizer.apply_gradients(pairs, global_step=tf.train.get_or_create_global_step())

    def feed(s):
        a, b, c = sequences(s)
        return {x: a, sizes: b, y: c}
    return trained(train, loss, feed)


def an_lstm_in_a_while_loop():
    return rnn(tf.nn.rnn_cell.BasicLSTMCell(5))


def a_gru_in_a_while_loop():
    return rnn(tf.nn.rnn_cell.GRUCell(5), parallel_iterations=1)


def a_loop_by_hand():
    """tf.while_loop with a TensorArray of losses and its gradient; the number of iterations is fed."""
    with on_the_cluster():
        x, trips = tf.placeholder(tf.float32, [4]), tf.placeholder(tf.int32, [])
        w = tf.get_variable("w", initializer=[[0.5, -0.25, 0.0, 0.25]] * 4)

        def body(i, h, array):
            h = tf.tanh(tf.squeeze(tf.matmul(tf.expand_dims(h, 0), w), 0) + x)
            return i + 1, h, array.write(i, tf.reduce_sum(tf.square(h - 0.5)))
        _, _, array = tf.while_loop(lambda i, *_: i < trips, body, (0, tf.zeros([4]), tf.TensorArray(tf.float32, trips)))
        loss = tf.reduce_mean(array.stack())
        train = tf.train.GradientDescentOptimizer(0.2).minimize(loss, global_step=tf.train.get_or_create_global_step())
    return trained(train, loss, lambda s: {x: np.random.RandomState(s).uniform(-1, 1, 4), trips: 1 + s % 5})


def _record_files():
    """Writes two TFRecord files of examples and a text file, which the tasks read."""
    folder = tempfile.mkdtemp(prefix="input-")
    for k in range(2):
        with tf.io.TFRecordWriter(f"{folder}/part{k}.tfrecord") as out:
            for i in range(12):
                x = np.random.RandomState(100 * k + i).uniform(-1, 1, 4)
                feature = {"x": tf.train.Feature(float_list=tf.train.FloatList(value=x)),
                           "id": tf.train.Feature(int64_list=tf.train.Int64List(value=[100 * k + i]))}
                out.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    with open(f"{folder}/rows.csv", "w") as out:
        out.writelines(f"{i},{(i * 7) % 5 / 4},word{i}\n" for i in range(20))
    return folder


def fit(x, y):
    h = tf.layers.dense(x, 6, tf.nn.relu, kernel_initializer=weights(1))
    loss = tf.losses.mean_squared_error(y, tf.layers.dense(h, 1, kernel_initializer=weights(2)))
    return loss, tf.train.GradientDescentOptimizer(0.05).minimize(loss, global_step=tf.train.get_or_create_global_step())


def input_from_queues_of_records():
    """string_input_producer, a reader, parse_single_example and batch, with one thread so that the order is fixed."""
    folder = _record_files()
    with on_the_cluster():
        names = tf.train.string_input_producer(sorted(glob.glob(f"{folder}/*.tfrecord")), shuffle=False)
        _, record = tf.TFRecordReader().read(names)
        parsed = tf.parse_single_example(record, {"x": tf.FixedLenFeature([4], tf.float32), "id": tf.FixedLenFeature([], tf.int64)})
        x, ids = tf.train.batch([parsed["x"], parsed["id"]], 5, num_threads=1, capacity=20)
        loss, train = fit(x, tf.reduce_sum(x, 1, keepdims=True))
    return trained(train, loss, more=ids)


def input_from_queues_of_text():
    folder = _record_files()
    with on_the_cluster():
        names = tf.train.string_input_producer([f"{folder}/rows.csv"], shuffle=False)
        _, line = tf.TextLineReader().read(names)
        number, real, word = tf.decode_csv(line, [[0], [0.0], [""]])
        n, x, w = tf.train.batch([number, real, word], 4, num_threads=1)
        loss, train = fit(tf.stack([tf.cast(n, tf.float32) / 20.0, x], 1), tf.expand_dims(x, 1))
    return trained(train, loss, more=w)


def input_from_a_shuffled_queue():
    """The server chooses the shuffle order, but every epoch must have each row once."""
    with on_the_cluster():
        row = tf.train.slice_input_producer([tf.range(24)], shuffle=True, num_epochs=2, seed=3)[0]
        rows = tf.train.shuffle_batch([row], 6, 40, 10, num_threads=1, seed=5)
    seen = []
    with tf.train.MonitoredTrainingSession(TARGET) as sess:
        while not sess.should_stop():
            try:
                seen.extend(sess.run(rows).tolist())
            except tf.errors.OutOfRangeError:
                break
    return [len(seen), sorted(seen)]


def input_from_a_dataset():
    folder = _record_files()
    with on_the_cluster():
        with tf.device("/job:worker/task:0"):
            data = tf.data.TFRecordDataset(sorted(glob.glob(f"{folder}/*.tfrecord"))).repeat().batch(6)
            batch = tf.data.make_one_shot_iterator(data).get_next()
        parsed = tf.parse_example(batch, {"x": tf.FixedLenFeature([4], tf.float32), "id": tf.FixedLenFeature([], tf.int64)})
        loss, train = fit(parsed["x"], tf.reduce_sum(parsed["x"], 1, keepdims=True))
    return trained(train, loss, more=parsed["id"])


def _keras_model():
    keras = tf.keras
    start = lambda seed: keras.initializers.glorot_uniform(seed=seed)
    return keras.Sequential([
        keras.layers.Conv2D(4, 3, activation="relu", input_shape=(12, 12, 2), kernel_initializer=start(1)),
        keras.layers.MaxPooling2D(), keras.layers.Flatten(),
        keras.layers.Dense(8, activation="relu", kernel_initializer=start(2)),
        keras.layers.Dense(4, activation="softmax", kernel_initializer=start(3))])


def a_keras_model_in_graph_mode():
    """fit, evaluate and predict in a session on a task of the cluster."""
    keras = tf.keras
    x, y = images(0, 48)
    with tf.Session(TARGET) as sess:
        keras.backend.set_session(sess)
        with on_the_cluster():
            model = _keras_model()
        model.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"])
        history = model.fit(x, y, batch_size=8, epochs=3, shuffle=False, verbose=0, validation_data=images(1, 16))
        out = {"history": {k: [float(v) for v in values] for k, values in history.history.items()},
               "evaluated": [float(v) for v in model.evaluate(x, y, batch_size=16, verbose=0)],
               "predicted": model.predict(x[:4]), "weights": [w.tolist() for w in model.get_weights()]}
        return out


answer_each(forget)
