/* SPDX-License-Identifier: Apache-2.0 */
/* Stochastic dual coordinate ascent for linear models (Shalev-Shwartz and Zhang, 2013; several
 * partitions as in Ma et al., "Adding vs. averaging in distributed primal-dual optimization").
 *
 * Each example has a dual variable.  A step visits the examples in random order.  It sets the dual
 * variable of each example to the optimum for fixed others, and adds the example's features to the
 * changes of the weights.  The attribute adaptive, with which TensorFlow visits examples with a
 * large loss more often, has no effect.  num_inner_iterations has no effect in TensorFlow either.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "lib/base/map.h"
#include "lib/base/random.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/state/variables.h"
#include "task/kernels/text/fingerprint.h"

enum { STATE_SIZE = 4 }; /* of an example: dual variable, primal loss, dual loss, weight */

/* ---- losses ---- */

struct example {
	double label, weight, dual, prediction, norm;
	double scale; /* partitions * norm * weight: d prediction / d dual */
};

struct loss {
	const char *name;
	bool (*read_label)(double *label); /* returns false for a label that is not allowed */
	const char *labels;                /* text of the error about the allowed labels */
	double (*new_dual)(const struct example *e);
	double (*primal)(double label, double prediction);
	double (*dual)(double label, double dual);
};

static bool any_label(double *label)
{
	return true;
}

static bool binary_label(double *label)
{
	if (*label != 0 && *label != 1)
		return false;
	*label = *label == 0 ? -1 : 1;
	return true;
}

static bool count_label(double *label)
{
	return *label >= 0;
}

static double squared_new_dual(const struct example *e)
{
	return e->dual + (e->label - e->dual - e->prediction) / (1 + e->scale);
}

static double squared_primal(double label, double prediction)
{
	return (prediction - label) * (prediction - label) / 2;
}

static double squared_dual(double label, double dual)
{
	return dual * (dual / 2 - label);
}

/* label * dual is between 0 and 1. */
static double clip_dual(double label, double dual)
{
	return label * dual < 0 ? 0 : label * dual > 1 ? label : dual;
}

static double hinge_new_dual(const struct example *e)
{
	if (!(e->scale > 0)) /* no change of `dual` changes the prediction */
		return e->dual;
	return clip_dual(e->label, e->dual + (e->label - e->prediction) / e->scale);
}

static double hinge_primal(double label, double prediction)
{
	return fmax(0, 1 - label * prediction);
}

static double hinge_dual(double label, double dual)
{
	double y = label * dual;

	return y < 0 || y > 1 ? DBL_MAX : -y;
}

static double smooth_hinge_new_dual(const struct example *e)
{
	return clip_dual(e->label, e->dual + (e->label - e->prediction - e->dual) / (e->scale + 1));
}

static double smooth_hinge_primal(double label, double prediction)
{
	double y = label * prediction;

	return y >= 1 ? 0 : y <= 0 ? 0.5 - y : (1 - y) * (1 - y) / 2;
}

static double smooth_hinge_dual(double label, double dual)
{
	double y = label * dual;

	return y < 0 || y > 1 ? DBL_MAX : -y + dual * dual / 2;
}

enum { NEWTON_STEPS = 10 }; /* it converges quadratically */

/* The dual variable is (1 + tanh x) / (2 label). */
static double logistic_new_dual(const struct example *e)
{
	double x = 0;

	for (int i = 0; i < NEWTON_STEPS; i++) {
		double t = tanh(x), move = (1 + t) / (2 * e->label) - e->dual;
		double value = -2 * e->label * x - e->prediction - e->scale * move;
		double slope = -2 * e->label - e->scale * (1 - t * t) / (2 * e->label);
		x -= value / slope;
	}
	return (1 + tanh(x)) / (2 * e->label);
}

static double logistic_primal(double label, double prediction)
{
	double y = label * prediction;

	return y > 0 ? log1p(exp(-y)) : log1p(exp(y)) - y;
}

static double entropy_term(double p)
{
	return p > 0 ? p * log(p) : 0;
}

