# SPDX-License-Identifier: Apache-2.0
"""TensorFlow 1.15's boosted trees estimators, on one worker and as the chief of a cluster with a parameter server."""
import json
import os
import tempfile

import numpy as np
from google.protobuf.json_format import MessageToDict
from tensorflow.core.kernels.boosted_trees.boosted_trees_pb2 import TreeEnsemble
from tensorflow.python.training.checkpoint_utils import load_checkpoint

from common import CLUSTER, TARGET, answer_each, forget, plain, tf

ROWS, BATCH = 96, 24


def _data():
    here = np.random.RandomState(7)
    features = {"height": here.normal(0, 1, ROWS).astype(np.float32), "width": here.exponential(2, ROWS).astype(np.float32),
                "pair": here.uniform(-1, 1, (ROWS, 2)).astype(np.float32),
                "colour": np.array(["red", "green", "blue"])[here.randint(0, 3, ROWS)].astype(object),
                "weight": here.choice([0.5, 1, 2], ROWS).astype(np.float32)}
    score = features["height"] * 2 + features["width"] - features["pair"][:, 0] * 3 + (features["colour"] == "red")
    return features, score.astype(np.float32)


def _input_fn(make_labels, epochs=None, batch=BATCH):
    def rows():
        features, score = _data()
        data = tf.data.Dataset.from_tensor_slices(({k: list(v) if v.dtype == object else v for k, v in features.items()}, make_labels(score)))
        return data.repeat(epochs).batch(batch)
    return rows


def _classes(score):
    return (score > 2).astype(np.int64)


def _columns(numeric=True):
    column = tf.feature_column
    height, width = column.numeric_column("height"), column.numeric_column("width")
    if not numeric:
        height, width = (column.bucketized_column(c, edges) for c, edges in ((height, [-1.0, 0, 1]), (width, [0.5, 1, 2, 4])))
    colour = column.indicator_column(column.categorical_column_with_vocabulary_list("colour", ["red", "green", "blue"]))
    return [height, width, colour] + ([column.numeric_column("pair", shape=2)] if numeric else [])


def _config(target, folder=None):
    """A RunConfig whose sessions use `target`. With None the process is the chief of a cluster."""
    cluster = {"cluster": CLUSTER, "task": {"type": "chief", "index": 0}} if target is None else {}
    os.environ["TF_CONFIG"] = json.dumps(cluster)
    config = tf.estimator.RunConfig(model_dir=folder or tempfile.mkdtemp(prefix="boosted-"), tf_random_seed=5, save_summary_steps=None,
                                    save_checkpoints_secs=None, save_checkpoints_steps=10, log_step_count_steps=None)
    if target is not None:
        config._master = target
    config._evaluation_master = TARGET if target is None else target
    return config


def _stored(estimator):
    reader = load_checkpoint(estimator.latest_checkpoint())
    # predictions are cached by example, in the order of a hash map
    values = {name: reader.get_tensor(name) for name in sorted(reader.get_variable_to_shape_map()) if "cache" not in name}
    trees = lambda text: MessageToDict(TreeEnsemble.FromString(text), including_default_value_fields=True)
    return {name: trees(v) if name.endswith("_serialized") else plain(v) for name, v in values.items()}


def _trained(make, labels, target=TARGET, steps=40, folder=None, batch=ROWS):
    estimator = make(_config(target, folder))
    estimator.train(_input_fn(labels, batch=batch), max_steps=steps)
    return estimator


def _results(estimator, labels):
    evaluated = estimator.evaluate(_input_fn(labels, 1, ROWS))
    predicted = [{k: v for k, v in row.items() if k != "class_ids"} for row in estimator.predict(_input_fn(labels, 1, ROWS))]
    forget()
    return {"stored": _stored(estimator), "evaluated": plain(evaluated), "predicted": plain(predicted)}


def _classifier(columns=None, **more):
    """Builds shallow trees: nodes with few examples have several equally good splits, so a gradient's last bit
    decides."""
    arguments = {"n_batches_per_layer": 1, "n_trees": 4, "max_depth": 2, "learning_rate": 0.3, **more}
    return lambda config: tf.estimator.BoostedTreesClassifier(columns or _columns(), config=config, **arguments)


def classifier():
    return _results(_trained(_classifier(), _classes, batch=BATCH), _classes)


def classifier_of_buckets():
    return _results(_trained(_classifier(_columns(numeric=False), max_depth=3), _classes), _classes)


def classifier_with_a_centered_bias():
    make = _classifier(center_bias=True, l1_regularization=0.01, l2_regularization=0.1, weight_column="weight")
    return _results(_trained(make, _classes), _classes)


def pruning_before_and_after_the_growth():
    return [_results(_trained(_classifier(pruning_mode=mode, tree_complexity=0.02, min_node_weight=0.01), _classes), _classes)
            for mode in ("pre", "post")]


def layers_of_several_batches():
    make = lambda config: tf.estimator.BoostedTreesClassifier(_columns(), ROWS // BATCH, n_trees=2, max_depth=2, center_bias=True, config=config)
    return _results(_trained(make, _classes, batch=BATCH), _classes)


def regressor():
    make = lambda config: tf.estimator.BoostedTreesRegressor(_columns(), 1, n_trees=3, max_depth=2, center_bias=True, config=config)
    return _results(_trained(make, lambda score: score), lambda score: score)


def explanations():
    """Compares the contribution of each feature and its importance by gain."""
    estimator = _trained(_classifier(center_bias=True), _classes)
    explained = list(estimator.experimental_predict_with_explanations(_input_fn(_classes, 1, ROWS)))
    importances = estimator.experimental_feature_importances(normalize=True)
    forget()
    return plain([[{str(k): v for k, v in row.items()} for row in explained], importances])


def an_estimator_with_a_head():
    make = lambda config: tf.estimator.BoostedTreesEstimator(_columns(numeric=False), 1, tf.estimator.BinaryClassHead(), n_trees=3, max_depth=3, config=config)
    return _results(_trained(make, _classes), _classes)


def a_cluster_with_a_chief():
    return _results(_trained(_classifier(center_bias=True), _classes, target=None), _classes)


def checkpoints_go_between_servers():
    """Training starts on the server and continues from its checkpoint in the client's process, and the reverse."""
    out = []
    for targets in ((TARGET, ""), ("", TARGET)):
        make, folder = _classifier(center_bias=True), tempfile.mkdtemp(prefix="boosted-")
        for target, steps in zip(targets, (9, 30)):
            estimator = _trained(make, _classes, target, steps, folder)
            out.append(_results(estimator, _classes))
    return out


answer_each(after=forget)
