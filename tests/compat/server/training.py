# SPDX-License-Identifier: Apache-2.0
"""Whole trainers: each function of the programs is one line of the report."""
from cluster import CLIENT, stock_with_contrib
from compare import both
from server import kernels
from server.behaviours import compare_each


def lockstep():
    """synchronous training, to the last bit"""
    compare_each("lockstep", *both(lambda c: c.run("sync"), ps=2, worker=3))


def trainers():
    """whole trainers on 2 ps and 2 workers: losses, variables, checkpoints, summaries"""
    compare_each("trainers", *both(lambda c: c.run("trainers", seconds=900), ps=2))


def old_style():
    """programs as their users wrote them for TensorFlow 1, of many kinds"""
    compare_each("old_style", *both(lambda c: c.run("old_style"), ps=2, worker=1))


def old_models():
    """models of many kinds as they were written for TensorFlow 1, training a few steps"""
    compare_each("old_models", *both(lambda c: c.run("old_models"), ps=2, worker=1))


def old_pictures():
    """models of pictures of many kinds, training a few steps"""
    compare_each("old_pictures", *both(lambda c: c.run("old_pictures"), ps=2, worker=1))


def old_input():
    """how old programs read and decode what they train on"""
    compare_each("old_input", *both(lambda c: c.run("old_input"), ps=1, worker=1))


def old_texts():
    """programs on texts and ragged rows, and a few whose layers are rare"""
    compare_each("old_texts", *both(lambda c: c.run("old_texts"), ps=1, worker=1))


def summary_files():
    """event files that the server writes"""
    compare_each("summary_files", *both(lambda c: c.run("summary_files"), ps=1, worker=1))


def quantized():
    """reals as integers of a range, and back"""
    compare_each("quantized", *both(lambda c: c.run("quantized"), ps=1, worker=1))


def rare_state():
    """staging maps, accumulators of half, saved readers, tables under their older names"""
    compare_each("rare_state", *both(lambda c: c.run("rare_state"), ps=1, worker=1))


def owned_resources():
    """resources that live as long as the handles to them"""
    compare_each("owned_resources", *both(lambda c: c.run("owned_resources"), ps=1, worker=1))


def old_sessions():
    """what old programs do with sessions, hooks, savers and graphs"""
    compare_each("old_sessions", *both(lambda c: c.run("old_sessions"), ps=2, worker=1))


def estimators():
    """estimators with chief, ps and worker"""
    compare_each("estimators", *both(lambda c: c.run("estimators", seconds=900), ps=2, worker=1, chief=1))


def keras_layers():
    """today's Keras layers with eager execution turned off: what fit, evaluate, predict and weights give"""
    compare_each("Keras layers", *both(lambda c: c.run("keras_layers", seconds=300), worker=1))


def contrib():
    """programs with the ops of tf.contrib, beside servers of 1.15 that have loaded it"""
    kernels.op_table("contrib")
    compare_each("contrib", *both(lambda c: c.run("contrib"), stock=stock_with_contrib))


def old_answers():
    """inputs that servers of 1.15 answer in another way than later ones"""
    compare_each("old answers", *both(lambda c: c.run("old_answers"), stock=stock_with_contrib))


def boosted_trees():
    """estimators of boosted trees, which TensorFlow 1.15 has and later versions do not run"""
    compare_each("boosted trees", *both(lambda c: c.run("boosted_trees", seconds=900), worker=1, chief=1, stock=stock_with_contrib))


CASES = [lockstep, trainers, old_style, old_models, old_pictures, old_input, old_texts, rare_state, owned_resources, summary_files, quantized, old_sessions, estimators, keras_layers]
if CLIENT:
    CASES += [contrib, old_answers, boosted_trees]
