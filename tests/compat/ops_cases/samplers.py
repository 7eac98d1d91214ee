# SPDX-License-Identifier: Apache-2.0
"""Candidate samplers, multinomial and stateless random numbers."""
import itertools

import numpy as np
import tensorflow.compat.v1 as tf

from ops_cases import Case, D, F, I, L, i32, real, rng, scalar


def samplers():
    """Draws equal TensorFlow's for the same seed. Probabilities of float weights depend on its order of addition, so
    they are compared with a tolerance."""
    seeds = {"seed": 87, "seed2": 5}
    true = np.array([[1, 0], [7, 3], [9, 9]], L)
    for unique, n in itertools.product((False, True), (1, 4, 10)):
        attrs = {"num_true": 2, "num_sampled": n, "unique": unique, **seeds}
        for op in ("Uniform", "LogUniform", "LearnedUnigram", "ThreadUnsafeUnigram"):
            for range_max in (10, 16, 1000, 100003):
                yield Case(op + "CandidateSampler", {"true_classes": true}, {"range_max": range_max, **attrs}, rtol=1e-5)
        if n == 10:
            yield Case("AllCandidateSampler", {"true_classes": true}, attrs)
        weights = [float(w) for w in rng.randint(1, 9, 10)]
        for bend in (1.0, 0.75):
            yield Case("FixedUnigramCandidateSampler", {"true_classes": true}, {"range_max": 10, "unigrams": weights, "distortion": bend, **attrs}, rtol=1e-5)
        yield Case("FixedUnigramCandidateSampler", {"true_classes": true}, {"range_max": 10, "unigrams": weights[:8], "num_reserved_ids": 2, **{**attrs, "num_sampled": min(n, 8)}}, rtol=1e-5)
        yield Case("FixedUnigramCandidateSampler", {"true_classes": true % 5}, {"range_max": 5, "unigrams": weights, "num_shards": 2, "shard": 1, **{**attrs, "num_sampled": min(n, 5)}}, rtol=1e-5)
    yield Case("UniformCandidateSampler", {"true_classes": true}, {"range_max": 1 << 40, **attrs}, rtol=1e-5)
    for classes, more in ((true[0], {}), (true[:, :1], {}), (true + 1, {}), (true - 1, {}), (true, {"num_sampled": 11})):
        yield Case("UniformCandidateSampler", {"true_classes": classes}, {"range_max": 10, **attrs, **more})
    yield Case("FixedUnigramCandidateSampler", {"true_classes": true}, {"range_max": 9, "unigrams": weights, **attrs})
    yield Case("FixedUnigramCandidateSampler", {"true_classes": true}, {"range_max": 10, **attrs})
    for sampled in ([3, 9, 4, 1], [], [9, 1, 9, 2], [5]):
        yield Case("ComputeAccidentalHits", {"true_classes": true, "sampled_candidates": np.array(sampled, L)}, {"num_true": 2})
    yield Case("ComputeAccidentalHits", {"true_classes": true, "sampled_candidates": true}, {"num_true": 2})
    yield Case("ComputeAccidentalHits", {"true_classes": true, "sampled_candidates": true[0]}, {"num_true": 3})


def multinomials():
    for t, to, (rows, n) in itertools.product((F, D, np.float16), (tf.int32, tf.int64), ((1, 3), (3, 10), (2, 1))):
        logits = real(t, rows, n)
        for count in (0, 1, 5, 64):
            yield Case("Multinomial", {"logits": logits, "num_samples": scalar(count)}, {"seed": 3, "seed2": 8, "output_dtype": to})
            yield Case("StatelessMultinomial", {"logits": logits, "num_samples": scalar(count), "seed": np.array([4, -9], L)}, {"output_dtype": to})
    odd = np.array([[0, -np.inf, np.nan, 2, np.inf]], F)
    yield Case("Multinomial", {"logits": odd, "num_samples": scalar(20)}, {"seed": 3, "seed2": 8})
    yield Case("Multinomial", {"logits": odd[0], "num_samples": scalar(20)})
    yield Case("Multinomial", {"logits": odd, "num_samples": scalar(-1)})
    yield Case("Multinomial", {"logits": odd[:, :0], "num_samples": scalar(1)})
    yield Case("StatelessMultinomial", {"logits": odd, "num_samples": scalar(1), "seed": i32(1, 2, 3)})


