/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum and batched matrix products on the GPU compared with the CPU kernels; and kernels that
 * read a value from the GPU before they continue. */
#include <math.h>
#include <stdlib.h>

#include "tests/fake/cuda/fake_cuda.h"
#include "tests/kernels/gpu_compare.h"

static void drop(struct mu_tensor *t, unsigned n)
{
	while (n--)
		mu_tensor_unref(&t[n]);
}

struct dims {
	int rank;
	int64_t dim[5];
};
struct equation {
	const char *text;
	unsigned n;
	struct dims in[2];
};

static void run_equation(const struct equation *q, enum mu_dtype t)
{
	const struct attr attrs[] = {{"T", A_TYPE, (long)t, NULL},
				     {"N", A_INT, q->n, NULL},
				     {"equation", A_TEXT, 0, q->text},
				     {0}};
	struct mu_tensor in[2] = {0};

	for (unsigned i = 0; i < q->n; i++) {
		struct mu_shape s = dims_of(q->in[i].rank, q->in[i].dim);
		in[i] = filled(t, &s, -1, 2, i + 5);
	}
	compare("Einsum", attrs, in, q->n, 30);
	drop(in, 2);
}

/* clang-format off */
static const struct equation equations[] = {
    {"ij,jk->ik", 2, {{2, {4, 5}}, {2, {5, 3}}}},
    {"ij,kj->ik", 2, {{2, {4, 5}}, {2, {3, 5}}}},
    {"ij,jk->ki", 2, {{2, {4, 5}}, {2, {5, 3}}}},		/* transposed result */
    {"bhqd,bhkd->bhqk", 2, {{4, {2, 3, 4, 5}}, {4, {2, 3, 6, 5}}}},	/* attention */
    {"bqhd,bkhd->bhqk", 2, {{4, {2, 4, 3, 5}}, {4, {2, 6, 3, 5}}}},
    {"abc,cde->abde", 2, {{3, {2, 3, 4}}, {3, {4, 5, 2}}}},
    {"...ij,...jk->...ik", 2, {{3, {2, 4, 5}}, {4, {3, 1, 5, 2}}}},	/* broadcast */
    {"ijk,jl->il", 2, {{3, {3, 4, 6}}, {2, {4, 5}}}},		/* k is summed first */
    {"ijk,jl->il", 2, {{3, {3, 4, 1}}, {2, {4, 5}}}},
    {"i,j->ij", 2, {{1, {6}}, {1, {7}}}},
    {"i,i->", 2, {{1, {6}}, {1, {6}}}},
    {"ii,ij->j", 2, {{2, {4, 4}}, {2, {4, 3}}}},		/* a diagonal */
    {"ij,jk->iik", 2, {{2, {4, 5}}, {2, {5, 3}}}},		/* a diagonal in the output */
    {"ij->ji", 1, {{2, {4, 5}}}},
    {"ijk->j", 1, {{3, {4, 5, 6}}}},
    {"ii->i", 1, {{2, {4, 4}}}},
    {"i->ii", 1, {{1, {4}}}},
    {"ij->", 1, {{2, {0, 5}}}},
    {"ij,jk->ik", 2, {{2, {4, 0}}, {2, {0, 3}}}},		/* empty sum: zeros */
    {"ij,jk->ik", 2, {{2, {0, 2}}, {2, {2, 3}}}},
    {"ij,jk->ik", 2, {{2, {4, 5}}, {2, {4, 3}}}},		/* mismatched dimensions */
    {"ij,jk->ik", 2, {{3, {4, 5, 1}}, {2, {5, 3}}}},		/* mismatched rank */
};
/* clang-format on */

static void einsum__of_every_form__matches_the_cpu(void **state)
{
	static const enum mu_dtype types[] = {MU_FLOAT, MU_DOUBLE, MU_HALF, MU_BFLOAT16};

	for (unsigned i = 0; i < MU_COUNT(equations); i++)
		for (unsigned t = 0; t < MU_COUNT(types); t++)
			run_equation(&equations[i], types[t]);
}