static double logistic_dual(double label, double dual)
{
	return entropy_term(label * dual) + entropy_term(1 - label * dual);
}

/* The dual variable is label - exp x. */
static double poisson_new_dual(const struct example *e)
{
	double rest = e->label - e->dual, x = rest > 0 ? log(rest) : 0;

	for (int i = 0; i < NEWTON_STEPS; i++) {
		double value = x - e->prediction - e->scale * (rest - exp(x));
		x -= value / (1 + e->scale * exp(x));
	}
	return e->label - exp(x);
}

static double poisson_primal(double label, double prediction)
{
	return exp(prediction) - prediction * label;
}

static double poisson_dual(double label, double dual)
{
	double rest = label - dual;

	return rest == 0 ? 0 : rest < 0 ? DBL_MAX : rest * (log(rest) - 1);
}

#define BINARY_LABELS "Only labels of 0.0 or 1.0 are supported right now."
static const struct loss losses[] = {
    {"squared_loss", any_label, "", squared_new_dual, squared_primal, squared_dual},
    {"hinge_loss", binary_label, BINARY_LABELS, hinge_new_dual, hinge_primal, hinge_dual},
    {"smooth_hinge_loss", binary_label, BINARY_LABELS, smooth_hinge_new_dual, smooth_hinge_primal,
     smooth_hinge_dual},
    {"logistic_loss", binary_label, BINARY_LABELS, logistic_new_dual, logistic_primal,
     logistic_dual},
    {"poisson_loss", count_label, "Only non-negative labels can be used with the Poisson log loss.",
     poisson_new_dual, poisson_primal, poisson_dual},
};

/* ---- features ---- */

/* A feature group.  Row i of a dense group has `width` values; row i of a sparse group has entries
 * first[i] to first[i + 1]. */
struct features {
	int64_t width;              /* 0: sparse */
	const float *values;        /* NULL: all 1 */
	int64_t *first, *weight_at; /* sparse; weight_at: the index of each entry's weight */
	const float *weights;       /* before the step */
	float *changes;
};

struct sdca {
	struct kernel_call *c;
	const struct loss *loss;
	unsigned n_sparse, n_with_values, n_dense;
	int64_t n, partitions;
	double l2, shrinkage;
	struct features *groups; /* n_sparse + n_dense */
	struct mu_arena arena;
};

static int read_sparse(struct sdca *s, unsigned g, struct mu_map *weight_indices,
		       struct mu_err *err)
{
	unsigned ids_at = 2 * s->n_sparse + s->n_with_values + s->n_dense + 2;
	const struct mu_tensor *example = kernel_in(s->c, g),
			       *id = kernel_in(s->c, s->n_sparse + g);
	const struct mu_tensor *ids = kernel_in(s->c, ids_at + g);
	const struct mu_tensor *weights = kernel_in(s->c, ids_at + s->n_sparse + g);
	const struct mu_tensor *values =
	    g < s->n_with_values ? kernel_in(s->c, 2 * s->n_sparse + g) : NULL;
	int64_t n = example->shape.count, last = 0;
	struct features *f = &s->groups[g];

