# SPDX-License-Identifier: Apache-2.0
"""Non-maximum suppression, drawn and sampled boxes, image patches, glimpses and projective transforms."""
import itertools

import numpy as np

from ops_cases import Case, D, F, I, L, i32, ints, real, rng, scalar

H = np.float16


def some_boxes(t, n):
    corners, sides = real(t, n, 2, low=0, high=1), real(t, n, 2, low=-0.3, high=0.6)
    return np.concatenate([corners, corners + sides], 1).astype(t)


def scores(t, n):
    return (rng.permutation(n) / n).astype(t)


def suppressions():
    for n, most, iou in itertools.product((0, 1, 7, 60), (0, 3, 100), (0, 0.3, 0.5, 1)):
        for t in (F,) if n > 7 else (F, H):  # with many boxes, float16 rounding changes some decisions
            b, s, m, by = some_boxes(t, n), scores(t, n), scalar(most), {"iou_threshold": scalar(iou, t)}
            if t == F:
                yield Case("NonMaxSuppression", {"boxes": b, "scores": s, "max_output_size": m}, {"iou_threshold": iou})
            yield Case("NonMaxSuppressionV2", {"boxes": b, "scores": s, "max_output_size": m, **by})
            for least in (-1, 0.4):
                more = {"boxes": b, "scores": s, "max_output_size": m, **by, "score_threshold": scalar(least, t)}
                yield Case("NonMaxSuppressionV3", more)
                for pads in (False, True):
                    yield Case("NonMaxSuppressionV4", more, {"pad_to_max_output_size": pads})
                    for sigma in (0, 0.5):
                        if t == F:
                            yield Case("NonMaxSuppressionV5", {**more, "soft_nms_sigma": scalar(sigma, t)}, {"pad_to_max_output_size": pads}, rtol=1e-5)
        overlaps = real(F, n, n, low=0, high=1)
        yield Case("NonMaxSuppressionWithOverlaps", {"overlaps": overlaps, "scores": scores(F, n), "max_output_size": scalar(most),
                                                     "overlap_threshold": scalar(iou, F), "score_threshold": scalar(0.1, F)})
    same = np.tile(np.array([[0, 0, 1, 1]], F), (5, 1))
    odd = np.array([[0, 0, 1, 1], [np.nan, 0, 1, 1], [0, 0, np.inf, 1], [1, 1, 0, 0], [0, 0, 0, 0]], F)
    for b, s in ((same, np.ones(5, F)), (same, np.array([np.nan, 1, 2, -np.inf, np.inf], F)), (odd, scores(F, 5))):
        yield Case("NonMaxSuppressionV3", {"boxes": b, "scores": s, "max_output_size": scalar(5), "iou_threshold": scalar(0.5, F), "score_threshold": scalar(-3e38, F)})
    b, s = some_boxes(F, 4), scores(F, 4)
    for boxes, points, most, iou in ((b[:, :3], s, scalar(2), 0.5), (b, s[:3], scalar(2), 0.5), (b[0], s, scalar(2), 0.5), (b, s[:, None], scalar(2), 0.5),
                                     (b, s, scalar(-1), 0.5), (b, s, i32(2), 0.5), (b, s, scalar(2), -0.1), (b, s, scalar(2), 1.1)):
        yield Case("NonMaxSuppressionV2", {"boxes": boxes, "scores": points, "max_output_size": most, "iou_threshold": scalar(iou, F)})
    yield Case("NonMaxSuppressionV5", {"boxes": b, "scores": s, "max_output_size": scalar(2), "iou_threshold": scalar(0.5, F),
                                       "score_threshold": scalar(0, F), "soft_nms_sigma": scalar(-1, F)})
    yield Case("NonMaxSuppressionWithOverlaps", {"overlaps": real(F, 4, 3), "scores": s, "max_output_size": scalar(2),
                                                 "overlap_threshold": scalar(0.5, F), "score_threshold": scalar(0, F)})


def combined():
    def ask(b, s, a_class=3, total=5, iou=0.4, least=0.1, **attrs):
        return Case("CombinedNonMaxSuppression", {"boxes": b, "scores": s, "max_output_size_per_class": scalar(a_class), "max_total_size": scalar(total),
                                                  "iou_threshold": scalar(iou, F), "score_threshold": scalar(least, F)}, attrs)
    for classes, places, per_class, clips in itertools.product((1, 4), (1, 4), (False, True), (False, True)):
        if places > classes:
            continue
        b = some_boxes(F, 2 * 9 * places).reshape(2, 9, places, 4)
        s = scores(F, 2 * 9 * classes).reshape(2, 9, classes)
        for a_class, total, least in itertools.product((1, 3, 20), (1, 5, 50), (0.1, 0.95)):
            yield ask(b, s, a_class, total, 0.4, least, pad_per_class=per_class, clip_boxes=clips)
    b, s = some_boxes(F, 18).reshape(2, 9, 1, 4), scores(F, 36).reshape(2, 9, 2)
    for boxes, points in ((b[0], s), (b, s[0]), (b[..., :3], s), (np.tile(b, (1, 1, 3, 1)), s), (b[:, :8], s), (b[:1], s)):
        yield ask(boxes, points)
    for a_class, total, iou in ((0, 5, 0.4), (3, 0, 0.4), (-1, 5, 0.4), (3, -1, 0.4), (3, 5, 1.5)):
        yield ask(b, s, a_class, total, iou)


