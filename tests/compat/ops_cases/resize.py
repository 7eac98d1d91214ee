# SPDX-License-Identifier: Apache-2.0
"""Image resize ops of every method, and their gradients."""
import itertools

import numpy as np

from ops_cases import Case, D, F, I, L, i32, ints, real

TYPES = (F, D, np.float16, np.uint8, np.int8, np.int16, np.uint16, I, L)
SIZES = ((4, 6), (9, 13), (2, 3), (1, 1), (7, 2))
GRID = ({}, {"align_corners": True}, {"half_pixel_centers": True})
CLOSE = {"rtol": 1e-4, "atol": 1e-3}


def picture(t, *shape):
    return real(t, *shape) if np.dtype(t).kind == "f" else ints(t, *shape, low=0, high=100)


def resize_cases():
    for (op, grids), t in itertools.product((("ResizeBilinear", GRID), ("ResizeBicubic", GRID), ("ResizeArea", GRID[:2]), ("ResizeNearestNeighbor", GRID)), TYPES):
        tol = {} if "Nearest" in op else CLOSE
        for size, attrs in itertools.product(SIZES, grids):
            yield Case(op, {"images": picture(t, 2, 4, 6, 3), "size": i32(*size)}, attrs, **tol)
        yield Case(op, {"images": picture(t, 1, 1, 5, 1), "size": i32(3, 3)}, **tol)
        yield Case(op, {"images": picture(t, 2, 31, 17, 2), "size": i32(12, 40)}, **tol)
        yield Case(op, {"images": picture(t, 2, 5, 31, 2), "size": i32(7, 2)}, {"align_corners": True}, **tol)
        yield Case(op, {"images": picture(t, 0, 4, 6, 3), "size": i32(2, 3)}, **tol)
    for attrs, size in itertools.product(GRID, SIZES):
        for t in (F, D, np.float16):
            yield Case("ResizeBilinearGrad", {"grads": real(F, 2, *size, 3), "original_image": real(t, 2, 4, 6, 3)}, attrs,
                       rtol=2e-2 if t == np.float16 else 1e-4, atol=2e-2 if t == np.float16 else 1e-5)
        for t in (F, D):
            yield Case("ResizeBicubicGrad", {"grads": real(F, 2, *size, 3), "original_image": real(t, 2, 4, 6, 3)}, attrs, rtol=1e-4, atol=1e-4)
        for t in (F, D, I, np.uint8, np.int8):
            tol = {"rtol": 1e-5, "atol": 1e-5} if t in (F, D) else {}
            yield Case("ResizeNearestNeighborGrad", {"grads": picture(t, 2, *size, 3) // (1 if t in (F, D) else 50), "size": i32(4, 6)}, attrs, **tol)
    x = picture(F, 2, 4, 6, 3)
    for op in ("ResizeBilinear", "ResizeBicubic", "ResizeArea", "ResizeNearestNeighbor"):
        for images, size in ((x[0], i32(2, 2)), (x, i32(2)), (x, i32(2, 2, 2)), (x, i32(0, 2)), (x, i32(-1, 2)), (x[:, :0], i32(2, 2)), (x[..., :0], i32(2, 2))):
            yield Case(op, {"images": images, "size": size})
        if op != "ResizeArea":
            yield Case(op, {"images": x, "size": i32(2, 2)}, {"align_corners": True, "half_pixel_centers": True})
    for op in ("ResizeBilinearGrad", "ResizeBicubicGrad"):
        for g, image in ((x[0], x), (x, x[0]), (x[:, :0], x)):
            yield Case(op, {"grads": g, "original_image": image})
    for g, size in ((x[0], i32(2, 2)), (x, i32(2)), (x, i32(0, 2)), (x, i32(-1, 2))):
        yield Case("ResizeNearestNeighborGrad", {"grads": g, "size": size})


def scale_cases():
    def scaled(x, size=(3, 5), scale=(0.6, 1.5), by=(0.3, -0.7), **attrs):
        return Case("ScaleAndTranslate", {"images": x, "size": i32(*size), "scale": np.array(scale, F), "translation": np.array(by, F)}, attrs, **CLOSE)

    def back(g, image, scale=(0.6, 1.5), by=(0.3, -0.7), **attrs):
        return Case("ScaleAndTranslateGrad", {"grads": g, "original_image": image, "scale": np.array(scale, F), "translation": np.array(by, F)}, attrs, **CLOSE)

    x = picture(F, 2, 4, 6, 3)
    kernels = ("lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic", "Lanczos3", "none")
    moves = (((0.6, 1.5), (0.3, -0.7)), ((0.25, 0.25), (2, -5)), ((1, 1), (0, 0)), ((2, 0.5), (0.5, 1)), ((0.1, 9), (0, -30)))
    for kernel, (scale, by), antialias in itertools.product(kernels, moves, (True, False)):
        attrs = {"scale": scale, "by": by, "kernel_type": kernel, "antialias": antialias}
        yield scaled(x, **attrs)
        yield scaled(x, (1, 9), **attrs)
        yield back(real(F, 2, 3, 5, 3), x, **attrs)
    for t in TYPES + (np.int64,):
        yield scaled(picture(t, 2, 4, 6, 3))
    for images in (x[0], x[:0], x[:, :0], x[..., :0]):
        yield scaled(images)
    for g, image in ((x[0], x), (x, x[0]), (x[:0], x[:0]), (x[..., :0], x[..., :0])):
        yield back(g, image)
    for size in ((2,), (2, 2, 2), (0, 2), (-1, 2)):
        yield scaled(x, size)
    for pair in ((1,), (1, 1, 1), (0, 1), (1, -1), (1, np.nan), (1e-30, 1), (1, 1e30), (np.inf, 1)):
        yield scaled(x, scale=pair)
        yield scaled(x, by=pair)
        yield back(x, x, scale=pair)
        yield back(x, x, by=pair)
