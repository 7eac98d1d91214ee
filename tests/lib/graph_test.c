/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "lib/base/pb.h"
#include "lib/graph/graph.h"
#include "tests/test.h"

static struct mu_err err;

/* GraphDef of nodes given as "name op input input …". */
static void put_node(struct mu_buf *b, const char *text)
{
	char copy[256], *save = NULL;
	size_t at = mu_pb_begin(b, 1);

	strcpy(copy, text);
	mu_pb_put_str(b, 1, strtok_r(copy, " ", &save));
	mu_pb_put_str(b, 2, strtok_r(NULL, " ", &save));
	for (char *w; (w = strtok_r(NULL, " ", &save));)
		mu_pb_put_str(b, 3, w);
	mu_pb_end(b, at);
}

static int parse(struct mu_graph *g, const char *const *nodes)
{
	MU_AUTO_BUF b = {0};

	for (; *nodes; nodes++)
		put_node(&b, *nodes);
	return mu_graph_parse(g, mu_buf_span(&b), &err);
}
#define PARSE(g, ...) parse(g, (const char *const[]){__VA_ARGS__, NULL})

static void parse__of_nodes_in_any_order__links_their_inputs(void **state)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();

	assert_ok(PARSE(g, "a Merge b:1 c ^d", "b X", "c Y a", "d Z"), &err);
	struct mu_node *a = mu_graph_find(g, "a");
	assert_int_equal(a->n_inputs, 2);
	assert_int_equal(a->n_controls, 1);
	assert_string_equal(a->inputs[0].node->name, "b");
	assert_int_equal(a->inputs[0].port, 1);
	assert_int_equal(a->inputs[2].port, MU_CONTROL);
	assert_ptr_equal(mu_graph_find(g, "c")->inputs[0].node, a);
	assert_ok(PARSE(g, "e Later a"), &err); /* an ExtendSession */
	assert_ptr_equal(mu_graph_find(g, "e")->inputs[0].node, a);
}

static void parse__that_fails__leaves_the_graph_unchanged(void **state)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();

	assert_ok(PARSE(g, "a X"), &err);
	assert_fails(PARSE(g, "b Y a", "i Z missing"), &err, MU_INVALID_ARGUMENT,
		     "Node 'i': Unknown input node 'missing'");
	assert_fails(PARSE(g, "b Y", "a X"), &err, MU_INVALID_ARGUMENT,
		     "includes node 'a', which was created by a previous call to Create or Extend");
	assert_fails(PARSE(g, "b Y", "b Y"), &err, MU_INVALID_ARGUMENT, "Node 'b' is not unique");
	assert_fails(PARSE(g, "b Y ^a a"), &err, MU_INVALID_ARGUMENT,
		     "All control inputs must follow");
	assert_fails(PARSE(g, "b Y a:x"), &err, MU_INVALID_ARGUMENT, "Illegal op input name 'a:x'");
	assert_fails(PARSE(g, "b Y a:99999999999"), &err, MU_INVALID_ARGUMENT,
		     "Illegal op input name");
	assert_fails(PARSE(g, "b$ Y"), &err, MU_INVALID_ARGUMENT, "Illegal op name 'b$'");
	assert_int_equal(g->n_nodes, 1);
	assert_null(mu_graph_find(g, "b"));
	assert_ok(PARSE(g, "b Y a"), &err);
}

/* One node with an attribute of every kind. */
static struct mu_graph *every_kind(void)
{
	struct mu_graph *g = mu_graph_new();
	struct mu_node *n;
	struct mu_pshape shapes[2] = {{.rank = 2, .dim = {3, -1}}, {.rank = -1}};
	struct mu_span strings[2] = {MU_SPAN("x"), MU_SPAN("")};
	int64_t ints[3] = {0, -1, 1LL << 40};
	float reals[2] = {0, -2.5f}, one = 1;
	bool bools[2] = {false, true};
	enum mu_dtype types[2] = {MU_FLOAT, MU_STRING};
	MU_AUTO_TENSOR t = {0};
	struct mu_node_attr inner = {"k", {.kind = MU_ATTR_INT, .i = 7}};
	struct mu_func f = {"body", 1, &inner};