def patches():
    for t, padding, size, stride, rate in itertools.product((F, D, H, np.uint8, L), ("VALID", "SAME"), ((1, 1), (3, 2)), ((1, 1), (2, 3)), ((1, 1), (2, 1), (1, 3))):
        for shape in ((2, 7, 8, 3), (1, 4, 5, 1), (0, 7, 8, 3)):
            x = real(t, *shape) if np.dtype(t).kind == "f" else ints(t, *shape, low=0, high=100)
            yield Case("ExtractImagePatches", {"images": x}, {"ksizes": [1, *size, 1], "strides": [1, *stride, 1], "rates": [1, *rate, 1], "padding": padding})
    for t, padding, size, stride in itertools.product((F, D, I), ("VALID", "SAME"), ((1, 1, 1), (2, 3, 3)), ((1, 1, 1), (2, 1, 3))):
        if padding == "SAME" and stride > size:  # TensorFlow's first window starts outside the input
            continue
        x = real(t, 2, 4, 5, 6, 2) if np.dtype(t).kind == "f" else ints(t, 2, 4, 5, 6, 2)
        yield Case("ExtractVolumePatches", {"input": x}, {"ksizes": [1, *size, 1], "strides": [1, *stride, 1], "padding": padding})
    x, plain = real(F, 1, 4, 4, 2), {"ksizes": [1, 2, 2, 1], "strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": "VALID"}
    for images, attrs in ((x[0], {}), (x, {"ksizes": [2, 2, 2, 1]}), (x, {"strides": [1, 1, 1, 2]}), (x, {"rates": [1, 1, 1, 2]}), (x, {"ksizes": [1, 9, 2, 1]}), (x, {"ksizes": [1, 0, 2, 1]})):
        yield Case("ExtractImagePatches", {"images": images}, {**plain, **attrs})


def drawings():
    where = np.array([[[0, 0, 1, 1], [0.1, 0.2, 0.7, 0.9], [0.9, 0.8, 0.2, 0.1], [-0.3, 0.5, 0.5, 1.4]],
                      [[0.5, 0.5, 0.5, 0.5], [1.2, 0, 1.4, 1], [-2, -2, 3, 3], [0.3, -0.5, 0.6, -0.1]]], F)
    for t, depth in itertools.product((F, H), (1, 3, 4)):
        x = real(t, 2, 9, 12, depth, low=0, high=1)
        for b in (where, where[:, :1], where[:, :0], np.tile(where, (1, 3, 1))):
            yield Case("DrawBoundingBoxes", {"images": x, "boxes": b})
            yield Case("DrawBoundingBoxesV2", {"images": x, "boxes": b, "colors": np.zeros((0, 4), F)})
            yield Case("DrawBoundingBoxesV2", {"images": x, "boxes": b, "colors": real(F, 2, 4, low=0, high=1)})
    x = real(F, 2, 9, 12, 3)
    for images, b in ((x[..., :2], where), (x, where[0]), (x, where[..., :3]), (x[:1], where)):
        yield Case("DrawBoundingBoxes", {"images": images, "boxes": b})
    yield Case("DrawBoundingBoxesV2", {"images": x, "boxes": where, "colors": real(F, 2, 2)})
    yield Case("DrawBoundingBoxesV2", {"images": x, "boxes": where, "colors": real(F, 4)})


