/* SPDX-License-Identifier: Apache-2.0 */
/* CTCLoss: the negative log probability of the labels over all alignments, and its gradient with
 * respect to the scores. The arithmetic is in double, in logarithms.
 *
 * Labels a b become the states - a - b -, where - is the blank. From one time step to the next a
 * path stays, advances by one state, or skips a blank between two different labels. `alpha[t][u]`
 * is the probability of reaching state u at time t, including the score at t. `beta[u]`, kept for
 * one time step, is the probability of reaching the end from u. */
#include <stdatomic.h>
#include <stdlib.h>

#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/rnn/ctc.h"

struct labels {
	int32_t *path; /* the classes of the states, all sequences concatenated */
	int64_t *from; /* [batch + 1], the start of each sequence in path */
};

struct loss {
	struct ctc_scores s;
	struct labels l;
	bool merge;
	struct mu_tensor *loss, *grad;
	atomic_bool no_memory;
};

struct alignment {
	const int32_t *path;
	int64_t states, time, classes;
	bool merge;
	double *log_y;            /* [time, classes] */
	double *alpha;            /* [time, states] */
	double *beta, *prev_beta; /* [states], at a time step and at the previous one */
	double *class_probs;      /* [classes] */
};

static bool may_stay(const struct alignment *w, int64_t u)
{
	return w->merge || w->path[u] == w->classes - 1;
}

/* True if a path may go from u - 2 to u, without the blank between. */
static bool may_skip_blank(const struct alignment *w, int64_t u)
{
	return u > 1 && w->path[u] != w->classes - 1 && !(w->merge && w->path[u] == w->path[u - 2]);
}

static void forward_pass(struct alignment *w)
{
	for (int64_t u = 0; u < w->states; u++)
		w->alpha[u] = u < 2 ? w->log_y[w->path[u]] : -INFINITY;
	for (int64_t t = 1; t < w->time; t++) {
		const double *previous = w->alpha + (t - 1) * w->states;
		const double *y = w->log_y + t * w->classes;
		double *current = w->alpha + t * w->states;

		for (int64_t u = 0; u < w->states; u++) {
			double p = may_stay(w, u) ? previous[u] : -INFINITY;
			if (u > 0)
				p = ctc_log_add(p, previous[u - 1]);
			if (may_skip_blank(w, u))
				p = ctc_log_add(p, previous[u - 2]);
			current[u] = p + y[w->path[u]];
		}
	}
}

/* Moves w->beta from time step t to t - 1. */
static void backward_step(struct alignment *w, int64_t t)
{
	const double *y = w->log_y + t * w->classes;
	double *swap = w->prev_beta;

	for (int64_t u = 0; u < w->states; u++) {
		double p = may_stay(w, u) ? w->beta[u] + y[w->path[u]] : -INFINITY;
		if (u + 1 < w->states)
			p = ctc_log_add(p, w->beta[u + 1] + y[w->path[u + 1]]);
		if (u + 2 < w->states && may_skip_blank(w, u + 2))
			p = ctc_log_add(p, w->beta[u + 2] + y[w->path[u + 2]]);
		w->prev_beta[u] = p;
	}
	w->prev_beta = w->beta;
	w->beta = swap;
}

/* The gradient at t: softmax minus the probability of each class given the labels. */
static void loss_gradient(struct alignment *w, int64_t t, double total)
{
	double *probs = w->class_probs;

	for (int64_t k = 0; k < w->classes; k++)
		probs[k] = -INFINITY;
	for (int64_t u = 0; u < w->states; u++)
		probs[w->path[u]] =
		    ctc_log_add(probs[w->path[u]], w->alpha[t * w->states + u] + w->beta[u]);
	for (int64_t k = 0; k < w->classes; k++)
		probs[k] = exp(w->log_y[t * w->classes + k]) -
			   (total == -INFINITY ? 0 : exp(probs[k] - total));
}

