/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the input as a GraphDef.  A parsed graph must not change when it is written and parsed
 * again. */
#include <stdint.h>
#include <stdlib.h>

#include "lib/graph/graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();
	MU_AUTO(mu_graph_free) struct mu_graph *again = mu_graph_new();
	MU_AUTO_BUF first = {0};
	MU_AUTO_BUF second = {0};
	struct mu_err err;

	mu_tensor_limit = 1 << 20;
	if (mu_graph_parse(g, (struct mu_span){(const char *)data, size}, &err))
		return 0;
	mu_graph_write(g, &first);
	if (mu_graph_parse(again, mu_buf_span(&first), &err))
		abort();
	mu_graph_write(again, &second);
	if (!mu_span_eq(mu_buf_span(&first), mu_buf_span(&second)))
		abort();
	return 0;
}