def samples():
    marked = np.array([[[0.1, 0.2, 0.7, 0.9], [0.4, 0.4, 0.5, 0.5], [0, 0, 0, 0]]], F)
    ranges = ((0.75, 1.33), (0.05, 1)), ((0.5, 2), (0.3, 0.4)), ((1, 1), (1, 1)), ((3, 5), (0.01, 0.9))
    for t, size, (aspect, area), covered in itertools.product((I, L, np.uint8), ((50, 40, 3), (7, 90, 1), (1, 1, 3)), ranges, (0, 0.1, 0.9)):
        attrs = {"aspect_ratio_range": list(aspect), "area_range": list(area), "max_attempts": 20}
        inputs = {"image_size": np.array(size, t), "bounding_boxes": marked}
        for seed in range(3):
            seeds = {"seed": seed + 1, "seed2": 5}
            yield Case("SampleDistortedBoundingBox", inputs, {**attrs, **seeds, "min_object_covered": covered})
            yield Case("SampleDistortedBoundingBoxV2", {**inputs, "min_object_covered": scalar(covered, F)}, {**attrs, **seeds})
            yield Case("StatelessSampleDistortedBoundingBox", {**inputs, "min_object_covered": scalar(covered, F), "seed": i32(seed, 9)}, attrs)
    plain = {"image_size": i32(50, 40, 3), "bounding_boxes": marked, "min_object_covered": scalar(0.1, F)}
    none = {"bounding_boxes": np.zeros((0, 0, 4), F)}
    yield Case("SampleDistortedBoundingBoxV2", {**plain, **none}, {"seed": 3, "use_image_if_no_bounding_boxes": True})
    for inputs, attrs in (({}, {"max_attempts": 0}), ({}, {"area_range": [0.5, 1.5]}), ({}, {"area_range": [0.0, 1]}), ({}, {"aspect_ratio_range": [-1, 1]}),
                          ({}, {"area_range": [0.5]}), (none, {}), ({"bounding_boxes": marked + 1}, {}), ({"bounding_boxes": marked[0]}, {}),
                          ({"bounding_boxes": marked[..., :3]}, {}), ({"image_size": i32(50, 40)}, {}), ({"min_object_covered": scalar(-1, F)}, {}),
                          ({"min_object_covered": np.zeros(1, F)}, {})):
        yield Case("SampleDistortedBoundingBoxV2", {**plain, **inputs}, {"seed": 3, **attrs})


def projections():
    numbers = np.array([[1, 0, 0, 0, 1, 0, 0, 0], [0.8, 0.3, -2, -0.4, 1.2, 1, 0.02, -0.03]], F)
    for t, way, mode, size in itertools.product((F, D, H, np.uint8, I, L), ("NEAREST", "BILINEAR"), ("CONSTANT", "REFLECT", "WRAP", "NEAREST"), ((5, 6), (9, 4))):
        x = real(t, 2, 5, 6, 3) if np.dtype(t).kind == "f" else ints(t, 2, 5, 6, 3, low=0, high=100)
        tol = {"atol": {F: 1e-5, D: 1e-5, H: 2e-2}.get(t, 0), "rtol": 1e-5}
        for by in (numbers, numbers[1:], numbers * 7, np.float32([[0.8, 0.3, -2, -0.4, 1.2, 1, -1, -0.5]])):  # the divisor 1 - x - y / 2 is 0
            inputs, attrs = {"images": x, "transforms": by, "output_shape": i32(*size)}, {"interpolation": way, "fill_mode": mode}
            yield Case("ImageProjectiveTransformV2", inputs, attrs, **tol)
            yield Case("ImageProjectiveTransformV3", {**inputs, "fill_value": scalar(7.5 if t in (F, D, H) else 7, F)}, attrs, **tol)
    x = real(F, 2, 5, 6, 3)
    for images, by, size, attrs in ((x[0], numbers, (5, 6), {}), (x, numbers[:, :7], (5, 6), {}), (x, numbers[[0, 1, 1]], (5, 6), {}), (x, numbers[0], (5, 6), {}),
                                    (x, numbers, (0, 6), {}), (x, numbers, (5,), {}), (x[..., :0], numbers, (5, 6), {})):
        yield Case("ImageProjectiveTransformV2", {"images": images, "transforms": by, "output_shape": i32(*size)}, {"interpolation": "BILINEAR", **attrs})


def glimpses():
    x, at = real(F, 8, 7, 9, 2), np.array([[0, 0], [0.2, 0.3], [-0.4, -0.4], [1, 2], [3.7, 2.2], [-1, -2], [-0.9, 0.9], [1e20, np.nan]], F)
    for op, centered, normalized, size in itertools.product(("ExtractGlimpse", "ExtractGlimpseV2"), (True, False), (True, False), ((3, 4), (2, 2), (1, 12), (9, 1))):
        attrs = {"centered": centered, "normalized": normalized, "uniform_noise": False}
        yield Case(op, {"input": x[:7], "size": i32(*size), "offsets": at[:7]}, {**attrs, "noise": "zero"})
        for noise in ("uniform", "gaussian", ""):  # unseeded noise fills the parts outside the image
            yield Case(op, {"input": x[:7], "size": i32(*size), "offsets": at[:7]}, {**attrs, "noise": noise}, only_shape=True)
    for op, images, size, offsets in itertools.product(("ExtractGlimpse", "ExtractGlimpseV2"), (x[:2], x[0], x[:1]), ((3, 4), (3,)), (at[:2], at[0], at[:2, :1])):
        if images.ndim == 4:  # TensorFlow reads dimensions that do not exist
            yield Case(op, {"input": images, "size": i32(*size), "offsets": offsets}, {"noise": "zero", "uniform_noise": False})


def box_cases():
    for group in (suppressions, combined, patches, drawings, samples, projections, glimpses):
        yield from group()
