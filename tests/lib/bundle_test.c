/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include <dirent.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/checkpoint/bundle.h"
#include "lib/tensor/encoded.h"
#include "tests/fuzz/bundle_fuzz.c"
#include "tests/fuzz/mutate.h"

static char folder[] = "/tmp/bundle_testXXXXXX";
static struct mu_err err;

static const char *in_folder(const char *name)
{
	static char path[4][256];
	static unsigned turn;
	char *out = path[turn++ % 4];

	snprintf(out, sizeof path[0], "%s/%s", folder, name);
	return out;
}

static struct mu_tensor floats(int rank, const int64_t *dims, float first)
{
	struct mu_shape shape;
	struct mu_tensor t;

	assert_ok(mu_shape_set(&shape, rank, dims, &err), &err);
	assert_ok(mu_tensor_new(&t, MU_FLOAT, &shape, &err), &err);
	for (int64_t i = 0; i < shape.count; i++)
		MU_DATA(float, &t)[i] = first + (float)i;
	return t;
}

/* A variant of one encoded object; kind NULL: a null object, which cannot be saved. */
static struct mu_tensor object(const char *kind)
{
	struct mu_shape one = mu_shape_vec(1);
	struct mu_buf bytes = {0};
	struct mu_tensor t;

	assert_ok(mu_tensor_new(&t, MU_VARIANT, &one, &err), &err);
	if (kind) {
		mu_buf_puts(&bytes, "what it says");
		*MU_DATA(struct mu_object *, &t) = mu_encoded_new(mu_span_of(kind), &bytes);
	}
	return t;
}

static void write_small(const char *prefix)
{
	MU_AUTO(mu_bundle_writer_free) struct mu_bundle_writer *w = NULL;
	MU_AUTO_TENSOR o = object("a.kind");
	MU_AUTO_TENSOR a = floats(2, (int64_t[]){3, 4}, 0);
	MU_AUTO_TENSOR s = {0};

	assert_ok(mu_tensor_string(&s, "hello", 5, &err), &err);
	assert_ok(mu_bundle_create(&w, prefix, &err), &err);
	assert_ok(mu_bundle_add(w, "w/matrix", &a, &err), &err);
	assert_ok(mu_bundle_add(w, "a/word", &s, &err), &err);
	assert_ok(mu_bundle_add(w, "b/object", &o, &err), &err);
	assert_false(mu_bundle_exists(prefix));
	assert_ok(mu_bundle_finish(w, &err), &err);
	assert_true(mu_bundle_exists(prefix));
}

static void bundle__written__reads_back_sorted_by_name(void **state)
{
	MU_AUTO(mu_bundle_reader_free) struct mu_bundle_reader *r = NULL;
	MU_AUTO_TENSOR t = {0};
	MU_AUTO_TENSOR s = {0};

	write_small(in_folder("new/b"));
	assert_ok(mu_bundle_open(&r, in_folder("new/b"), &err), &err);
	assert_int_equal(mu_bundle_count(r), 3);
	assert_string_equal(mu_bundle_entry(r, 0)->name, "a/word");
	assert_int_equal(mu_bundle_find(r, "w/matrix")->size, 48);
	assert_null(mu_bundle_find(r, "w"));
	assert_ok(mu_bundle_read(r, "w/matrix", &t, &err), &err);
	assert_string_equal(mu_shape_str(&t.shape), "[3,4]");
	assert_true(MU_DATA(float, &t)[11] == 11);
	assert_ok(mu_bundle_read(r, "a/word", &s, &err), &err);
	assert_memory_equal(MU_DATA(struct mu_string, &s)->data, "hello", 5);
}

static void bundle__below_a_missing_folder__is_not_found(void **state)
{
	struct mu_bundle_writer *w;

	assert_fails(mu_bundle_create(&w, in_folder("none/new/b"), &err), &err, MU_NOT_FOUND,
		     "none/new; No such file or directory");
}

