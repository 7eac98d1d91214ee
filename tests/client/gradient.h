/* SPDX-License-Identifier: Apache-2.0 */
/* Compares gradients with central differences, on a real server: the type of a case, builders, and
 * the check.
 *
 * The loss is the sum of y with fixed irregular weights, so that no symmetry hides a wrong
 * gradient. The values of x differ from each other and from 0 by more than the step of the
 * differences, so that no step crosses a kink.
 */
#ifndef MU_TESTS_CLIENT_GRADIENT_H
#define MU_TESTS_CLIENT_GRADIENT_H

#include "tests/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "muster/grad.h"
#include "muster/session.h"
#include "tests/client/server.h"

#define STEP      1e-2f
#define TOLERANCE 2e-2

static struct mu_err err;

struct gradient_case {
	const char *name;
	struct mu_pshape shape; /* shape of x; -1 is fed as 3 */
	struct mu_out (*y)(struct mu_builder *b, struct mu_out x);
	float lowest, highest; /* range of the values of x */
};
/* An op of one or two tensors without attributes. */
struct named_op {
	const char *op;
	float lowest, highest;
};
/* Defines a function that builds y from x. */
#define CASE(fn, expression)                                                                       \
	static struct mu_out fn(struct mu_builder *b, struct mu_out x)                             \
	{                                                                                          \
		return expression;                                                                 \
	}
#define IMAGES mu_reshape(b, values(b, 4, 6, 0), ints(b, 4, (int32_t[]){2, 2, 3, 2}))

/* ---- builders ---- */
static inline struct mu_out values(struct mu_builder *b, int rows, int columns, float phase)
{
	struct mu_shape s;
	MU_AUTO_TENSOR t = {0};

	assert_ok(mu_shape_set(&s, 2, (int64_t[]){rows, columns}, &err), &err);
	assert_ok(mu_tensor_new(&t, MU_FLOAT, &s, &err), &err);
	for (int i = 0; i < rows * columns; i++)
		MU_DATA(float, &t)[i] = sinf((float)i + phase) + 1.5f;
	return mu_const(b, NULL, &t);
}

static inline struct mu_out row(struct mu_builder *b, int n)
{
	return mu_reshape(b, values(b, 1, n, 2), mu_const_ints(b, (int32_t[]){n}, 1));
}

static inline struct mu_out ints(struct mu_builder *b, unsigned n, const int32_t *v)
{
	return mu_const_ints(b, n ? v : (int32_t[]){0}, n);
}

static inline struct mu_out table(struct mu_builder *b, int rows, int columns, const int32_t *v)
{
	return mu_reshape(b, ints(b, (unsigned)(rows * columns), v),
			  mu_const_ints(b, (int32_t[]){rows, columns}, 2));
}

static inline struct mu_out long_ints(struct mu_builder *b, struct mu_out x)
{
	return mu_cast(b, x, MU_INT64);
}

/* Concatenates the first two outputs of x's node, so that other outputs have no gradient. */
static inline struct mu_out first_two_outputs(struct mu_builder *b, struct mu_out x)
{
	return mu_op(b, "ConcatV2",
		     MU_IN(mu_port(x, 1), mu_port(x, 0), mu_const_int(b, MU_INT32, 0)));
}

static inline struct mu_node_attr int_list(const char *name, unsigned n, const int64_t *v)
{
	return (struct mu_node_attr){
	    name, {.kind = MU_ATTR_LIST + MU_ATTR_INT, .n = n, .is = (int64_t *)v}};
}

static inline struct mu_out const_bool(struct mu_builder *b, bool v)
{
	return mu_cast(b, mu_const_int(b, MU_INT32, v), MU_BOOL);
}

/* taken ? 3 x² : x */
static inline struct mu_out branch(struct mu_builder *b, struct mu_out x, bool taken)
{
	struct mu_out s = mu_op(b, "Switch", MU_IN(x, const_bool(b, taken)));
	struct mu_out yes = mu_mul(b, mu_square(b, mu_port(s, 1)), mu_const_float(b, 3));

	return mu_op(b, "Merge", MU_IN(mu_identity(b, s), yes));
}

/* x² through one side of a Switch, plus x */
static inline struct mu_out square_through_switch(struct mu_builder *b, struct mu_out x)
{
	struct mu_out s = mu_op(b, "Switch", MU_IN(x, const_bool(b, true)));
	struct mu_out other = mu_op(b, "Switch", MU_IN(row(b, 3), const_bool(b, true)));

	return mu_add(b, x,
		      mu_op(b, "Merge", MU_IN(mu_identity(b, other), mu_square(b, mu_port(s, 1)))));
}

