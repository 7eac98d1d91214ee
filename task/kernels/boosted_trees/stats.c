/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of gradients and Hessians of a batch per tree node, feature and bucket, for the search of
 * splits.  They are added as double. */
#include "task/kernels/boosted_trees/ensemble.h"
#include "task/kernels/engine/kernel_table.h"

/* A sum [nodes, buckets, …] and the batch that is added to it. */
struct stats {
	const int32_t *node_ids;
	const float *gradients, *hessians;
	int64_t batch, logits, hessian_size;
	int64_t nodes, buckets;
	double *sums;
	int64_t n_sums;
};

static int stats_begin(struct stats *s, const struct kernel_call *c, struct mu_err *err)
{
	*s = (struct stats){.node_ids = kernel_in(c, 0)->data,
			    .gradients = kernel_in(c, 1)->data,
			    .hessians = kernel_in(c, 2)->data,
			    .batch = kernel_in(c, 0)->shape.count,
			    .logits = kernel_in(c, 1)->shape.dim[1],
			    .hessian_size = kernel_in(c, 2)->shape.dim[1],
			    .nodes = args_attr_int(c->node, "max_splits", 1),
			    .buckets = args_attr_int(c->node, "num_buckets", 1)};
	for (int64_t i = 0; i < s->batch; i++)
		if (s->node_ids[i] < 0 || s->node_ids[i] >= s->nodes)
			return mu_invalid(err, "Node id %d is not below max_splits %lld",
					  s->node_ids[i], (long long)s->nodes);
	return 0;
}

static int bucket_failed(int32_t bucket, int64_t buckets, struct mu_err *err)
{
	return mu_invalid(err, "Bucket %d is not below num_buckets %lld", bucket,
			  (long long)buckets);
}

/* Allocates output 0 and s->sums, which finish_sums() frees. */
static int make_sums(struct stats *s, struct kernel_call *c, const int64_t *dims,
		     struct mu_tensor **out, struct mu_err *err)
{
	MU_RETURN_IF_ERROR(kernel_out_dims(c, 0, MU_FLOAT, 4, dims, out, err));
	s->n_sums = (*out)->shape.count;
	s->sums = calloc((size_t)s->n_sums + 1, sizeof *s->sums);
	return s->sums ? 0 : mu_fail(err, MU_RESOURCE_EXHAUSTED, "No memory for the sums");
}

static int finish_sums(struct stats *s, struct mu_tensor *out, int rc)
{
	for (int64_t i = 0; i < s->n_sums; i++)
		MU_DATA(float, out)[i] = (float)s->sums[i];
	free(s->sums);
	return rc;
}

/* Adds the batch to the sums of a feature, which begin at `first`.  Quantiles can give more buckets
 * than num_buckets: as in TensorFlow, these are added to the next node. */
static int add_feature(struct stats *s, const int32_t *buckets, int64_t first, struct mu_err *err)
{
	for (int64_t i = 0; i < s->batch; i++) {
		int64_t at = first + (s->node_ids[i] * s->buckets + buckets[i]) * 2;
		if (buckets[i] < 0)
			return bucket_failed(buckets[i], s->buckets, err);
		if (at >= s->n_sums)
			continue; /* there is no next node */
		s->sums[at] += (double)s->gradients[i * s->logits];
		s->sums[at + 1] += (double)s->hessians[i * s->hessian_size];
	}
	return 0;
}

static int make_stats_summary(struct kernel_call *c, struct mu_err *err)
{
	int64_t features = args_attr_int(c->node, "num_features", 1);
	struct stats s;
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(stats_begin(&s, c, err));
	if (s.batch && (!s.logits || !s.hessian_size))
		return mu_invalid(err, "Gradients and Hessians have no columns");
	MU_RETURN_IF_ERROR(
	    make_sums(&s, c, (int64_t[]){features, s.nodes, s.buckets, 2}, &out, err));
	int rc = 0;
	for (int64_t f = 0; !rc && f < features; f++)
		rc = add_feature(&s, kernel_in(c, (unsigned)(3 + f))->data,
				 f * s.nodes * s.buckets * 2, err);
	return finish_sums(&s, out, rc);
}

static void add_example(const struct stats *s, int64_t example, double *sum)
{
	for (int64_t k = 0; k < s->logits; k++)
		sum[k] += (double)s->gradients[example * s->logits + k];
	for (int64_t k = 0; k < s->hessian_size; k++)
		sum[s->logits + k] += (double)s->hessians[example * s->hessian_size + k];
}

/* A bucket of -1 is a missing value, which is added to an extra last bucket. */
static int aggregate_stats(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *feature = kernel_in(c, 3);
	int64_t dims = feature->shape.dim[1];
	struct stats s;
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(stats_begin(&s, c, err));
	int64_t size = s.logits + s.hessian_size;
	MU_RETURN_IF_ERROR(
	    make_sums(&s, c, (int64_t[]){s.nodes, dims, s.buckets + 1, size}, &out, err));
	int rc = 0;
	for (int64_t i = 0; !rc && i < s.batch * dims; i++) {
		int64_t example = i / dims, d = i % dims;
		int32_t bucket = MU_DATA(int32_t, feature)[i];
		if (bucket < -1 || bucket >= s.buckets)
			rc = bucket_failed(bucket, s.buckets, err);
		else
			add_example(&s, example,
				    s.sums + ((s.node_ids[example] * dims + d) * (s.buckets + 1) +
					      (bucket < 0 ? s.buckets : bucket)) *
						 size);
	}
	return finish_sums(&s, out, rc);
}

static const struct kernel rows[] = {
    {"BoostedTreesMakeStatsSummary", KERNEL_EXPENSIVE, .run = make_stats_summary},
    {"BoostedTreesAggregateStats", KERNEL_EXPENSIVE, .run = aggregate_stats},
};
KERNEL_TABLE(boosted_trees_stats, rows)