static void ctc_loss_put(struct mu_tensor *to, int64_t at, const double *from, int64_t n)
{
	convert(to->dtype, (char *)to->data + (size_t)at * mu_dtype_size(to->dtype), MU_DOUBLE,
		from, n);
}

static void ctc_loss_one(struct loss *l, int64_t b, struct alignment *w)
{
	const struct ctc_scores *s = &l->s;
	double total = -INFINITY;

	for (int64_t t = 0; t < w->time; t++)
		ctc_log_softmax(s, t, b, w->log_y + t * s->classes);
	forward_pass(w);
	for (int64_t u = 0; u < w->states; u++) {
		w->beta[u] = u + 2 < w->states ? -INFINITY : 0;
		total = ctc_log_add(total, w->alpha[(w->time - 1) * w->states + u] + w->beta[u]);
	}
	for (int64_t t = w->time; t-- > 0;) {
		loss_gradient(w, t, total);
		ctc_loss_put(l->grad, (t * s->batch + b) * s->classes, w->class_probs, s->classes);
		if (t)
			backward_step(w, t);
	}
	ctc_loss_put(l->loss, b, &(double){-total}, 1);
}

static void ctc_loss_range(void *arg, int64_t from, int64_t to)
{
	struct loss *l = arg;

	for (int64_t b = from; b < to; b++) {
		struct alignment w = {.path = l->l.path + l->l.from[b],
				      .states = l->l.from[b + 1] - l->l.from[b],
				      .time = l->s.length[b],
				      .classes = l->s.classes,
				      .merge = l->merge};
		if (!w.states)
			continue;
		MU_AUTO_TENSOR scratch = {0};
		struct mu_shape shape;
		if (mu_shape_set(&shape, 2, (int64_t[]){w.time + 2, w.classes + w.states}, NULL) ||
		    mu_tensor_new(&scratch, MU_DOUBLE, &shape, NULL)) {
			atomic_store(&l->no_memory, true);
			return;
		}
		w.log_y = scratch.data;
		w.alpha = w.log_y + w.time * w.classes;
		w.beta = w.alpha + w.time * w.states;
		w.prev_beta = w.beta + w.states;
		w.class_probs = w.prev_beta + w.states;
		ctc_loss_one(l, b, &w);
	}
}

/* ---- labels ---- */

static int check_labels(const struct kernel_call *c, int64_t batch, struct mu_err *err)
{
	const struct mu_tensor *at = kernel_in(c, 1);
	for (int64_t i = 0; i < at->shape.dim[0]; i++) {
		const int64_t *p = MU_DATA(int64_t, at) + 2 * i;
		if (p[0] < 0 || p[0] >= batch || p[1] < 0)
			return mu_invalid(err,
					  "indices[%lld] = [%lld,%lld] is out of bounds: need 0 <= "
					  "index < [%lld,...]",
					  (long long)i, (long long)p[0], (long long)p[1],
					  (long long)batch);
		if (i && (p[0] < p[-2] || (p[0] == p[-2] && p[1] <= p[-1])))
			return mu_invalid(err, "indices[%lld] = [%lld,%lld] is %s", (long long)i,
					  (long long)p[0], (long long)p[1],
					  p[0] == p[-2] && p[1] == p[-1] ? "repeated"
									 : "out of order");
	}
	return 0;
}

struct label_rules {
	bool collapse;
	int64_t classes;
};

/* Writes the states of n labels, at least one, to `to`.  Returns their number, or an error. */
static int64_t label_states(const struct label_rules *r, int64_t b, const int32_t *label, int64_t n,
			    int32_t *to, struct mu_err *err)
{
	int64_t n_kept = 0;
	bool is_ended = false;

	for (int64_t i = 0; i < n; i++) {
		if (i && r->collapse && label[i] == label[i - 1])
			continue;
		if (label[i] >= r->classes - 1) {
			is_ended = true;
			continue;
		}
		if (is_ended)
			return mu_invalid(err,
					  "Saw a non-null label (index >= num_classes - 1) "
					  "following a null label, batch: %lld num_classes: %lld",
					  (long long)b, (long long)r->classes);
		if (label[i] < 0)
			return mu_invalid(
			    err, "All labels must be nonnegative integers, batch: %lld label: %d",
			    (long long)b, label[i]);
		to[2 * n_kept + 1] = label[i];
		n_kept++;
	}
	for (int64_t i = 0; i <= n_kept; i++)
		to[2 * i] = (int32_t)(r->classes - 1);
	return 2 * n_kept + 1;
}