	assert_ok(mu_tensor_scalar(&t, MU_FLOAT, &one, &err), &err);
	assert_ok(mu_graph_add(g, "n", "Any", &n, &err), &err);
#define LIST(k) (enum mu_attr_kind)(MU_ATTR_LIST + (k))
	const struct mu_node_attr all[] = {
	    {"s", {.kind = MU_ATTR_STRING, .s = MU_SPAN("text")}},
	    {"i", {.kind = MU_ATTR_INT, .i = -5}},
	    {"zero", {.kind = MU_ATTR_INT, .i = 0}},
	    {"f", {.kind = MU_ATTR_FLOAT, .f = 0.5f}},
	    {"b", {.kind = MU_ATTR_BOOL, .b = false}},
	    {"type", {.kind = MU_ATTR_TYPE, .type = MU_INT64}},
	    {"ref", {.kind = MU_ATTR_TYPE, .type = (enum mu_dtype)(MU_FLOAT + MU_DT_REF)}},
	    {"shape", {.kind = MU_ATTR_SHAPE, .shape = &shapes[0]}},
	    {"tensor", {.kind = MU_ATTR_TENSOR, .tensor = &t}},
	    {"func", {.kind = MU_ATTR_FUNC, .func = &f}},
	    {"ph", {.kind = MU_ATTR_PLACEHOLDER, .s = MU_SPAN("T")}},
	    {"none", {.kind = MU_ATTR_LIST}},
	    {"ls", {.kind = LIST(MU_ATTR_STRING), .n = 2, .ss = strings}},
	    {"li", {.kind = LIST(MU_ATTR_INT), .n = 3, .is = ints}},
	    {"lf", {.kind = LIST(MU_ATTR_FLOAT), .n = 2, .fs = reals}},
	    {"lb", {.kind = LIST(MU_ATTR_BOOL), .n = 2, .bs = bools}},
	    {"lt", {.kind = LIST(MU_ATTR_TYPE), .n = 2, .types = types}},
	    {"lsh", {.kind = LIST(MU_ATTR_SHAPE), .n = 2, .shapes = shapes}},
	    {"lte", {.kind = LIST(MU_ATTR_TENSOR), .n = 1, .tensors = &t}},
	    {"lfu", {.kind = LIST(MU_ATTR_FUNC), .n = 1, .funcs = &f}},
	};
	for (unsigned i = 0; i < MU_COUNT(all); i++)
		mu_node_set_attr(g, n, all[i].name, &all[i].value);
	return g;
}

static void attribute__of_every_kind__reads_back(void **state)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = every_kind();
	MU_AUTO(mu_graph_free) struct mu_graph *h = mu_graph_new();
	MU_AUTO_BUF first = {0};
	MU_AUTO_BUF second = {0};

	mu_graph_write(g, &first);
	assert_ok(mu_graph_parse(h, mu_buf_span(&first), &err), &err);
	struct mu_node *n = mu_graph_find(h, "n");
	assert_int_equal(n->n_attrs, 20);
	assert_int_equal(mu_node_attr(n, "li")->is[2], 1LL << 40);
	assert_int_equal(mu_node_attr(n, "lsh")->shapes[1].rank, -1);
	assert_string_equal(mu_node_attr(n, "lfu")->funcs[0].attrs[0].name, "k");
	mu_graph_write(h, &second);
	assert_true(mu_span_eq(mu_buf_span(&first), mu_buf_span(&second)));
}