static void einsum__of_two_matrices__uses_the_library(void **state)
{
	struct fake_cuda_counts before, after;

	fake_cuda_count(&before);
	run_equation(&equations[0], MU_FLOAT);
	fake_cuda_count(&after);
	if (!getenv("MUSTER_GPU_TEST"))
		assert_int_equal(after.products - before.products, 1);
}

static void batch_mat_mul__of_version_3__matches_the_cpu(void **state)
{
	struct mu_shape a = dims_of(3, (int64_t[]){2, 4, 5}), b = dims_of(3, (int64_t[]){1, 5, 3});

	for (unsigned wide = 0; wide < 2; wide++) {
		enum mu_dtype t = wide ? MU_DOUBLE : MU_FLOAT;
		const struct attr attrs[] = {{"Ta", A_TYPE, (long)t, NULL},
					     {"Tb", A_TYPE, (long)t, NULL},
					     {"Tout", A_TYPE, (long)t, NULL},
					     {0}};
		struct mu_tensor in[] = {filled(t, &a, -1, 2, 1), filled(t, &b, -1, 2, 2)};
		compare("BatchMatMulV3", attrs, in, 2, 20);
		drop(in, 2);
	}
}

/* Products at a constant stride (or stride 0) are one library call; others use our own kernel. */
static void batch_mat_mul__at_a_constant_stride__uses_the_library(void **state)
{
	static const struct {
		int rank_a, rank_b;
		int64_t a[4], b[4];
		unsigned long products;
	} cases[] = {
	    {3, 3, {7, 4, 5}, {7, 5, 3}, 1},       {4, 4, {2, 3, 4, 5}, {2, 3, 5, 3}, 1},
	    {4, 4, {2, 3, 4, 5}, {1, 1, 5, 3}, 1}, {2, 3, {4, 5}, {6, 5, 3}, 1},
	    {4, 4, {2, 1, 4, 5}, {1, 3, 5, 3}, 0}, {4, 4, {2, 3, 4, 5}, {2, 1, 5, 3}, 0},
	    {4, 3, {2, 3, 4, 5}, {3, 5, 3}, 0},    {4, 4, {2, 1, 4, 5}, {2, 1, 5, 3}, 1},
	    {3, 3, {1, 4, 5}, {1, 5, 3}, 1},       {3, 3, {7, 4, 0}, {7, 0, 3}, 0},
	};

	for (unsigned i = 0; i < MU_COUNT(cases) * 4; i++) {
		enum mu_dtype t = i & 1 ? MU_BFLOAT16 : MU_FLOAT;
		const unsigned k = i / 4, adjoint = i >> 1 & 1;
		const struct attr attrs[] = {{"T", A_TYPE, (long)t, NULL},
					     {"adj_x", A_BOOL, adjoint, NULL},
					     {"adj_y", A_BOOL, adjoint, NULL},
					     {0}};
		struct mu_shape a = dims_of(cases[k].rank_a, cases[k].a);
		struct mu_shape b = dims_of(cases[k].rank_b, cases[k].b);
		for (unsigned j = 0; j < 2 && adjoint; j++) { /* exchange the last two dimensions */
			struct mu_shape *s = j ? &b : &a;
			int64_t last = s->dim[s->rank - 1];
			s->dim[s->rank - 1] = s->dim[s->rank - 2];
			s->dim[s->rank - 2] = last;
		}
		struct mu_tensor in[] = {filled(t, &a, -1, 2, i), filled(t, &b, -1, 2, i + 1)};
		struct fake_cuda_counts before, after;
		fake_cuda_count(&before);
		compare("BatchMatMulV2", attrs, in, 2, 20);
		fake_cuda_count(&after);
		if (!getenv("MUSTER_GPU_TEST"))
			assert_int_equal(after.products - before.products, cases[k].products);
		drop(in, 2);
	}
}

/* ---- values read from the GPU ---- */

