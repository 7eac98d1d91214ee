/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors and messages that no protobuf library writes.  tests/compat compares valid ones with
 * TensorFlow. */
#include "tests/test.h"

#include "task/kernels/io/proto_schema.h"

enum { STRING = 9, GROUP = 10, MESSAGE = 11, SINT32 = 17, OPTIONAL = 1, REPEATED = 3 };

static void put_field(struct mu_buf *b, const char *name, int64_t number, int64_t type,
		      int64_t label, const char *type_name)
{
	size_t at = mu_pb_begin(b, 2);

	mu_pb_put_str(b, 1, name);
	mu_pb_put_int(b, 3, number);
	mu_pb_put_int(b, 4, label);
	mu_pb_put_int(b, 5, type);
	if (type_name)
		mu_pb_put_str(b, 6, type_name);
	mu_pb_end(b, at);
}

/* bytes:// and a FileDescriptorSet of one file. Its message M has a string, numbers, groups and a
 * field of type M. */
static void put_source(struct mu_buf *b)
{
	mu_buf_puts(b, "bytes://");
	size_t file = mu_pb_begin(b, 1);
	mu_pb_put_str(b, 2, "p");
	size_t m = mu_pb_begin(b, 4);
	mu_pb_put_str(b, 1, "M");
	put_field(b, "s", 1, STRING, OPTIONAL, NULL);
	put_field(b, "n", 2, SINT32, REPEATED, NULL);
	put_field(b, "g", 3, GROUP, REPEATED, NULL);
	put_field(b, "m", 4, MESSAGE, OPTIONAL, ".p.M");
	put_field(b, "zero", 0, STRING, OPTIONAL, NULL);
	put_field(b, "large", 1LL << 40, STRING, OPTIONAL, NULL);
	put_field(b, "untyped", 5, 19, OPTIONAL, NULL);
	mu_pb_end(b, m);
	mu_pb_end(b, file);
}

static int read_schema(struct proto_schema *s, struct mu_span source, const char *field,
		       struct mu_err *err)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();
	struct mu_span names[] = {mu_span_of(field), MU_SPAN("n"), MU_SPAN("g"), MU_SPAN("m")};
	struct mu_node *n;

	assert_int_equal(mu_graph_add(g, "d", "DecodeProtoV2", &n, err), 0);
	mu_node_set_attr(g, n, "descriptor_source",
			 &(struct mu_attr){.kind = MU_ATTR_STRING, .s = source});
	mu_node_set_attr(g, n, "message_type",
			 &(struct mu_attr){.kind = MU_ATTR_STRING, .s = MU_SPAN("p.M")});
	mu_node_set_attr(
	    g, n, "field_names",
	    &(struct mu_attr){.kind = MU_ATTR_LIST + MU_ATTR_STRING, .n = 4, .ss = names});
	return proto_schema_read(s, n, err);
}

static void add_value(void *arg, unsigned k, const struct proto_value *v)
{
	uint64_t *sum = arg;

	if (v) /* NULL for a packed field */
		sum[k] += k == 1 ? v->number : v->bytes.len;
}

/* {s: "abc", n: [-1, 5, -1], m: {s: ""}}, a group with an unknown field, and an unknown field. */
static const char message[] = "\x0a\x03"
			      "abc\x10\x01\x12\x02\x0a\x01\x1b\x4a\x01x\x1c\x22\x02\x0a\0\x50\x07";

static void message__that_is_valid__yields_every_value(void **state)
{
	MU_AUTO_BUF source = {0};
	uint64_t sum[4] = {0};
	struct proto_schema s;
	struct mu_err err;

	put_source(&source);
	assert_ok(read_schema(&s, mu_buf_span(&source), "s", &err), &err);
	assert_ok(proto_read(&s, MU_SPAN(message), add_value, sum, &err), &err);
	assert_true(sum[0] == 3 && (int64_t)sum[1] == 3 && sum[2] == 5 && sum[3] == 2);
	assert_true(proto_is_valid(&s, MU_SPAN(message)));
	proto_schema_fini(&s);
}

/* Copies the data, so that the sanitizer detects reads past the end. */
static int read_copy(const struct proto_schema *s, const char *data, size_t n, struct mu_err *err)
{
	MU_AUTO_FREE char *copy = malloc(n + !n);
	uint64_t sum[4] = {0};

	memcpy(copy, data, n);
	int rc = proto_read(s, (struct mu_span){copy, n}, add_value, sum, err);
	assert_true(rc == 0 || err->code == MU_DATA_LOSS);
	if (rc)
		assert_false(proto_is_valid(s, (struct mu_span){copy, n}));
	return rc;
}