static void copied_node__after_its_graph_is_freed__has_its_attributes(void **state)
{
	struct mu_graph *g = every_kind();
	MU_AUTO(mu_graph_free) struct mu_graph *h = mu_graph_new();
	MU_AUTO_BUF a = {0};
	MU_AUTO_BUF b = {0};

	mu_graph_copy_node(h, mu_graph_find(g, "n"));
	mu_graph_write(g, &a);
	mu_graph_free(g);
	mu_graph_write(h, &b);
	assert_true(mu_span_eq(mu_buf_span(&a), mu_buf_span(&b)));
}

static void graph__truncated_or_corrupted__never_crashes_the_parser(void **state)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = every_kind();
	MU_AUTO_BUF b = {0};

	mu_graph_write(g, &b);
	for (size_t i = 0; i < b.len; i++) {
		struct mu_graph *h = mu_graph_new();
		char *cut = mu_xmalloc(i + 1); /* exact size, for ASan */
		memcpy(cut, b.data, i);
		mu_graph_parse(h, (struct mu_span){cut, i}, NULL);
		free(cut);
		mu_graph_free(h);
	}
	for (size_t i = 0; i < b.len * 8; i++) {
		struct mu_graph *h = mu_graph_new();
		b.data[i / 8] ^= (char)(1 << i % 8);
		mu_graph_parse(h, mu_buf_span(&b), NULL);
		b.data[i / 8] ^= (char)(1 << i % 8);
		mu_graph_free(h);
	}
}

static void attributes__nested_too_deep__are_invalid(void **state)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();
	MU_AUTO_BUF value = {0};

	for (int i = 0; i < 200; i++) { /* AttrValue{func{attr{"k", <the one before>}}} */
		MU_AUTO_BUF outer = {0};
		size_t func = mu_pb_begin(&outer, 10), entry = mu_pb_begin(&outer, 2);
		mu_pb_put_str(&outer, 1, "k");
		mu_pb_put_bytes(&outer, 2, mu_buf_span(&value));
		mu_pb_end(&outer, entry);
		mu_pb_end(&outer, func);
		mu_buf_clear(&value);
		mu_buf_put(&value, outer.data, outer.len);
	}
	MU_AUTO_BUF b = {0};
	size_t node = mu_pb_begin(&b, 1);
	mu_pb_put_str(&b, 1, "n");
	mu_pb_put_str(&b, 2, "X");
	size_t entry = mu_pb_begin(&b, 5);
	mu_pb_put_str(&b, 1, "f");
	mu_pb_put_bytes(&b, 2, mu_buf_span(&value));
	mu_pb_end(&b, entry);
	mu_pb_end(&b, node);
	assert_fails(mu_graph_parse(g, mu_buf_span(&b), &err), &err, MU_INVALID_ARGUMENT,
		     "Node 'n': attribute 'f': attributes nest deeper than 64");
}

static void constants__larger_than_the_limit_when_expanded__are_rejected(void **state)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();
	MU_AUTO_BUF b = {0};
	size_t original_limit = mu_tensor_limit;

	mu_tensor_limit = 1 << 20;
	for (int i = 0; i < 3; i++) { /* half the limit each, in 20 bytes */
		size_t node = mu_pb_begin(&b, 1);
		mu_pb_put_str(&b, 1, i == 0 ? "a" : i == 1 ? "b" : "c");
		mu_pb_put_str(&b, 2, "Const");
		size_t entry = mu_pb_begin(&b, 5);
		mu_pb_put_str(&b, 1, "value");
		size_t value = mu_pb_begin(&b, 2), tensor = mu_pb_begin(&b, 8);
		mu_pb_put_int(&b, 1, MU_UINT8);
		size_t shape = mu_pb_begin(&b, 2), dim = mu_pb_begin(&b, 2);
		mu_pb_put_int(&b, 1, 1 << 19);
		mu_pb_end(&b, dim);
		mu_pb_end(&b, shape);
		mu_pb_end(&b, tensor);
		mu_pb_end(&b, value);
		mu_pb_end(&b, entry);
		mu_pb_end(&b, node);
	}
	int rc = mu_graph_parse(g, mu_buf_span(&b), &err);
	mu_tensor_limit = original_limit;
	assert_int_equal(rc, -MU_RESOURCE_EXHAUSTED);
	assert_int_equal(g->n_nodes, 0);
}

