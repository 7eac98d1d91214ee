/* SPDX-License-Identifier: Apache-2.0 */
/* Non-maximum suppression: removes boxes that overlap a better box too much, best first.
 *
 * Candidates are in a heap by score. With a sigma, an overlapping candidate loses part of its score
 * instead of being removed, and returns to the heap. `n_compared` prevents the same selected box
 * from reducing a candidate twice, so every pair is compared at most once. */
#include <float.h>
#include <math.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/kernel_table.h"

enum { SIDES = 4 }; /* of a box: y1, x1, y2, x2, corners in either order */

struct suppression {
	int64_t n, max_output_size; /* candidates; limit of selected boxes */
	const float *scores;
	int64_t score_step; /* from one score to the next */
	float iou_threshold, score_threshold, sigma;
	const float *boxes; /* or the matrix of their overlaps */
	int64_t step;       /* from one box, or row of the matrix, to the next */
	float (*overlap)(const struct suppression *s, int64_t a, int64_t b);
};

struct candidate {
	int64_t box;
	int64_t n_compared; /* selected boxes that it was compared with */
	float score;
};
struct heap {
	struct candidate *at;
	int64_t n;
};

static bool is_better_candidate(const struct candidate *a, const struct candidate *b)
{
	return a->score != b->score ? a->score > b->score : a->box < b->box;
}

static void heap_sink(struct heap *h, int64_t i)
{
	struct candidate moved = h->at[i];

	for (int64_t child; (child = 2 * i + 1) < h->n; i = child) {
		if (child + 1 < h->n && is_better_candidate(&h->at[child + 1], &h->at[child]))
			child++;
		if (!is_better_candidate(&h->at[child], &moved))
			break;
		h->at[i] = h->at[child];
	}
	h->at[i] = moved;
}

/* ---- overlap of two boxes ---- */

/* std::min: with NaN as one operand the result is the first operand. */
static float min_float(float a, float b)
{
	return b < a ? b : a;
}

static float max_float(float a, float b)
{
	return a < b ? b : a;
}

struct corners {
	float low[2], high[2], area;
};

static struct corners corners_of_box(const float *box)
{
	struct corners s;

	for (int i = 0; i < 2; i++) {
		s.low[i] = min_float(box[i], box[i + 2]);
		s.high[i] = max_float(box[i], box[i + 2]);
	}
	s.area = (s.high[0] - s.low[0]) * (s.high[1] - s.low[1]);
	return s;
}

/* Intersection over union of two boxes. */
static float overlap_boxes(const struct suppression *s, int64_t a, int64_t b)
{
	struct corners x = corners_of_box(s->boxes + a * s->step),
		       y = corners_of_box(s->boxes + b * s->step);
	float common = 1;

	if (x.area <= 0 || y.area <= 0)
		return 0;
	for (int i = 0; i < 2; i++)
		common *=
		    max_float(min_float(x.high[i], y.high[i]) - max_float(x.low[i], y.low[i]), 0);
	return common / (x.area + y.area - common);
}

static float overlap_given(const struct suppression *s, int64_t a, int64_t b)
{
	return s->boxes[a * s->step + b];
}

/* ---- selection ---- */

/* Compares a candidate with the new selected boxes.  Returns true if one suppresses it. */
static bool suppress_compare(const struct suppression *s, struct candidate *c,
			     const struct candidate *selected, int64_t n)
{
	bool soft = s->sigma > 0;
	float scale = soft ? -0.5f / s->sigma : 0;

	for (int64_t i = n; i-- > c->n_compared;) {
		float overlap = s->overlap(s, c->box, selected[i].box);
		c->score *=
		    soft || overlap <= s->iou_threshold ? expf(scale * overlap * overlap) : 0;
		if (!soft && overlap > s->iou_threshold)
			return true;
		if (c->score <= s->score_threshold)
			break;
	}
	c->n_compared = n;
	return false;
}

/* Returns the number of selected boxes; `selected` has room for min(n, max_output_size). */
static int64_t suppress_select(const struct suppression *s, struct candidate *scratch,
			       struct candidate *selected)
{
	struct heap h = {.at = scratch};
	int64_t n = 0;

