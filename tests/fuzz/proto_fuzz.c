/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the first half of the input as descriptors, and the second half as a message of that
 * type. */
#include <stdint.h>
#include <stdlib.h>

#include "task/kernels/io/proto_schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_value(void *arg, unsigned k, const struct proto_value *v)
{
	volatile char *last = arg;

	if (v && v->bytes.len)
		*last = v->bytes.data[v->bytes.len - 1];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mu_span names[] = {MU_SPAN("a"), MU_SPAN("b"), MU_SPAN("c")};
	struct mu_graph *g = mu_graph_new();
	struct proto_schema s;
	struct mu_node *n;
	struct mu_err err;
	MU_AUTO_BUF source = {0};
	char last = 0;

	mu_buf_puts(&source, "bytes://");
	mu_buf_put(&source, data, size / 2);
	if (mu_graph_add(g, "d", "DecodeProtoV2", &n, &err))
		abort();
	mu_node_set_attr(g, n, "descriptor_source",
			 &(struct mu_attr){.kind = MU_ATTR_STRING, .s = mu_buf_span(&source)});
	mu_node_set_attr(g, n, "message_type",
			 &(struct mu_attr){.kind = MU_ATTR_STRING, .s = MU_SPAN("M")});
	mu_node_set_attr(
	    g, n, "field_names",
	    &(struct mu_attr){.kind = MU_ATTR_LIST + MU_ATTR_STRING, .n = 3, .ss = names});
	if (proto_schema_read(&s, n, &err) == 0) {
		struct mu_span message = {(const char *)data + size / 2, size - size / 2};
		proto_read(&s, message, read_value, &last, &err);
		proto_is_valid(&s, message);
	}
	proto_schema_fini(&s);
	mu_graph_free(g);
	return 0;
}
