/* SPDX-License-Identifier: Apache-2.0 */
/* Compares gradients with those of TensorFlow 2.15 where central differences cannot: at values
 * whose gradient is a limit, infinite or not a number, and in types other than float. */
#include "tests/client/gradient.h"

enum { MAX_VALUES = 5 };

struct value_case {
	const char *name;
	enum mu_dtype type; /* of x */
	unsigned n;
	double x[MAX_VALUES];
	struct mu_out (*y)(struct mu_builder *b, struct mu_out x);
	double gradient[MAX_VALUES]; /* of the sum of y */
	double tolerance;            /* relative */
};
#define UNARY(fn, op) CASE(fn, mu_op(b, op, MU_IN(x)))

/* ---- types ---- */
CASE(y_mean_of_many, mu_mean(b,
			     mu_op(b, "Tile",
				   MU_IN(mu_reshape(b, x, ints(b, 2, (int32_t[]){1, 1})),
					 ints(b, 2, (int32_t[]){1000, 100}))),
			     (int32_t[]){1}, 1))
UNARY(y_fresnel_sin, "FresnelSin")
UNARY(y_erf, "Erf")
UNARY(y_erfc, "Erfc")
UNARY(y_erfinv, "Erfinv")
UNARY(y_ndtri, "Ndtri")
UNARY(y_expm1, "Expm1")
CASE(y_sparse_matmul, mu_op(b, "SparseMatMul",
			    MU_IN(mu_reshape(b, x, ints(b, 2, (int32_t[]){2, 2})),
				  mu_cast(b, table(b, 2, 2, (int32_t[]){1, 2, 3, 4}), MU_FLOAT))))

static const struct value_case type_cases[] = {
    {"Mean of 100000 halves", MU_HALF, 1, {1}, y_mean_of_many, {1000}, 1e-3},
    {"FresnelSin", MU_DOUBLE, 1, {100.1}, y_fresnel_sin, {0.015707317307797817}, 1e-10},
    {"Erf", MU_DOUBLE, 1, {0.3}, y_erf, {1.031260909618963}, 1e-14},
    {"Erfc", MU_DOUBLE, 1, {0.3}, y_erfc, {-1.031260909618963}, 1e-14},
    {"Erfinv", MU_DOUBLE, 1, {0.3}, y_erfinv, {0.9545203588405493}, 1e-14},
    {"Ndtri", MU_DOUBLE, 1, {0.3}, y_ndtri, {2.876103659264292}, 1e-14},
    {"Expm1",
     MU_FLOAT,
     2,
     {-17, -20},
     y_expm1,
     {4.139937814784389e-08, 2.06115369216775e-09},
     1e-6},
    {"Expm1 of a double", MU_DOUBLE, 1, {-40}, y_expm1, {4.248354255291589e-18}, 1e-14},
    {"SparseMatMul", MU_BFLOAT16, 4, {1, 2, 3, 4}, y_sparse_matmul, {3, 7, 3, 7}, 0},
};

/* ---- limits ---- */
static struct mu_out y_cumprod(struct mu_builder *b, struct mu_out x)
{
	return mu_op(b, "Cumprod", MU_IN(x, mu_const_int(b, MU_INT32, 0)));
}

static struct mu_out y_cumprod_of_later(struct mu_builder *b, struct mu_out x)
{
	return mu_op(b, "Cumprod", MU_IN(x, mu_const_int(b, MU_INT32, 0)),
		     MU_ATTRS(MU_A_BOOL("exclusive", true), MU_A_BOOL("reverse", true)));
}
UNARY(y_i1, "BesselI1")
UNARY(y_i1e, "BesselI1e")
UNARY(y_j1, "BesselJ1")
UNARY(y_spence, "Spence")

/* Two segments; the gradient of the first is infinite. */
static struct mu_out segments(struct mu_builder *b, const char *op, struct mu_out x)
{
	struct mu_out in[] = {x, ints(b, 4, (int32_t[]){-1, 0, 0, 1}),
			      mu_const_int(b, MU_INT32, 2)};
	struct mu_out two = mu_cast(b, ints(b, 2, (int32_t[]){0, 1}), MU_FLOAT);
	bool unsorted = op[0] == 'U';

	if (!unsorted)
		in[1] = ints(b, 4, (int32_t[]){0, 0, 0, 1});
	return mu_mul(
	    b, mu_op_add(b, &(struct mu_op_args){.op = op, .in = in, .n_in = unsorted ? 3 : 2}),
	    mu_op(b, "Reciprocal", MU_IN(two)));
}
CASE(y_unsorted_sum, segments(b, "UnsortedSegmentSum", x))
CASE(y_unsorted_max, segments(b, "UnsortedSegmentMax", x))
CASE(y_unsorted_min, segments(b, "UnsortedSegmentMin", x))
CASE(y_unsorted_prod, segments(b, "UnsortedSegmentProd", x))
CASE(y_segment_max, segments(b, "SegmentMax", x))
CASE(y_segment_min, segments(b, "SegmentMin", x))