	for (int64_t i = 0; i < s->n; i++)
		if (s->scores[i * s->score_step] > s->score_threshold)
			h.at[h.n++] =
			    (struct candidate){.box = i, .score = s->scores[i * s->score_step]};
	for (int64_t i = h.n / 2; i-- > 0;)
		heap_sink(&h, i);
	while (h.n && n < s->max_output_size) {
		struct candidate *top = &h.at[0], previous = *top;
		bool is_suppressed = suppress_compare(s, top, selected, n);
		bool is_requeued = !is_suppressed && top->score != previous.score &&
				   top->score > s->score_threshold;
		if (!is_suppressed && top->score == previous.score)
			selected[n++] = *top;
		if (!is_requeued)
			*top = h.at[--h.n];
		if (h.n)
			heap_sink(&h, 0);
	}
	return n;
}

static struct candidate *scratch_alloc(int64_t n, struct mu_err *err)
{
	struct candidate *scratch = calloc((size_t)n + 1, sizeof *scratch);

	if (!scratch)
		mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for %lld candidates", (long long)n);
	return scratch;
}

/* ---- NonMaxSuppression, V2 to V5, WithOverlaps ---- */

/* Reads input i, the maximum output size, an int32. */
static int read_output_size(const struct kernel_call *c, unsigned i, int64_t *out,
			    struct mu_err *err)
{
	MU_RETURN_IF_ERROR(args_int(c, i, out, err));
	if (*out < 0)
		return mu_invalid(err, "output size must be non-negative");
	return 0;
}

/* Inputs: boxes or overlaps, scores, maximum output size, and the thresholds that the version of
 * the op has. */
static int read_inputs(const struct kernel_call *c, struct suppression *s, struct mu_err *err)
{
	const struct mu_tensor *boxes = kernel_in(c, 0), *scores = kernel_in(c, 1);
	float *thresholds[] = {&s->iou_threshold, &s->score_threshold, &s->sigma};

	MU_RETURN_IF_ERROR(read_output_size(c, 2, &s->max_output_size, err));
	s->iou_threshold = args_attr_float(c->node, "iou_threshold", 0.5f);
	s->score_threshold = -FLT_MAX;
	for (unsigned i = 3; i < c->n_in && i < 3 + MU_COUNT(thresholds); i++)
		*thresholds[i - 3] = *MU_DATA(float, kernel_in(c, i));
	s->n = boxes->shape.dim[0];
	s->step = boxes->shape.dim[1];
	s->boxes = boxes->data;
	s->scores = scores->data;
	s->score_step = 1;
	return 0;
}

/* Outputs the indices of the selected boxes and, if the version of the op has them, their scores.
 * Both are padded with 0 to `out_size`. */
static int put_selected(struct kernel_call *c, const struct candidate *selected, int64_t n,
			int64_t out_size, struct mu_err *err)
{
	struct mu_shape vec = mu_shape_vec(out_size), scalar = {.count = 1};
	struct mu_tensor *indices, *scores = NULL, *valid;
	int rc = kernel_out(c, 0, MU_INT32, &vec, &indices, err);

	if (!rc && c->n_out == 3)
		rc = kernel_out(c, 1, MU_FLOAT, &vec, &scores, err);
	for (int64_t i = 0; i < out_size && !rc; i++) {
		MU_DATA(int32_t, indices)[i] = i < n ? (int32_t)selected[i].box : 0;
		if (scores)
			MU_DATA(float, scores)[i] = i < n ? selected[i].score : 0;
	}
	if (rc || c->n_out == 1)
		return rc;
	if (!(rc = kernel_out(c, c->n_out - 1, MU_INT32, &scalar, &valid, err)))
		*MU_DATA(int32_t, valid) = (int32_t)n;
	return rc;
}

static int suppress_run(struct kernel_call *c, struct suppression *s, struct mu_err *err)
{
	int64_t max_selected = s->max_output_size < s->n ? s->max_output_size : s->n;

	if (s->n > INT32_MAX)
		return mu_invalid(err, "too many boxes: %lld", (long long)s->n);
	MU_AUTO_FREE struct candidate *scratch = scratch_alloc(s->n + max_selected, err);
	if (!scratch)
		return -MU_RESOURCE_EXHAUSTED;
	int64_t n = suppress_select(s, scratch, scratch + s->n);
	bool pads = args_attr_bool(c->node, "pad_to_max_output_size", false);
	return put_selected(c, scratch + s->n, n, pads ? s->max_output_size : n, err);
}

