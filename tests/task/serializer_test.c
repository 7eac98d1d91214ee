/* SPDX-License-Identifier: Apache-2.0 */
/* Dataset iterators saved and restored. tests/compat compares iterators with TensorFlow's. */
#include "tests/task/build.h"
#include "tests/task/pipeline.h"

static struct caller caller;

static struct dataset_iterator *open_iterator(const struct dataset *d)
{
	struct dataset_iterator *it;
	struct mu_err err;

	assert_ok(dataset_iterator_open(d, &caller, &it, &err), &err);
	return it;
}

/* Returns both numbers of the next element as one number, or -1 at the end. */
static int64_t next_number(struct dataset_iterator *it)
{
	struct mu_tensor t[PIPELINE_COMPONENTS];
	struct mu_err err;
	int rc = dataset_iterator_next(it, t, &err);

	assert_true(rc >= 0);
	if (!rc)
		return -1;
	int64_t v = mu_tensor_int(&t[0], 0) * 1000 + mu_tensor_int(&t[1], 0);
	element_drop(t, PIPELINE_COMPONENTS);
	return v;
}

static void save_after(struct dataset_iterator *it, int n, struct mu_buf *b)
{
	struct serializer ser = {.to = b};
	struct mu_err err;

	while (n--)
		next_number(it);
	assert_ok(serialize_dataset_iterator(&ser, it, &err), &err);
}

static int restore(struct dataset_iterator *it, struct mu_span bytes, struct mu_err *err)
{
	struct serializer ser = {.from = mu_pb_of(bytes)};

	return serialize_dataset_iterator(&ser, it, err);
}

static void iterator__restored__continues_at_the_saved_position(void **state)
{
	for (int stop = 0; stop <= 31; stop++) {
		struct mu_tensor p = pipeline_new(), q = pipeline_new();
		struct dataset_iterator *it = open_iterator(dataset_in(&p)), *copy;
		MU_AUTO_BUF b = {0};
		struct mu_err err;

		save_after(it, stop, &b);
		dataset_iterator_close(open_iterator(dataset_in(&q))); /* consumes seeds of q */
		copy = open_iterator(dataset_in(&q));
		assert_ok(restore(copy, mu_buf_span(&b), &err), &err);
		for (int64_t v = 0; v != -1;) {
			v = next_number(it);
			assert_int_equal(next_number(copy), v);
		}
		dataset_iterator_close(it);
		dataset_iterator_close(copy);
		mu_tensor_unref(&p);
		mu_tensor_unref(&q);
	}
}

static void saved_state__truncated__is_invalid(void **state)
{
	struct mu_tensor p = pipeline_new();
	struct dataset_iterator *it = open_iterator(dataset_in(&p));
	MU_AUTO_BUF b = {0};

	save_after(it, 5, &b);
	assert_true(b.len > 100);
	for (size_t n = 0; n < b.len; n++) {
		MU_AUTO_FREE char *part = mu_xstrndup(b.data, n); /* exact size, for sanitizers */
		struct dataset_iterator *copy = open_iterator(dataset_in(&p));
		struct mu_err err;
		assert_int_equal(restore(copy, (struct mu_span){part, n}, &err),
				 -MU_INVALID_ARGUMENT);
		dataset_iterator_close(copy);
	}
	dataset_iterator_close(it);
	mu_tensor_unref(&p);
}

static void saved_state__of_another_pipeline__is_invalid_and_names_both_datasets(void **state)
{
	struct mu_tensor p = pipeline_new();
	struct mu_tensor q = PIPELINE_NODE("RangeDataset", 1, pipeline_number(0),
					   pipeline_number(9), pipeline_number(1));
	struct dataset_iterator *it = open_iterator(dataset_in(&p)),
				*other = open_iterator(dataset_in(&q));
	MU_AUTO_BUF b = {0};
	struct mu_err err;

	save_after(it, 1, &b);
	assert_int_equal(restore(other, mu_buf_span(&b), &err), -MU_INVALID_ARGUMENT);
	assert_string_equal(err.msg, "the iterator's saved state is of a TakeDataset where this "
				     "pipeline has a RangeDataset");
	dataset_iterator_close(it);
	dataset_iterator_close(other);
	mu_tensor_unref(&p);
	mu_tensor_unref(&q);
}

static void saved_state__without_the_input_iterator__is_invalid(void **state)
{
	static const char skipped[] = "\x0bSkipDataset\0\0\0";
	struct mu_tensor p = PIPELINE_NODE("SkipDataset", 2, pipeline_new(), pipeline_number(2));
	struct dataset_iterator *it = open_iterator(dataset_in(&p));
	struct mu_err err;

	assert_int_equal(restore(it, (struct mu_span){skipped, sizeof skipped - 1}, &err),
			 -MU_INVALID_ARGUMENT);
	dataset_iterator_close(it);
	mu_tensor_unref(&p);
}

/* An element that contains a list of elements, and one that contains a dataset. */
static void elements__with_objects__are_restored_or_unimplemented(void **state)
{
	struct mu_tensor number = pipeline_number(7), boxed, read, p = pipeline_new();
	MU_AUTO_BUF b = {0};
	struct serializer out = {.to = &b};
	struct mu_err err;

	assert_ok(variant_tensor(&boxed, variant_box(&number), &err), &err);
	assert_ok(serialize_element(&out, &boxed, 1, &err), &err);
	struct serializer in = {.from = mu_pb_of(mu_buf_span(&b))};
	assert_ok(serialize_element(&in, &read, 1, &err), &err);
	assert_int_equal(mu_tensor_int(variant_unbox(*MU_DATA(struct mu_object *, &read)), 0), 7);
	assert_int_equal(serialize_element(&out, &p, 1, &err), -MU_UNIMPLEMENTED);
	assert_string_equal(err.msg, "the iterator holds elements with a dataset in them, which "
				     "cannot be saved");
	mu_tensor_unref(&number);
	mu_tensor_unref(&boxed);
	mu_tensor_unref(&read);
	mu_tensor_unref(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(iterator__restored__continues_at_the_saved_position),
	    cmocka_unit_test(saved_state__truncated__is_invalid),
	    cmocka_unit_test(saved_state__of_another_pipeline__is_invalid_and_names_both_datasets),
	    cmocka_unit_test(saved_state__without_the_input_iterator__is_invalid),
	    cmocka_unit_test(elements__with_objects__are_restored_or_unimplemented),
	};
	caller_init(&caller);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