	if (id->shape.count != n || (values && values->shape.count != n) ||
	    ids->shape.count != weights->shape.count)
		return mu_invalid(err,
				  "sparse group %u: %lld example indices, %lld feature indices, "
				  "%lld weights of %lld features",
				  g, (long long)n, (long long)id->shape.count,
				  (long long)weights->shape.count, (long long)ids->shape.count);
	f->values = values ? values->data : NULL;
	f->weights = weights->data;
	f->first = mu_arena_zalloc(&s->arena, ((size_t)s->n + 1) * sizeof *f->first);
	f->weight_at = mu_arena_alloc(&s->arena, ((size_t)n + 1) * sizeof *f->weight_at);
	for (int64_t i = 0; i < ids->shape.count; i++)
		mu_map_put_n(weight_indices, &MU_DATA(int64_t, ids)[i], sizeof(int64_t),
			     (void *)(uintptr_t)(i + 1));
	int64_t *used_by =
	    mu_arena_zalloc(&s->arena, ((size_t)ids->shape.count + 1) * sizeof *used_by);
	for (int64_t i = 0; i < n; i++) {
		int64_t k = MU_DATA(int64_t, example)[i];
		if (k < last || k >= s->n)
			return mu_invalid(err,
					  "sparse group %u: example index %lld behind %lld of %lld "
					  "examples",
					  g, (long long)k, (long long)last, (long long)s->n);
		last = k;
		f->first[k + 1] = i + 1;
		f->weight_at[i] = (int64_t)(uintptr_t)mu_map_get_n(
				      weight_indices, &MU_DATA(int64_t, id)[i], sizeof(int64_t)) -
				  1;
		if (f->weight_at[i] < 0)
			return mu_invalid(err,
					  "Found sparse feature indices out of valid range: %lld",
					  (long long)MU_DATA(int64_t, id)[i]);
		if (used_by[f->weight_at[i]] == k + 1)
			return mu_invalid(err, "Duplicate feature index %lld of example %lld",
					  (long long)MU_DATA(int64_t, id)[i], (long long)k);
		used_by[f->weight_at[i]] = k + 1;
	}
	for (int64_t k = 0; k < s->n; k++)
		if (f->first[k + 1] < f->first[k])
			f->first[k + 1] = f->first[k];
	return 0;
}

static int read_dense(struct sdca *s, unsigned g, struct mu_err *err)
{
	const struct mu_tensor *x = kernel_in(s->c, 2 * s->n_sparse + s->n_with_values + g);
	const struct mu_tensor *w = kernel_in(s->c, s->c->n_in - 1 - s->n_dense + g);
	struct features *f = &s->groups[s->n_sparse + g];

	if (x->shape.rank != 2 || x->shape.dim[0] != s->n)
		return mu_invalid(err, "dense group %u: features of shape %s for %lld examples", g,
				  mu_shape_str(&x->shape), (long long)s->n);
	if (x->shape.dim[1] > w->shape.count)
		return mu_invalid(
		    err,
		    "More dense features than we have parameters for: group %u has %lld, not %lld",
		    g, (long long)w->shape.count, (long long)x->shape.dim[1]);
	*f = (struct features){.width = x->shape.dim[1], .values = x->data, .weights = w->data};
	return 0;
}

static int read_groups(struct sdca *s, struct mu_err *err)
{
	s->groups = mu_arena_zalloc(&s->arena, (s->n_sparse + s->n_dense + 1) * sizeof *s->groups);
	for (unsigned g = 0; g < s->n_sparse; g++) {
		struct mu_map weight_indices;
		mu_map_init(&weight_indices);
		int rc = read_sparse(s, g, &weight_indices, err);
		mu_map_fini(&weight_indices);
		if (rc)
			return rc;
	}
	for (unsigned g = 0; g < s->n_dense; g++)
		MU_RETURN_IF_ERROR(read_dense(s, g, err));
	return 0;
}

/* ---- a step ---- */

static double shrink(double w, double amount)
{
	double rest = fabs(w) - amount;

	return copysign(rest < 0 ? 0 : rest, w); /* NaN stays NaN */
}

static void features_range(const struct features *f, int64_t i, int64_t *from, int64_t *to)
{
	*from = f->first ? f->first[i] : i * f->width;
	*to = f->first ? f->first[i + 1] : (i + 1) * f->width;
}

static int64_t weight_of(const struct features *f, int64_t entry)
{
	return f->first ? f->weight_at[entry] : entry % f->width;
}

static double value_of(const struct features *f, int64_t entry)
{
	return f->values ? f->values[entry] : 1;
}

