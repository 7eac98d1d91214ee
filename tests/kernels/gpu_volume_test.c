/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and pools in three dimensions on the GPU compared with the CPU kernels. */
#include "tests/kernels/gpu_compare.h"

static void drop(struct mu_tensor *t, unsigned n)
{
	while (n--)
		mu_tensor_unref(&t[n]);
}

/* clang-format off */
static const struct volume_case {
	int64_t in[5], size[3], out[5]; /* out: the output of a pool */
	const char *ksize, *strides, *dilations, *padding;
} cases[] = {
    {{2, 4, 5, 6, 3}, {2, 3, 2}, {2, 4, 5, 6, 3}, "1,2,3,2,1", "1,1,1,1,1", "1,1,1,1,1", "SAME"},
    {{2, 4, 5, 6, 3}, {2, 3, 2}, {2, 2, 3, 2, 3}, "1,2,3,2,1", "1,2,2,3,1", "1,1,1,1,1", "SAME"},
    {{1, 5, 5, 5, 2}, {3, 2, 3}, {1, 2, 2, 3, 2}, "1,3,2,3,1", "1,2,3,1,1", "1,1,1,1,1", "VALID"},
    {{1, 3, 3, 3, 2}, {1, 1, 1}, {1, 1, 1, 1, 2}, "1,1,1,1,1", "1,3,3,3,1", "1,1,1,1,1", "VALID"}, /* strides larger than the window */
    {{2, 6, 7, 5, 2}, {2, 2, 3}, {2, 5, 6, 3, 2}, "1,2,2,3,1", "1,1,1,1,1", "1,1,1,1,1", "VALID"},
    {{0, 4, 5, 6, 3}, {2, 3, 2}, {0, 4, 5, 6, 3}, "1,2,3,2,1", "1,1,1,1,1", "1,1,1,1,1", "SAME"}, /* empty batch */
    {{2, 4, 5, 6, 0}, {2, 3, 2}, {2, 4, 5, 6, 0}, "1,2,3,2,1", "1,1,1,1,1", "1,1,1,1,1", "SAME"}, /* no channels */
    {{1, 2, 2, 2, 1}, {3, 3, 3}, {1, 0, 0, 0, 1}, "1,3,3,3,1", "1,1,1,1,1", "1,1,1,1,1", "VALID"}, /* too small */
    {{1, 6, 7, 8, 2}, {2, 3, 2}, {1, 6, 7, 8, 2}, "1,2,3,2,1", "1,1,1,1,1", "1,2,2,3,1", "SAME"}, /* dilated; pools ignore dilations */
    {{1, 4, 5, 6, 3}, {2, 3, 2}, {1, 4, 5, 5, 3}, "1,2,3,2,1", "1,1,1,1,1", "1,1,1,1,1", "SAME"}, /* mismatched gradients */
};
/* clang-format on */

static const enum mu_dtype types[] = {MU_FLOAT, MU_DOUBLE};

static void pools__of_every_form__match_the_cpu(void **state)
{
	for (unsigned i = 0; i < MU_COUNT(cases); i++)
		for (unsigned t = 0; t < MU_COUNT(types); t++) {
			const struct volume_case *x = &cases[i];
			const struct attr attrs[] = {{"T", A_TYPE, (long)types[t], NULL},
						     {"ksize", A_INTS, 0, x->ksize},
						     {"strides", A_INTS, 0, x->strides},
						     {"padding", A_TEXT, 0, x->padding},
						     {0}};
			struct mu_shape in = dims_of(5, x->in), out = dims_of(5, x->out);
			struct mu_tensor tensors[] = {
			    filled(types[t], &in, -3, 6, i), filled(types[t], &out, -3, 6, i + 1),
			    filled(types[t], &out, -1, 2, i + 2), ints(MU_INT32, 5, x->in)};
			struct mu_tensor top[MAX_OUT] = {0};
			unsigned n;
			compare("MaxPool3D", attrs, tensors, 1, 0);
			compare("AvgPool3D", attrs, tensors, 1, 2);
			compare("AvgPool3DGrad", attrs,
				(struct mu_tensor[]){tensors[3], tensors[2]}, 2, 2);
			compare("MaxPool3DGrad", attrs, tensors, 3,
				2); /* every element equals the maximum */
			if (!run_op(CPU, "MaxPool3D", attrs, tensors, 1, top, &n)) {
				struct mu_tensor back[] = {tensors[0], top[0], tensors[2]};
				compare("MaxPool3DGrad", attrs, back, 3, 2);
				mu_tensor_unref(&top[0]);
			}
			drop(tensors, 4);
		}
}

static void convolutions__of_every_form__match_the_cpu(void **state)
{
	enum { FILTERS = 4 };

	for (unsigned i = 0; i < MU_COUNT(cases); i++)
		for (unsigned t = 0; t < MU_COUNT(types); t++) {
			const struct volume_case *x = &cases[i];
			const struct attr attrs[] = {{"T", A_TYPE, (long)types[t], NULL},
						     {"strides", A_INTS, 0, x->strides},
						     {"dilations", A_INTS, 0, x->dilations},
						     {"padding", A_TEXT, 0, x->padding},
						     {0}};
			const int64_t filter[] = {x->size[0], x->size[1], x->size[2], x->in[4],
						  FILTERS};
			int64_t grad_dims[5];
			memcpy(grad_dims, x->out, sizeof grad_dims);
			grad_dims[4] = FILTERS;
			struct mu_shape in = dims_of(5, x->in), f = dims_of(5, filter);
			struct mu_shape out = dims_of(5, grad_dims);
			struct mu_tensor tensors[] = {
			    filled(types[t], &in, -1, 2, i), filled(types[t], &f, -1, 2, i + 1),
			    filled(types[t], &out, -1, 2, i + 2), ints(MU_INT32, 5, x->in),
			    ints(MU_INT32, 5, filter)};
			compare("Conv3D", attrs, tensors, 2, 60);
			compare("Conv3DBackpropInputV2", attrs,
				(struct mu_tensor[]){tensors[3], tensors[1], tensors[2]}, 3, 60);
			compare("Conv3DBackpropFilterV2", attrs,
				(struct mu_tensor[]){tensors[0], tensors[4], tensors[2]}, 3, 200);
			drop(tensors, 5);
		}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
	    T(pools__of_every_form__match_the_cpu),
	    T(convolutions__of_every_form__match_the_cpu),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
