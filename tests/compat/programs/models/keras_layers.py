# SPDX-License-Identifier: Apache-2.0
"""Layers of current tf.keras in scripts that only disable eager execution; all other TensorFlow 2 behaviour stays on."""
import os
import tempfile

import h5py
import numpy as np
from common import CLUSTER, TARGET, answer_each, forget
import tensorflow as tf

v1 = tf.compat.v1
v1.enable_v2_behavior()  # the module "common" disables it
v1.disable_eager_execution()
keras, layers = tf.keras, tf.keras.layers


def _numbers(model, x, y):
    """Returns the results of fit, evaluate and predict and the names in the saved file. Checks that load_weights
    restores a changed model."""
    said = model.fit(x, y, batch_size=16, epochs=2, shuffle=False, verbose=0, validation_split=0.25).history
    before = model.predict(x[:4], verbose=0)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "weights.h5")
        model.save_weights(path)
        model.fit(x, y, batch_size=16, epochs=1, shuffle=False, verbose=0)
        changed = float(np.abs(model.predict(x[:4], verbose=0) - before).max()) > 0
        model.load_weights(path)
        with h5py.File(path) as f:
            saved = sorted(f)
    return {"said": {k: [float(v) for v in values] for k, values in said.items()}, "predicted": before, "changed": changed,
            "back": float(np.abs(model.predict(x[:4], verbose=0) - before).max()), "saved": saved,
            "evaluated": [float(v) for v in np.ravel(model.evaluate(x, y, verbose=0))], "weights": model.get_weights()}


def _trained(inputs, hidden, optimizer="adam"):
    """Trains a classifier of three classes with these layers; the variables are on the ps."""
    keras.utils.set_random_seed(7)  # the initializers draw their seeds from Python's generator
    shape, whole = inputs
    random = np.random.RandomState(1)
    x = random.randint(0, 9, (48, *shape)) if whole else random.rand(48, *shape).astype("f")
    y = random.randint(0, 3, 48)
    with v1.Session(TARGET) as sess:
        v1.keras.backend.set_session(sess)
        with v1.device(v1.train.replica_device_setter(cluster=tf.train.ClusterSpec(CLUSTER))):
            h = start = keras.Input(shape, dtype="int32" if whole else None)
            for layer in hidden():
                h = layer(h)
            model = keras.Model(start, layers.Dense(3, "softmax")(h))
            model.compile(optimizer() if callable(optimizer) else optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
        return _numbers(model, x, y)


ROW, IMAGE, WORDS, SEQUENCE = ((8,), False), ((12, 12, 2), False), ((7,), True), ((6, 5), False)


def dense_with_dropout_and_batch_norm():
    return _trained(ROW, lambda: [layers.Dense(16, "relu"), layers.Dropout(0.2), layers.BatchNormalization(), layers.Dense(8, "gelu")])


def pictures():
    return _trained(IMAGE, lambda: [layers.Conv2D(4, 3, activation="relu"), layers.BatchNormalization(), layers.MaxPooling2D(),
                                    layers.SeparableConv2D(4, 3, padding="same"), layers.Dropout(0.1), layers.Flatten()], "rmsprop")


def an_lstm_over_words():
    return _trained(WORDS, lambda: [layers.Embedding(9, 4, mask_zero=True), layers.LSTM(5)], "adagrad")


def a_gru_both_ways():
    return _trained(SEQUENCE, lambda: [layers.LayerNormalization(), layers.Bidirectional(layers.GRU(4, return_sequences=True)), layers.GRU(3)], "sgd")


def initializers_and_constraints():
    kinds = ("RandomNormal", "TruncatedNormal", "HeUniform", "LecunNormal", "Orthogonal")
    return _trained(ROW, lambda: [layers.Dense(8, "tanh", kernel_initializer=kind, kernel_regularizer="l2", kernel_constraint="max_norm")
                                  for kind in kinds],
                    lambda: keras.optimizers.legacy.SGD(keras.optimizers.schedules.ExponentialDecay(0.1, 3, 0.9), momentum=0.9, nesterov=True))


def attention():
    """Attention as Keras computes it, with equations (Einsum)."""
    def attend(h):
        return layers.MultiHeadAttention(2, 3, dropout=0.1)(h, h)
    return _trained(SEQUENCE, lambda: [layers.EinsumDense("abc,cd->abd", (None, 4), bias_axes="d"), attend, layers.LayerNormalization(), layers.Flatten()])


def nadam():
    """Nadam has a variable, the momentum cache, for which only the training step specifies a device."""
    return _trained(ROW, lambda: [layers.Dense(8, "tanh")], lambda: keras.optimizers.legacy.Nadam(0.01))


def the_sequential_way():
    """A Sequential model, as in most scripts."""
    keras.utils.set_random_seed(11)
    x = np.random.RandomState(2).rand(48, 8).astype("f")
    with v1.Session(TARGET) as sess:
        v1.keras.backend.set_session(sess)
        model = keras.Sequential([layers.Dense(16, activation="relu", input_shape=(8,)), layers.Dropout(0.1), layers.Dense(1, activation="sigmoid")])
        model.compile("adam", "binary_crossentropy", metrics=["mae", keras.metrics.AUC()])
        return _numbers(model, x, (x.sum(1) > 4).astype("f").reshape(-1, 1))


def _from_datasets(shuffled):
    """fit and evaluate read a dataset with sample weights; fit queries the task whether the dataset is shuffled."""
    keras.utils.set_random_seed(11)
    x = np.random.RandomState(2).rand(48, 8).astype("f")
    rows = v1.data.Dataset.from_tensor_slices((x, (x.sum(1) > 4).astype("f").reshape(-1, 1), x[:, 0])).map(lambda a, b, c: (a * 2, b, c))
    rows = (rows.shuffle(5, seed=3) if shuffled else rows).batch(8).repeat()
    with v1.Session(TARGET) as sess:
        v1.keras.backend.set_session(sess)
        model = keras.Sequential([layers.Dense(16, activation="relu", input_shape=(8,)), layers.Dense(1, activation="sigmoid")])
        model.compile("sgd", "binary_crossentropy", weighted_metrics=["mae"])
        history = model.fit(rows, steps_per_epoch=6, epochs=2, verbose=0).history
        return {**history, "evaluated": model.evaluate(rows, steps=6, verbose=0), "predicted": model.predict(rows, steps=2).tolist()}


def from_a_dataset():
    return _from_datasets(False)


def from_a_shuffled_dataset():
    return _from_datasets(True)


def from_tensors():
    keras.utils.set_random_seed(11)
    with v1.Session(TARGET) as sess:
        v1.keras.backend.set_session(sess)
        model = keras.Sequential([layers.Dense(16, activation="relu", input_shape=(3,)), layers.Dense(4, activation="softmax")])
        model.compile("sgd", "categorical_crossentropy", metrics=["mse"])
        x, y = v1.constant(np.eye(6, 3), "float32"), v1.constant(np.eye(6, 4), "float32")
        return {**model.fit(x, y, epochs=2, steps_per_epoch=5, verbose=0).history, "evaluated": model.evaluate(x, y, steps=2, verbose=0)}


answer_each(forget)
