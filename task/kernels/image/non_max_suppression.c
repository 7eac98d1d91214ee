/* SPDX-License-Identifier: Apache-2.0 */
/* Non-maximum suppression: removes boxes that overlap a better box too much, best first.
 *
 * Candidates are in a heap by score. With a sigma, an overlapping candidate loses part of its score
 * instead of being removed, and returns to the heap. `seen` prevents the same selected box from
 * reducing a candidate twice, so every pair is compared at most once. */
#include <float.h>
#include <math.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/kernel_table.h"

enum { SIDES = 4 }; /* of a box: y1, x1, y2, x2, corners in either order */

struct suppression {
	int64_t n, most; /* candidates; how many are chosen at most */
	const float *scores;
	int64_t score_step; /* from one score to the next */
	float similar, least, sigma;
	const float *of; /* boxes, or how much each overlaps each */
	int64_t step;    /* from one to the next */
	float (*overlap)(const struct suppression *s, int64_t a, int64_t b);
};

struct candidate {
	int64_t box, seen;
	float score;
};
struct heap {
	struct candidate *at;
	int64_t n;
};

static bool better(const struct candidate *a, const struct candidate *b)
{
	return a->score != b->score ? a->score > b->score : a->box < b->box;
}

static void heap_sink(struct heap *h, int64_t i)
{
	struct candidate moved = h->at[i];

	for (int64_t child; (child = 2 * i + 1) < h->n; i = child) {
		if (child + 1 < h->n && better(&h->at[child + 1], &h->at[child]))
			child++;
		if (!better(&h->at[child], &moved))
			break;
		h->at[i] = h->at[child];
	}
	h->at[i] = moved;
}

/* ---- how much two overlap ---- */

/* std::min: with NaN as one operand the result is the first operand. */
static float min_float(float a, float b)
{
	return b < a ? b : a;
}

static float larger(float a, float b)
{
	return a < b ? b : a;
}

struct corners {
	float low[2], high[2], area;
};

static struct corners sides_of(const float *box)
{
	struct corners s;

	for (int i = 0; i < 2; i++) {
		s.low[i] = min_float(box[i], box[i + 2]);
		s.high[i] = larger(box[i], box[i + 2]);
	}
	s.area = (s.high[0] - s.low[0]) * (s.high[1] - s.low[1]);
	return s;
}

/* Intersection over union of two boxes. */
static float overlap_boxes(const struct suppression *s, int64_t a, int64_t b)
{
	struct corners x = sides_of(s->of + a * s->step), y = sides_of(s->of + b * s->step);
	float common = 1;

	if (x.area <= 0 || y.area <= 0)
		return 0;
	for (int i = 0; i < 2; i++)
		common *= larger(min_float(x.high[i], y.high[i]) - larger(x.low[i], y.low[i]), 0);
	return common / (x.area + y.area - common);
}

static float overlap_given(const struct suppression *s, int64_t a, int64_t b)
{
	return s->of[a * s->step + b];
}

/* ---- choosing ---- */

/* Weighs a candidate by the chosen ones that it has not met; true when one leaves it out. */
static bool suppress_weigh(const struct suppression *s, struct candidate *c,
			   const struct candidate *chosen, int64_t n)
{
	bool soft = s->sigma > 0;
	float scale = soft ? -0.5f / s->sigma : 0;

	for (int64_t i = n; i-- > c->seen;) {
		float by = s->overlap(s, c->box, chosen[i].box);
		c->score *= soft || by <= s->similar ? expf(scale * by * by) : 0;
		if (!soft && by > s->similar)
			return true;
		if (c->score <= s->least)
			break;
	}
	c->seen = n;
	return false;
}

/* chosen: space for the smaller of n and most.  Returns how many. */
static int64_t suppress_choose(const struct suppression *s, struct candidate *scratch,
			       struct candidate *chosen)
{
	struct heap h = {.at = scratch};
	int64_t n = 0;

