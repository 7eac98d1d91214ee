/* SPDX-License-Identifier: Apache-2.0 */
/* Runs kernels for tests/compat/ops_diff.py and bench/kernels.py: requests on standard input,
 * responses on standard output, until the end of input.  Each part is a 32-bit length and that many
 * bytes.
 *
 * Usage: op_driver [variant [threads [milliseconds]]].  With milliseconds, each request is repeated
 * for this time, and the response is the code and the nanoseconds of the fastest run.
 *
 * Request: GraphDef, name of the node to run, number of inputs as text, then for each "t" (a
 * tensor), "ref" or "handle" (a variable with this value) and a TensorProto. Response: code as
 * text. For code 0 follow the number of tensors, the outputs that are not references, and the
 * values of the variables; else the message. */
#include <stdio.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/ops/shape.h"
#include "lib/tensor/arena.h"
#include "lib/tensor/tensor_proto.h"
#include "task/kernels/engine/loops/loops.h"
#include "tests/kernels/harness.h"

static bool get(struct mu_buf *b)
{
	uint32_t n;

	mu_buf_clear(b);
	if (fread(&n, sizeof n, 1, stdin) != 1)
		return false;
	mu_buf_reserve(b, n);
	if (fread(b->data, 1, n, stdin) != n)
		return false;
	b->len = n;
	b->data[n] = '\0';
	return true;
}

static void put(const void *p, size_t len)
{
	uint32_t n = (uint32_t)len;

	fwrite(&n, sizeof n, 1, stdout);
	fwrite(p, 1, len, stdout);
}

static void put_number(long n)
{
	char text[24];

	put(text, (size_t)snprintf(text, sizeof text, "%ld", n));
}

static struct variable *make_variable(struct runtime *rt, unsigned i, struct mu_tensor t)
{
	struct variable *v = variable_new(t.dtype, &(struct mu_pshape){.rank = -1});

	variable_assign(v, t);
	return v;
}

static struct resource *return_variable(void *arg, struct mu_err *err)
{
	return arg;
}

static int input_handle(struct harness *h, struct variable *v, unsigned i, struct mu_err *err)
{
	struct mu_shape scalar = mu_shape_scalar();
	char *name = mu_xasprintf("v%u", i);
	struct resource *r;
	struct mu_tensor t;
	int rc;

	resources_remove(h->rt->resources, "", name, variable_type.name, NULL);
	rc = resources_find_or_create(h->rt->resources, "", name, &variable_type, return_variable,
				      v, &r, err);
	if (!rc && !(rc = mu_tensor_new(&t, MU_RESOURCE, &scalar, err))) {
		MU_DATA(struct mu_handle, &t)->name = mu_xstrdup(name);
		MU_DATA(struct mu_handle, &t)->type_name = mu_xstrdup(variable_type.name);
		harness_input(h, t);
	}
	free(name);
	return rc;
}

struct variable_list {
	struct variable *v[HARNESS_MAX];
	unsigned n;
};

static int read_inputs(struct harness *h, unsigned n, struct variable_list *variables, int prepared,
		       struct mu_err *err)
{
	MU_AUTO_BUF kind = {0}, b = {0};
	int rc = prepared;

	for (unsigned i = 0; i < n; i++) {
		struct mu_tensor t;
		if (!get(&kind) || !get(&b))
			return mu_fail(err, MU_INVALID_ARGUMENT, "an input is missing");
		if (i == HARNESS_MAX)
			rc =
			    mu_fail(err, MU_UNIMPLEMENTED, "more inputs than the harness can hold");
		if (rc || (rc = mu_tensor_parse(&t, mu_buf_span(&b), err)))
			continue;
		if (strcmp(kind.data, "t") == 0) {
			harness_input(h, t);
			continue;
		}
		struct variable *v = variables->v[variables->n++] = make_variable(h->rt, i, t);
		if (strcmp(kind.data, "ref") == 0) {
			harness_input_ref(h, v);
		} else {
			resource_ref(&v->base); /* the resource table owns a reference */
			rc = input_handle(h, v, i, err);
		}
	}
	return rc;
}

static void put_tensor(const struct mu_tensor *t)
{
	MU_AUTO_BUF b = {0};

	mu_tensor_write(&b, t);
	put(b.data, b.len);
}

static void answer(struct harness *h, const struct variable_list *variables)
{
	unsigned plain = 0;

	for (unsigned i = 0; i < h->n_out; i++)
		plain += !h->out[i].ref;
	put_number(plain + variables->n);
	for (unsigned i = 0; i < h->n_out; i++)
		if (!h->out[i].ref)
			put_tensor(&h->out[i].tensor);
	for (unsigned i = 0; i < variables->n; i++)
		put_tensor(&variables->v[i]->value);
}