/* Products and comparisons. */
CASE(y_prod, mu_op(b, "Prod", MU_IN(x, ints(b, 1, (int32_t[]){0}))))

static struct mu_out with_nan(struct mu_builder *b, const char *op, struct mu_out x, bool first)
{
	MU_AUTO_TENSOR t = {0};
	struct mu_shape shape = mu_shape_vec(5);
	struct mu_out other;

	assert_ok(mu_tensor_new(&t, MU_FLOAT, &shape, &err), &err);
	memcpy(t.data, (float[]){1, NAN, NAN, 2, 2}, 5 * sizeof(float));
	other = mu_const(b, NULL, &t);
	return first ? mu_op(b, op, MU_IN(x, other)) : mu_op(b, op, MU_IN(other, x));
}
CASE(y_maximum, with_nan(b, "Maximum", x, true))
CASE(y_maximum_second, with_nan(b, "Maximum", x, false))
CASE(y_minimum, with_nan(b, "Minimum", x, true))
CASE(y_minimum_second, with_nan(b, "Minimum", x, false))
CASE(y_angle, mu_op(b, "Angle", MU_IN(mu_op(b, "Complex", MU_IN(x, x)))))

/* The boxes of an image cropped without interpolation. */
static struct mu_out y_crop_nearest(struct mu_builder *b, struct mu_out x)
{
	int32_t v[12];
	struct mu_out image;

	for (int i = 0; i < 12; i++)
		v[i] = i * i;
	image = mu_reshape(b, ints(b, 12, v), ints(b, 4, (int32_t[]){1, 3, 4, 1}));
	return mu_op(b, "CropAndResize",
		     MU_IN(image, mu_reshape(b, x, ints(b, 2, (int32_t[]){1, 4})),
			   ints(b, 1, (int32_t[]){0}), ints(b, 2, (int32_t[]){2, 3})),
		     MU_ATTRS(MU_A_STR("method", "nearest")));
}

static const struct value_case limit_cases[] = {
    {"Cumprod", MU_FLOAT, 3, {2, 0, 3}, y_cumprod, {1, 0, 0}, 0},
    {"Cumprod, exclusive and reverse", MU_FLOAT, 3, {2, 0, 3}, y_cumprod_of_later, {0, 0, 1}, 0},
    {"BesselI1", MU_FLOAT, 2, {0, 0.5}, y_i1, {1, 0.5476948022842407}, 1e-5},
    {"BesselI1e", MU_FLOAT, 2, {0, 0.5}, y_i1e, {0.5, 0.17577290534973145}, 1e-5},
    {"BesselJ1", MU_FLOAT, 2, {0, 0.5}, y_j1, {0.5, 0.4539329409599304}, 1e-5},
    {"Spence", MU_FLOAT, 2, {1, 0.5}, y_spence, {-1, -1.3862943649291992}, 1e-5},
    {"UnsortedSegmentSum",
     MU_FLOAT,
     4,
     {1, 2, 3, 2},
     y_unsorted_sum,
     {0, INFINITY, INFINITY, 1},
     0},
    {"UnsortedSegmentMax", MU_FLOAT, 4, {1, 2, 3, 2}, y_unsorted_max, {0, 0, INFINITY, 1}, 0},
    {"UnsortedSegmentMin", MU_FLOAT, 4, {1, 2, 3, 2}, y_unsorted_min, {0, INFINITY, 0, 1}, 0},
    {"UnsortedSegmentProd",
     MU_FLOAT,
     4,
     {1, 2, 3, 2},
     y_unsorted_prod,
     {0, INFINITY, INFINITY, 1},
     0},
    {"SegmentMax", MU_FLOAT, 4, {1, 2, 3, 2}, y_segment_max, {0, 0, INFINITY, 1}, 0},
    {"SegmentMin", MU_FLOAT, 4, {1, 2, 3, 2}, y_segment_min, {INFINITY, 0, 0, 1}, 0},
    {"CropAndResize of boxes, nearest",
     MU_FLOAT,
     4,
     {0.1, 0.1, 0.8, 0.9},
     y_crop_nearest,
     {168, 79.80000305175781, 360, 103.80000305175781},
     1e-4},
    {"Prod", MU_FLOAT, 3, {1e30, 1e30, 1e-30}, y_prod, {1, 1, INFINITY}, 1e-5},
    {"Maximum", MU_FLOAT, 5, {NAN, 1, NAN, 2, 1}, y_maximum, {0, 0, 0, 1, 0}, 0},
    {"Maximum, second", MU_FLOAT, 5, {NAN, 1, NAN, 2, 1}, y_maximum_second, {1, 1, 1, 0, 0}, 0},
    {"Minimum", MU_FLOAT, 5, {NAN, 1, NAN, 2, 1}, y_minimum, {0, 0, 0, 1, 1}, 0},
    {"Minimum, second", MU_FLOAT, 5, {NAN, 1, NAN, 2, 1}, y_minimum_second, {1, 1, 1, 0, 1}, 0},
    {"Angle", MU_FLOAT, 2, {0, 1}, y_angle, {NAN, 0}, 0},
};

