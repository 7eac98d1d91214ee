# SPDX-License-Identifier: Apache-2.0
"""Optimizers that few programs use."""

import itertools

import numpy as np

from ops_cases import Case, D, F, L, Var, i32, real, scalar


def rare_optimizers():
    for t in (F, D):
        def v(positive=False):
            return Var(real(t, 5, 3, low=0.1 if positive else -2))
        g = real(t, 5, 3)
        lr, one = scalar(0.1, t), scalar(0.9, t)
        for r in ("", "Resource"):
            for l1 in (0, 0.3):
                yield Case(r + "ApplyAdagradDA", {
                    "var": v(), "gradient_accumulator": v(), "gradient_squared_accumulator": v(True), "grad": g,
                    "lr": lr, "l1": scalar(l1, t), "l2": scalar(0.2, t), "global_step": scalar(3, L)}, rtol=1e-5)
            yield Case(r + "ApplyAdaMax", {"var": v(), "m": v(), "v": v(True), "beta1_power": scalar(0.8, t),
                                           "lr": lr, "beta1": one, "beta2": scalar(0.99, t),
                                           "epsilon": scalar(1e-6, t), "grad": g}, rtol=1e-5)
            yield Case(r + "ApplyAddSign", {"var": v(), "m": v(), "lr": lr, "alpha": scalar(1, t),
                                            "sign_decay": scalar(0.7, t), "beta": one, "grad": g}, rtol=1e-5)
            yield Case(r + "ApplyPowerSign", {"var": v(), "m": v(), "lr": lr, "logbase": scalar(1, t),
                                              "sign_decay": scalar(0.7, t), "beta": one, "grad": g}, rtol=1e-5)
        yield Case("ResourceApplyAdamWithAmsgrad", {
            "var": v(), "m": v(), "v": v(True), "vhat": v(True), "beta1_power": scalar(0.8, t),
            "beta2_power": scalar(0.9, t), "lr": lr, "beta1": one, "beta2": scalar(0.99, t),
            "epsilon": scalar(1e-6, t), "grad": g}, rtol=1e-5)
        yield Case("ResourceSparseApplyAdagradDA", {
            "var": v(), "gradient_accumulator": v(),
            "gradient_squared_accumulator": v(True), "grad": real(t, 2, 3), "indices": i32(4, 1), "lr": lr,
            "l1": scalar(0.3, t), "l2": scalar(0.2, t), "global_step": scalar(3, L)}, rtol=1e-5)
        yield Case("SparseApplyAdagradDA", {
            "var": v(), "gradient_accumulator": v(),
            "gradient_squared_accumulator": v(True), "grad": real(t, 2, 3), "indices": i32(4, 1), "lr": lr,
            "l1": scalar(0.3, t), "l2": scalar(0.2, t), "global_step": scalar(3, L)}, rtol=1e-5)


def dual_ascent():
    """Uses one example per case, because TensorFlow visits several in random order."""
    def f32(*v):
        return np.array(v, F)

    def i64(*v):
        return np.array(v, L)
    sides = {"sparse_example_indices": [i64(0, 0), i64(0)], "sparse_feature_indices": [i64(4, 2), i64(3)], "sparse_feature_values": [f32(0.5, 2)],
             "dense_features": [f32([1, -2])], "example_weights": f32(0.7), "sparse_indices": [i64(2, 4), i64(3)],
             "sparse_weights": [f32(0.1, -0.2), f32(0.3)], "dense_weights": [f32(0.2, 0.1)]}
    for loss, labels in (("squared_loss", (-2, 3)), ("logistic_loss", (0, 1, 2)), ("hinge_loss", (0, 1, -1)), ("smooth_hinge_loss", (0, 1, 0.5)),
                         ("poisson_loss", (0, 2, -1))):
        for label, dual, partitions, passes in itertools.product(labels, (0, 0.1, -0.3), (1, 3), (1, 3)):
            attrs = {"loss_type": loss, "l1": 0.05, "l2": 1.2, "num_loss_partitions": partitions, "num_inner_iterations": passes}
            yield Case("SdcaOptimizerV2", {**sides, "example_labels": f32(label), "example_state_data": f32([dual, 0, 0, 0])}, attrs, rtol=1e-5, atol=1e-6)
    right = {**sides, "example_labels": f32(1), "example_state_data": f32([0, 0, 0, 0])}
    for wrong in ({"sparse_feature_indices": [i64(4, 5), i64(3)]}, {"dense_features": [f32([1, -2, 3])]}, {"sparse_feature_indices": [i64(4, 4), i64(3)]}):
        yield Case("SdcaOptimizer", {**right, **wrong}, {"loss_type": "hinge_loss", "l1": 0.0, "l2": 1.0, "num_loss_partitions": 1, "num_inner_iterations": 1})
    yield Case("SdcaFprint", {"input": np.array([b"x" * n for n in (*range(40), 127, 128, 143, 144, 200, 271, 300)] + [bytes(range(256)) * 3], object)})
    yield Case("SdcaShrinkL1", {"weights": [Var(f32(0.3, -0.05, -2)), Var(f32([1]))]}, {"l1": 0.2, "l2": 2.0})


def training_cases():
    for group in (rare_optimizers, dual_ascent):
        yield from group()
