/* SPDX-License-Identifier: Apache-2.0 */
/* Save and restore ops. The file format is in lib/checkpoint/bundle.h; the files are on the file
 * system of the op's task. */
#include "lib/checkpoint/bundle.h"
#include "lib/checkpoint/v1_format.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"

/* Copies the strings of an input into an arena, with a NUL after each. */
static char **string_list(const struct kernel_call *c, unsigned i, struct mu_arena *a, unsigned *n)
{
	const struct mu_tensor *t = kernel_in(c, i);

	*n = (unsigned)t->shape.count;
	char **list = MU_ARENA_ARRAY(a, char *, *n);
	for (unsigned k = 0; k < *n; k++) {
		struct mu_span s = elems_span(t, k);
		list[k] = mu_arena_strndup(a, s.data, s.len);
	}
	return list;
}

struct request {
	struct mu_arena arena;
	char *prefix;
	char **names, **slices;
	unsigned n;
};

static void request_fini(struct request *r)
{
	mu_arena_fini(&r->arena);
	free(r->prefix);
}
#define REQUEST_AUTO __attribute__((cleanup(request_fini))) struct request

/* Reads the inputs of SaveV2 and RestoreV2: prefix, tensor_names and shape_and_slices. */
static int read_request(const struct kernel_call *c, unsigned tensors, struct request *r,
			struct mu_err *err)
{
	unsigned n_slices;

	MU_RETURN_IF_ERROR(args_string(c, 0, &r->prefix, err));
	r->names = string_list(c, 1, &r->arena, &r->n);
	r->slices = string_list(c, 2, &r->arena, &n_slices);
	if (r->n != tensors || n_slices != tensors)
		return mu_invalid(err, "%u tensors, but %u names and %u shape_and_slices", tensors,
				  r->n, n_slices);
	return 0;
}

static int save_v2(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO(mu_bundle_writer_free) struct mu_bundle_writer *w = NULL;
	REQUEST_AUTO r = {0};
	int rc = 0;

	if (c->n_in < 3)
		return mu_invalid(err, "prefix, names or slices are missing");
	MU_RETURN_IF_ERROR(read_request(c, c->n_in - 3, &r, err));
	MU_RETURN_IF_ERROR(mu_bundle_create(&w, r.prefix, err));
	for (unsigned i = 0; i < r.n; i++) {
		const struct mu_tensor *t = kernel_in(c, i + 3);
		struct mu_slice slice;
		bool is_slice;
		if ((rc = mu_slice_parse(&slice, &is_slice, mu_span_of(r.slices[i]), err)))
			return mu_wrap(err, "shape_and_slice of '%s'", r.names[i]);
		MU_RETURN_IF_ERROR(is_slice ? mu_bundle_add_slice(w, r.names[i], &slice, t, err)
					    : mu_bundle_add(w, r.names[i], t, err));
	}
	return mu_bundle_finish(w, err);
}

/* Save and SaveSlices: write all tensors to one file of the V1 format. */
static int save_v1_format(struct kernel_call *c, struct mu_err *err)
{
	bool sliced = strcmp(c->node->op, "SaveSlices") == 0;
	unsigned first = sliced ? 3 : 2, n_slices = 0;
	REQUEST_AUTO r = {0};
	int rc;

	if (c->n_in < first)
		return mu_invalid(err, "filename, names or slices are missing");
	MU_RETURN_IF_ERROR(args_string(c, 0, &r.prefix, err));
	r.names = string_list(c, 1, &r.arena, &r.n);
	if (sliced)
		r.slices = string_list(c, 2, &r.arena, &n_slices);
	if (r.n != c->n_in - first || (sliced && n_slices != r.n))
		return mu_invalid(err, "%u tensors, but %u names and %u shapes_and_slices",
				  c->n_in - first, r.n, n_slices);
	struct mu_v1_format *items = MU_ARENA_ARRAY(&r.arena, struct mu_v1_format, r.n);
	struct mu_slice *slices = MU_ARENA_ARRAY(&r.arena, struct mu_slice, r.n);
	for (unsigned i = 0; i < r.n; i++) {
		const struct mu_tensor *t = kernel_in(c, first + i);
		bool is_slice = false;
		if (sliced &&
		    (rc = mu_slice_parse(&slices[i], &is_slice, mu_span_of(r.slices[i]), err)))
			return mu_wrap(err, "shape_and_slice of '%s'", r.names[i]);
		if (is_slice && !mu_shape_eq(&slices[i].shape, &t->shape))
			return mu_invalid(err,
					  "Slice in shape_and_slice specification does not match "
					  "the shape of the tensor to save: %s, tensor: %s",
					  r.slices[i], mu_shape_str(&t->shape));
		items[i] = (struct mu_v1_format){r.names[i], is_slice ? &slices[i] : NULL, t};
	}
	return mu_v1_format_write(r.prefix, items, r.n, err);
}

/* A checkpoint of either format. */
struct source {
	struct mu_bundle_reader *bundle;
	struct mu_v1_reader *v1;
};

static void source_fini(struct source *s)
{
	mu_bundle_reader_free(s->bundle);
	mu_v1_reader_free(s->v1);
}
#define SOURCE_AUTO __attribute__((cleanup(source_fini))) struct source

/* Opens a checkpoint.  Without an index file, the prefix is a pattern of V1 files. */
static int source_open(struct source *s, const char *prefix, struct mu_err *err)
{
	return mu_bundle_exists(prefix) ? mu_bundle_open(&s->bundle, prefix, err)
					: mu_v1_format_open(&s->v1, prefix, err);
}