static void message__cut_or_changed__is_read_or_data_loss(void **state)
{
	MU_AUTO_BUF source = {0};
	char changed[sizeof message];
	struct proto_schema s;
	struct mu_err err;
	int failed = 0;

	put_source(&source);
	assert_ok(read_schema(&s, mu_buf_span(&source), "s", &err), &err);
	for (size_t n = 0; n < sizeof message; n++)
		failed += read_copy(&s, message, n, &err) != 0;
	assert_int_equal(failed, 23 - 7); /* all except those that end after a field */
	for (size_t at = 0; at < sizeof message - 1; at++)
		for (int c = 0; c < 256; c++) {
			memcpy(changed, message, sizeof message);
			changed[at] = (char)c;
			read_copy(&s, changed, sizeof message - 1, &err);
		}
	proto_schema_fini(&s);
}

static void message__nested_too_deep__is_data_loss(void **state)
{
	enum { DEEP = 100000 };
	MU_AUTO_BUF source = {0};
	MU_AUTO_BUF inner = {0};
	MU_AUTO_BUF b = {0};
	struct proto_schema s;
	struct mu_err err;

	put_source(&source);
	assert_ok(read_schema(&s, mu_buf_span(&source), "s", &err), &err);
	for (int i = 0; i < DEEP; i++)
		mu_buf_putc(&b, '\x1b');
	for (int i = 0; i < DEEP; i++)
		mu_buf_putc(&b, '\x1c');
	assert_int_equal(read_copy(&s, b.data, b.len, &err), -MU_DATA_LOSS);
	mu_buf_clear(&b);
	for (int i = 0; i < 100; i++) {
		mu_buf_clear(&inner);
		mu_buf_put(&inner, b.data, b.len);
		mu_buf_clear(&b);
		mu_pb_put_bytes(&b, 4, mu_buf_span(&inner));
	}
	assert_ok(read_copy(&s, b.data, b.len, &err), &err);
	assert_false(proto_is_valid(&s, mu_buf_span(&b)));
	proto_schema_fini(&s);
}

static void descriptor__cut_or_changed__is_read_or_invalid(void **state)
{
	MU_AUTO_BUF source = {0};
	struct proto_schema s;
	struct mu_err err;

	put_source(&source);
	for (size_t n = 0; n <= source.len; n++) {
		MU_AUTO_FREE char *copy = mu_xstrndup(source.data, n); /* attributes end in NUL */
		if (read_schema(&s, (struct mu_span){copy, n}, "s", &err))
			assert_int_equal(err.code, MU_INVALID_ARGUMENT);
		proto_schema_fini(&s);
	}
	for (size_t at = 8; at < source.len; at++) {
		uint64_t sum[4] = {0};
		char before = source.data[at];
		source.data[at] ^= '\x41';
		if (!read_schema(&s, mu_buf_span(&source), "s", &err))
			proto_read(&s, MU_SPAN(message), add_value, sum, &err);
		proto_schema_fini(&s);
		source.data[at] = before;
	}
}

static void field__without_number_or_type__is_invalid(void **state)
{
	static const char *const names[] = {"zero", "large", "untyped", "none", ""};
	MU_AUTO_BUF source = {0};
	struct proto_schema s;
	struct mu_err err;

	put_source(&source);
	for (unsigned i = 0; i < MU_COUNT(names); i++) {
		assert_int_equal(read_schema(&s, mu_buf_span(&source), names[i], &err),
				 -MU_INVALID_ARGUMENT);
		proto_schema_fini(&s);
	}
	assert_int_equal(read_schema(&s, MU_SPAN("-"), "s", &err),
			 -MU_INVALID_ARGUMENT); /* must not read standard input */
	proto_schema_fini(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(message__that_is_valid__yields_every_value),
	    cmocka_unit_test(message__cut_or_changed__is_read_or_data_loss),
	    cmocka_unit_test(message__nested_too_deep__is_data_loss),
	    cmocka_unit_test(descriptor__cut_or_changed__is_read_or_invalid),
	    cmocka_unit_test(field__without_number_or_type__is_invalid),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
