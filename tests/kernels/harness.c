/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kernels/harness.h"
#include "task/kernels/engine/kernel_table.h"

static void no_recv(void *ctx, struct rendezvous *r, const char *key, rendezvous_done done,
		    void *arg)
{
	struct mu_err err;

	mu_fail(&err, MU_UNIMPLEMENTED, "there is no other task here");
	done(arg, &err, NULL, false);
}

int harness_runtime(unsigned threads, struct runtime **out, struct mu_err *err)
{
	static const struct rendezvous_remote remote = {.recv = no_recv};

	return runtime_new("test", 0, threads, &task_kernels, &remote, out, err);
}

int harness_prepare(struct harness *h, struct runtime *rt, struct mu_node *n, struct mu_err *err)
{
	struct mu_arena arena;
	enum mu_dtype *types;

	*h = (struct harness){.rt = rt, .node = n, .kernel = cpu_kernel_find(n->op)};
	if (!h->kernel)
		return mu_fail(err, MU_UNIMPLEMENTED, "no kernel for op %s", n->op);
	if (!h->kernel->run)
		return mu_fail(err, MU_UNIMPLEMENTED, "op %s is asynchronous", n->op);
	mu_arena_init(&arena);
	int rc = mu_op_output_types(n, &arena, &types, &h->n_out, err);
	mu_arena_fini(&arena);
	if (h->n_out > HARNESS_MAX) {
		h->n_out = 0;
		rc = mu_fail(err, MU_UNIMPLEMENTED, "more outputs than the harness can hold");
	}
	if (!rc && h->kernel->prepare)
		rc = h->kernel->prepare(n, rt, &h->state, err);
	return rc;
}

void harness_input(struct harness *h, struct mu_tensor t)
{
	h->in[h->n_in++].tensor = t;
}

void harness_input_ref(struct harness *h, struct variable *v)
{
	resource_ref(&v->base);
	h->in[h->n_in++].ref = v;
}

static void release_values(struct value *v, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		mu_tensor_unref(&v[i].tensor);
		if (v[i].ref)
			resource_unref(&v[i].ref->base);
		v[i] = (struct value){0};
	}
}

int harness_run(struct harness *h, struct mu_err *err)
{
	struct kernel_call c = {.node = h->node,
				.state = h->state,
				.n_in = h->n_in,
				.n_out = h->n_out,
				.in = h->in,
				.out = h->out,
				.runtime = h->rt};

	release_values(h->out, h->n_out);
	int rc = kernel_check_shapes(h->node, h->in, h->n_in, err);
	return rc ? rc : cpu_kernel_run(h->kernel, h->node)(&c, err);
}

void harness_clear_inputs(struct harness *h)
{
	release_values(h->in, h->n_in);
	h->n_in = 0;
}

void harness_fini(struct harness *h)
{
	harness_clear_inputs(h);
	release_values(h->out, h->n_out);
	if (h->kernel && h->state) {
		if (h->kernel->release)
			h->kernel->release(h->state);
		else
			free(h->state);
	}
}