static void bundle__of_objects__has_the_encoded_ones(void **state)
{
	MU_AUTO(mu_bundle_writer_free) struct mu_bundle_writer *w = NULL;
	MU_AUTO(mu_bundle_reader_free) struct mu_bundle_reader *r = NULL;
	MU_AUTO_TENSOR nothing = object(NULL);
	MU_AUTO_TENSOR t = {0};

	write_small(in_folder("objects"));
	assert_ok(mu_bundle_open(&r, in_folder("objects"), &err), &err);
	assert_ok(mu_bundle_read(r, "b/object", &t, &err), &err);
	const struct mu_encoded *e = mu_encoded_of(*MU_DATA(struct mu_object *, &t));
	assert_string_equal(e->kind, "a.kind");
	assert_true(mu_span_is(mu_buf_span(&e->bytes), "what it says"));
	assert_ok(mu_bundle_create(&w, in_folder("nothing"), &err), &err);
	assert_fails(mu_bundle_add(w, "x", &nothing, &err), &err, MU_UNIMPLEMENTED,
		     "'x' contains a null object, which cannot be saved");
}

static void bundle__read_with_a_missing_name__is_not_found(void **state)
{
	MU_AUTO(mu_bundle_reader_free) struct mu_bundle_reader *r = NULL;
	struct mu_tensor t;

	write_small(in_folder("b"));
	assert_ok(mu_bundle_open(&r, in_folder("b"), &err), &err);
	assert_fails(mu_bundle_read(r, "nobody", &t, &err), &err, MU_NOT_FOUND,
		     "Key nobody not found in checkpoint");
	mu_bundle_reader_free(mu_steal(&r));
	assert_fails(mu_bundle_open(&r, in_folder("absent"), &err), &err, MU_NOT_FOUND,
		     "absent.index");
}

/* Opens the bundle and reads all tensors. Returns 0 or the first error. */
static int read_everything(const char *prefix)
{
	MU_AUTO(mu_bundle_reader_free) struct mu_bundle_reader *r = NULL;
	int rc = mu_bundle_open(&r, prefix, &err);

	for (unsigned i = 0; !rc && i < mu_bundle_count(r); i++) {
		MU_AUTO_TENSOR t = {0};
		rc = mu_bundle_read(r, mu_bundle_entry(r, i)->name, &t, &err);
	}
	return rc;
}

static void bundle__with_any_bit_flipped_or_truncated__is_an_error(void **state)
{
	const char *files[] = {"flip.index", "flip.data-00000-of-00001"};

	write_small(in_folder("flip"));
	for (int f = 0; f < 2; f++) {
		MU_AUTO_BUF bytes = {0};
		MU_AUTO_FREE char *path = mu_xstrdup(in_folder(files[f]));
		assert_ok(mu_buf_read_file(&bytes, path, 1 << 20, &err), &err);
		for (size_t bit = 0; bit < bytes.len * 8; bit++) {
			FILE *file = fopen(path, "wb");
			bytes.data[bit / 8] ^= (char)(1 << bit % 8);
			fwrite(bytes.data, 1, bytes.len, file);
			fclose(file);
			bytes.data[bit / 8] ^= (char)(1 << bit % 8);
			if (read_everything(in_folder("flip")) == 0)
				fail_msg("%s: bit %zu flipped and nobody saw it", files[f], bit);
		}
		for (size_t n = 0; n < bytes.len; n++) { /* and truncated to n bytes */
			FILE *file = fopen(path, "wb");
			fwrite(bytes.data, 1, n, file);
			fclose(file);
			assert_true(read_everything(in_folder("flip")) < 0);
		}
		assert_ok(mu_write_file(path, bytes.data, bytes.len, &err), &err);
	}
	assert_ok(read_everything(in_folder("flip")), &err);
}

