# SPDX-License-Identifier: Apache-2.0
"""Complete trainers: each function of the programs is one line of the report."""
from cluster import CLIENT, stock_with_contrib
from compare import both
from server import kernels
from server.behaviours import compare_each


def lockstep():
    """synchronous training, equal to the last bit"""
    compare_each("lockstep", *both(lambda c: c.run("sync"), ps=2, worker=3))


def trainers():
    """complete trainers on 2 ps and 2 workers: losses, variables, checkpoints, summaries"""
    compare_each("trainers", *both(lambda c: c.run("trainers", seconds=900), ps=2))


def old_style():
    """programs in the style of TensorFlow 1 users, of many kinds"""
    compare_each("old_style", *both(lambda c: c.run("old_style"), ps=2, worker=1))


def old_models():
    """models of many kinds as they were written for TensorFlow 1, training a few steps"""
    compare_each("old_models", *both(lambda c: c.run("old_models"), ps=2, worker=1))


def old_pictures():
    """models of pictures of many kinds, training a few steps"""
    compare_each("old_pictures", *both(lambda c: c.run("old_pictures"), ps=2, worker=1))


def old_input():
    """input and decoding in old programs"""
    compare_each("old_input", *both(lambda c: c.run("old_input"), ps=1, worker=1))


def old_texts():
    """programs on text and ragged tensors, and a few with rare layers"""
    compare_each("old_texts", *both(lambda c: c.run("old_texts"), ps=1, worker=1))


def summary_files():
    """event files that the server writes"""
    compare_each("summary_files", *both(lambda c: c.run("summary_files"), ps=1, worker=1))


def quantized():
    """quantization and dequantization"""
    compare_each("quantized", *both(lambda c: c.run("quantized"), ps=1, worker=1))


def rare_state():
    """staging maps, accumulators of half, saved readers, tables with deprecated names"""
    compare_each("rare_state", *both(lambda c: c.run("rare_state"), ps=1, worker=1))


def owned_resources():
    """resources that live as long as the handles to them"""
    compare_each("owned_resources", *both(lambda c: c.run("owned_resources"), ps=1, worker=1))


def old_sessions():
    """sessions, hooks, savers and graphs as old programs use them"""
    compare_each("old_sessions", *both(lambda c: c.run("old_sessions"), ps=2, worker=1))


def estimators():
    """estimators with chief, ps and worker"""
    compare_each("estimators", *both(lambda c: c.run("estimators", seconds=900), ps=2, worker=1, chief=1))


def keras_layers():
    """current Keras layers with eager execution disabled: results of fit, evaluate and predict, and weights"""
    compare_each("Keras layers", *both(lambda c: c.run("keras_layers", seconds=300), worker=1))


def contrib():
    """programs with the ops of tf.contrib, on 1.15 servers that have loaded them"""
    kernels.op_table("contrib")
    compare_each("contrib", *both(lambda c: c.run("contrib"), stock=stock_with_contrib))


def old_answers():
    """inputs for which 1.15 servers return other results than later versions"""
    compare_each("old answers", *both(lambda c: c.run("old_answers"), stock=stock_with_contrib))


def boosted_trees():
    """boosted trees estimators, which only TensorFlow 1.15 runs"""
    compare_each("boosted trees", *both(lambda c: c.run("boosted_trees", seconds=900), worker=1, chief=1, stock=stock_with_contrib))


CASES = [lockstep, trainers, old_style, old_models, old_pictures, old_input, old_texts, rare_state, owned_resources, summary_files, quantized, old_sessions, estimators, keras_layers]
if CLIENT:
    CASES += [contrib, old_answers, boosted_trees]
