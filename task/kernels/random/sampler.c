/* SPDX-License-Identifier: Apache-2.0 */
/* Candidate samplers, for losses over a few of very many classes. A sampler draws classes and
 * returns the expected counts of the sampled and the true classes. The numbers are TensorFlow's for
 * the same seeds. */
#include <limits.h>
#include <math.h>
#include <pthread.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/io/vocabulary_file.h"
#include "task/kernels/random/node_state.h"
#include "task/kernels/text/text_number.h"
#include "task/runtime/runtime.h"

enum { GROUPS_PER_SAMPLE = 2048 / 4 };
/* Limits the draws for unique classes to MAX_TRIES plus TRIES_PER_CLASS per class, about a second
 * of CPU time. */
enum { MAX_TRIES = 1 << 25, TRIES_PER_CLASS = 1024 };
enum { MAX_FILE_BYTES = 1 << 30 };

struct sampler;
struct kind {
	struct kernel k;
	int (*init)(struct sampler *s, const struct mu_node *n, struct mu_err *err);
	int64_t (*draw)(const struct sampler *s, struct philox_stream *p);
	float (*probability)(const struct sampler *s, int64_t class);
	bool learns;
};

struct sampler {
	const struct kind *kind;
	int64_t range, n_true, n_sampled;
	bool unique;
	double log_range;
	int64_t n_possible;       /* classes with a probability above 0 */
	struct mu_tensor weights; /* FixedUnigram: of each class */
	/* FixedUnigram, by slot: the probability of the slot's own class, and its alias */
	struct mu_tensor prob, alias;
	float total;
	struct counts *learned; /* in the copy of a call that holds their lock */
};

struct sampler_node {
	struct sampler sampler; /* constant, each call has a copy */
	struct node_state random, counts;
};

/* ---- UniformCandidateSampler, LogUniformCandidateSampler ---- */

static int init_range(struct sampler *s, const struct mu_node *n, struct mu_err *err)
{
	s->range = args_attr_int(n, "range_max", 0);
	if (s->range <= 0)
		return mu_invalid(err, "range_max must be positive, not %lld", (long long)s->range);
	s->log_range = log1p((double)s->range);
	s->n_possible = s->range;
	return 0;
}

static int64_t draw_uniform_class(const struct sampler *s, struct philox_stream *p)
{
	return (int64_t)philox_below_64(p, (uint64_t)s->range);
}

static float probability_uniform(const struct sampler *s, int64_t class)
{
	return (float)(1.0 / (double)s->range);
}

static int64_t draw_log_uniform(const struct sampler *s, struct philox_stream *p)
{
	double x = exp(philox_unit(p) * s->log_range);

	return (x < 0x1p63 ? (int64_t)x - 1 : INT64_MAX) % s->range;
}

static float probability_log_uniform(const struct sampler *s, int64_t class)
{
	double x = (double)class;

	return (float)(log((x + 2.0) / (x + 1.0)) / s->log_range);
}

/* ---- LearnedUnigramCandidateSampler: a count is 1 plus the occurrences as true class ---- */

struct counts {
	struct resource base;
	pthread_mutex_t lock;
	struct mu_tensor counts;
	struct mu_tensor tree; /* Fenwick tree: the sum of the (i & -i) counts up to i, from 1 */
	int32_t total;
};

static void counts_free(struct resource *r)
{
	struct counts *k = MU_CONTAINER(r, struct counts, base);

	mu_tensor_unref(&k->counts);
	mu_tensor_unref(&k->tree);
	pthread_mutex_destroy(&k->lock);
	free(k);
}

static const struct resource_type counts_type = {"counts of classes", .free = counts_free};

static struct resource *counts_new(void *arg, struct mu_err *err)
{
	int64_t range = args_attr_int(arg, "range_max", 0);
	struct mu_shape size = mu_shape_vec(range), tree_size = mu_shape_vec(range + 1);
	struct counts *k = MU_NEW(struct counts);

