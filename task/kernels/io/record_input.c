/* SPDX-License-Identifier: Apache-2.0 */
/* RecordInput: batches of records from TFRecord files in random order. Each epoch yields each
 * record once, from files in a new order. Each call fills the buffer itself, without reader
 * threads, so file_parallelism and file_shuffle_shift_ratio have no effect. */
#include <pthread.h>
#include <string.h>

#include "lib/base/random.h"
#include "lib/io/decompress.h"
#include "lib/io/match_files.h"
#include "lib/io/tfrecord.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/random/node_state.h"

struct record_input {
	struct resource base;
	pthread_mutex_t lock;
	glob_t files;
	size_t next_file;
	struct mu_tfrecord_reader *reader; /* NULL: no open file */
	struct mu_buf *buffer;
	int64_t n, capacity;
	uint64_t random;
};

static void record_input_free(struct resource *base)
{
	struct record_input *r = MU_CONTAINER(base, struct record_input, base);

	for (int64_t i = 0; i < r->n; i++)
		mu_buf_fini(&r->buffer[i]);
	free(r->buffer);
	mu_tfrecord_reader_free(r->reader);
	globfree(&r->files);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

static size_t record_input_bytes(struct resource *base)
{
	struct record_input *r = MU_CONTAINER(base, struct record_input, base);
	size_t bytes = 0;

	pthread_mutex_lock(&r->lock);
	for (int64_t i = 0; i < r->n; i++)
		bytes += r->buffer[i].len;
	pthread_mutex_unlock(&r->lock);
	return bytes;
}

static const struct resource_type record_input_type = {
    .name = "record input", .free = record_input_free, .bytes = record_input_bytes};

static uint64_t random_below(struct record_input *r, uint64_t n)
{
	return mu_mix_bits(r->random += 0x9e3779b97f4a7c15u) % n;
}

static struct resource *record_input_new(void *arg, struct mu_err *err)
{
	const struct mu_node *n = arg;
	const char *pattern = args_attr_string(n, "file_pattern", "");
	glob_t files = {0};

	int rc = mu_match_files(&files, pattern, err);

	if (!rc && !files.gl_pathc)
		rc = mu_fail(err, MU_NOT_FOUND, "Found no files at %s", pattern);
	if (rc) {
		globfree(&files);
		return NULL;
	}
	struct record_input *r = MU_NEW(struct record_input);
	resource_init(&r->base, &record_input_type);
	pthread_mutex_init(&r->lock, NULL);
	r->files = files;
	r->next_file = files.gl_pathc;
	r->capacity = args_attr_int(n, "file_buffer_size", 10000);
	r->random = (uint64_t)args_attr_int(n, "file_random_seed", 301);
	return &r->base;
}

static void epoch_begin(struct record_input *r)
{
	for (size_t i = r->files.gl_pathc; i > 1; i--) {
		size_t k = random_below(r, i);
		char *path = r->files.gl_pathv[k];
		r->files.gl_pathv[k] = r->files.gl_pathv[i - 1];
		r->files.gl_pathv[i - 1] = path;
	}
	r->next_file = 0;
}

static int open_next_file(struct record_input *r, const char *compression, struct mu_err *err)
{
	const char *path = r->files.gl_pathv[r->next_file];
	FILE *file;

	MU_RETURN_IF_ERROR(mu_decompress_open(&file, path, mu_span_of(compression), err));
	r->next_file++; /* a file that cannot be opened is tried again */
	r->reader = mu_tfrecord_read(file, path);
	return 0;
}

/* Reads records until the buffer is full or the epoch ends. */
static int buffer_fill(struct record_input *r, const char *compression, struct mu_err *err)
{
	struct mu_span record;
	int rc;

	while (r->n < r->capacity && (r->reader || r->next_file < r->files.gl_pathc)) {
		if (!r->reader)
			MU_RETURN_IF_ERROR(open_next_file(r, compression, err));
		if ((rc = mu_tfrecord_next_complete(r->reader, &record, err)) < 0)
			return rc;
		if (rc == 0) {
			mu_tfrecord_reader_free(r->reader);
			r->reader = NULL;
			continue;
		}
		r->buffer = mu_xrealloc(r->buffer, (size_t)(r->n + 1) * sizeof *r->buffer);
		r->buffer[r->n] = (struct mu_buf){0};
		mu_buf_put(&r->buffer[r->n++], record.data, record.len);
	}
	return 0;
}

static int record_take(struct record_input *r, const char *compression, struct mu_string *out,
		       struct mu_err *err)
{
	MU_RETURN_IF_ERROR(buffer_fill(r, compression, err));
	if (!r->n) {
		epoch_begin(r);
		MU_RETURN_IF_ERROR(buffer_fill(r, compression, err));
	}
	if (!r->n)
		return mu_fail(err, MU_NOT_FOUND, "Found no records in the files");
	struct mu_buf *b = &r->buffer[random_below(r, (uint64_t)r->n)];
	mu_string_set(out, b->data, b->len);
	mu_buf_fini(b);
	*b = r->buffer[--r->n];
	return 0;
}

static int record_input(struct kernel_call *c, struct mu_err *err)
{
	const char *compression = args_attr_string(c->node, "compression_type", "");
	int64_t n = args_attr_int(c->node, "batch_size", 32);
	struct resource *base;
	struct mu_tensor *out;
	int rc = 0;

	if (n < 1 || args_attr_int(c->node, "file_buffer_size", 10000) < 1)
		return mu_invalid(err, "batch_size and file_buffer_size must be positive");
	MU_RETURN_IF_ERROR(
	    node_state_find(c->state, c, "", &record_input_type, record_input_new, &base, err));
	struct record_input *r = MU_CONTAINER(base, struct record_input, base);
	MU_RETURN_IF_ERROR(kernel_out_vec(c, 0, MU_STRING, n, &out, err));
	pthread_mutex_lock(&r->lock);
	for (int64_t i = 0; i < n && !rc; i++)
		rc = record_take(r, compression, &MU_DATA(struct mu_string, out)[i], err);
	pthread_mutex_unlock(&r->lock);
	return rc;
}

static const struct kernel rows[] = {
    {"RecordInput", KERNEL_SLOW | KERNEL_NO_FOLD, .run = record_input,
     .prepare = node_state_prepare, .release = node_state_release},
};
KERNEL_TABLE(io_record_input, rows)
