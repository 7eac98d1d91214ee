/* SPDX-License-Identifier: Apache-2.0 */
/* Data sets and batches. */
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/pb.h"
#include "lib/io/idx.h"
#include "lib/io/tfrecord.h"
#include "muster/data.h"

static struct mu_err err;

/* Creates a file with this text; the caller unlinks it and frees the name. */
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

	assert_ok(mu_dataset_csv(&train, &test, &(struct mu_records){.pattern = path, .scale = 0},
				 0.25, 0, &err),
		  &err);
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
	int label_counts[10] = {0}, moved = 0;

	assert_ok(mu_dataset_csv(&train, &test, &(struct mu_records){.pattern = path, .scale = 1},
				 0.3, 7, &err),
		  &err);
	assert_ok(mu_dataset_csv(&train2, &test2, &(struct mu_records){.pattern = path, .scale = 1},
				 0.3, 7, &err),
		  &err);
	for (int i = 0; i < 7; i++)
		label_counts[MU_DATA(int32_t, &train.y)[i]]++;
	for (int i = 0; i < 3; i++) {
		int32_t label = MU_DATA(int32_t, &test.y)[i];

		label_counts[label]++;
		moved += label != 7 + i;
		assert_int_equal(label, MU_DATA(int32_t, &test2.y)[i]);
		assert_int_equal(label, (int)MU_DATA(float, &test.x)[i]);
	}
	for (int i = 0; i < 10; i++)
		assert_int_equal(label_counts[i], 1);
	assert_true(moved > 0);
	mu_dataset_fini(&train);
	mu_dataset_fini(&test);
	mu_dataset_fini(&train2);
	mu_dataset_fini(&test2);
	unlink(path);
	free(path);
}

static void csv__with_an_invalid_label__names_file_and_line(void **state)
{
	char *path = file_with("a,b,label\n# note\n0,8,1\n4,2,0.5\n");
	struct mu_dataset train, test;

	assert_fails(mu_dataset_csv(&train, &test,
				    &(struct mu_records){.pattern = path, .scale = 1}, 0, 0, &err),
		     &err, MU_INVALID_ARGUMENT, ":4: label 0.5 is not a class number");
	assert_fails(mu_dataset_csv(&train, &test,
				    &(struct mu_records){.pattern = path, .scale = 1}, 1.5, 0,
				    &err),
		     &err, MU_INVALID_ARGUMENT, "testFraction");
	unlink(path);
	free(path);
}

static void batches__return_each_row_once_per_epoch(void **state)
{
	char *path = file_with("0,0\n1,1\n2,2\n3,3\n4,4\n5,5\n");
	struct mu_dataset train, test;
	const struct mu_tensor *x, *y;
	int label_counts[6] = {0};

	assert_ok(mu_dataset_csv(&train, &test, &(struct mu_records){.pattern = path, .scale = 1},
				 0, 0, &err),
		  &err);
	struct mu_batches *b;
	assert_ok(
	    mu_batches_open(&b, &train, &(struct mu_batch_options){.batch = 2, .seed = 7}, &err),
	    &err);
	for (int i = 0; i < 6; i++) {
		assert_ok(mu_batches_next(b, &x, &y, &err), &err);
		assert_int_equal(x->shape.dim[0], 2);
		for (int j = 0; j < 2; j++) {
			label_counts[MU_DATA(int32_t, y)[j]]++;
			assert_float_equal(MU_DATA(float, x)[j], (float)MU_DATA(int32_t, y)[j], 0);
		}
	}
	for (int i = 0; i < 6; i++)
		assert_int_equal(label_counts[i], 2);
	mu_batches_free(b);
	mu_dataset_fini(&train);
	mu_dataset_fini(&test);
	unlink(path);
	free(path);
}

/* Six rows whose feature is their label. */
static void six_rows(struct mu_dataset *d)
{
	assert_ok(mu_dataset_memory(d, (float[]){0, 1, 2, 3, 4, 5}, (int32_t[]){0, 1, 2, 3, 4, 5},
				    6, 1, 1, &err),
		  &err);
	assert_int_equal(d->classes, 6);
}

static void memory__with_a_negative_label__fails(void **state)
{
	struct mu_dataset d;

	assert_fails(mu_dataset_memory(&d, (float[]){1, 2}, (int32_t[]){0, -1}, 2, 1, 0, &err),
		     &err, MU_INVALID_ARGUMENT, "row 2: label -1");
}