static int read_labels(const struct kernel_call *c, const struct ctc_scores *s, struct labels *l,
		       struct mu_err *err)
{
	const int64_t *at = kernel_in(c, 1)->data;
	int64_t n = kernel_in(c, 1)->shape.dim[0], i = 0, n_states = 0;
	bool skip_long = args_attr_bool(c->node, "ignore_longer_outputs_than_inputs", false);
	struct label_rules r = {.collapse =
				    args_attr_bool(c->node, "preprocess_collapse_repeated", false),
				.classes = s->classes};

	l->path = calloc((size_t)(2 * n + s->batch) + 1, sizeof *l->path);
	l->from = calloc((size_t)s->batch + 1, sizeof *l->from);
	if (!l->path || !l->from)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for %lld labels",
			       (long long)n);
	for (int64_t b = 0, k; b < s->batch; b++, i = k) {
		for (k = i; k < n && at[2 * k] == b;)
			k++;
		l->from[b] = n_states;
		if (k == i)
			return mu_invalid(err, "Labels length is zero in batch %lld", (long long)b);
		int64_t added = label_states(&r, b, MU_DATA(int32_t, kernel_in(c, 2)) + i, k - i,
					     l->path + n_states, err);
		if (added < 0)
			return (int)added;
		if (k - i <= s->length[b])
			n_states += added;
		else if (!skip_long) /* else its loss and its gradient are zero */
			return mu_invalid(
			    err,
			    "Not enough time for target transition sequence (required: %lld, "
			    "available: %lld)%lldYou can turn this error into a warning by "
			    "using the flag ignore_longer_outputs_than_inputs",
			    (long long)(k - i), (long long)s->length[b], (long long)b);
	}
	l->from[s->batch] = n_states;
	return 0;
}

static void labels_fini(struct labels *l)
{
	free(l->path);
	free(l->from);
}

static int ctc_loss(struct kernel_call *c, struct mu_err *err)
{
	__attribute__((cleanup(labels_fini))) struct labels labels = {0};
	struct loss l = {.merge = args_attr_bool(c->node, "ctc_merge_repeated", true)};

	MU_RETURN_IF_ERROR(ctc_scores_in(c, 3, MU_INVALID_ARGUMENT, &l.s, err));
	MU_RETURN_IF_ERROR(check_labels(c, l.s.batch, err));
	MU_RETURN_IF_ERROR(read_labels(c, &l.s, &labels, err));
	l.l = labels;
	struct mu_shape shape = mu_shape_vec(l.s.batch);
	MU_RETURN_IF_ERROR(kernel_out(c, 0, l.s.in->dtype, &shape, &l.loss, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 1, l.s.in->dtype, &l.s.in->shape, &l.grad, err));
	elems_zero(l.loss->dtype, l.loss->data, 0, l.loss->shape.count);
	elems_zero(l.grad->dtype, l.grad->data, 0, l.grad->shape.count);
	kernel_parallel(c, l.s.batch, 1, ctc_loss_range, &l);
	return l.no_memory ? mu_fail(err, MU_RESOURCE_EXHAUSTED,
				     "no memory for %lld time steps of %lld classes",
				     (long long)l.s.time, (long long)l.s.classes)
			   : 0;
}

static const struct kernel rows[] = {
    {"CTCLoss", .flags = KERNEL_EXPENSIVE, .run = ctc_loss},
};
KERNEL_TABLE(rnn_ctc_loss, rows)