static struct mu_out constant(struct mu_builder *b, enum mu_dtype type, const double *v, unsigned n)
{
	struct mu_shape shape = mu_shape_vec(n);
	MU_AUTO_TENSOR t = {0};
	struct mu_out x;

	assert_ok(mu_tensor_new(&t, MU_DOUBLE, &shape, &err), &err);
	memcpy(t.data, v, n * sizeof(*v));
	x = mu_const(b, NULL, &t);
	return type == MU_DOUBLE ? x : mu_cast(b, x, type);
}

/* Prints each element that differs. Returns their number. */
static unsigned check_value(const struct value_case *c)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	MU_AUTO(mu_session_close) struct mu_session *s = NULL;
	struct mu_out x = constant(b, c->type, c->x, c->n), g = MU_NO_OUT;
	MU_AUTO_TENSOR found = {0};
	unsigned n_wrong = 0;

	mu_gradients(b, c->y(b, x), &x, 1, &g);
	g = mu_cast(b, g, MU_DOUBLE);
	if (mu_builder_check(b, &err) || mu_session_open(&s, test_server(), b, NULL, &err) ||
	    mu_session_get(s, g, &found, &err)) {
		print_error("%s: %s\n", c->name, err.msg);
		return 1;
	}
	assert_int_equal(found.shape.count, c->n);
	for (unsigned i = 0; i < c->n; i++) {
		double is = MU_DATA(double, &found)[i], want = c->gradient[i];

		if (is == want || (isnan(is) && isnan(want)) ||
		    fabs(is - want) <= c->tolerance * fabs(want))
			continue;
		print_error("%s: the gradient of element %u is %.17g, in TensorFlow %.17g\n",
			    c->name, i, is, want);
		n_wrong++;
	}
	return n_wrong;
}

static void check_values(const struct value_case *c, size_t n)
{
	unsigned n_wrong = 0;

	for (size_t i = 0; i < n; i++)
		n_wrong += check_value(&c[i]);
	assert_int_equal(n_wrong, 0);
}

static void gradients_of_halves_and_doubles__are_those_of_tensorflow(void **state)
{
	check_values(type_cases, MU_COUNT(type_cases));
}

static void gradients_at_limits_and_infinities__are_those_of_tensorflow(void **state)
{
	check_values(limit_cases, MU_COUNT(limit_cases));
}

static void gradient_of_check_numerics__if_it_is_infinite__fails_with_the_message(void **state)
{
	static const char *const ops[] = {"CheckNumerics", "CheckNumericsV2"};

	for (size_t i = 0; i < MU_COUNT(ops); i++) {
		MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
		MU_AUTO(mu_session_close) struct mu_session *s = NULL;
		struct mu_out x = constant(b, MU_FLOAT, (double[]){1}, 1), g = MU_NO_OUT;
		struct mu_out y =
		    mu_op(b, ops[i], MU_IN(x), MU_ATTRS(MU_A_STR("message", "of the loss")));
		MU_AUTO_TENSOR found = {0};

		mu_gradients(b, mu_mul(b, y, mu_const_float(b, INFINITY)), &x, 1, &g);
		assert_ok(mu_builder_check(b, &err), &err);
		assert_ok(mu_session_open(&s, test_server(), b, NULL, &err), &err);
		assert_fails(mu_session_get(s, g, &found, &err), &err, MU_INVALID_ARGUMENT,
			     "detected in gradient. of the loss");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(gradients_of_halves_and_doubles__are_those_of_tensorflow),
	    cmocka_unit_test(gradients_at_limits_and_infinities__are_those_of_tensorflow),
	    cmocka_unit_test(gradient_of_check_numerics__if_it_is_infinite__fails_with_the_message),
	};

	return cmocka_run_group_tests(tests, NULL, test_server_stop);
}