/* Prefetching does not change the order of batches. */
static void prefetched_batches__are_the_same_and_end_after_the_epochs(void **state)
{
	struct mu_batch_options o = {.batch = 4, .seed = 3, .rounds = 2};
	struct mu_batches *now, *ahead;
	const struct mu_tensor *x, *y, *x2, *y2;
	struct mu_dataset d;

	six_rows(&d);
	assert_ok(mu_batches_open(&now, &d, &o, &err), &err);
	o.prefetch = 2;
	assert_ok(mu_batches_open(&ahead, &d, &o, &err), &err);
	for (int i = 0; i < 3; i++) {
		assert_ok(mu_batches_next(now, &x, &y, &err), &err);
		assert_ok(mu_batches_next(ahead, &x2, &y2, &err), &err);
		assert_int_equal(x->shape.dim[0], 4);
		assert_memory_equal(x->data, x2->data, 4 * sizeof(float));
		assert_memory_equal(y->data, y2->data, 4 * sizeof(int32_t));
	}
	for (int i = 0; i < 2; i++) {
		assert_fails(mu_batches_next(now, &x, &y, &err), &err, MU_OUT_OF_RANGE, "2 times");
		assert_fails(mu_batches_next(ahead, &x, &y, &err), &err, MU_OUT_OF_RANGE,
			     "2 times");
	}
	mu_batches_free(now);
	mu_batches_free(ahead);
	mu_dataset_fini(&d);
}

/* The thread must not overwrite a batch that the caller is reading. */
static void prefetched_batch__is_unchanged_until_the_next_call(void **state)
{
	struct mu_batch_options o = {.batch = 3, .in_order = true, .prefetch = 1};
	const struct mu_tensor *x, *y;
	struct mu_batches *b;
	struct mu_dataset d;

	six_rows(&d);
	assert_ok(mu_batches_open(&b, &d, &o, &err), &err);
	for (int i = 0; i < 2000; i++) {
		assert_ok(mu_batches_next(b, &x, &y, &err), &err);
		for (int j = 0; j < 3; j++)
			assert_int_equal(MU_DATA(int32_t, y)[j], 3 * (i % 2) + j);
	}
	mu_batches_free(b);
	mu_dataset_fini(&d);
}

static void parts__divide_the_rows_among_workers(void **state)
{
	struct mu_dataset d;
	int label_counts[6] = {0};

	six_rows(&d);
	for (int part = 0; part < 4; part++) {
		struct mu_batch_options o = {
		    .batch = 6, .rounds = 1, .seed = 1, .part = part, .parts = 4};
		const struct mu_tensor *x, *y;
		struct mu_batches *b;

		assert_ok(mu_batches_open(&b, &d, &o, &err), &err);
		assert_ok(mu_batches_next(b, &x, &y, &err), &err);
		assert_int_equal(y->shape.count, part < 2 ? 2 : 1);
		for (int64_t j = 0; j < y->shape.count; j++)
			label_counts[MU_DATA(int32_t, y)[j]]++;
		mu_batches_free(b);
	}
	for (int i = 0; i < 6; i++)
		assert_int_equal(label_counts[i], 1);
	struct mu_batches *none;
	assert_fails(mu_batches_open(&none, &d,
				     &(struct mu_batch_options){.batch = 1, .part = 9, .parts = 10},
				     &err),
		     &err, MU_OUT_OF_RANGE, "none for part 9 of 10");
	mu_dataset_fini(&d);
}

static void csv__with_skip_bad__skips_bad_rows(void **state)
{
	char *path = file_with("1,0\nx,1\n2,1\n3,1,1\n4,0.5\n5,2\n");
	struct mu_records o = {.pattern = path, .scale = 1};
	struct mu_dataset train, test;

	assert_fails(mu_dataset_csv(&train, &test, &o, 0, 0, &err), &err, MU_INVALID_ARGUMENT,
		     ":2: column 1: 'x' is not a number");
	mu_log_set_level(MU_ERROR);
	o.skip_bad = true;
	assert_ok(mu_dataset_csv(&train, &test, &o, 0, 0, &err), &err);
	mu_log_set_level(MU_WARN);
	assert_int_equal(train.rows, 3);
	assert_int_equal(train.classes, 3);
	assert_float_equal(MU_DATA(float, &train.x)[2], 5, 0);
	mu_dataset_fini(&train);
	mu_dataset_fini(&test);
	unlink(path);
	free(path);
}

static void idx__with_another_number_of_labels__fails(void **state)
{
	struct mu_dataset d;

	assert_fails(mu_dataset_idx(&d, "examples/data/mnist/test-images-idx3-ubyte.gz",
				    "examples/data/mnist/train-labels-idx1-ubyte.gz", 0, &err),
		     &err, MU_INVALID_ARGUMENT, "expected one label for each image");
}

