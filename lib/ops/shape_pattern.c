/* SPDX-License-Identifier: Apache-2.0 */
/* Shape patterns of the op table (op_def.h).
 *
 * The patterns of a node share their names.  The first input with a dimension `n` or a group `*b`
 * sets its value, later inputs must have the same value, and the outputs use it. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "lib/graph/graph.h"
#include "lib/ops/shape.h"

enum { MAX_NAMES = 16 };

struct match {
	struct {
		const char *name;
		struct mu_pshape dims; /* one dimension, or the dimensions of a group */
	} names[MAX_NAMES];
	unsigned n;
};

static bool is_end(char c)
{
	return c == ',' || c == ']';
}

static unsigned count_words(const char *pattern)
{
	unsigned n = *pattern != ']';

	for (; *pattern != ']'; pattern++)
		n += *pattern == ',';
	return n;
}

static const char *next(const char *word)
{
	word += strcspn(word, ",]");
	return word + (*word == ',');
}

/* Returns the dimensions of a name; unknown dimensions if the name is new. */
static struct mu_pshape *dims_of(struct match *m, const char *name)
{
	size_t len = strcspn(name, ",]");
	unsigned i = 0;

	while (i < m->n &&
	       !(strncmp(m->names[i].name, name, len) == 0 && is_end(m->names[i].name[len])))
		i++;
	if (i == m->n && m->n < MAX_NAMES - 1) {
		m->names[m->n].name = name;
		m->names[m->n++].dims = mu_pshape_unknown(*name == '*' ? -1 : 1);
	}
	return &m->names[i].dims;
}

/* Matches dimensions [at, at + n) of s with one word of a pattern. */
static int match_word(struct match *m, const char *word, const struct mu_pshape *s, int at, int n,
		      struct mu_err *err)
{
	struct mu_pshape dims = {.rank = n}, number = {.rank = 1};

	memcpy(dims.dim, s->dim + at, (size_t)n * sizeof dims.dim[0]);
	if (*word == '?')
		return 0;
	number.dim[0] = isdigit((unsigned char)*word) ? strtoll(word, NULL, 10) : -1;
	struct mu_pshape *to = number.dim[0] >= 0 ? &number : dims_of(m, word);
	return mu_shape_merge(to, &dims, to, err);
}

static int match_shape(struct match *m, const struct mu_arg_def *a, const struct mu_pshape *s,
		       struct mu_err *err)
{
	int n_words = (int)count_words(a->shape), at = 0, rc = 0;
	bool has_group = strchr(a->shape, '*') != NULL;

	if (s->rank < 0)
		return 0;
	if (has_group && s->rank < n_words - 1)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "%s must be at least %d-dim, received shape: %s", a->name,
			       n_words - 1, mu_pshape_str(s));
	if (!has_group && s->rank != n_words)
		return mu_fail(err, MU_INVALID_ARGUMENT, "%s must have shape [%s, not %s", a->name,
			       a->shape, mu_pshape_str(s));
	for (const char *word = a->shape; *word != ']' && !rc; word = next(word)) {
		int n = *word == '*' ? s->rank - (n_words - 1) : 1;
		if ((rc = match_word(m, word, s, at, n, err)))
			mu_wrap(err, "%s must have shape [%s, not %s", a->name, a->shape,
				mu_pshape_str(s));
		at += n;
	}
	return rc;
}

/* Returns the value of the int attribute or constant input with the name of a dimension; -1: none.
 */
static int64_t value_of(const struct mu_shape_ctx *c, const char *name)
{
	const struct mu_op_def *op = c->node->def;
	struct mu_span want = {name, strcspn(name, ",]")};
	int64_t value;

	for (unsigned i = 0; i < op->n_attrs; i++)
		if (op->attrs[i].kind == MU_ATTR_INT && mu_span_is(want, op->attrs[i].name) &&
		    !mu_node_attr_int(c->node, op->attrs[i].name, &value, NULL))
			return value;
	for (unsigned i = 0; i < op->n_inputs && op->inputs[i].kind <= MU_ARG_ATTR; i++)
		if (mu_span_is(want, op->inputs[i].name) && mu_shape_ints(c, i, &value, 1) == 1)
			return value;
	return -1;
}

static void output_shape(const struct mu_shape_ctx *c, struct match *m, const char *pattern,
			 struct mu_pshape *out)
{
	out->rank = 0;
	for (const char *word = pattern; *word != ']'; word = next(word)) {
		if (*word == '?' || isdigit((unsigned char)*word)) {
			mu_pshape_push(out, *word == '?' ? -1 : strtoll(word, NULL, 10));
			continue;
		}
		const struct mu_pshape *dims = dims_of(m, word);
		for (int i = 0; i < dims->rank; i++)
			mu_pshape_push(out, dims->dim[i] < 0 && *word != '*' ? value_of(c, word)
									     : dims->dim[i]);
		if (dims->rank < 0)
			out->rank = -1;
		if (out->rank < 0)
			return;
	}
}

static unsigned count_of(const struct mu_shape_ctx *c, const struct mu_arg_def *a)
{
	unsigned n_tensors = 1;

	if (a->kind > MU_ARG_ATTR && mu_op_arg_count(c->node, a, &n_tensors, NULL))
		n_tensors = 0;
	return n_tensors;
}

bool mu_op_has_input_patterns(const struct mu_op_def *op)
{
	for (unsigned i = 0; i < op->n_inputs; i++)
		if (op->inputs[i].shape)
			return true;
	return false;
}

int mu_op_shapes(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_op_def *op = c->node->def;
	struct match m;
	unsigned at = 0;
	int rc = 0;

	m.n = 0; /* does not clear the names, because this function runs before every kernel call */

	for (unsigned i = 0; i < op->n_inputs; i++)
		for (unsigned k = count_of(c, &op->inputs[i]); k && at < c->n_in; k--, at++)
			if (op->inputs[i].shape &&
			    (rc = match_shape(&m, &op->inputs[i], &c->in[at], err)))
				return rc;
	at = 0;
	for (unsigned i = 0; i < op->n_outputs; i++)
		for (unsigned k = count_of(c, &op->outputs[i]); k && at < c->n_out; k--, at++)
			if (op->outputs[i].shape)
				output_shape(c, &m, op->outputs[i].shape, &c->out[at]);
	return op->shape && c->n_out ? op->shape(c, err) : 0;
}
