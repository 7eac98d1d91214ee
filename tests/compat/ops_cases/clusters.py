# SPDX-License-Identifier: Apache-2.0
"""Nearest centers, and the initial centers of k-means."""
import numpy as np

from ops_cases import Case, F, L, ints, real, rng


def i64(v):
    return np.array(v, L)


def neighbors():
    for n, m, dims in ((6, 4, 2), (1, 1, 1), (9, 30, 5), (3, 2, 0)):
        points, centers = real(F, n, dims), real(F, m, dims)
        for k in (0, 1, 2, 50):
            yield Case("NearestNeighbors", {"points": points, "centers": centers, "k": i64(k)}, atol=2e-5)
    square = np.array([[1, 0], [0, 1], [1, 0], [-1, 0]], F)
    yield Case("NearestNeighbors", {"points": np.zeros((1, 2), F), "centers": square, "k": i64(3)})
    points, centers = real(F, 6, 2), real(F, 4, 2)
    for p, c, k in ((points[0], centers, 1), (points, centers[0], 1), (points, centers[:, :1], 1), (points[:0], centers, 1), (points, centers[:0], 2),
                    (points, centers, [2])):
        yield Case("NearestNeighbors", {"points": p, "centers": c, "k": i64(k)})


def first_centers():
    for seed in (*range(8), -1, 1 << 40):
        points = ints(F, 12, 3)  # their distances are exact, so rounding does not affect the choice
        for n, retries in ((1, 0), (3, 2), (5, -1), (12, 1)):
            yield Case("KmeansPlusPlusInitialization", {"points": points, "num_to_sample": i64(n), "seed": i64(seed), "num_retries_per_sample": i64(retries)})
        yield Case("KMC2ChainInitialization", {"distances": rng.rand(17).astype(F), "seed": i64(seed)})
    right = {"points": points, "num_to_sample": i64(2), "seed": i64(1), "num_retries_per_sample": i64(1)}
    for wrong in ({"points": points[0]}, {"points": points[:0]}, {"num_to_sample": i64(13)}, {"num_to_sample": i64(0)}, {"num_to_sample": i64([2])},
                  {"seed": i64([2])}, {"num_retries_per_sample": i64([2])}):
        yield Case("KmeansPlusPlusInitialization", {**right, **wrong})
    for d, seed in ((real(F, 2, 2), i64(1)), (real(F, 2), i64([1])), (real(F, 0), i64(1)), (real(F, 1), i64(1)), (-real(F, 3, low=0), i64(1)), (np.zeros(3, F), i64(1))):
        yield Case("KMC2ChainInitialization", {"distances": d, "seed": seed})


def clusters_cases():
    for group in (neighbors, first_centers):
        yield from group()
