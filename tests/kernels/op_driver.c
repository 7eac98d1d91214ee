/* SPDX-License-Identifier: Apache-2.0 */
/* Runs kernels for tests/compat/ops_diff.py: requests on standard input, answers on standard
 * output, until the end of input.  Every part is a 32-bit length and that many bytes.
 *
 * Request: GraphDef, name of the node to run, "n" inputs as text, then n TensorProtos.
 * Answer: code as text; then for code 0 the number of outputs and a TensorProto for each, else the
 * message. */
#include <stdio.h>

#include "lib/base/log.h"
#include "lib/tensor/tensor_proto.h"
#include "task/kernels/loops.h"
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

static int read_inputs(struct harness *h, unsigned n, int prepared, struct mu_err *err)
{
	MU_AUTO_BUF b = {0};
	int rc = prepared;

	for (unsigned i = 0; i < n; i++) {
		struct mu_tensor t;
		if (!get(&b))
			return mu_fail(err, MU_INVALID_ARGUMENT, "an input is missing");
		if (!rc && !(rc = mu_tensor_parse(&t, mu_buf_span(&b), err)))
			harness_input(h, t);
	}
	return rc;
}

static bool serve(struct runtime *rt)
{
	MU_AUTO_BUF graph = {0}, name = {0}, count = {0}, reply = {0};
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
		rc = harness_prepare(&h, rt, n, &err);
	rc = read_inputs(&h, (unsigned)atoi(count.data), rc, &err);
	if (!rc)
		rc = harness_run(&h, &err);
	put_number(-rc);
	if (rc) {
		put(err.msg, strlen(err.msg));
	} else {
		put_number(h.n_out);
		for (unsigned i = 0; i < h.n_out; i++) {
			mu_buf_clear(&reply);
			mu_tensor_write(&reply, &h.out[i].tensor);
			put(reply.data, reply.len);
		}
	}
	fflush(stdout);
	harness_fini(&h);
	return true;
}

int main(int argc, char **argv)
{
	struct runtime *rt;
	struct mu_err err;

	mu_log_init("op_driver");
	if (cpu_kernels_select(argc > 1 ? argv[1] : NULL, &err) || harness_runtime(&rt, &err)) {
		fprintf(stderr, "op_driver: %s\n", err.msg);
		return 1;
	}
	while (serve(rt)) {}
	runtime_free(rt);
	return 0;
}