static void check_idx_values(double scale)
{
	static const char images[] = "examples/data/mnist/test-images-idx3-ubyte.gz";
	double by = scale > 0 ? scale : 255; /* the maximum */
	MU_AUTO_TENSOR raw = {0};
	MU_AUTO_TENSOR x = {0};
	MU_AUTO_TENSOR y = {0};
	struct mu_dataset d;
	float row[784];

	assert_ok(mu_idx_read(&raw, images, &err), &err);
	assert_ok(mu_dataset_idx(&d, images, "examples/data/mnist/test-labels-idx1-ubyte.gz", scale,
				 &err),
		  &err);
	assert_int_equal(d.x.dtype, MU_UINT8);
	assert_int_equal(d.features, 784);
	mu_dataset_row(&d, 1, row);
	assert_ok(mu_dataset_rows(&d, 1, 3, &x, &y, &err), &err);
	for (int i = 0; i < 784; i++) {
		float want = (float)(MU_DATA(uint8_t, &raw)[784 + i] / by);

		assert_true(row[i] == want && MU_DATA(float, &x)[i] == want);
		assert_true(mu_dataset_at(&d, 1, i) == want);
	}
	mu_dataset_fini(&d);
}

/* 0.1 is not a float, so the table is used. */
static void idx__of_bytes__stores_bytes_and_returns_floats(void **state)
{
	check_idx_values(0);
	check_idx_values(3);
	check_idx_values(0.1);
}

/* Puts the map entry of the feature "x": first, 2 first, 3 first. */
static void put_floats(struct mu_buf *b, float first)
{
	size_t entry, value, list, packed;

	entry = mu_pb_begin(b, 1);
	mu_pb_put_str(b, 1, "x");
	value = mu_pb_begin(b, 2);
	list = mu_pb_begin(b, 2);
	packed = mu_pb_begin(b, 1);
	for (int i = 0; i < 3; i++) {
		float v = first * (float)(i + 1);

		mu_buf_put(b, &v, sizeof(v));
	}
	mu_pb_end(b, packed);
	mu_pb_end(b, list);
	mu_pb_end(b, value);
	mu_pb_end(b, entry);
}

/* Writes a tf.Example of three floats and a label, after n_earlier other values of the floats. */
static void write_features(struct mu_tfrecord_writer *w, unsigned n_earlier, float first,
			   int64_t label)
{
	MU_AUTO_BUF b = {0};
	size_t features = mu_pb_begin(&b, 1), entry, value, list;

	while (n_earlier--)
		put_floats(&b, -1);
	put_floats(&b, first);
	entry = mu_pb_begin(&b, 1);
	mu_pb_put_str(&b, 1, "label");
	value = mu_pb_begin(&b, 2);
	list = mu_pb_begin(&b, 3);
	mu_pb_put_int(&b, 1, label);
	mu_pb_end(&b, list);
	mu_pb_end(&b, value);
	mu_pb_end(&b, entry);
	mu_pb_end(&b, features);
	assert_ok(mu_tfrecord_write(w, mu_buf_span(&b), &err), &err);
}

static void write_example(struct mu_tfrecord_writer *w, float first, int64_t label)
{
	write_features(w, 0, first, label);
}

/* As in TensorFlow. */
static void tfrecord__with_a_feature_twice__has_the_last_one(void **state)
{
	char *path = file_with("");
	struct mu_records o = {.pattern = path, .feature = "x", .label = "label", .scale = 1};
	struct mu_tfrecord_writer *w;
	struct mu_dataset d;

	assert_ok(mu_tfrecord_create(&w, path, false, &err), &err);
	write_features(w, 1, 5, 0);
	assert_ok(mu_tfrecord_close(w, &err), &err);
	assert_ok(mu_dataset_tfrecord(&d, &o, &err), &err);
	assert_int_equal(d.features, 3);
	assert_float_equal(MU_DATA(float, &d.x)[1], 10, 0);
	mu_dataset_fini(&d);
	unlink(path);
	free(path);
}

/* A file of five examples; the second has an invalid label, the third a corrupt byte. */
static char *examples_file(void)
{
	char *path = file_with("");
	struct mu_tfrecord_writer *w;
	FILE *f;

	assert_ok(mu_tfrecord_create(&w, path, false, &err), &err);
	for (int i = 0; i < 5; i++) {
		write_example(w, (float)i + 1, i == 1 ? -3 : i);
		assert_ok(mu_tfrecord_flush(w, false, &err), &err);
		if (i != 2)
			continue;
		f = fopen(path, "r+");
		assert_non_null(f);
		assert_int_equal(fseek(f, -6, SEEK_END), 0);
		fputc(0x55, f);
		fclose(f);
	}
	assert_ok(mu_tfrecord_close(w, &err), &err);
	return path;
}

