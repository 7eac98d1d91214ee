# SPDX-License-Identifier: Apache-2.0
"""Deterministic random ops, with a seed or with a key and a counter."""
import numpy as np
import tensorflow as tf
from ops_cases import D, F, I, L, Case, Var, i32, scalar, strs

U, UL = np.uint32, np.uint64
REALS = (tf.float32, tf.float64, tf.float16, tf.bfloat16)
SHAPES = ((3, 5), (), (301,), (0, 4))
ALL = (tf.int32, tf.int64, tf.uint32, tf.uint64)


def key(**changed):
    """Key and counter as from StatelessRandomGetKeyCounter; the counter is about to overflow into its next word."""
    more = {"key": np.array([0x9e3779b97f4a7c15], UL), "counter": np.array([2**64 - 3, 2**63 + 5], UL), "alg": scalar(1)}
    return {**more, **changed}


def begins():
    for op in ("StatelessRandomGetKeyCounter", "StatelessRandomGetKeyCounterAlg"):
        for seed in (np.array([0, 0], L), np.array([7, -3], L), np.array([2**40 + 1, -2**50], L), i32(-1, 1 << 30)):
            yield Case(op, {"seed": seed})
        for seed in (i32(1), i32(1, 2, 3), scalar(4), np.array([[1, 2]], L)):
            yield Case(op, {"seed": seed})
    yield Case("StatelessRandomGetAlg", {})


def reals():
    for op in ("StatelessRandomUniformV2", "StatelessRandomNormalV2", "StatelessTruncatedNormalV2"):
        # uniform values are not rounded, so they have to be equal
        slack = {"rtol": 1e-12} if "Uniform" in op else {"rtol": 2e-5, "atol": 1e-6}
        for dtype in REALS:
            sixteen = {} if "Uniform" in op else {"rtol": 1e-2, "atol": 1e-6}
            for shape in SHAPES:
                for t in (I, L):
                    yield Case(op, {"shape": np.array(shape, t), **key()}, {"dtype": dtype}, **(sixteen if dtype.size == 2 else slack))
        yield Case(op, {"shape": i32(9), **key(alg=scalar(3))}, **slack)
        yield Case(op, {"shape": i32(9), **key(counter=np.array([1, 2, 3], UL))}, **slack)
        yield from refused(op, {})


def refused(op, more):
    for alg in (scalar(2), scalar(0), scalar(-1), scalar(4), i32(1)):
        yield Case(op, {"shape": i32(9), **key(alg=alg), **more})
    for wrong in (np.array([1, 2], UL), np.array([], UL), scalar(1, UL)):
        yield Case(op, {"shape": i32(9), **key(key=wrong), **more})
    for wrong in (scalar(1, UL), np.array([[1, 2]], UL)):  # stock reads past the end of a counter with one element
        yield Case(op, {"shape": i32(9), **key(counter=wrong), **more})
    yield Case(op, {"shape": i32(3, -1), **key(), **more})


def sixteen_bits():
    """The stateful random ops for 16-bit types."""
    for dtype in (tf.float16, tf.bfloat16):
        for kind in ("Uniform", "StandardNormal", "TruncatedNormal"):
            op = kind if kind == "TruncatedNormal" else "Random" + kind
            yield Case(op, {"shape": i32(3, 50)}, {"dtype": dtype, "seed": 5, "seed2": 9}, rtol=1e-2)
            op = "Stateless" + op.replace("Standard", "")
            yield Case(op, {"shape": i32(3, 50), "seed": i32(7, -3)}, {"dtype": dtype}, rtol=1e-2)


