# SPDX-License-Identifier: Apache-2.0
"""Estimators that read their cluster from TF_CONFIG: a chief, two parameter servers and a worker."""
import json
import os
import tempfile

import numpy as np

from common import CLUSTER, answer_each, plain, tf

STEPS = 10
WORDS = ["red", "green", "blue", "grey"]


def _inputs(n=64):
    here = np.random.RandomState(3)
    word, size, weight = here.randint(0, 4, n), here.randint(0, 30, n), here.normal(0, 1, n).astype(np.float32)
    features = {"word": np.array(WORDS)[word].astype(object), "tag": np.array(WORDS)[3 - word].astype(object), "id": size.astype(np.int64), "size": weight}
    return features, ((word + size) % 3).astype(np.int64)


def _input_fn():
    """The global step alone selects the batch, so the input needs no dataset and no queue."""
    features, labels = _inputs()
    step = tf.train.get_or_create_global_step()
    first = tf.cast(tf.mod(step, 8), tf.int32) * 8
    rows = tf.range(first, first + 8)
    take = lambda a: tf.gather(tf.constant(a), rows)
    return {k: take(list(v) if v.dtype == object else v) for k, v in features.items()}, take(labels)


def _columns():
    column = tf.feature_column
    word = column.categorical_column_with_vocabulary_list("word", WORDS)
    identity = column.categorical_column_with_identity("id", 30)
    hashed = column.categorical_column_with_hash_bucket("tag", 7)
    wide = [word, identity, hashed, column.numeric_column("size")]
    deep = [column.numeric_column("size"), column.indicator_column(word),
            column.embedding_column(identity, 4, initializer=tf.truncated_normal_initializer(0, 0.5, seed=2))]
    return wide, deep


def _config():
    """Returns the RunConfig of the chief."""
    os.environ["TF_CONFIG"] = json.dumps({"cluster": CLUSTER, "task": {"type": "chief", "index": 0}})
    return tf.estimator.RunConfig(model_dir=tempfile.mkdtemp(prefix="estimator-"), tf_random_seed=5, save_summary_steps=None,
                                  save_checkpoints_secs=None, save_checkpoints_steps=STEPS // 2, log_step_count_steps=None)


def _run(make):
    """Trains as the chief, and returns the variables."""
    config = _config()
    estimator = make(config)
    estimator.train(_input_fn, max_steps=STEPS)
    variables = {name: estimator.get_variable_value(name).tolist() for name in sorted(estimator.get_variable_names())}
    return {"master": config.master == "grpc://" + CLUSTER["chief"][0], "ps": config.num_ps_replicas, "variables": variables}


def linear_classifier():
    wide, _ = _columns()
    return _run(lambda config: tf.estimator.LinearClassifier(wide, n_classes=3, config=config))


def linear_classifier_of_buckets_and_crosses():
    column = tf.feature_column
    sizes = column.bucketized_column(column.numeric_column("size"), [-1.0, 0.0, 1.0])
    columns = [sizes, column.crossed_column([sizes, "word"], 20)]
    return _run(lambda config: tf.estimator.LinearClassifier(columns, n_classes=3, config=config))


def dnn_classifier():
    _, deep = _columns()
    return _run(lambda config: tf.estimator.DNNClassifier([12, 6], deep, n_classes=3, config=config, dropout=0.2,
                                                          optimizer=lambda: tf.train.AdagradOptimizer(0.1)))


def wide_and_deep_classifier():
    wide, deep = _columns()
    return _run(lambda config: tf.estimator.DNNLinearCombinedClassifier(
        linear_feature_columns=wide, dnn_feature_columns=deep, dnn_hidden_units=[8], n_classes=3, config=config,
        linear_optimizer=lambda: tf.train.FtrlOptimizer(0.2), dnn_optimizer=lambda: tf.train.AdagradOptimizer(0.1)))


def an_estimator_with_partitioned_parameters():
    """A custom model_fn with a table in two partitions."""
    def model(features, labels, mode):
        table = tf.get_variable("table", [30, 3], initializer=tf.glorot_uniform_initializer(seed=1),
                                partitioner=tf.fixed_size_partitioner(2))
        logits = tf.nn.embedding_lookup(table, features["id"], partition_strategy="div")
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        train = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)
    return _run(lambda config: tf.estimator.Estimator(model, config=config))


def prediction_begins_at_the_first_row_after_evaluation():
    """Each call has its own session, whose input starts at the first row."""
    def rows():
        data = tf.data.Dataset.from_tensor_slices(({"x": np.arange(100, dtype=np.float32)}, np.ones(100, np.float32)))
        return tf.data.make_one_shot_iterator(data.batch(5)).get_next()

    def model(features, labels, mode):
        scaled = features["x"] * tf.get_variable("weight", [1])
        counted = tf.assign_add(tf.train.get_global_step(), 1)
        return tf.estimator.EstimatorSpec(mode, {"x": features["x"]}, tf.reduce_mean(scaled), counted)
    estimator = tf.estimator.Estimator(model, config=_config())
    estimator.train(rows, steps=3)
    evaluated = [estimator.evaluate(rows, steps=15)["global_step"] for _ in range(2)]
    predicted = [float(row["x"]) for row in estimator.predict(rows)]
    return [plain(evaluated), len(predicted), predicted[0], predicted[-1]]


answer_each()