static void tfrecord__with_skip_bad__skips_bad_records(void **state)
{
	char *path = examples_file();
	struct mu_records o = {
	    .pattern = path, .feature = "x", .label = "label", .skip_bad = true, .scale = 1};
	struct mu_dataset d;

	mu_log_set_level(MU_ERROR);
	assert_ok(mu_dataset_tfrecord(&d, &o, &err), &err);
	assert_int_equal(d.rows, 3);
	assert_int_equal(d.features, 3);
	assert_int_equal(d.classes, 5);
	assert_int_equal(MU_DATA(int32_t, &d.y)[1], 3);
	assert_float_equal(MU_DATA(float, &d.x)[1 * 3 + 2], 12, 0);
	mu_dataset_fini(&d);
	unlink(path);
	free(path);
}

static void tfrecord__with_a_bad_record__names_file_and_offset(void **state)
{
	char *path = examples_file();
	struct mu_records o = {.pattern = path, .feature = "x", .label = "label"};
	struct mu_dataset d;

	assert_fails(mu_dataset_tfrecord(&d, &o, &err), &err, MU_DATA_LOSS, "label -3");
	assert_non_null(strstr(err.msg, path));
	assert_non_null(strstr(err.msg, "offset "));
	o.feature = "image";
	assert_fails(mu_dataset_tfrecord(&d, &o, &err), &err, MU_DATA_LOSS, "'image'");
	o.pattern = "/nonexistent/*.tfrecord";
	assert_fails(mu_dataset_tfrecord(&d, &o, &err), &err, MU_NOT_FOUND, "no file matches");
	unlink(path);
	free(path);
}

static char *cifar_file(unsigned rows, unsigned more)
{
	char *path = file_with("");
	FILE *f = fopen(path, "w");

	for (unsigned r = 0; r < rows; r++) {
		fputc((int)r, f);
		for (int i = 0; i < 3 * 1024; i++)
			fputc(i / 1024 * 100 + i % 50, f);
	}
	for (unsigned i = 0; i < more; i++)
		fputc(1, f);
	fclose(f);
	return path;
}

static void cifar10__gives_images_with_channels_last(void **state)
{
	char *path = cifar_file(4, 0);
	struct mu_records o = {.pattern = path, .scale = 1};
	struct mu_dataset d, train, test;

	assert_ok(mu_dataset_cifar10(&d, &o, &err), &err);
	assert_int_equal(d.rows, 4);
	assert_int_equal(d.features, 3072);
	assert_int_equal(d.classes, 4);
	for (int c = 0; c < 3; c++)
		assert_float_equal(MU_DATA(float, &d.x)[3072 + 3 * 7 + c],
				   100 * c + (1024 * c + 7) % 50, 0);
	assert_ok(mu_dataset_split(&train, &test, &d, 0.25, 3, &err), &err);
	assert_int_equal(train.rows, 3);
	assert_int_equal(test.rows, 1);
	assert_int_equal(test.classes, 4);
	mu_dataset_fini(&train);
	mu_dataset_fini(&test);
	unlink(path);
	free(path);
}

static void cifar10__truncated__names_file_and_offset(void **state)
{
	char *path = cifar_file(2, 10);
	struct mu_records o = {.pattern = path};
	struct mu_dataset d;

	assert_fails(mu_dataset_cifar10(&d, &o, &err), &err, MU_DATA_LOSS,
		     "offset 6146: a record of 10 bytes, expected 3073");
	o.skip_bad = true;
	assert_ok(mu_dataset_cifar10(&d, &o, &err), &err);
	assert_int_equal(d.rows, 2);
	mu_dataset_fini(&d);
	unlink(path);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(csv__is_split_and_scaled),
	    cmocka_unit_test(csv__split_by_a_seed__holds_out_the_same_rows_each_time),
	    cmocka_unit_test(csv__with_an_invalid_label__names_file_and_line),
	    cmocka_unit_test(tfrecord__with_a_bad_record__names_file_and_offset),
	    cmocka_unit_test(tfrecord__with_a_feature_twice__has_the_last_one),
	    cmocka_unit_test(tfrecord__with_skip_bad__skips_bad_records),
	    cmocka_unit_test(cifar10__gives_images_with_channels_last),
	    cmocka_unit_test(cifar10__truncated__names_file_and_offset),
	    cmocka_unit_test(batches__return_each_row_once_per_epoch),
	    cmocka_unit_test(memory__with_a_negative_label__fails),
	    cmocka_unit_test(prefetched_batches__are_the_same_and_end_after_the_epochs),
	    cmocka_unit_test(prefetched_batch__is_unchanged_until_the_next_call),
	    cmocka_unit_test(parts__divide_the_rows_among_workers),
	    cmocka_unit_test(csv__with_skip_bad__skips_bad_rows),
	    cmocka_unit_test(idx__with_another_number_of_labels__fails),
	    cmocka_unit_test(idx__of_bytes__stores_bytes_and_returns_floats),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