/* old_prediction: the prediction without this step's changes. */
static void predict(const struct sdca *s, int64_t i, struct example *e, double *old_prediction)
{
	int64_t from, to;

	e->prediction = e->norm = *old_prediction = 0;
	for (unsigned g = 0; g < s->n_sparse + s->n_dense; g++) {
		const struct features *f = &s->groups[g];
		features_range(f, i, &from, &to);
		for (int64_t k = from; k < to; k++) {
			double x = value_of(f, k), w = f->weights[weight_of(f, k)];
			double change = (double)f->changes[weight_of(f, k)];
			*old_prediction += x * shrink(w, s->shrinkage);
			e->prediction +=
			    x * shrink(w + change * (double)s->partitions, s->shrinkage);
			e->norm += x * x;
		}
	}
	e->norm /= s->l2;
	e->scale = (double)s->partitions * e->norm * e->weight;
}

static void add_to_weights(const struct sdca *s, int64_t i, double factor)
{
	int64_t from, to;

	for (unsigned g = 0; g < s->n_sparse + s->n_dense; g++) {
		struct features *f = &s->groups[g];
		features_range(f, i, &from, &to);
		for (int64_t k = from; k < to; k++)
			f->changes[weight_of(f, k)] += (float)(value_of(f, k) * factor);
	}
}

static int visit_example(const struct sdca *s, int64_t i, float *state, struct mu_err *err)
{
	unsigned at = 2 * s->n_sparse + s->n_with_values + s->n_dense;
	struct example e = {.weight = MU_DATA(float, kernel_in(s->c, at))[i],
			    .label = MU_DATA(float, kernel_in(s->c, at + 1))[i],
			    .dual = state[0]};
	float label = (float)e.label;
	double old_prediction, dual;

	if (!s->loss->read_label(&e.label))
		return mu_invalid(err, "%s Found example with label: %g", s->loss->labels,
				  (double)label);
	predict(s, i, &e, &old_prediction);
	dual = s->loss->new_dual(&e);
	add_to_weights(s, i, (dual - e.dual) * e.weight / s->l2);
	state[0] = (float)dual;
	state[1] = (float)(s->loss->primal(e.label, old_prediction) * e.weight);
	state[2] = (float)(s->loss->dual(e.label, e.dual) * e.weight);
	state[3] = (float)e.weight;
	return 0;
}

static int new_changes(struct sdca *s, struct mu_err *err)
{
	for (unsigned g = 0; g < s->n_sparse + s->n_dense; g++) {
		const struct mu_tensor *w =
		    kernel_in(s->c, s->c->n_in - 1 - s->n_dense - s->n_sparse + g);
		struct mu_tensor *out;
		MU_RETURN_IF_ERROR(kernel_out(s->c, 1 + g, MU_FLOAT, &w->shape, &out, err));
		elems_zero(MU_FLOAT, out->data, 0, w->shape.count);
		s->groups[g].changes = out->data;
	}
	return 0;
}

static void shuffle(int64_t *order, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		int64_t k = (int64_t)(mu_random_u64() % (uint64_t)(i + 1));
		order[i] = order[k];
		order[k] = i;
	}
}

static int run_step(struct sdca *s, struct mu_err *err)
{
	const struct mu_tensor *old = kernel_in(s->c, s->c->n_in - 1);
	struct mu_tensor *state;

	MU_RETURN_IF_ERROR(read_groups(s, err));
	MU_RETURN_IF_ERROR(new_changes(s, err));
	MU_RETURN_IF_ERROR(kernel_out(s->c, 0, MU_FLOAT, &old->shape, &state, err));
	elems_copy(MU_FLOAT, state->data, 0, old->data, 0, old->shape.count);
	int64_t *order = mu_arena_alloc(&s->arena, ((size_t)s->n + 1) * sizeof *order);
	shuffle(order, s->n);
	for (int64_t i = 0; i < s->n; i++)
		MU_RETURN_IF_ERROR(
		    visit_example(s, order[i], MU_DATA(float, state) + order[i] * STATE_SIZE, err));
	return 0;
}

