/* SPDX-License-Identifier: Apache-2.0 */
/* Buckets of numeric features.  Their quantiles are estimated from the first examples. */
#include "task/kernels/boosted_trees/quantile_stream.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/state/handles.h"

struct boundaries {
	float *values;
	size_t n;
};

struct quantiles {
	struct resource base;
	pthread_mutex_t lock; /* guards the rest */
	float epsilon;
	int64_t max_elements, n;
	struct quantile_stream *streams; /* one for each feature */
	struct boundaries *boundaries;
};

enum { MAX_STREAMS = 1 << 20 };

static void quantiles_free(struct resource *r)
{
	struct quantiles *q = MU_CONTAINER(r, struct quantiles, base);

	for (int64_t i = 0; i < q->n; i++) {
		quantile_stream_fini(&q->streams[i]);
		free(q->boundaries[i].values);
	}
	free(q->streams);
	free(q->boundaries);
	pthread_mutex_destroy(&q->lock);
	free(q);
}

static const struct resource_type quantiles_type = {.name = "BoostedTreesQuantileStreamResource",
						    .free = quantiles_free};

static void quantiles_put(struct quantiles *q)
{
	pthread_mutex_unlock(&q->lock);
	resource_unref(&q->base);
}
MU_AUTO_DEFINE(quantiles_put, struct quantiles)

/* Finds the resource of input 0 and locks it.  n: its required number of features, or -1. */
static int quantiles_get(const struct kernel_call *c, int64_t n, struct quantiles **out,
			 struct mu_err *err)
{
	MU_AUTO(quantiles_put) struct quantiles *q = NULL;
	struct resource *r;

	MU_RETURN_IF_ERROR(handle_find(c, 0, &quantiles_type, &r, err));
	q = MU_CONTAINER(r, struct quantiles, base);
	pthread_mutex_lock(&q->lock);
	if (n >= 0 && n != q->n)
		return mu_invalid(err, "Expected %lld features, as the resource has, got %lld",
				  (long long)q->n, (long long)n);
	*out = mu_steal(&q);
	return 0;
}

static int quantiles_handle(struct kernel_call *c, struct mu_err *err)
{
	return resource_handle_out_named(c, quantiles_type.name, err);
}

static int is_initialized(struct kernel_call *c, struct mu_err *err)
{
	return handle_put_found(c, &quantiles_type, err);
}

static struct resource *quantiles_new(void *arg, struct mu_err *err)
{
	const struct kernel_call *c = arg;
	struct quantiles *q = MU_NEW(struct quantiles);
	int rc = 0;

	resource_init(&q->base, &quantiles_type);
	pthread_mutex_init(&q->lock, NULL);
	q->epsilon = MU_DATA(float, kernel_in(c, 1))[0];
	q->max_elements = args_attr_int(c->node, "max_elements", (int64_t)1 << 40);
	q->n = MU_DATA(int64_t, kernel_in(c, 2))[0];
	q->streams = MU_NEW_ARRAY(struct quantile_stream, (size_t)q->n + 1);
	q->boundaries = MU_NEW_ARRAY(struct boundaries, (size_t)q->n + 1);
	for (int64_t i = 0; !rc && i < q->n; i++)
		rc = quantile_stream_init(&q->streams[i], q->epsilon, q->max_elements, err);
	if (!rc)
		return &q->base;
	resource_unref(&q->base);
	return NULL;
}

/* Keeps an existing resource. */
static int quantiles_create(struct kernel_call *c, struct mu_err *err)
{
	int64_t n = MU_DATA(int64_t, kernel_in(c, 2))[0];

	if (!(MU_DATA(float, kernel_in(c, 1))[0] > 0))
		return mu_invalid(err, "An epsilon value of zero is not allowed.");
	if (n < 0 || n > MAX_STREAMS)
		return mu_invalid(err, "num_streams is %lld", (long long)n);
	return handle_create(c, &quantiles_type, quantiles_new, c, err);
}

/* ---- summaries ---- */

static int put_summary(struct kernel_call *c, unsigned output, const struct quantile_summary *s,
		       struct mu_err *err)
{
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(
	    kernel_out_dims(c, output, MU_FLOAT, 2, (int64_t[]){(int64_t)s->n, 4}, &out, err));
	if (s->n)
		memcpy(out->data, s->entries, s->n * sizeof *s->entries);
	return 0;
}

static int make_summaries(struct kernel_call *c, struct mu_err *err)
{
	unsigned features = c->n_in - 2;
	const struct mu_tensor *weights = kernel_in(c, features);
	float epsilon = MU_DATA(float, kernel_in(c, features + 1))[0];
	int rc = 0;

	for (unsigned f = 0; !rc && f < features; f++) {
		const struct mu_tensor *x = kernel_in(c, f);
		int64_t n = x->shape.count;
		struct quantile_stream s;
		if (weights->shape.count != 1 && weights->shape.count != n)
			return mu_invalid(
			    err, "Weights should be a single value or same size as features.");
		MU_RETURN_IF_ERROR(quantile_stream_init(&s, epsilon, n + 1, err));
		for (int64_t i = 0; i < n; i++)
			quantile_stream_push(
			    &s, MU_DATA(float, x)[i],
			    MU_DATA(float, weights)[weights->shape.count > 1 ? i : 0]);
		quantile_stream_finish(&s);
		rc = put_summary(c, f, &s.final, err);
		quantile_stream_fini(&s);
	}
	return rc;
}