static void add_part(struct mu_bundle_writer *w, const char *spec, float first)
{
	struct mu_slice s;
	bool is_slice;

	assert_ok(mu_slice_parse(&s, &is_slice, mu_span_of(spec), &err), &err);
	assert_true(is_slice);
	MU_AUTO_TENSOR t = floats(s.shape.rank, s.shape.dim, first);
	assert_ok(mu_bundle_add_slice(w, "p", &s, &t, &err), &err);
}

static void write_part(const char *prefix, const char *spec, float first)
{
	MU_AUTO(mu_bundle_writer_free) struct mu_bundle_writer *w = NULL;

	assert_ok(mu_bundle_create(&w, prefix, &err), &err);
	add_part(w, spec, first);
	assert_ok(mu_bundle_finish(w, &err), &err);
}

/* Writes the blocks out of order: the last one first. */
static void run_backwards(void *count, int64_t n, int64_t grain,
			  void (*body)(void *arg, int64_t from, int64_t to), void *arg)
{
	++*(int *)count;
	for (int64_t i = n; i--;)
		body(arg, i, i + 1);
}

static void bundle__of_large_tensors__is_read_by_all_threads_and_checked(void **state)
{
	const char *prefix = in_folder("large");
	MU_AUTO_TENSOR a = floats(1, (int64_t[]){(5 << 18) + 3}, 7);
	MU_AUTO_FREE char *data = mu_xasprintf("%s.data-00000-of-00001", prefix);

	for (int flipped = 0; flipped < 2; flipped++) {
		MU_AUTO(mu_bundle_writer_free) struct mu_bundle_writer *w = NULL;
		MU_AUTO(mu_bundle_reader_free) struct mu_bundle_reader *r = NULL;
		MU_AUTO_TENSOR t = {0};
		int calls = 0;
		assert_ok(mu_bundle_create(&w, prefix, &err), &err);
		assert_ok(mu_bundle_add(w, "a", &a, &err), &err);
		assert_ok(mu_bundle_finish(w, &err), &err);
		assert_ok(mu_bundle_open(&r, prefix, &err), &err);
		mu_bundle_reader_set_parallel_for(r,
						  (struct mu_parallel_for){run_backwards, &calls});
		if (flipped) {
			FILE *f = fopen(data, "r+b");
			assert_int_equal(fseek(f, (4 << 20) + 17, SEEK_SET), 0);
			int c = fgetc(f);
			fseek(f, -1, SEEK_CUR);
			fputc(c ^ 4, f);
			fclose(f);
		}
		int rc = mu_bundle_read(r, "a", &t, &err);
		assert_int_equal(calls, 1);
		assert_int_equal(rc, flipped ? -MU_DATA_LOSS : 0);
		if (!flipped)
			assert_memory_equal(t.data, a.data, mu_tensor_bytes(&a));
	}
}

static void bundle__of_a_partitioned_tensor__reads_all_of_it_and_any_slice(void **state)
{
	MU_AUTO(mu_bundle_writer_free) struct mu_bundle_writer *w = NULL;
	MU_AUTO(mu_bundle_reader_free) struct mu_bundle_reader *r = NULL;
	MU_AUTO_TENSOR all = {0};
	MU_AUTO_TENSOR cut = {0};
	struct mu_slice s;
	bool is_slice;

	assert_ok(mu_bundle_create(&w, in_folder("parts"), &err), &err);
	add_part(w, "4 3 0,1:-", 0);
	add_part(w, "4 3 1,3:0,3", 3);
	assert_ok(mu_bundle_finish(w, &err), &err);
	assert_ok(mu_bundle_open(&r, in_folder("parts"), &err), &err);
	assert_int_equal(mu_bundle_count(r), 1);
	assert_int_equal(mu_bundle_entry(r, 0)->n_slices, 2);
	assert_ok(mu_bundle_read(r, "p", &all, &err), &err);
	for (int i = 0; i < 12; i++)
		assert_true(MU_DATA(float, &all)[i] == (float)i);
	assert_ok(mu_slice_parse(&s, &is_slice, MU_SPAN("4 3 0,3:1,2"), &err), &err);
	assert_ok(mu_bundle_read_slice(r, "p", &s, &cut, &err), &err);
	assert_string_equal(mu_shape_str(&cut.shape), "[3,2]");
	assert_true(MU_DATA(float, &cut)[0] == 1 && MU_DATA(float, &cut)[5] == 8);
	mu_tensor_unref(&cut);
	assert_ok(mu_slice_parse(&s, &is_slice, MU_SPAN("4 3 1,3:0,3"), &err), &err);
	assert_ok(mu_bundle_read_slice(r, "p", &s, &cut, &err), &err); /* a slice as it was saved */
	assert_true(MU_DATA(float, &cut)[0] == 3 && MU_DATA(float, &cut)[8] == 11);
	assert_ok(mu_slice_parse(&s, &is_slice, MU_SPAN("5 3 0,3:1,2"), &err), &err);
	assert_fails(mu_bundle_read_slice(r, "p", &s, &cut, &err), &err, MU_INVALID_ARGUMENT,
		     "Shape in shape_and_slice spec [5,3] does not match the shape stored");
}

