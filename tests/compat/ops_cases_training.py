# SPDX-License-Identifier: Apache-2.0
"""Optimizers that few programs use."""

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


def training_cases():
    for group in (rare_optimizers,):
        yield from group()