	resource_init(&k->base, &counts_type);
	pthread_mutex_init(&k->lock, NULL);
	if (mu_tensor_new(&k->counts, MU_INT32, &size, err) ||
	    mu_tensor_new(&k->tree, MU_INT32, &tree_size, err)) {
		resource_unref(&k->base);
		return NULL;
	}
	for (int64_t i = 0; i < range; i++)
		MU_DATA(int32_t, &k->counts)[i] = 1;
	for (int64_t i = 0; i <= range; i++)
		MU_DATA(int32_t, &k->tree)[i] = (int32_t)(i & -i);
	k->total = (int32_t)range;
	return &k->base;
}

static int init_learned(struct sampler *s, const struct mu_node *n, struct mu_err *err)
{
	MU_RETURN_IF_ERROR(init_range(s, n, err));
	if (s->range >= INT32_MAX)
		return mu_invalid(err, "range_max must be less than %d, got %lld", INT32_MAX,
				  (long long)s->range);
	return 0;
}

/* Draws a class with a probability proportional to its count. */
static int64_t draw_learned(const struct sampler *s, struct philox_stream *p)
{
	const int32_t *tree = s->learned->tree.data;
	int32_t remaining = (int32_t)philox_below_32(p, (uint32_t)s->learned->total);
	int64_t at = 0, step = 1;

	while (step <= s->range / 2)
		step *= 2;
	for (; step; step /= 2)
		if (at + step <= s->range && tree[at + step] <= remaining) {
			at += step;
			remaining -= tree[at];
		}
	return at;
}

static float probability_learned(const struct sampler *s, int64_t class)
{
	return (float)MU_DATA(int32_t, &s->learned->counts)[class] / (float)s->learned->total;
}

static void count_classes(const struct sampler *s, const int64_t *classes, int64_t n)
{
	struct counts *k = s->learned;

	for (int64_t i = 0; i < n && k->total < INT32_MAX; i++, k->total++) {
		MU_DATA(int32_t, &k->counts)[classes[i]]++;
		for (int64_t at = classes[i] + 1; at <= s->range; at += at & -at)
			MU_DATA(int32_t, &k->tree)[at]++;
	}
}

/* ---- FixedUnigramCandidateSampler ---- */

struct weights {
	struct sampler *s;
	int64_t id, n; /* number of the next word; words in this shard */
	int64_t shards, shard;
	float distortion;
};

static int add_weight(struct weights *w, float x, struct mu_err *err)
{
	if (w->id++ % w->shards != w->shard)
		return 0;
	x = powf(x, w->distortion);
	if (!isfinite(x) || x < 0)
		return mu_invalid(err, "the weight of word %lld is no positive number",
				  (long long)w->id - 1);
	if (w->n < w->s->range)
		MU_DATA(float, &w->s->weights)[w->n] = x;
	w->n++;
	w->s->total += x;
	w->s->n_possible += x > 0;
	return 0;
}

/* The last column of a line is the weight of its word. */
static int read_weights_file(struct weights *w, const char *path, struct mu_err *err)
{
	MU_AUTO_BUF b = {0};
	struct mu_span line;
	size_t at = 0;
	int rc = mu_buf_read_file(&b, path, MAX_FILE_BYTES, err);

	while (!rc && vocabulary_line(&b, &at, &line)) {
		const char *comma = memrchr(line.data, ',', line.len);
		const char *from = comma ? comma + 1 : line.data;
		MU_AUTO_FREE char *text = mu_xstrndup(from, (size_t)(line.data + line.len - from));
		float x = 0;
		if (w->id % w->shards == w->shard &&
		    !text_number((struct mu_span){text, strlen(text)}, MU_FLOAT, &x, 0))
			return mu_invalid(err, "Wrong vocabulary format at line: %.*s",
					  (int)(line.len < 64 ? line.len : 64), line.data);
		rc = add_weight(w, x, err);
	}
	return rc;
}

/* Builds the tables of Walker's alias method: each slot has its own class and an alias, a class
 * whose weight is above average. */