def whole():
    for shape in SHAPES:
        for t in (I, L):
            for low, high in ((-3, 90), (0, 1), (np.iinfo(t).min, np.iinfo(t).max)):
                ends = {"minval": scalar(low, t), "maxval": scalar(high, t)}
                yield Case("StatelessRandomUniformInt", {"shape": np.array(shape, I), "seed": np.array([7, -3], L), **ends})
                yield Case("StatelessRandomUniformIntV2", {"shape": np.array(shape, L), **key(), **ends})
        for dtype in ALL:
            yield Case("StatelessRandomUniformFullInt", {"shape": np.array(shape, I), "seed": i32(7, -3)}, {"dtype": dtype})
            yield Case("StatelessRandomUniformFullIntV2", {"shape": np.array(shape, I), **key()}, {"dtype": dtype})
    for low, high in ((scalar(3), scalar(3)), (scalar(4), scalar(3)), (i32(1), scalar(3)), (scalar(1), i32(3))):
        ends = {"minval": low, "maxval": high}
        yield Case("StatelessRandomUniformInt", {"shape": i32(2), "seed": i32(1, 2), **ends})
        yield Case("StatelessRandomUniformIntV2", {"shape": i32(2), **key(), **ends})
        yield Case("RandomUniformInt", {"shape": i32(2), **ends})
    for t in (U, UL):  # types that a seed cannot have
        yield Case("StatelessRandomUniformFullInt", {"shape": i32(2), "seed": np.array([1, 2], t)}, {"dtype": tf.int32})
    yield Case("StatelessRandomUniformFullInt", {"shape": i32(2), "seed": i32(1, 2, 3)}, {"dtype": tf.int32})
    yield from refused("StatelessRandomUniformFullIntV2", {})
    yield from refused("StatelessRandomUniformIntV2", {"minval": scalar(1), "maxval": scalar(9)})


def rates():
    """Distributions with one parameter per draw."""
    H, F, D = np.float16, np.float32, np.float64
    for t in (H, F, D):
        # stock flushes subnormal numbers to zero
        near = {"rtol": 2e-3 if t == H else 1e-6 if t == F else 1e-11, "atol": {H: 1e-4, F: 1e-37, D: 0}[t]}
        alpha = np.array([[0.3, 1, 1.5], [7, 100, 0.05]], t)
        for shape in ((4,), (), (50, 2), (0,)):
            top = {"shape": np.array(shape, I), "alpha": alpha}
            yield Case("RandomGamma", top, {"seed": 5, "seed2": 9}, **near)
            top = {"shape": np.array(shape + alpha.shape, L), "alpha": alpha}
            yield Case("StatelessRandomGammaV2", {**top, "seed": i32(7, -3)}, **near)
            yield Case("StatelessRandomGammaV3", {**top, **key()}, **near)
        rate = np.array([[0.3, 1, 9.9], [10, 100, 1000]], t)
        for dtype in (tf.float16, tf.float32, tf.float64, tf.int32, tf.int64):
            for shape in ((4,), (), (50, 2), (0,)):
                yield Case("RandomPoissonV2", {"shape": np.array(shape, I), "rate": rate}, {"dtype": dtype, "seed": 5, "seed2": 9})
                yield Case("StatelessRandomPoisson", {"shape": np.array(shape + rate.shape, L), "lam": rate, "seed": i32(7, -3)},
                           {"dtype": dtype})
    for bad in (i32(2, 3), i32(4, 3)):
        yield Case("StatelessRandomGammaV2", {"shape": bad, "seed": i32(1, 2), "alpha": np.ones((2, 2), F)})
    yield Case("RandomGamma", {"shape": i32(-1), "alpha": np.ones(2, F)})
    yield Case("RandomGamma", {"shape": scalar(3), "alpha": np.ones(2, F)})
    yield Case("RandomPoissonV2", {"shape": i32(-1), "rate": np.ones(2, F)})