static int suppress(struct kernel_call *c, struct mu_err *err)
{
	struct suppression s = {.overlap = overlap_boxes};

	MU_RETURN_IF_ERROR(read_inputs(c, &s, err));
	if (!(s.iou_threshold >= 0 && s.iou_threshold <= 1))
		return mu_invalid(err, "iou_threshold must be in [0, 1]");
	if (!(s.sigma >= 0))
		return mu_invalid(err, "soft_nms_sigma must be >= 0.0");
	return suppress_run(c, &s, err);
}

static int suppress_overlaps(struct kernel_call *c, struct mu_err *err)
{
	struct suppression s = {.overlap = overlap_given};

	MU_RETURN_IF_ERROR(read_inputs(c, &s, err));
	return suppress_run(c, &s, err);
}

/* ---- CombinedNonMaxSuppression: per class and image, then the best of an image ---- */

struct combined {
	int64_t images, boxes, box_classes, classes; /* box_classes: 1 or classes */
	int64_t max_per_class, max_total;
	float iou_threshold, score_threshold;
	bool pad_per_class, clip_boxes;
};
struct detection {
	struct candidate c;
	int64_t class;
};

static int read_combined(const struct kernel_call *c, struct combined *k, struct mu_err *err)
{
	const struct mu_shape *b = &kernel_in(c, 0)->shape, *s = &kernel_in(c, 1)->shape;

	MU_RETURN_IF_ERROR(read_output_size(c, 2, &k->max_per_class, err));
	MU_RETURN_IF_ERROR(read_output_size(c, 3, &k->max_total, err));
	k->iou_threshold = *MU_DATA(float, kernel_in(c, 4));
	k->score_threshold = *MU_DATA(float, kernel_in(c, 5));
	k->images = b->dim[0];
	k->boxes = b->dim[1];
	k->box_classes = b->dim[2];
	k->classes = s->dim[2];
	k->pad_per_class = args_attr_bool(c->node, "pad_per_class", false);
	k->clip_boxes = args_attr_bool(c->node, "clip_boxes", true);
	if (b->dim[3] != SIDES || s->dim[0] != k->images || s->dim[1] != k->boxes ||
	    (k->box_classes != 1 && k->box_classes != k->classes) || k->boxes > INT32_MAX)
		return mu_invalid(err,
				  "boxes must be [pictures, boxes, 1 or classes, 4] and scores "
				  "[pictures, boxes, classes], not %s and %s",
				  mu_shape_str(b), mu_shape_str(s));
	if (k->max_per_class < 1 || k->max_total < 1)
		return mu_invalid(err, "max_size_per_class and max_total_size must be positive");
	if (!(k->iou_threshold >= 0 && k->iou_threshold <= 1))
		return mu_invalid(err, "iou_threshold must be in [0, 1]");
	return 0;
}

static int compare_detections(const void *x, const void *y)
{
	const struct detection *a = x, *b = y;

	if (a->c.score != b->c.score)
		return a->c.score > b->c.score ? -1 : 1;
	if (a->class != b->class)
		return a->class < b->class ? -1 : 1;
	return (a->c.box > b->c.box) - (a->c.box < b->c.box);
}

/* Selects the boxes of every class in image p.  Returns their number. */
static int64_t find_detections(const struct kernel_call *c, const struct combined *k, int64_t p,
			       struct candidate *scratch, struct detection *detections)
{
	int64_t n = 0;
	struct suppression s = {.n = k->boxes,
				.max_output_size =
				    k->max_per_class < k->boxes ? k->max_per_class : k->boxes,
				.score_step = k->classes,
				.iou_threshold = k->iou_threshold,
				.score_threshold = k->score_threshold,
				.step = k->box_classes * SIDES,
				.overlap = overlap_boxes};

