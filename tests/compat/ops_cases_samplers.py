# SPDX-License-Identifier: Apache-2.0
"""Candidate samplers, multinomial and stateless random numbers."""
import itertools

import numpy as np
import tensorflow.compat.v1 as tf

from ops_cases import Case, D, F, I, L, i32, real, rng, scalar


def samplers():
    """Draws are TensorFlow's own for a seed; chances of real weights are sums of its order, nearly."""
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


def samplers_cases():
    for group in (samplers, multinomials, stateless_draws):
        yield from group()