static int make_alias_table(struct sampler *s, struct mu_err *err)
{
	struct mu_shape n = mu_shape_vec(s->range), twice = mu_shape_vec(2 * s->range);
	MU_AUTO_TENSOR share = {0};
	MU_AUTO_TENSOR lists = {0};
	double sum = 0;

	MU_RETURN_IF_ERROR(mu_tensor_new(&s->prob, MU_FLOAT, &n, err));
	MU_RETURN_IF_ERROR(mu_tensor_new(&s->alias, MU_INT32, &n, err));
	MU_RETURN_IF_ERROR(mu_tensor_new(&share, MU_DOUBLE, &n, err));
	MU_RETURN_IF_ERROR(mu_tensor_new(&lists, MU_INT32, &twice, err));
	const float *weight = s->weights.data;
	int32_t *low = lists.data, *high = low + s->range, *alias = s->alias.data;
	int64_t n_low = 0, n_high = 0;
	double *p = share.data;
	for (int64_t i = 0; i < s->range; i++)
		sum += (double)weight[i];
	for (int64_t i = 0; i < s->range; i++) {
		p[i] = (double)(weight[i] * (float)s->range) / sum;
		alias[i] = (int32_t)i;
		if (p[i] < 1.0)
			low[n_low++] = (int32_t)i;
		else
			high[n_high++] = (int32_t)i;
	}
	while (n_low && n_high) {
		int32_t l = low[--n_low], h = high[--n_high];
		alias[l] = h;
		p[h] -= 1.0 - p[l];
		if (p[h] < 1.0)
			low[n_low++] = h;
		else
			high[n_high++] = h;
	}
	for (int64_t i = 0; i < s->range; i++)
		MU_DATA(float, &s->prob)[i] = (float)p[i];
	while (n_low) /* 1, except for rounding errors */
		MU_DATA(float, &s->prob)[low[--n_low]] = 1;
	while (n_high)
		MU_DATA(float, &s->prob)[high[--n_high]] = 1;
	return 0;
}

static int init_fixed(struct sampler *s, const struct mu_node *n, struct mu_err *err)
{
	const struct mu_attr *unigrams = mu_node_attr(n, "unigrams");
	const char *path = args_attr_string(n, "vocab_file", "");
	int64_t reserved = args_attr_int(n, "num_reserved_ids", 0);
	struct weights w = {.s = s,
			    .shards = args_attr_int(n, "num_shards", 1),
			    .shard = args_attr_int(n, "shard", 0),
			    .distortion = args_attr_float(n, "distortion", 1)};
	bool has_unigrams =
	    unigrams && unigrams->kind == MU_ATTR_LIST + MU_ATTR_FLOAT && unigrams->n;

	MU_RETURN_IF_ERROR(init_learned(s, n, err));
	s->n_possible = 0;
	if (has_unigrams == (*path != '\0'))
		return mu_invalid(err,
				  "Must provide one of vocab_file and unigrams, and only one.");
	if (w.shards < 1 || w.shard < 0 || w.shard >= w.shards || reserved < 0)
		return mu_invalid(err, "shard %lld of %lld with %lld reserved ids cannot be",
				  (long long)w.shard, (long long)w.shards, (long long)reserved);
	if (reserved > w.shard)
		w.n = (reserved - 1 - w.shard) / w.shards + 1;
	w.id = w.n; /* TensorFlow continues counting from here for all shards */
	if (w.n > s->range)
		return mu_invalid(err, "range is %lld must be equal to weights size  %lld",
				  (long long)s->range, (long long)w.n);
	struct mu_shape size = mu_shape_vec(s->range);
	MU_RETURN_IF_ERROR(mu_tensor_new(&s->weights, MU_FLOAT, &size, err));
	memset(s->weights.data, 0, (size_t)s->range * sizeof(float));
	for (unsigned i = 0; has_unigrams && i < unigrams->n; i++)
		MU_RETURN_IF_ERROR(add_weight(&w, unigrams->fs[i], err));
	if (*path)
		MU_RETURN_IF_ERROR(read_weights_file(&w, path, err));
	if (w.n != s->range)
		return mu_invalid(err, "range is %lld must be equal to weights size  %lld",
				  (long long)s->range, (long long)w.n);
	if (!(s->total > 0) || !isfinite(s->total))
		return mu_invalid(err, "the weights of all words together are no positive number");
	return make_alias_table(s, err);
}