/* ---- checking ---- */
/* Weighted sum of y with irregular weights. */
static inline struct mu_out weighted_sum(struct mu_builder *b, struct mu_out y)
{
	struct mu_out flat = mu_reshape(b, y, mu_const_ints(b, (int32_t[]){-1}, 1));
	struct mu_out i = mu_op(b, "Range",
				MU_IN(mu_const_int(b, MU_INT32, 0), mu_op(b, "Size", MU_IN(flat)),
				      mu_const_int(b, MU_INT32, 1)));
	struct mu_out w = mu_add(b, mu_mul(b, mu_cast(b, i, MU_FLOAT), mu_const_float(b, 0.37f)),
				 mu_const_float(b, -1.3f));

	return mu_sum(b, mu_mul(b, flat, w), NULL, 0);
}

static inline float loss_at(struct mu_session *s, struct mu_out x, struct mu_out loss,
			    const struct mu_tensor *value)
{
	struct mu_feed feed = {x, value};
	struct mu_run run = {.feeds = &feed, .n_feeds = 1, .fetches = &loss, .n_fetches = 1};
	MU_AUTO_TENSOR out = {0};

	assert_ok(mu_session_run(s, &run, &out, &err), &err);
	return *MU_DATA(float, &out);
}

/* Distinct values of a shape, in a range; dimension -1 becomes 3. */
static inline void spread_values(struct mu_tensor *t, const struct mu_pshape *p, float lowest,
				 float highest)
{
	int64_t dims[MU_MAX_RANK];
	struct mu_shape shape;

	for (int i = 0; i < p->rank; i++)
		dims[i] = p->dim[i] < 0 ? 3 : p->dim[i];
	assert_ok(mu_shape_set(&shape, p->rank, dims, &err), &err);
	assert_true(shape.count < 61);
	assert_ok(mu_tensor_new(t, MU_FLOAT, &shape, &err), &err);
	for (int64_t i = 0; i < shape.count; i++)
		MU_DATA(float, t)
	[i] = lowest + (highest - lowest) * (float)((i * 23 + 3) % 61 + 1) / 61.0f;
}

static inline void compare(struct mu_session *s, const char *name, struct mu_out x,
			   struct mu_out loss, struct mu_tensor *value,
			   const struct mu_tensor *found)
{
	float *v = MU_DATA(float, value);

	for (int64_t i = 0; i < value->shape.count; i++) {
		float was = v[i], up, down;

		v[i] = was + STEP;
		up = loss_at(s, x, loss, value);
		v[i] = was - STEP;
		down = loss_at(s, x, loss, value);
		v[i] = was;
		double numeric = (double)(up - down) / (2 * (double)STEP);
		double analytic = (double)MU_DATA(float, found)[i];
		if (!(fabs(numeric - analytic) <= TOLERANCE * fmax(1, fabs(numeric))))
			fail_msg("%s: d/dx[%d] is %g, differences say %g", name, (int)i, analytic,
				 numeric);
	}
}

/* Checks d loss / d x for loss = weighted_sum(y). */
static inline void check_gradient(struct mu_builder *b, const char *name, struct mu_out x,
				  struct mu_out y, struct mu_tensor *value)
{
	MU_AUTO(mu_session_close) struct mu_session *s = NULL;
	struct mu_out loss = weighted_sum(b, y), g = MU_NO_OUT;
	MU_AUTO_TENSOR found = {0};
	struct mu_feed feed = {x, value};
	struct mu_run run = {.feeds = &feed, .n_feeds = 1, .fetches = &g, .n_fetches = 1};

	mu_gradients(b, loss, &x, 1, &g);
	if (mu_builder_check(b, &err))
		fail_msg("%s: %s", name, err.msg);
	if (!g.node)
		fail_msg("%s: there is no gradient", name);
	assert_ok(mu_session_open(&s, test_server(), b, NULL, &err), &err);
	if (mu_session_run(s, &run, &found, &err))
		fail_msg("%s: %s", name, err.msg);
	if (!mu_shape_eq(&found.shape, &value->shape))
		fail_msg("%s: the gradient is %s, x is %s", name, mu_shape_str(&found.shape),
			 mu_shape_str(&value->shape));
	compare(s, name, x, loss, value, &found);
}

#endif