	for (int64_t class = 0; class < k->classes; class ++) {
		s.scores = MU_DATA(float, kernel_in(c, 1)) + p * k->boxes * k->classes + class;
		s.boxes = MU_DATA(float, kernel_in(c, 0)) + p * k->boxes * s.step +
			  (k->box_classes > 1 ? class * SIDES : 0);
		int64_t n_selected = suppress_select(&s, scratch, scratch + k->boxes);
		for (int64_t i = 0; i < n_selected; i++)
			detections[n++] = (struct detection){scratch[k->boxes + i], class};
	}
	qsort(detections, (size_t)n, sizeof *detections, compare_detections);
	return n;
}

static void put_image(const struct kernel_call *c, const struct combined *k, int64_t p,
		      const struct detection *detections, int64_t n, int64_t out_size,
		      struct mu_tensor *const out[4])
{
	const float *boxes = kernel_in(c, 0)->data;

	MU_DATA(int32_t, out[3])[p] = (int32_t)n;
	for (int64_t i = 0, at = p * out_size; i < out_size; i++, at++) {
		const struct detection *f = i < n ? &detections[i] : NULL;
		MU_DATA(float, out[1])[at] = f ? f->c.score : 0;
		MU_DATA(float, out[2])[at] = f ? (float)f->class : 0;
		for (int j = 0; j < SIDES; j++) {
			int64_t q = f && k->box_classes > 1 ? f->class : 0;
			float side =
			    f ? boxes[((p * k->boxes + f->c.box) * k->box_classes + q) * SIDES + j]
			      : 0;
			MU_DATA(float, out[0])
			[at * SIDES + j] = k->clip_boxes ? fmaxf(fminf(side, 1), 0) : side;
		}
	}
}

static int suppress_combined(struct kernel_call *c, struct mu_err *err)
{
	struct combined k;
	struct mu_shape all, flat, one;
	struct mu_tensor *out[4];

	MU_RETURN_IF_ERROR(read_combined(c, &k, err));
	int64_t out_size = k.max_total,
		per_class = k.max_per_class < k.boxes ? k.max_per_class : k.boxes, max_detections;
	if (__builtin_mul_overflow(k.max_per_class, k.classes, &max_detections) ||
	    __builtin_mul_overflow(per_class, k.classes, &max_detections))
		return mu_invalid(err, "too many classes: %lld", (long long)k.classes);
	if (k.pad_per_class && k.max_per_class * k.classes < out_size)
		out_size = k.max_per_class * k.classes;
	MU_RETURN_IF_ERROR(mu_shape_set(&all, 3, (int64_t[]){k.images, out_size, SIDES}, err));
	MU_RETURN_IF_ERROR(mu_shape_set(&flat, 2, all.dim, err));
	MU_RETURN_IF_ERROR(mu_shape_set(&one, 1, all.dim, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_FLOAT, &all, &out[0], err));
	MU_RETURN_IF_ERROR(kernel_out(c, 1, MU_FLOAT, &flat, &out[1], err));
	MU_RETURN_IF_ERROR(kernel_out(c, 2, MU_FLOAT, &flat, &out[2], err));
	MU_RETURN_IF_ERROR(kernel_out(c, 3, MU_INT32, &one, &out[3], err));
	MU_AUTO_FREE struct candidate *scratch = scratch_alloc(k.boxes + per_class, err);
	MU_AUTO_FREE struct detection *detections =
	    calloc((size_t)max_detections + 1, sizeof *detections);
	if (!scratch || !detections)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for %lld boxes",
			       (long long)max_detections);
	for (int64_t p = 0; p < k.images; p++) {
		int64_t n = find_detections(c, &k, p, scratch, detections);
		put_image(c, &k, p, detections, n < out_size ? n : out_size, out_size, out);
	}
	return 0;
}

static const struct kernel rows[] = {
    {"NonMaxSuppression NonMaxSuppressionV2 NonMaxSuppressionV3 NonMaxSuppressionV4 "
     "NonMaxSuppressionV5",
     KERNEL_EXPENSIVE, .run = suppress},
    {"NonMaxSuppressionWithOverlaps", KERNEL_EXPENSIVE, .run = suppress_overlaps},
    {"CombinedNonMaxSuppression", KERNEL_EXPENSIVE, .run = suppress_combined},
};
KERNEL_TABLE(image_non_max_suppression, rows)