static int restore_one(const struct source *s, const struct request *r, unsigned i,
		       struct mu_tensor *out, struct mu_err *err)
{
	struct mu_slice slice;
	bool is_slice;
	int rc = mu_slice_parse(&slice, &is_slice, mu_span_of(r->slices[i]), err);

	if (rc)
		return mu_wrap(err, "shape_and_slice of '%s'", r->names[i]);
	if (s->v1)
		return mu_v1_format_read(s->v1, r->names[i], is_slice ? &slice : NULL, out, err);
	return is_slice ? mu_bundle_read_slice(s->bundle, r->names[i], &slice, out, err)
			: mu_bundle_read(s->bundle, r->names[i], out, err);
}

static void parallel_for(void *call, int64_t n, int64_t grain,
			 void (*body)(void *arg, int64_t from, int64_t to), void *arg)
{
	kernel_parallel(call, n, grain, body, arg);
}

/* Reads tensor i of the request into output i. */
static int output_restored(struct kernel_call *c, const struct source *s, const struct request *r,
			   unsigned i, enum mu_dtype want, struct mu_err *err)
{
	struct mu_tensor t;
	int rc = 0;

	MU_RETURN_IF_ERROR(restore_one(s, r, i, &t, err));
	if (t.dtype != want) {
		rc = mu_invalid(
		    err, "tensor_name = %s; expected dtype %s does not equal original dtype %s",
		    r->names[i], mu_dtype_name(want), mu_dtype_name(t.dtype));
		mu_tensor_unref(&t);
		return rc;
	}
	kernel_out_take(c, i, t);
	return 0;
}

static int restore_v2(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_attr *dtypes = mu_node_attr(c->node, "dtypes");
	SOURCE_AUTO s = {0};
	REQUEST_AUTO r = {0};

	if (!dtypes || dtypes->kind != MU_ATTR_LIST + MU_ATTR_TYPE || dtypes->n != c->n_out)
		return mu_invalid(err, "attribute 'dtypes' is missing");
	MU_RETURN_IF_ERROR(read_request(c, c->n_out, &r, err));
	MU_RETURN_IF_ERROR(source_open(&s, r.prefix, err));
	if (s.bundle)
		mu_bundle_reader_set_parallel_for(s.bundle,
						  (struct mu_parallel_for){parallel_for, c});
	for (unsigned i = 0; i < r.n; i++)
		MU_RETURN_IF_ERROR(output_restored(c, &s, &r, i, dtypes->types[i], err));
	return 0;
}

/* Restore and RestoreSlice: read one tensor of the V1 format. */
static int restore_v1_format(struct kernel_call *c, struct mu_err *err)
{
	bool sliced = strcmp(c->node->op, "RestoreSlice") == 0;
	char *no_slice[] = {""};
	SOURCE_AUTO s = {0};
	REQUEST_AUTO r = {0};
	unsigned n_slices = 1;

	MU_RETURN_IF_ERROR(args_string(c, 0, &r.prefix, err));
	r.names = string_list(c, 1, &r.arena, &r.n);
	if (sliced)
		r.slices = string_list(c, 2, &r.arena, &n_slices);
	if (r.n != 1 || n_slices != 1)
		return mu_invalid(err, "tensor_name and shape_and_slice are one string each");
	if (!sliced)
		r.slices = no_slice;
	MU_RETURN_IF_ERROR(mu_v1_format_open(&s.v1, r.prefix, err));
	return output_restored(c, &s, &r, 0, args_attr_type(c->node, "dt", MU_DT_INVALID), err);
}

static int merge_v2(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_ARENA arena = {0};
	MU_AUTO_FREE char *to = NULL;
	unsigned n;
	char **from = string_list(c, 0, &arena, &n);

	MU_RETURN_IF_ERROR(args_string(c, 1, &to, err));
	return mu_bundle_merge((const char *const *)from, n, to,
			       args_attr_bool(c->node, "delete_old_dirs", true), err);
}

/* ---- file names ---- */

static int output_string(struct kernel_call *c, char *text, struct mu_err *err)
{
	int rc = kernel_out_string(c, 0, mu_span_of(text), err);

	free(text);
	return rc;
}

static int sharded_filename(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_FREE char *base = NULL;
	int64_t shard, shards;

	MU_RETURN_IF_ERROR(args_string(c, 0, &base, err));
	MU_RETURN_IF_ERROR(args_int(c, 1, &shard, err));
	MU_RETURN_IF_ERROR(args_int(c, 2, &shards, err));
	return output_string(
	    c, mu_xasprintf("%s-%05lld-of-%05lld", base, (long long)shard, (long long)shards), err);
}

static int sharded_filespec(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_FREE char *base = NULL;
	int64_t shards;

	MU_RETURN_IF_ERROR(args_string(c, 0, &base, err));
	MU_RETURN_IF_ERROR(args_int(c, 1, &shards, err));
	return output_string(c, mu_xasprintf("%s-\?\?\?\?\?-of-%05lld", base, (long long)shards),
			     err);
}

static const struct kernel rows[] = {
    {"SaveV2", KERNEL_SLOW | KERNEL_NO_FOLD, .run = save_v2},
    {"Save SaveSlices", KERNEL_SLOW | KERNEL_NO_FOLD, .run = save_v1_format},
    {"RestoreV2", KERNEL_SLOW | KERNEL_NO_FOLD, .run = restore_v2},
    {"Restore RestoreSlice", KERNEL_SLOW | KERNEL_NO_FOLD, .run = restore_v1_format},
    {"MergeV2Checkpoints", KERNEL_SLOW | KERNEL_NO_FOLD, .run = merge_v2},
    {"ShardedFilename", .run = sharded_filename},
    {"ShardedFilespec", .run = sharded_filespec},
};
KERNEL_TABLE(io_checkpoint, rows)