static int add_summaries(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO(quantiles_put) struct quantiles *q = NULL;

	MU_RETURN_IF_ERROR(quantiles_get(c, c->n_in - 1, &q, err));
	for (unsigned i = 1; i < c->n_in; i++)
		if (kernel_in(c, i)->shape.dim[1] != 4)
			return mu_invalid(err, "A summary has 4 columns, got shape %s",
					  mu_shape_str(&kernel_in(c, i)->shape));
	for (unsigned i = 1; i < c->n_in; i++)
		quantile_stream_push_summary(&q->streams[i - 1], kernel_in(c, i)->data,
					     (size_t)kernel_in(c, i)->shape.dim[0]);
	return 0;
}

static void restart_stream(struct quantiles *q, int64_t i)
{
	quantile_stream_fini(&q->streams[i]);
	quantile_stream_init(&q->streams[i], q->epsilon, q->max_elements, NULL);
}

static int flush_summaries(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO(quantiles_put) struct quantiles *q = NULL;
	int rc = 0;

	MU_RETURN_IF_ERROR(quantiles_get(c, c->n_out, &q, err));
	for (int64_t i = 0; !rc && i < q->n; i++) {
		quantile_stream_finish(&q->streams[i]);
		rc = put_summary(c, (unsigned)i, &q->streams[i].final, err);
		restart_stream(q, i);
	}
	return rc;
}

/* ---- boundaries ---- */

static void set_boundaries(struct quantiles *q, int64_t i, float *values, size_t n)
{
	free(q->boundaries[i].values);
	q->boundaries[i] = (struct boundaries){values, n};
}

/* Computes boundaries from the added summaries and restarts the streams. */
static int flush(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO(quantiles_put) struct quantiles *q = NULL;
	bool generate_quantiles = args_attr_bool(c->node, "generate_quantiles", false);
	int64_t n = MU_DATA(int64_t, kernel_in(c, 1))[0];

	MU_RETURN_IF_ERROR(quantiles_get(c, -1, &q, err));
	if (n < (generate_quantiles ? 3 : 1) || n > MAX_STREAMS)
		return mu_invalid(err, "num_buckets is %lld", (long long)n);
	for (int64_t i = 0; i < q->n; i++) {
		const struct quantile_summary *s = &q->streams[i].final;
		float *values;
		size_t count;
		quantile_stream_finish(&q->streams[i]);
		values = generate_quantiles ? quantile_values(s, n - 1, &count)
					    : quantile_boundaries(s, n, &count);
		set_boundaries(q, i, values, count);
		restart_stream(q, i);
	}
	return 0;
}

static int get_boundaries(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO(quantiles_put) struct quantiles *q = NULL;
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(quantiles_get(c, c->n_out, &q, err));
	for (unsigned i = 0; i < c->n_out; i++) {
		const struct boundaries *b = &q->boundaries[i];
		MU_RETURN_IF_ERROR(kernel_out_vec(c, i, MU_FLOAT, (int64_t)b->n, &out, err));
		if (b->n)
			memcpy(out->data, b->values, b->n * sizeof *b->values);
	}
	return 0;
}

static int restore_boundaries(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO(quantiles_put) struct quantiles *q = NULL;

	MU_RETURN_IF_ERROR(quantiles_get(c, c->n_in - 1, &q, err));
	for (unsigned i = 1; i < c->n_in; i++)
		MU_RETURN_IF_ERROR(args_rank(c, i, 1, err));
	for (unsigned i = 1; i < c->n_in; i++) {
		size_t n = (size_t)kernel_in(c, i)->shape.count;
		float *values = MU_NEW_ARRAY(float, n + 1);
		if (n)
			memcpy(values, kernel_in(c, i)->data, n * sizeof *values);
		set_boundaries(q, i - 1, values, n);
	}
	return 0;
}

/* The index of the first boundary that is not below x, else of the last. */
static int32_t bucket_of(const float *boundaries, int64_t n, float x)
{
	int64_t from = 0, end = n;

	while (from < end) {
		int64_t mid = from + (end - from) / 2;
		if (boundaries[mid] < x)
			from = mid + 1;
		else
			end = mid;
	}
	return (int32_t)(from == n && n ? n - 1 : from);
}

static int bucketize(struct kernel_call *c, struct mu_err *err)
{
	unsigned features = c->n_out;
	struct mu_tensor *out;

	for (unsigned f = 0; f < features; f++) {
		const struct mu_tensor *x = kernel_in(c, f), *b = kernel_in(c, features + f);
		MU_RETURN_IF_ERROR(kernel_out_vec(c, f, MU_INT32, x->shape.count, &out, err));
		for (int64_t i = 0; i < x->shape.count; i++)
			MU_DATA(int32_t, out)
		[i] = bucket_of(b->data, b->shape.count, MU_DATA(float, x)[i]);
	}
	return 0;
}

static const struct kernel rows[] = {
    {"BoostedTreesQuantileStreamResourceHandleOp", .run = quantiles_handle},
    {"IsBoostedTreesQuantileStreamResourceInitialized", .run = is_initialized},
    {"BoostedTreesCreateQuantileStreamResource", .run = quantiles_create},
    {"BoostedTreesMakeQuantileSummaries", KERNEL_EXPENSIVE, .run = make_summaries},
    {"BoostedTreesQuantileStreamResourceAddSummaries", KERNEL_EXPENSIVE, .run = add_summaries},
    {"BoostedTreesFlushQuantileSummaries", KERNEL_EXPENSIVE, .run = flush_summaries},
    {"BoostedTreesQuantileStreamResourceFlush", KERNEL_EXPENSIVE, .run = flush},
    {"BoostedTreesQuantileStreamResourceGetBucketBoundaries", .run = get_boundaries},
    {"BoostedTreesQuantileStreamResourceDeserialize", .run = restore_boundaries},
    {"BoostedTreesBucketize", KERNEL_EXPENSIVE, .run = bucketize},
};
KERNEL_TABLE(boosted_trees_quantile_ops, rows)