/* Holds extra references to the inputs, so that no kernel reuses their memory for its outputs. */
static int time_runs(struct harness *h, int64_t ns, int64_t *best, struct mu_err *err)
{
	struct mu_tensor shared[HARNESS_MAX];
	int64_t end = mu_clock_ns() + ns;
	int rc = 0;

	for (unsigned i = 0; i < h->n_in; i++)
		mu_tensor_share(&shared[i], &h->in[i].tensor);
	*best = INT64_MAX;
	while (!rc && mu_clock_ns() < end) {
		int64_t start = mu_clock_ns();
		rc = harness_run(h, err);
		int64_t took = mu_clock_ns() - start;
		*best = took < *best ? took : *best;
	}
	for (unsigned i = 0; i < h->n_in; i++)
		mu_tensor_unref(&shared[i]);
	return rc;
}

static struct mu_pshape value_shape(const struct value *v)
{
	struct mu_pshape p = {.rank = v->ref ? -1 : v->tensor.shape.rank};

	for (int i = 0; i < p.rank; i++)
		p.dim[i] = v->tensor.shape.dim[i];
	return p;
}

/* Runs the kernel.  On success its inputs and outputs must match the shape function of the op. */
static int run_checked(struct harness *h, struct mu_err *err)
{
	struct mu_pshape in[HARNESS_MAX], out[HARNESS_MAX], variables;
	const struct mu_tensor *value[HARNESS_MAX];
	struct mu_shape_ctx c = {h->node, h->n_in, h->n_out, in, value, out};
	struct mu_err wrong = {0};

	for (unsigned i = 0; i < h->n_in; i++) {
		in[i] = value_shape(&h->in[i]);
		value[i] = h->in[i].ref ? NULL : &h->in[i].tensor;
	}
	for (unsigned i = 0; i < h->n_out; i++)
		out[i].rank = -1;
	int wrong_rc = mu_op_shapes(&c, &wrong);
	int rc = harness_run(h, err);
	if (rc)
		return rc;
	for (unsigned i = 0; i < h->n_out && !wrong_rc; i++) {
		variables = value_shape(&h->out[i]);
		wrong_rc = mu_shape_merge(&out[i], &variables, &variables, &wrong);
	}
	return wrong_rc ? mu_fail(err, MU_INTERNAL,
				  "the row of %s does not allow what its kernel "
				  "does: %s",
				  h->node->op, wrong.msg)
			: 0;
}

static bool serve(struct runtime *rt, int64_t ns)
{
	MU_AUTO_BUF graph = {0}, name = {0}, count = {0};
	struct variable_list variables = {0};
	MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();
	struct harness h = {0};
	struct mu_err err = {0};

	if (!get(&graph) || !get(&name) || !get(&count))
		return false;
	int rc = mu_graph_parse(g, mu_buf_span(&graph), &err);
	struct mu_node *n = rc ? NULL : mu_graph_find(g, name.data);
	if (!rc && !n)
		rc = mu_fail(&err, MU_NOT_FOUND, "no node %s", name.data);
	if (!rc)
		rc = mu_op_check_attrs(n, &err);
	if (!rc)
		rc = harness_prepare(&h, rt, n, &err);
	rc = read_inputs(&h, (unsigned)atoi(count.data), &variables, rc, &err);
	int64_t best = 0;
	if (!rc)
		rc = ns ? time_runs(&h, ns, &best, &err) : run_checked(&h, &err);
	put_number(-rc);
	if (rc)
		put(err.msg, strlen(err.msg));
	else if (ns)
		put_number(best);
	else
		answer(&h, &variables);
	fflush(stdout);
	harness_fini(&h);
	while (variables.n)
		resource_unref(&variables.v[--variables.n]->base);
	return true;
}

int main(int argc, char **argv)
{
	struct runtime *rt;
	struct mu_err err;

	mu_log_init("op_driver");
	unsigned threads = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
	int64_t ns = argc > 3 ? atoi(argv[3]) * 1000000LL : 0;
	/* Use the allocator of a task: otherwise the times include page faults of each large
	 * output. */
	if (ns && arena_start(&err))
		fprintf(stderr, "op_driver: %s\n", err.msg);
	if (cpu_kernels_select(argc > 1 ? argv[1] : NULL, &err) ||
	    harness_runtime(threads, &rt, &err)) {
		fprintf(stderr, "op_driver: %s\n", err.msg);
		return 1;
	}
	while (serve(rt, ns)) {}
	runtime_free(rt);
	return 0;
}
