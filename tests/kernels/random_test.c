/* SPDX-License-Identifier: Apache-2.0 */
/* Random ops, in addition to tests/compat: the op families agree with each other, and errors have
 * the right text. */
#include "tests/test.h"

#include "tests/kernels/one_runtime.h"

static struct mu_tensor tensor(enum mu_dtype t, int rank, int64_t n, const void *data)
{
	struct mu_shape shape = {.rank = rank, .dim = {n}, .count = n};
	struct mu_tensor out;

	assert_int_equal(mu_tensor_new(&out, t, &shape, NULL), 0);
	memcpy(out.data, data, (size_t)n * mu_dtype_size(t));
	return out;
}

static struct mu_tensor small(int32_t x)
{
	return tensor(MU_INT32, 0, 1, &x);
}

static struct mu_tensor dims(int32_t n)
{
	return tensor(MU_INT32, 1, 1, &n);
}

static struct mu_tensor words(int64_t n, const uint64_t *x)
{
	return tensor(MU_UINT64, 1, n, x);
}

/* Runs the op once and takes the references to the inputs.  The outputs stay in h. */
static int run(struct harness *h, struct mu_graph *g, const char *op, enum mu_dtype dtype, int n,
	       const struct mu_tensor *in, struct mu_err *err)
{
	struct mu_attr type = {.kind = MU_ATTR_TYPE, .type = dtype};
	struct mu_node *node;

	const char *name = mu_arena_printf(&g->arena, "n%u", g->n_nodes);
	assert_int_equal(mu_graph_add(g, name, op, &node, err), 0);
	if (dtype)
		mu_node_set_attr(g, node, "dtype", &type);
	assert_int_equal(harness_prepare(h, rt, node, err), 0);
	for (int i = 0; i < n; i++)
		harness_input(h, in[i]);
	return harness_run(h, err);
}

static const uint64_t seeds[2] = {7, (uint64_t)-3};

/* Each V2 op with the key and counter of StatelessRandomGetKeyCounter generates the same numbers as
 * the V1 op with the seeds. */
static void stateless_v2_ops__with_key_and_counter__match_v1_with_seeds(void **state)
{
	static const struct {
		const char *op;
		enum mu_dtype dtype;
		bool range;
	} rows[] = {
	    {"StatelessRandomUniform", MU_FLOAT, false},
	    {"StatelessRandomUniform", MU_BFLOAT16, false},
	    {"StatelessRandomNormal", MU_DOUBLE, false},
	    {"StatelessTruncatedNormal", MU_HALF, false},
	    {"StatelessRandomUniformFullInt", MU_UINT64, false},
	    {"StatelessRandomUniformInt", MU_INT32, true},
	};

	for (unsigned i = 0; i < MU_COUNT(rows); i++) {
		MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();
		struct harness first, begin, second;
		struct mu_err err;
		int more = rows[i].range ? 2 : 0;
		struct mu_tensor seed[] = {tensor(MU_INT64, 1, 2, seeds)};
		struct mu_tensor by_seed[] = {dims(11), tensor(MU_INT64, 1, 2, seeds), small(-5),
					      small(90)};
		assert_int_equal(run(&first, g, rows[i].op, rows[i].dtype, 2 + more, by_seed, &err),
				 0);
		assert_int_equal(
		    run(&begin, g, "StatelessRandomGetKeyCounterAlg", 0, 1, seed, &err), 0);
		struct mu_tensor by_key[] = {dims(11), {0}, {0}, {0}, small(-5), small(90)};
		for (int k = 0; k < 3; k++)
			by_key[k + 1] = mu_tensor_ref(&begin.out[k].tensor);
		const char *v2 = mu_arena_printf(&g->arena, "%sV2", rows[i].op);
		assert_int_equal(run(&second, g, v2, rows[i].dtype, 4 + more, by_key, &err), 0);
		const struct mu_tensor *a = &first.out[0].tensor, *b = &second.out[0].tensor;
		assert_int_equal(a->dtype, rows[i].dtype);
		assert_int_equal(b->dtype, rows[i].dtype);
		assert_int_equal(b->shape.count, 11);
		assert_memory_equal(a->data, b->data, 11 * mu_dtype_size(a->dtype));
		harness_fini(&first);
		harness_fini(&begin);
		harness_fini(&second);
		if (!more)
			for (int k = 0; k < 2; k++) {
				mu_tensor_unref(&by_seed[2 + k]);
				mu_tensor_unref(&by_key[4 + k]);
			}
	}
}

static void invalid_arguments__of_stateless_random_ops__fail_with_the_reason(void **state)
{
	static const struct {
		int32_t algorithm, low, high;
		int64_t keys, counters;
		const char *says;
	} rows[] = {
	    {1, 0, 9, 1, 2, NULL},
	    {3, 0, 9, 1, 3, NULL},
	    {2, 0, 9, 1, 2, "ThreeFry"},
	    {0, 0, 9, 1, 2, "Unsupported algorithm id: 0"},
	    {1, 0, 9, 2, 2, "key must have shape [1], not [2]"},
	    {1, 0, 9, 0, 2, "key must have shape [1], not [0]"},
	    {1, 0, 9, 1, 1, "counter must be a vector with length at least 2; got shape: [1]"},
	    {1, 9, 9, 1, 2, "Need minval < maxval, got 9 >= 9"},
	};

	for (unsigned i = 0; i < MU_COUNT(rows); i++) {
		MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();
		static const uint64_t words3[3] = {1, 2, 3};
		struct harness h;
		struct mu_err err;
		struct mu_tensor in[] = {dims(5),
					 words(rows[i].keys, words3),
					 words(rows[i].counters, words3),
					 small(rows[i].algorithm),
					 small(rows[i].low),
					 small(rows[i].high)};
		int rc = run(&h, g, "StatelessRandomUniformIntV2", MU_INT32, 6, in, &err);
		assert_int_equal(rc, rows[i].says ? -MU_INVALID_ARGUMENT : 0);
		if (rows[i].says && !strstr(err.msg, rows[i].says))
			fail_msg("says \"%s\", not \"%s\"", err.msg, rows[i].says);
		harness_fini(&h);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(stateless_v2_ops__with_key_and_counter__match_v1_with_seeds),
	    cmocka_unit_test(invalid_arguments__of_stateless_random_ops__fail_with_the_reason),
	};

	return cmocka_run_group_tests(tests, start_runtime, stop_runtime);
}