def stateless_draws():
    for op in ("StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal"):
        for dtype in (tf.float32, tf.float64):
            for shape in ((3, 5), (), (301,)):
                yield Case(op, {"shape": np.array(shape, I), "seed": np.array([7, -3], L)}, {"dtype": dtype}, rtol=2e-5, atol=1e-6)
        yield Case(op, {"shape": i32(2), "seed": i32(1, 1 << 30)}, rtol=2e-5, atol=1e-6)
        yield Case(op, {"shape": i32(2), "seed": i32(1, 2, 3)})


def bounded_normals():
    """Uses few samples per case: TensorFlow draws more of them in several threads, which changes the values."""
    stateful, stateless = "ParameterizedTruncatedNormal", "StatelessParameterizedTruncatedNormal"

    def ask(op, shape, mean, stddev, low, high, t=F, seed=(5, 7)):
        spread = "stdevs" if op == stateful else "stddevs"
        seeds = {} if op == stateful else {"seed": np.array(seed, L)}
        inputs = {"shape": np.array(shape, I), "means": np.array(mean, t), spread: np.array(stddev, t), "minvals": np.array(low, t), "maxvals": np.array(high, t)}
        near = 2e-3 if t == np.float16 else 2e-5
        return Case(op, {**inputs, **seeds}, {"seed": seed[0], "seed2": seed[1]} if op == stateful else {}, rtol=near, atol=near)

    inf = np.inf
    for op in (stateful, stateless):
        for t in (F, D, np.float16):
            for low, high in ((-2, 2), (-0.5, 0.5), (1, 2), (3, inf), (-inf, -3), (3, 3.01), (-inf, 1), (0, inf), (-1, 9), (30, inf)):
                yield ask(op, (13,), 0, 1, low, high, t)
            yield ask(op, (3, 4), 1, 2, -1, 4, t)
            for shape in ((0,), (3, 0), (0, 3)):
                yield ask(op, shape, 0, 1, -1, 1, t)
        for stddev, low, high in ((0, -1, 1), (-1, -1, 1), (1, 1, 1), (1, 2, 1), (1, -inf, inf), (1, np.nan, 1)):
            yield ask(op, (3,), 0, stddev, low, high)
        for bad in range(4):
            some = [[0, 1], [1, 1], [-1, -1], [1, 1]]
            yield ask(op, (3, 4), *[v if i == bad else v[0] for i, v in enumerate(some)])
        yield ask(op, (3, -1), 0, 1, -1, 1)
        yield ask(op, (), 0, 1, -1, 1)
    for t in (F, D):
        yield ask(stateful, (3, 4), [0, 1, 2], [1, 1, 2], [-2, -9, 3], [2, 9, 5], t)
        yield ask(stateful, (3, 4), [0], 1, [-2, -9, 3], 5, t)
        yield ask(stateful, (0, 3), [0, 1], 1, -1, 1, t)
        yield ask(stateful, (2, 0), 0, [0, 1], -1, 1, t)
        yield ask(stateless, (5, 2, 3), [[0], [1]], [1, 1, 2], [[-2, -9, 1]], [[3], [5]], t)
        yield ask(stateless, (2, 3), [[0], [1]], [1, 1, 2], -1, 9, t)
        yield ask(stateless, (4, 0), np.zeros((0,)), 1, -1, 1, t)
        yield ask(stateless, (0, 2), [0, 1], 1, -1, 1, t)
    yield ask(stateless, (3,), [0, 1], [1, 1, 1], -1, 1)
    yield ask(stateless, (3,), 0, 1, -1, 1, seed=(1, 2, 3))


def samplers_cases():
    for group in (samplers, multinomials, stateless_draws, bounded_normals):
        yield from group()