/* Writes a variable of n parts, each of one element. */
static void write_parts(const char *prefix, int n)
{
	MU_AUTO(mu_bundle_writer_free) struct mu_bundle_writer *w = NULL;

	assert_ok(mu_bundle_create(&w, prefix, &err), &err);
	for (int i = 0; i < n; i++) {
		struct mu_slice s = {.shape = mu_shape_vec(1), .full = mu_shape_vec(n)};
		MU_AUTO_TENSOR t = floats(1, (int64_t[]){1}, (float)i);

		s.start[0] = i;
		s.length[0] = 1;
		assert_ok(mu_bundle_add_slice(w, "p", &s, &t, &err), &err);
	}
	assert_ok(mu_bundle_finish(w, &err), &err);
}

static void index__with_too_many_parts_of_a_variable__is_rejected_while_it_is_parsed(void **state)
{
	const char *prefix = in_folder("many");
	struct mu_bundle_reader *r;

	write_parts(prefix, 10000);
	assert_ok(mu_bundle_open(&r, prefix, &err), &err);
	mu_bundle_reader_free(r);
	write_parts(prefix, 10001);
	assert_fails(mu_bundle_open(&r, prefix, &err), &err, MU_UNIMPLEMENTED,
		     "'p': more than 10000 slices");
}

static void bundle__with_a_hole_between_parts__is_data_loss(void **state)
{
	MU_AUTO(mu_bundle_reader_free) struct mu_bundle_reader *r = NULL;
	struct mu_tensor t;

	write_part(in_folder("hole"), "4 0,3", 0);
	assert_ok(mu_bundle_open(&r, in_folder("hole"), &err), &err);
	assert_fails(mu_bundle_read(r, "p", &t, &err), &err, MU_DATA_LOSS, "do not cover it");
}

static void bundles__merged__are_one_and_leave_no_files(void **state)
{
	MU_AUTO(mu_bundle_reader_free) struct mu_bundle_reader *r = NULL;
	MU_AUTO_FREE char *a = mu_xstrdup(in_folder("m_temp/part-0"));
	MU_AUTO_FREE char *b = mu_xstrdup(in_folder("m_temp/part-1"));
	MU_AUTO_FREE char *c = mu_xstrdup(in_folder("m_temp/part-2"));
	MU_AUTO_TENSOR t = {0};

	write_part(a, "4 0,3", 0);
	write_part(b, "4 3,1", 3);
	write_small(c);
	assert_ok(mu_bundle_merge((const char *[]){a, b, c}, 3, in_folder("m"), true, &err), &err);
	assert_int_not_equal(access(in_folder("m_temp"), F_OK), 0);
	assert_int_equal(access(in_folder("m.data-00002-of-00003"), F_OK), 0);
	assert_ok(mu_bundle_open(&r, in_folder("m"), &err), &err);
	assert_int_equal(mu_bundle_count(r), 4);
	assert_ok(mu_bundle_read(r, "p", &t, &err), &err);
	assert_true(MU_DATA(float, &t)[3] == 3);
	assert_ok(read_everything(in_folder("m")), &err);
	assert_ok(mu_bundle_remove(in_folder("m"), &err), &err);
	assert_int_not_equal(access(in_folder("m.data-00002-of-00003"), F_OK), 0);
}