static int64_t draw_fixed(const struct sampler *s, struct philox_stream *p)
{
	float share = philox_float(philox_32(p));
	int32_t slot = (int32_t)philox_below_32(p, (uint32_t)s->range);

	return share < MU_DATA(float, &s->prob)[slot] ? slot : MU_DATA(int32_t, &s->alias)[slot];
}

static float probability_fixed(const struct sampler *s, int64_t class)
{
	return MU_DATA(float, &s->weights)[class] / s->total;
}

/* ---- AllCandidateSampler ---- */

static int init_all(struct sampler *s, const struct mu_node *n, struct mu_err *err)
{
	s->range = s->n_possible = s->n_sampled;
	return 0;
}

/* ---- kernel ---- */

static void sampler_release(void *state)
{
	struct sampler_node *node = state;

	mu_tensor_unref(&node->sampler.weights);
	mu_tensor_unref(&node->sampler.prob);
	mu_tensor_unref(&node->sampler.alias);
	node_state_fini(&node->random);
	node_state_fini(&node->counts);
	free(node);
}

static int sampler_prepare(const struct mu_node *n, struct runtime *rt, void **state,
			   struct mu_err *err)
{
	struct sampler_node *node = MU_NEW(struct sampler_node);
	struct sampler *s = &node->sampler;

	s->kind = MU_CONTAINER(rt->kernels->find(n->op), struct kind, k);
	s->n_true = args_attr_int(n, "num_true", 0);
	s->n_sampled = args_attr_int(n, "num_sampled", 0);
	s->unique = args_attr_bool(n, "unique", false);
	int rc =
	    s->n_true < 1 || s->n_sampled < 1
		? mu_invalid(err, "num_true and num_sampled must be at least 1, not %lld and %lld",
			     (long long)s->n_true, (long long)s->n_sampled)
		: s->kind->init(s, n, err);
	if (rc)
		sampler_release(node);
	else
		*state = node;
	return rc;
}

/* Adds a class to a hash set with open addressing.  True if the set had it already. */
static bool is_duplicate_class(int64_t *set, uint64_t mask, int64_t class)
{
	uint64_t at = (uint64_t) class * 0x9e3779b97f4a7c15u >> 20 & mask;

	for (; set[at] >= 0; at = (at + 1) & mask)
		if (set[at] == class)
			return true;
	set[at] = class;
	return false;
}

/* Draws classes that all differ; *tries is the number of draws. */
static int draw_unique(const struct sampler *s, struct philox_stream *p, int64_t *out,
		       int64_t *tries, struct mu_err *err)
{
	uint64_t cap = 16;

	while (cap < 2 * (uint64_t)s->n_sampled)
		cap *= 2;
	MU_AUTO_TENSOR set = {0};
	struct mu_shape shape = mu_shape_vec((int64_t)cap);
	int64_t max_tries = MAX_TRIES + TRIES_PER_CLASS * s->n_sampled;

	MU_RETURN_IF_ERROR(mu_tensor_new(&set, MU_INT64, &shape, err));
	memset(set.data, -1, cap * sizeof(int64_t));
	*tries = 0;
	for (int64_t n = 0; n < s->n_sampled;) {
		int64_t class = s->kind->draw(s, p);
		if (++*tries > max_tries)
			return mu_fail(err, MU_RESOURCE_EXHAUSTED,
				       "found only %lld of %lld different classes in %lld draws",
				       (long long)n, (long long)s->n_sampled, (long long)max_tries);
		if (!is_duplicate_class(set.data, cap - 1, class))
			out[n++] = class;
	}
	return 0;
}

/* The expected number of times that a class is among the samples. */
static float expected_count(const struct sampler *s, int64_t class, int64_t tries)
{
	float p = s->kind->probability(s, class);

	return tries == s->n_sampled ? p * (float)s->n_sampled : -expm1f((float)tries * log1pf(-p));
}