static void check_numerics__fails_as_on_the_cpu(void **state)
{
	static const enum mu_dtype types[] = {MU_FLOAT, MU_DOUBLE, MU_HALF, MU_BFLOAT16};
	struct mu_shape s = dims_of(2, (int64_t[]){30, 40});
	struct mu_tensor out[MAX_OUT] = {0};
	unsigned n;

	for (unsigned t = 0; t < MU_COUNT(types); t++)
		for (unsigned form = 0; form < 4; form++) {
			const struct attr attrs[] = {{"T", A_TYPE, (long)types[t], NULL},
						     {"message", A_TEXT, 0, "loss"},
						     {0}};
			struct mu_tensor in = filled(types[t], &s, -9, 18, form);
			struct mu_err said;
			if (form & 1)
				put(&in, 1199, -INFINITY);
			if (form & 2)
				put(&in, 3, NAN);
			compare("CheckNumerics", attrs, &in, 1, 0);
			if (form) {
				run_op(CPU, "CheckNumerics", attrs, &in, 1, out, &n);
				said = err;
				run_op(GPU, "CheckNumerics", attrs, &in, 1, out, &n);
				assert_string_equal(err.msg, said.msg);
			}
			mu_tensor_unref(&in);
		}
}

/* Sizes of one block, several blocks and a partial block; all, no or some elements are true. */
static void where__of_every_size__returns_ordered_indices(void **state)
{
	static const struct dims shapes[] = {
	    {1, {7}}, {1, {300}}, {2, {50, 60}}, {3, {5, 7, 100}}, {2, {0, 3}}};
	static const enum mu_dtype types[] = {MU_BOOL,     MU_FLOAT, MU_DOUBLE,
					      MU_BFLOAT16, MU_INT64, MU_UINT8};

	for (unsigned i = 0; i < MU_COUNT(shapes); i++)
		for (unsigned t = 0; t < MU_COUNT(types); t++)
			for (unsigned form = 0; form < 3; form++) {
				const struct attr attrs[] = {{"T", A_TYPE, (long)types[t], NULL},
							     {0}};
				struct mu_shape s = dims_of(shapes[i].rank, shapes[i].dim);
				struct mu_tensor in =
				    filled(types[t], &s, form == 1 ? 1 : 0, 1, i + t);
				for (int64_t k = 0; k < s.count; k++)
					if (form == 2 ? true : !form && k % 3)
						put(&in, k, 0);
				compare("Where", attrs, &in, 1, 0);
				mu_tensor_unref(&in);
			}
}

/* If any driver call fails, the step fails, nothing leaks and no call waits forever. */
static void read_back__that_a_fault_interrupts__fails_its_step(void **state)
{
	static const char *const calls[] = {"launch", "copy_out", "memory_alloc", "fill"};
	static const char *const ops[] = {"Where", "CheckNumerics"};
	const struct attr attrs[] = {{"T", A_TYPE, MU_FLOAT, NULL}, {0}};
	struct mu_shape s = mu_shape_vec(3000);
	struct mu_tensor in = filled(MU_FLOAT, &s, 0, 1, 5), out[MAX_OUT] = {0};
	unsigned n, failed = 0;

	if (getenv("MUSTER_GPU_TEST"))
		skip();
	for (unsigned c = 0; c < MU_COUNT(calls); c++)
		for (unsigned o = 0; o < MU_COUNT(ops); o++)
			for (int at = 1; at <= 4; at++) {
				fake_cuda.fail_at = at;
				fake_cuda.fail_result = 2; /* no memory: not sticky */
				fake_cuda.fail_call = calls[c];
				int rc = run_op(GPU, ops[o], attrs, &in, 1, out, &n);
				fake_cuda.fail_call = NULL;
				failed += rc != 0;
				mu_tensor_unref(&out[0]);
			}
	assert_true(failed >= 8);
	mu_tensor_unref(&in);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
	    T(einsum__of_every_form__matches_the_cpu),
	    T(einsum__of_two_matrices__uses_the_library),
	    T(batch_mat_mul__of_version_3__matches_the_cpu),
	    T(batch_mat_mul__at_a_constant_stride__uses_the_library),
	    T(check_numerics__fails_as_on_the_cpu),
	    T(where__of_every_size__returns_ordered_indices),
	    T(read_back__that_a_fault_interrupts__fails_its_step),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