	for (int64_t i = 0; i < s->n; i++)
		if (s->scores[i * s->score_step] > s->least)
			h.at[h.n++] =
			    (struct candidate){.box = i, .score = s->scores[i * s->score_step]};
	for (int64_t i = h.n / 2; i-- > 0;)
		heap_sink(&h, i);
	while (h.n && n < s->most) {
		struct candidate *top = &h.at[0], before = *top;
		bool out = suppress_weigh(s, top, chosen, n);
		bool stays = !out && top->score != before.score && top->score > s->least;
		if (!out && top->score == before.score)
			chosen[n++] = *top;
		if (!stays)
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

/* Input i: how many at most, an int32. */
static int read_most(const struct kernel_call *c, unsigned i, int64_t *out, struct mu_err *err)
{
	MU_RETURN_IF_ERROR(args_int(c, i, out, err));
	if (*out < 0)
		return mu_invalid(err, "output size must be non-negative");
	return 0;
}

/* Inputs: what overlaps, scores, how many at most, and thresholds as far as the version has them.
 */
static int read_inputs(const struct kernel_call *c, struct suppression *s, struct mu_err *err)
{
	const struct mu_tensor *of = kernel_in(c, 0), *scores = kernel_in(c, 1);
	float *more[] = {&s->similar, &s->least, &s->sigma};

	MU_RETURN_IF_ERROR(read_most(c, 2, &s->most, err));
	s->similar = args_attr_float(c->node, "iou_threshold", 0.5f);
	s->least = -FLT_MAX;
	for (unsigned i = 3; i < c->n_in && i < 3 + MU_COUNT(more); i++)
		*more[i - 3] = *MU_DATA(float, kernel_in(c, i));
	s->n = of->shape.dim[0];
	s->step = of->shape.dim[1];
	s->of = of->data;
	s->scores = scores->data;
	s->score_step = 1;
	return 0;
}

/* Numbers of the chosen, and their scores where the version says them; the rest of `shown` is 0. */
static int put_chosen(struct kernel_call *c, const struct candidate *chosen, int64_t n,
		      int64_t shown, struct mu_err *err)
{
	struct mu_shape all = mu_shape_vec(shown), one = {.count = 1};
	struct mu_tensor *of, *scores = NULL, *valid;
	int rc = kernel_out(c, 0, MU_INT32, &all, &of, err);

	if (!rc && c->n_out == 3)
		rc = kernel_out(c, 1, MU_FLOAT, &all, &scores, err);
	for (int64_t i = 0; i < shown && !rc; i++) {
		MU_DATA(int32_t, of)[i] = i < n ? (int32_t)chosen[i].box : 0;
		if (scores)
			MU_DATA(float, scores)[i] = i < n ? chosen[i].score : 0;
	}
	if (rc || c->n_out == 1)
		return rc;
	if (!(rc = kernel_out(c, c->n_out - 1, MU_INT32, &one, &valid, err)))
		*MU_DATA(int32_t, valid) = (int32_t)n;
	return rc;
}

static int suppress_run(struct kernel_call *c, struct suppression *s, struct mu_err *err)
{
	int64_t most = s->most < s->n ? s->most : s->n;

	if (s->n > INT32_MAX)
		return mu_invalid(err, "too many boxes: %lld", (long long)s->n);
	MU_AUTO_FREE struct candidate *scratch = scratch_alloc(s->n + most, err);
	if (!scratch)
		return -MU_RESOURCE_EXHAUSTED;
	int64_t n = suppress_choose(s, scratch, scratch + s->n);
	bool pads = args_attr_bool(c->node, "pad_to_max_output_size", false);
	return put_chosen(c, scratch + s->n, n, pads ? s->most : n, err);
}

static int suppress(struct kernel_call *c, struct mu_err *err)
{
	struct suppression s = {.overlap = overlap_boxes};

	MU_RETURN_IF_ERROR(read_inputs(c, &s, err));
	if (!(s.similar >= 0 && s.similar <= 1))
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

/* ---- CombinedNonMaxSuppression: of each class of each picture, then the best of a picture ---- */

struct combined {
	int64_t pictures, boxes, places, classes, a_class, total;
	float similar, least;
	bool per_class, clips;
};
struct found {
	struct candidate c;
	int64_t class;
};

static int read_combined(const struct kernel_call *c, struct combined *k, struct mu_err *err)
{
	const struct mu_shape *b = &kernel_in(c, 0)->shape, *s = &kernel_in(c, 1)->shape;

	MU_RETURN_IF_ERROR(read_most(c, 2, &k->a_class, err));
	MU_RETURN_IF_ERROR(read_most(c, 3, &k->total, err));
	k->similar = *MU_DATA(float, kernel_in(c, 4));
	k->least = *MU_DATA(float, kernel_in(c, 5));
	k->pictures = b->dim[0];
	k->boxes = b->dim[1];
	k->places = b->dim[2];
	k->classes = s->dim[2];
	k->per_class = args_attr_bool(c->node, "pad_per_class", false);
	k->clips = args_attr_bool(c->node, "clip_boxes", true);
	if (b->dim[3] != SIDES || s->dim[0] != k->pictures || s->dim[1] != k->boxes ||
	    (k->places != 1 && k->places != k->classes) || k->boxes > INT32_MAX)
		return mu_invalid(err,
				  "boxes must be [pictures, boxes, 1 or classes, 4] and scores "
				  "[pictures, boxes, classes], not %s and %s",
				  mu_shape_str(b), mu_shape_str(s));
	if (k->a_class < 1 || k->total < 1)
		return mu_invalid(err, "max_size_per_class and max_total_size must be positive");
	if (!(k->similar >= 0 && k->similar <= 1))
		return mu_invalid(err, "iou_threshold must be in [0, 1]");
	return 0;
}

static int compare_found(const void *x, const void *y)
{
	const struct found *a = x, *b = y;

	if (a->c.score != b->c.score)
		return a->c.score > b->c.score ? -1 : 1;
	if (a->class != b->class)
		return a->class < b->class ? -1 : 1;
	return (a->c.box > b->c.box) - (a->c.box < b->c.box);
}

/* Selects the boxes of every class in image p.  Returns their number. */
static int64_t suppress_find(const struct kernel_call *c, const struct combined *k, int64_t p,
			     struct candidate *scratch, struct found *found)
{
	int64_t n = 0;
	struct suppression s = {.n = k->boxes,
				.most = k->a_class < k->boxes ? k->a_class : k->boxes,
				.score_step = k->classes,
				.similar = k->similar,
				.least = k->least,
				.step = k->places * SIDES,
				.overlap = overlap_boxes};

	for (int64_t class = 0; class < k->classes; class ++) {
		s.scores = MU_DATA(float, kernel_in(c, 1)) + p * k->boxes * k->classes + class;
		s.of = MU_DATA(float, kernel_in(c, 0)) + p * k->boxes * s.step +
		       (k->places > 1 ? class * SIDES : 0);
		int64_t of_class = suppress_choose(&s, scratch, scratch + k->boxes);
		for (int64_t i = 0; i < of_class; i++)
			found[n++] = (struct found){scratch[k->boxes + i], class};
	}
	qsort(found, (size_t)n, sizeof *found, compare_found);
	return n;
}

static void put_picture(const struct kernel_call *c, const struct combined *k, int64_t p,
			const struct found *found, int64_t n, int64_t shown,
			struct mu_tensor *const out[4])
{
	const float *boxes = kernel_in(c, 0)->data;

	MU_DATA(int32_t, out[3])[p] = (int32_t)n;
	for (int64_t i = 0, at = p * shown; i < shown; i++, at++) {
		const struct found *f = i < n ? &found[i] : NULL;
		MU_DATA(float, out[1])[at] = f ? f->c.score : 0;
		MU_DATA(float, out[2])[at] = f ? (float)f->class : 0;
		for (int j = 0; j < SIDES; j++) {
			int64_t place = f && k->places > 1 ? f->class : 0;
			float side =
			    f ? boxes[((p * k->boxes + f->c.box) * k->places + place) * SIDES + j]
			      : 0;
			MU_DATA(float, out[0])
			[at * SIDES + j] = k->clips ? fmaxf(fminf(side, 1), 0) : side;
		}
	}
}

static int suppress_combined(struct kernel_call *c, struct mu_err *err)
{
	struct combined k;
	struct mu_shape all, flat, one;
	struct mu_tensor *out[4];

	MU_RETURN_IF_ERROR(read_combined(c, &k, err));
	int64_t shown = k.total, a_class = k.a_class < k.boxes ? k.a_class : k.boxes, most;
	if (__builtin_mul_overflow(k.a_class, k.classes, &most) ||
	    __builtin_mul_overflow(a_class, k.classes, &most))
		return mu_invalid(err, "too many classes: %lld", (long long)k.classes);
	if (k.per_class && k.a_class * k.classes < shown)
		shown = k.a_class * k.classes;
	MU_RETURN_IF_ERROR(mu_shape_set(&all, 3, (int64_t[]){k.pictures, shown, SIDES}, err));
	MU_RETURN_IF_ERROR(mu_shape_set(&flat, 2, all.dim, err));
	MU_RETURN_IF_ERROR(mu_shape_set(&one, 1, all.dim, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_FLOAT, &all, &out[0], err));
	MU_RETURN_IF_ERROR(kernel_out(c, 1, MU_FLOAT, &flat, &out[1], err));
	MU_RETURN_IF_ERROR(kernel_out(c, 2, MU_FLOAT, &flat, &out[2], err));
	MU_RETURN_IF_ERROR(kernel_out(c, 3, MU_INT32, &one, &out[3], err));
	MU_AUTO_FREE struct candidate *scratch = scratch_alloc(k.boxes + a_class, err);
	MU_AUTO_FREE struct found *found = calloc((size_t)most + 1, sizeof *found);
	if (!scratch || !found)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for %lld boxes",
			       (long long)most);
	for (int64_t p = 0; p < k.pictures; p++) {
		int64_t n = suppress_find(c, &k, p, scratch, found);
		put_picture(c, &k, p, found, n < shown ? n : shown, shown, out);
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