static void attribute__not_set__has_the_default_of_the_op(void **state)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();
	struct mu_node *n;
	bool b = true;
	int64_t i;

	assert_ok(mu_graph_add(g, "m", "MatMul", &n, &err), &err);
	assert_ok(mu_node_attr_bool(n, "transpose_a", &b, &err), &err);
	assert_false(b);
	assert_fails(mu_node_attr_int(n, "transpose_a", &i, &err), &err, MU_INVALID_ARGUMENT,
		     "attribute 'transpose_a' of MatMul is not of kind int");
	assert_fails(mu_node_attr_int(n, "no_such", &i, &err), &err, MU_INVALID_ARGUMENT,
		     "MatMul has no attribute 'no_such'");
}

/* The message has two equal library fields; the second extends the first. */
static void gradient__defined_twice__is_written_once(void **state)
{
	static const char twice[] = "\x12\x08\x12\x06\x0a\x01"
				    "f\x12\x01g\x12\x08\x12\x06\x0a\x01"
				    "f\x12\x01g";
	MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();
	MU_AUTO_BUF out = {0};

	assert_ok(mu_graph_parse(g, MU_SPAN(twice), &err), &err);
	mu_graph_write(g, &out);
	assert_true(out.len >= 10);
	assert_memory_equal(out.data, twice, 10);
	assert_true(out.len < 20);
}

/* With this many names, the random iteration order of a map would differ between processes. */
static void library__parsed_in_any_order__is_written_in_one(void **state)
{
	struct mu_buf written[2] = {{0}, {0}};

	for (int way = 0; way < 2; way++) {
		MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();
		MU_AUTO_BUF in = {0};
		size_t library = mu_pb_begin(&in, 2);
		for (int i = 0; i < 40; i++) {
			size_t gradient = mu_pb_begin(&in, 2);
			char name[] = {'f', (char)('0' + (way ? 39 - i : i)), 0};
			mu_pb_put_str(&in, 1, name);
			mu_pb_put_str(&in, 2, "g");
			mu_pb_end(&in, gradient);
		}
		mu_pb_end(&in, library);
		assert_ok(mu_graph_parse(g, mu_buf_span(&in), &err), &err);
		mu_graph_write(g, &written[way]);
	}
	assert_true(written[0].len > 40 * 6);
	assert_true(mu_span_eq(mu_buf_span(&written[0]), mu_buf_span(&written[1])));
	mu_buf_fini(&written[0]);
	mu_buf_fini(&written[1]);
}

static void truncated_gradient__is_invalid(void **state)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();

	assert_fails(mu_graph_parse(g, MU_SPAN("\x12\x05\x12\x03\x0a\x09g"), &err), &err,
		     MU_INVALID_ARGUMENT, "a gradient is malformed or truncated");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(library__parsed_in_any_order__is_written_in_one),
	    cmocka_unit_test(truncated_gradient__is_invalid),
	    cmocka_unit_test(parse__of_nodes_in_any_order__links_their_inputs),
	    cmocka_unit_test(parse__that_fails__leaves_the_graph_unchanged),
	    cmocka_unit_test(attribute__of_every_kind__reads_back),
	    cmocka_unit_test(copied_node__after_its_graph_is_freed__has_its_attributes),
	    cmocka_unit_test(graph__truncated_or_corrupted__never_crashes_the_parser),
	    cmocka_unit_test(attributes__nested_too_deep__are_invalid),
	    cmocka_unit_test(gradient__defined_twice__is_written_once),
	    cmocka_unit_test(constants__larger_than_the_limit_when_expanded__are_rejected),
	    cmocka_unit_test(attribute__not_set__has_the_default_of_the_op),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