static int sampler_sample(const struct sampler *s, struct philox_stream *p,
			  const struct mu_tensor *in, struct mu_tensor *out[3], struct mu_err *err)
{
	int64_t *sampled = out[0]->data, tries = s->n_sampled;
	bool is_all = !s->kind->draw;

	for (int64_t i = 0; (is_all || !s->unique) && i < s->n_sampled; i++)
		sampled[i] = is_all ? i : s->kind->draw(s, p);
	if (!is_all && s->unique)
		MU_RETURN_IF_ERROR(draw_unique(s, p, sampled, &tries, err));
	for (int64_t i = 0; i < in->shape.count; i++)
		MU_DATA(float, out[1])
	[i] = is_all ? 1 : expected_count(s, MU_DATA(int64_t, in)[i], tries);
	for (int64_t i = 0; i < s->n_sampled; i++)
		MU_DATA(float, out[2])[i] = is_all ? 1 : expected_count(s, sampled[i], tries);
	return 0;
}

static int sampler_check(const struct kernel_call *c, const struct sampler *s, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);

	if (in->shape.dim[1] != s->n_true)
		return mu_invalid(
		    err, "true_classes must have num_true columns, expected: %lld was: %lld",
		    (long long)in->shape.dim[1], (long long)s->n_true);
	if (s->unique && s->n_sampled > s->n_possible)
		return mu_invalid(err, "Sampler's range is too small.");
	for (int64_t i = 0; i < in->shape.count; i++) {
		int64_t class = MU_DATA(int64_t, in)[i];
		if (class < 0 || class >= s->range)
			return mu_invalid(err,
					  "`true_candidate` out of range [0, %lld), received %lld",
					  (long long)s->range, (long long)class);
	}
	return 0;
}

static int sampler_run(struct kernel_call *c, struct mu_err *err)
{
	struct sampler_node *node = c->state;
	struct sampler s = node->sampler;
	struct mu_shape vec = mu_shape_vec(s.n_sampled);
	const struct mu_tensor *in = kernel_in(c, 0);
	struct mu_tensor *out[3];
	struct philox_stream p = {0};
	struct resource *r;
	int rc = 0;

	MU_RETURN_IF_ERROR(sampler_check(c, &s, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_INT64, &vec, &out[0], err));
	MU_RETURN_IF_ERROR(kernel_out(c, 1, MU_FLOAT, &in->shape, &out[1], err));
	MU_RETURN_IF_ERROR(kernel_out(c, 2, MU_FLOAT, &vec, &out[2], err));
	MU_RETURN_IF_ERROR(
	    node_draws(&node->random, c, (uint64_t)s.n_sampled * GROUPS_PER_SAMPLE, &p.from, err));
	if (!s.kind->learns)
		return sampler_sample(&s, &p, in, out, err);
	MU_RETURN_IF_ERROR(
	    node_state_find(&node->counts, c, "/counts", &counts_type, counts_new, &r, err));
	s.learned = MU_CONTAINER(r, struct counts, base);
	pthread_mutex_lock(&s.learned->lock);
	if (!(rc = sampler_sample(&s, &p, in, out, err)))
		count_classes(&s, in->data, in->shape.count);
	pthread_mutex_unlock(&s.learned->lock);
	return rc;
}

#define SAMPLER(ops)                                                                               \
	{                                                                                          \
		ops, KERNEL_NO_FOLD, .run = sampler_run, .prepare = sampler_prepare,               \
				     .release = sampler_release                                    \
	}
static const struct kind rows[] = {
    {SAMPLER("AllCandidateSampler"), init_all, NULL, NULL, false},
    {SAMPLER("UniformCandidateSampler"), init_range, draw_uniform_class, probability_uniform,
     false},
    {SAMPLER("LogUniformCandidateSampler"), init_range, draw_log_uniform, probability_log_uniform,
     false},
    {SAMPLER("LearnedUnigramCandidateSampler ThreadUnsafeUnigramCandidateSampler"), init_learned,
     draw_learned, probability_learned, true},
    {SAMPLER("FixedUnigramCandidateSampler"), init_fixed, draw_fixed, probability_fixed, false},
};
KERNEL_TABLE(random_sampler, rows)
