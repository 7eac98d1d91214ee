/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a bundle with known contents, dumps or merges bundles, for
 * tests/compat/bundle_both_ways.py.
 *
 *	bundle_tool write PREFIX          bundle_tool dump PREFIX
 *	bundle_tool part PREFIX I         (writes half I of the partitioned tensor "p")
 *	bundle_tool merge PREFIX FROM...  bundle_tool slice PREFIX NAME SPEC
 */
#include <stdio.h>
#include <stdlib.h>

#include "lib/checkpoint/bundle.h"
#include "lib/io/json.h"

static void check(int rc, const struct mu_err *err)
{
	if (!rc)
		return;
	fprintf(stderr, "%s: %s\n", mu_code_name(err->code), err->msg);
	exit(1);
}

static struct mu_tensor filled(enum mu_dtype dtype, int rank, const int64_t *dims)
{
	struct mu_tensor t;
	struct mu_shape shape;
	struct mu_err err;

	check(mu_shape_set(&shape, rank, dims, &err), &err);
	check(mu_tensor_new(&t, dtype, &shape, &err), &err);
	for (int64_t i = 0; i < shape.count; i++) {
		if (dtype == MU_FLOAT)
			MU_DATA(float, &t)[i] = (float)i * 0.5f;
		else if (dtype == MU_INT64)
			MU_DATA(int64_t, &t)[i] = i - 3;
		else if (dtype == MU_BOOL)
			MU_DATA(bool, &t)[i] = i % 2;
		else if (dtype == MU_STRING)
			mu_string_set(&MU_DATA(struct mu_string, &t)[i], &"a\0bcdefgh"[i],
				      (size_t)i);
	}
	return t;
}

static void add(struct mu_bundle_writer *w, const char *name, struct mu_tensor t)
{
	struct mu_err err;

	check(mu_bundle_add(w, name, &t, &err), &err);
	mu_tensor_unref(&t);
}

static void write_known(const char *prefix)
{
	struct mu_bundle_writer *w;
	struct mu_err err;
	char name[32];

	check(mu_bundle_create(&w, prefix, &err), &err);
	/* In TensorFlow's order, by name, so that the files can be compared byte for byte. */
	add(w, "a/flags", filled(MU_BOOL, 1, (int64_t[]){5}));
	add(w, "a/words", filled(MU_STRING, 1, (int64_t[]){4}));
	add(w, "empty", filled(MU_FLOAT, 2, (int64_t[]){0, 3}));
	add(w, "global_step", filled(MU_INT64, 0, NULL));
	for (int i = 0; i < 6000; i++) { /* several blocks of index */
		snprintf(name, sizeof name, "many/%05d", i);
		add(w, name, filled(MU_INT64, 1, (int64_t[]){3}));
	}
	add(w, "z/matrix", filled(MU_FLOAT, 2, (int64_t[]){40, 30}));
	check(mu_bundle_finish(w, &err), &err);
	mu_bundle_writer_free(w);
}

/* "p" is [6, 130] floats, cut along its first dimension; the second dimension is written in two
 * ways. */
static void write_part(const char *prefix, int half)
{
	struct mu_bundle_writer *w;
	struct mu_slice s;
	struct mu_err err;
	bool is_slice;

	check(mu_slice_parse(&s, &is_slice,
			     half ? MU_SPAN("6 130 2,4:-") : MU_SPAN("6 130 0,2:0,130"), &err),
	      &err);
	struct mu_tensor t = filled(MU_FLOAT, 2, (int64_t[]){half ? 4 : 2, 130});
	for (int64_t i = 0; i < t.shape.count; i++)
		MU_DATA(float, &t)[i] = (float)(i + (half ? 260 : 0));
	check(mu_bundle_create(&w, prefix, &err), &err);
	check(mu_bundle_add_slice(w, "p", &s, &t, &err), &err);
	check(mu_bundle_finish(w, &err), &err);
	mu_bundle_writer_free(w);
	mu_tensor_unref(&t);
}

static void print(const char *name, const struct mu_tensor *t)
{
	MU_AUTO_BUF out = {0};

	printf("%s %s %s", name, mu_dtype_name(t->dtype), mu_shape_str(&t->shape));
	for (int64_t i = 0; i < t->shape.count; i++) {
		mu_buf_clear(&out);
		if (t->dtype == MU_STRING)
			for (size_t k = 0; k < MU_DATA(struct mu_string, t)[i].len; k++)
				mu_buf_printf(
				    &out, "%02x",
				    (unsigned char)MU_DATA(struct mu_string, t)[i].data[k]);
		else if (t->dtype == MU_FLOAT)
			mu_buf_printf(&out, "%.9g", (double)MU_DATA(float, t)[i]);
		else if (t->dtype == MU_BOOL)
			mu_buf_printf(&out, "%d", MU_DATA(bool, t)[i]);
		else
			mu_buf_printf(&out, "%lld", (long long)mu_tensor_int(t, i));
		printf(" %s", out.data ? out.data : "");
	}
	printf("\n");
}

int main(int argc, char **argv)
{
	struct mu_bundle_reader *r;
	struct mu_tensor t;
	struct mu_err err;

	if (argc == 3 && strcmp(argv[1], "write") == 0) {
		write_known(argv[2]);
	} else if (argc == 4 && strcmp(argv[1], "part") == 0) {
		write_part(argv[2], atoi(argv[3]));
	} else if (argc > 3 && strcmp(argv[1], "merge") == 0) {
		check(mu_bundle_merge((const char *const *)argv + 3, (unsigned)argc - 3, argv[2],
				      true, &err),
		      &err);
	} else if (argc == 3 && strcmp(argv[1], "dump") == 0) {
		check(mu_bundle_open(&r, argv[2], &err), &err);
		for (unsigned i = 0; i < mu_bundle_count(r); i++) {
			check(mu_bundle_read(r, mu_bundle_entry(r, i)->name, &t, &err), &err);
			print(mu_bundle_entry(r, i)->name, &t);
			mu_tensor_unref(&t);
		}
		mu_bundle_reader_free(r);
	} else if (argc == 5 && strcmp(argv[1], "slice") == 0) {
		struct mu_slice s;
		bool is_slice;
		check(mu_bundle_open(&r, argv[2], &err), &err);
		check(mu_slice_parse(&s, &is_slice, mu_span_of(argv[4]), &err), &err);
		check(mu_bundle_read_slice(r, argv[3], &s, &t, &err), &err);
		print(argv[3], &t);
		mu_tensor_unref(&t);
		mu_bundle_reader_free(r);
	} else {
		fprintf(stderr, "bundle_tool write|dump|part|merge|slice PREFIX ...\n");
		return 2;
	}
	return 0;
}