static int check_examples(const struct sdca *s, struct mu_err *err)
{
	unsigned at = 2 * s->n_sparse + s->n_with_values + s->n_dense;
	const struct mu_shape *weights = &kernel_in(s->c, at)->shape;
	const struct mu_shape *labels = &kernel_in(s->c, at + 1)->shape;
	const struct mu_shape *state = &kernel_in(s->c, s->c->n_in - 1)->shape;

	if (weights->rank != 1 || labels->count != weights->count)
		return mu_invalid(err, "example weights of shape %s and labels of shape %s",
				  mu_shape_str(weights), mu_shape_str(labels));
	if (state->rank != 2 || state->dim[0] != weights->count || state->dim[1] != STATE_SIZE)
		return mu_invalid(err, "example_state_data should have shape [%lld, %d], not %s",
				  (long long)weights->count, STATE_SIZE, mu_shape_str(state));
	return 0;
}

static int sdca(struct kernel_call *c, struct mu_err *err)
{
	const char *name = args_attr_string(c->node, "loss_type", "");
	struct sdca s = {.c = c,
			 .n_sparse = (unsigned)args_attr_int(c->node, "num_sparse_features", 0),
			 .n_with_values =
			     (unsigned)args_attr_int(c->node, "num_sparse_features_with_values", 0),
			 .n_dense = (unsigned)args_attr_int(c->node, "num_dense_features", 0),
			 .partitions = args_attr_int(c->node, "num_loss_partitions", 1),
			 .l2 = (double)args_attr_float(c->node, "l2", 0)};

	for (size_t i = 0; i < MU_COUNT(losses); i++)
		if (strcmp(losses[i].name, name) == 0)
			s.loss = &losses[i];
	if (!s.loss)
		return mu_invalid(err, "Unsupported loss type: %s", name);
	if (!(s.l2 > 0))
		return mu_invalid(err, "l2 must be positive, got %g", s.l2);
	if (s.n_with_values > s.n_sparse)
		return mu_invalid(err, "%u sparse groups with values, of %u", s.n_with_values,
				  s.n_sparse);
	s.shrinkage = (double)args_attr_float(c->node, "l1", 0) / s.l2;
	MU_RETURN_IF_ERROR(check_examples(&s, err));
	s.n = kernel_in(c, c->n_in - 1)->shape.dim[0];
	mu_arena_init(&s.arena);
	int rc = run_step(&s, err);
	mu_arena_fini(&s.arena);
	return rc;
}

/* ---- SdcaShrinkL1, SdcaFprint ---- */

static int sdca_shrink(struct kernel_call *c, struct mu_err *err)
{
	double amount =
	    (double)args_attr_float(c->node, "l1", 0) / (double)args_attr_float(c->node, "l2", 0);

	for (unsigned i = 0; i < c->n_in; i++) {
		MU_AUTO(variable_put) struct variable *v = NULL;
		struct mu_tensor *w;
		MU_RETURN_IF_ERROR(variable_in(c, i, &v, err));
		pthread_mutex_lock(&v->lock);
		int rc = variable_exclusive(v, &w, err);
		for (int64_t k = 0; !rc && k < w->shape.count; k++)
			MU_DATA(float, w)[k] = (float)shrink((double)MU_DATA(float, w)[k], amount);
		pthread_mutex_unlock(&v->lock);
		if (rc)
			return rc;
	}
	return 0;
}

static int sdca_fingerprints(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct mu_shape shape = in->shape;
	struct mu_tensor *out;

	if (in->shape.rank != 1)
		return mu_invalid(err, "Input must be a vector, got shape %s",
				  mu_shape_str(&in->shape));
	MU_RETURN_IF_ERROR(mu_shape_push(&shape, 2, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_INT64, &shape, &out, err));
	for (int64_t i = 0; i < in->shape.count; i++) {
		struct mu_span text = elems_span(in, i);
		fingerprint128(text.data, text.len, MU_DATA(uint64_t, out) + 2 * i);
	}
	return 0;
}

static const struct kernel rows[] = {
    {"SdcaOptimizer SdcaOptimizerV2", KERNEL_EXPENSIVE, .run = sdca},
    {"SdcaShrinkL1", .run = sdca_shrink},
    {"SdcaFprint", .run = sdca_fingerprints},
};
KERNEL_TABLE(state_sdca, rows)