static void bundles__with_a_common_tensor__do_not_merge(void **state)
{
	MU_AUTO_FREE char *a = mu_xstrdup(in_folder("x"));
	MU_AUTO_FREE char *b = mu_xstrdup(in_folder("y"));

	write_small(a);
	write_small(b);
	assert_fails(mu_bundle_merge((const char *[]){a, b}, 2, in_folder("xy"), false, &err), &err,
		     MU_INVALID_ARGUMENT, "another bundle also has");
}

static void writer__freed_before_finish__leaves_no_file(void **state)
{
	MU_AUTO_TENSOR t = floats(0, NULL, 1);
	struct mu_bundle_writer *w;

	assert_ok(mu_bundle_create(&w, in_folder("quit/b"), &err), &err);
	assert_ok(mu_bundle_add(w, "t", &t, &err), &err);
	assert_fails(mu_bundle_add(w, "t", &t, &err), &err, MU_INVALID_ARGUMENT, "already");
	mu_bundle_writer_free(w);
	assert_int_equal(rmdir(in_folder("quit")), 0);
}

static int files_in(const char *path)
{
	DIR *d = opendir(path);
	int n = 0;

	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		n += e->d_name[0] != '.' || (e->d_name[1] && e->d_name[1] != '.');
	closedir(d);
	return n;
}

static int write_ones(const char *prefix, int64_t n)
{
	MU_AUTO(mu_bundle_writer_free) struct mu_bundle_writer *w = NULL;
	MU_AUTO_TENSOR a = floats(1, &n, 1);
	int rc = mu_bundle_create(&w, prefix, &err);

	if (rc == 0)
		rc = mu_bundle_add(w, "a", &a, &err);
	return rc ? rc : mu_bundle_finish(w, &err);
}

/* A program that passes a folder as prefix gets the files .index and .data-00000-of-00001 in it. */
static void bundle__under_a_prefix_that_ends_in_a_slash__is_read_back(void **state)
{
	MU_AUTO(mu_bundle_reader_free) struct mu_bundle_reader *r = NULL;
	const char *prefix = in_folder("weights/");

	assert_ok(write_ones(prefix, 3), &err);
	assert_true(mu_bundle_exists(prefix));
	assert_int_equal(access(in_folder("weights/.index"), R_OK), 0);
	assert_ok(mu_bundle_open(&r, prefix, &err), &err);
	assert_ok(mu_bundle_remove(prefix, &err), &err);
	assert_int_equal(rmdir(prefix), 0);
}

/* RLIMIT_FSIZE stands in for a full disk. The previous checkpoint stays complete, no temporary file
 * remains, and the next checkpoint succeeds once there is space. */
static void bundle__on_a_full_disk__leaves_the_previous_one_complete(void **state)
{
	static const rlim_t file_limits[] = {0, 1, 4096, 100000, (4 << 20) - 1};
	enum { OLD = 100, NEW = 1 << 20 }; /* elements; NEW has 4 MiB */
	const char *full_folder = in_folder("full");
	char prefix[300];
	struct rlimit original;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &original), 0);
	snprintf(prefix, sizeof(prefix), "%s/ckpt", full_folder);
	assert_ok(write_ones(prefix, OLD), &err);
	assert_int_equal(files_in(full_folder), 2);
	for (unsigned i = 0; i < MU_COUNT(file_limits); i++) {
		MU_AUTO(mu_bundle_reader_free) struct mu_bundle_reader *r = NULL;
		MU_AUTO_TENSOR t = {0};
		int rc;

		assert_int_equal(
		    setrlimit(RLIMIT_FSIZE, &(struct rlimit){file_limits[i], original.rlim_max}),
		    0);
		rc = write_ones(prefix, NEW);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &original), 0);
		assert_true(rc < 0);
		assert_int_equal(files_in(full_folder), 2);
		assert_ok(mu_bundle_open(&r, prefix, &err), &err);
		assert_ok(mu_bundle_read(r, "a", &t, &err), &err);
		assert_int_equal(t.shape.count, OLD);
		assert_true(MU_DATA(float, &t)[OLD - 1] == OLD);
	}
	assert_ok(write_ones(prefix, NEW), &err);
	assert_int_equal(files_in(full_folder), 2);
}