def generators():
    """Draws with the state in a variable; the updated state is compared too."""
    def top(shape=(3, 5), alg=1, state=(2**62 + 5, -3, 2**40 - 7)):
        return {"resource": Var(np.array(state, L)), "algorithm": scalar(alg, L), "shape": np.array(shape, L)}
    for op in ("StatefulUniform", "StatefulStandardNormalV2", "StatefulTruncatedNormal"):
        for dtype in REALS:
            near = {} if "Uniform" in op else {"rtol": 1e-2 if dtype.size == 2 else 2e-5, "atol": 1e-6}
            for shape in SHAPES:
                yield Case(op, top(shape), {"dtype": dtype}, **near)
        for bad in (top(alg=2), top(alg=0), top(state=(1, 2)), top(state=()), top((3, -1)), {**top(), "algorithm": np.ones(1, L)},
                    {**top(), "resource": Var(np.ones((3, 3), L))}, {**top(), "resource": Var(np.ones(3, I))}):
            yield Case(op, bad)
    for shape in SHAPES:
        yield Case("StatefulStandardNormal", {"resource": Var(np.array([1, 2, 3, 4], L)), "shape": np.array(shape, L)}, rtol=2e-5, atol=1e-6, producer=28)
        for dtype in ALL:
            yield Case("StatefulUniformFullInt", top(shape), {"dtype": dtype})
            t = dtype.as_numpy_dtype
            yield Case("StatefulUniformInt", {**top(shape), "minval": scalar(3, t), "maxval": scalar(100, t)})
    yield Case("StatefulStandardNormal", {"resource": Var(np.array([2, 2, 3, 4], L)), "shape": np.array([2], L)}, producer=28)
    yield Case("StatefulStandardNormal", {"resource": Var(np.array([1, 2, 3], L)), "shape": np.array([2], L)}, producer=28)
    yield Case("StatefulUniformInt", {**top(), "minval": scalar(3, L), "maxval": scalar(3, L)})
    yield Case("StatefulUniformInt", {**top((0, 3)), "minval": scalar(3, L), "maxval": scalar(3, L)})
    # Stock loses a carry below 0, and writes past the end of a state with more than three elements.
    for state, deltas in (((2**62 + 5, -3, 2**40 - 7), (0, 1, 2**50, -1)), ((-1, -1, 5), (0, 1, 2**50)), ((1, 2), (1,))):
        for delta in deltas:
            base = {"resource": Var(np.array(state, L))}
            yield Case("RngSkip", {**base, "algorithm": scalar(1, L), "delta": scalar(delta, L)})
            yield Case("RngReadAndSkip", {**base, "alg": scalar(1), "delta": np.array(delta % 2**64, UL)})
    yield Case("RngSkip", {"resource": Var(np.array([-1, -1, 5, 77], L)), "algorithm": scalar(1, L), "delta": scalar(9, L)})
    yield Case("RngSkip", {"resource": top()["resource"], "algorithm": scalar(2, L), "delta": scalar(1, L)})
    yield Case("RngReadAndSkip", {"resource": top()["resource"], "alg": scalar(9), "delta": np.array(1, UL)})
    for shape in SHAPES:
        yield Case("NonDeterministicInts", {"shape": np.array(shape, L)}, {"dtype": tf.int64}, only_shape=True)


def shuffles():
    for t in (np.float32, np.int64, np.uint8, np.float16, np.bool_, np.complex64):
        for shape in ((5,), (1000,), (7, 3), (0,), (4, 0), (1,), ()):
            yield Case("StatelessShuffle", {"value": np.arange(np.prod(shape)).reshape(shape).astype(t), **key()})
    yield Case("StatelessShuffle", {"value": strs("a", "bcd", "", "ef"), **key(alg=scalar(3))})
    for changed in ({"alg": scalar(2)}, {"alg": scalar(9)}, {"key": np.array([1, 2], UL)}):
        yield Case("StatelessShuffle", {"value": np.arange(4), **key(**changed)})


def binomials():
    # Stock updates a stale buffer if the variable shares its initial value, so the state is not compared.
    state = Var(np.array([7, 8, 9], L))
    for t in (F, D):
        pairs = [(scalar(20, t), scalar(0.3, t)), (np.array([0, 1, 5, 40, 1000, 1e6], t), scalar(0.5, t)),
                 (scalar(300, t), np.array([0, 1e-9, 0.01, 0.2, 0.5, 0.7, 0.999, 1, 1.5, -1], t)),
                 (np.array([[10], [90]], t), np.array([0.1, 0.4, 0.9], t))]
        for count, chance in pairs:
            shape = np.broadcast(count, chance).shape
            for lead in ((), (7,), (50, 3), (0,)):
                for dtype in (tf.int64, tf.int32, tf.float32, tf.float64):
                    both = {"shape": np.array(lead + shape, I), "counts": count, "probs": chance}
                    yield Case("StatelessRandomBinomial", {**both, "seed": i32(7, -3)}, {"dtype": dtype})
                    yield Case("StatefulRandomBinomial", {**both, "resource": state, "algorithm": scalar(1, L)}, {"dtype": dtype}, first=1)
    for bad in ({"shape": i32(3), "counts": np.ones(2), "probs": np.ones(2)}, {"shape": i32(3), "counts": np.ones(2), "probs": np.ones(3)},
                {"shape": scalar(3), "counts": scalar(1., D), "probs": scalar(.5, D)}):
        yield Case("StatelessRandomBinomial", {**bad, "seed": i32(7, -3)})


def random_cases():
    for group in (begins, reals, sixteen_bits, whole, rates, generators, shuffles, binomials):
        yield from group()
