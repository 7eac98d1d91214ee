// SPDX-License-Identifier: Apache-2.0
/* Data sets and batches. */
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "muster/data.h"

static struct mu_err err;

/* A file with this text; the caller unlinks and frees the name. */
static char *file_with(const char *text)
{
	char *path = strdup("/tmp/muster-data-XXXXXX");
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	return path;
}

static void csv__is_split_and_scaled(void **state)
{
	char *path = file_with("0,8,1\n4,2,0\n16,0,2\n8,8,1\n");
	struct mu_dataset train, test;

	assert_ok(mu_dataset_csv(&train, &test, path, 0.25, 0, 0, &err), &err);
	assert_int_equal(train.rows, 3);
	assert_int_equal(test.rows, 1);
	assert_int_equal(train.features, 2);
	assert_int_equal(train.classes, 3);
	assert_int_equal(test.classes, 3);
	assert_float_equal(MU_DATA(float, &train.x)[1], 0.5f, 1e-6f);
	assert_int_equal(MU_DATA(int32_t, &train.y)[2], 2);
	mu_dataset_fini(&train);
	mu_dataset_fini(&test);
	unlink(path);
	free(path);
}

static void csv__split_by_a_seed__holds_out_the_same_rows_each_time(void **state)
{
	char *path = file_with("0,0\n1,1\n2,2\n3,3\n4,4\n5,5\n6,6\n7,7\n8,8\n9,9\n");
	struct mu_dataset train, test, train2, test2;
	int seen[10] = {0}, moved = 0;

	assert_ok(mu_dataset_csv(&train, &test, path, 0.3, 7, 1, &err), &err);
	assert_ok(mu_dataset_csv(&train2, &test2, path, 0.3, 7, 1, &err), &err);
	for (int i = 0; i < 7; i++)
		seen[MU_DATA(int32_t, &train.y)[i]]++;
	for (int i = 0; i < 3; i++) {
		int32_t label = MU_DATA(int32_t, &test.y)[i];

		seen[label]++;
		moved += label != 7 + i;
		assert_int_equal(label, MU_DATA(int32_t, &test2.y)[i]);
		assert_int_equal(label, (int)MU_DATA(float, &test.x)[i]);
	}
	for (int i = 0; i < 10; i++)
		assert_int_equal(seen[i], 1);
	assert_true(moved > 0);
	mu_dataset_fini(&train);
	mu_dataset_fini(&test);
	mu_dataset_fini(&train2);
	mu_dataset_fini(&test2);
	unlink(path);
	free(path);
}

static void csv__with_a_label_that_is_no_class__names_file_and_row(void **state)
{
	char *path = file_with("0,8,1\n4,2,0.5\n");
	struct mu_dataset train, test;

	assert_fails(mu_dataset_csv(&train, &test, path, 0, 0, 1, &err), &err, MU_INVALID_ARGUMENT,
		     "row 2: label 0.5");
	assert_fails(mu_dataset_csv(&train, &test, path, 1.5, 0, 1, &err), &err,
		     MU_INVALID_ARGUMENT, "testFraction");
	unlink(path);
	free(path);
}

static void batches__visit_every_row_once_a_round(void **state)
{
	char *path = file_with("0,0\n1,1\n2,2\n3,3\n4,4\n5,5\n");
	struct mu_dataset train, test;
	const struct mu_tensor *x, *y;
	int seen[6] = {0};

	assert_ok(mu_dataset_csv(&train, &test, path, 0, 0, 1, &err), &err);
	struct mu_batches *b = mu_batches_new(&train, 2, 7);
	for (int i = 0; i < 6; i++) {
		assert_ok(mu_batches_next(b, &x, &y, &err), &err);
		assert_int_equal(x->shape.dim[0], 2);
		for (int j = 0; j < 2; j++) {
			seen[MU_DATA(int32_t, y)[j]]++;
			assert_float_equal(MU_DATA(float, x)[j], (float)MU_DATA(int32_t, y)[j], 0);
		}
	}
	for (int i = 0; i < 6; i++)
		assert_int_equal(seen[i], 2);
	mu_batches_free(b);
	mu_dataset_fini(&train);
	mu_dataset_fini(&test);
	unlink(path);
	free(path);
}

static void idx__of_other_length_than_its_labels__is_refused(void **state)
{
	struct mu_dataset d;

	assert_fails(mu_dataset_idx(&d, "examples/data/mnist/test-images-idx3-ubyte.gz",
				    "examples/data/mnist/train-labels-idx1-ubyte.gz", 0, &err),
		     &err, MU_INVALID_ARGUMENT, "expected one label for each image");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(csv__is_split_and_scaled),
	    cmocka_unit_test(csv__split_by_a_seed__holds_out_the_same_rows_each_time),
	    cmocka_unit_test(csv__with_a_label_that_is_no_class__names_file_and_row),
	    cmocka_unit_test(batches__visit_every_row_once_a_round),
	    cmocka_unit_test(idx__of_other_length_than_its_labels__is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