static void slice__that_is_malformed__is_invalid(void **state)
{
	static const char *const cases[] = {"x",
					    "4 3 0,5:-",
					    "4 3 0,1",
					    "4 3 0,1:-:-",
					    "4 0,-1",
					    "4 1,4",
					    "4 9223372036854775808,1",
					    "-4 0,1",
					    "4 0,1 ",
					    "99999999999 99999999999 -:-"};
	struct mu_slice s;
	bool is_slice;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_fails(mu_slice_parse(&s, &is_slice, mu_span_of(cases[i]), &err), &err,
			     MU_INVALID_ARGUMENT, "is not a shape and slice");
	assert_ok(mu_slice_parse(&s, &is_slice, MU_SPAN(""), &err), &err);
	assert_false(is_slice);
	assert_ok(mu_slice_parse(&s, &is_slice, MU_SPAN("4 3 0,4:-"), &err), &err);
	assert_true(s.is_whole);
}

static void index__of_random_bytes__never_breaks_the_reader(void **state)
{
	MU_AUTO_BUF file = {0};

	write_part(in_folder("seed"), "4 0,3", 0);
	assert_ok(mu_buf_read_file(&file, in_folder("seed.index"), 1 << 20, &err), &err);
	mutate_run(LLVMFuzzerTestOneInput, file.data, file.len, 10000);
	/* An entry: float, [2], one part. */
	const char entry[] =
	    "\x08\x01\x12\x04\x12\x02\x08\x02\x28\x08\x35wxyz\x3a\x06\x0a\x04\x08\x01\x10\x01";
	mutate_run(LLVMFuzzerTestOneInput, entry, sizeof entry - 1, 10000);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(bundle__written__reads_back_sorted_by_name),
	    cmocka_unit_test(bundle__below_a_missing_folder__is_not_found),
	    cmocka_unit_test(bundle__of_objects__has_the_encoded_ones),
	    cmocka_unit_test(bundle__read_with_a_missing_name__is_not_found),
	    cmocka_unit_test(bundle__with_any_bit_flipped_or_truncated__is_an_error),
	    cmocka_unit_test(bundle__of_large_tensors__is_read_by_all_threads_and_checked),
	    cmocka_unit_test(bundle__of_a_partitioned_tensor__reads_all_of_it_and_any_slice),
	    cmocka_unit_test(bundle__with_a_hole_between_parts__is_data_loss),
	    cmocka_unit_test(bundles__merged__are_one_and_leave_no_files),
	    cmocka_unit_test(bundles__with_a_common_tensor__do_not_merge),
	    cmocka_unit_test(writer__freed_before_finish__leaves_no_file),
	    cmocka_unit_test(bundle__under_a_prefix_that_ends_in_a_slash__is_read_back),
	    cmocka_unit_test(bundle__on_a_full_disk__leaves_the_previous_one_complete),
	    cmocka_unit_test(
		index__with_too_many_parts_of_a_variable__is_rejected_while_it_is_parsed),
	    cmocka_unit_test(slice__that_is_malformed__is_invalid),
	    cmocka_unit_test(index__of_random_bytes__never_breaks_the_reader),
	};

	if (!mkdtemp(folder))
		return 1;
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return failed;
}
