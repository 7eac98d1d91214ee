/* SPDX-License-Identifier: Apache-2.0 */
/* GenerateVocabRemapping: the old row of each line of a new vocabulary file, for warm starts. */
#include "lib/base/map.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/io/vocabulary_file.h"

static int add_rows(const struct mu_buf *vocab, int64_t n, struct mu_map *rows, struct mu_err *err)
{
	struct mu_span line;
	size_t at = 0;

	for (int64_t i = 0; i < n && vocabulary_line(vocab, &at, &line); i++) {
		int64_t earlier =
		    (intptr_t)mu_map_put_n(rows, line.data, line.len, (void *)(intptr_t)(i + 1));
		if (earlier)
			return mu_fail(err, MU_FAILED_PRECONDITION,
				       "HashTable has different value for same key. Key %.*s has "
				       "%lld and trying to add value %lld",
				       line.len < 200 ? (int)line.len : 200, line.data,
				       (long long)earlier - 1, (long long)i);
	}
	return 0;
}

/* Outputs the old row, or -1, of each of n lines that follow `skip` lines. */
static int remap(struct kernel_call *c, const struct mu_buf *new_vocab, int64_t skip, int64_t n,
		 const struct mu_map *old_rows, struct mu_err *err)
{
	struct mu_tensor *out;
	struct mu_span line;
	int32_t present = 0;
	size_t at = 0;

	MU_RETURN_IF_ERROR(kernel_out_vec(c, 0, MU_INT64, n, &out, err));
	for (int64_t i = 0; i < skip; i++)
		vocabulary_line(new_vocab, &at, &line);
	for (int64_t i = 0; i < n && vocabulary_line(new_vocab, &at, &line); i++) {
		int64_t old_row =
		    (int64_t)(intptr_t)mu_map_get_n(old_rows, line.data, line.len) - 1;
		MU_DATA(int64_t, out)[i] = old_row;
		present += old_row >= 0;
	}
	return kernel_out_value(c, 1, MU_INT32, &present, err);
}

static int generate_remapping(struct kernel_call *c, struct mu_err *err)
{
	int64_t skip = args_attr_int(c->node, "new_vocab_offset", 0);
	int64_t n = args_attr_int(c->node, "num_new_vocab", 0), n_read, n_old;
	MU_AUTO_BUF new_vocab = {0};
	MU_AUTO_BUF old_vocab = {0};
	struct mu_map rows;
	int rc;

	if (n < 0 || skip < 0 || skip > INT64_MAX - n)
		return mu_invalid(err, "num_new_vocab and new_vocab_offset must be >= 0");
	MU_RETURN_IF_ERROR(
	    vocabulary_read(c, 0, skip + n ? skip + n : -1, &new_vocab, &n_read, err));
	MU_RETURN_IF_ERROR(vocabulary_read(c, 1, args_attr_int(c->node, "old_vocab_size", -1),
					   &old_vocab, &n_old, err));
	mu_map_init(&rows);
	rc = add_rows(&old_vocab, n_old, &rows, err);
	if (!rc)
		rc = remap(c, &new_vocab, skip, n, &rows, err);
	mu_map_fini(&rows);
	return rc;
}

static const struct kernel rows[] = {
    {"GenerateVocabRemapping", KERNEL_SLOW, .run = generate_remapping},
};
KERNEL_TABLE(io_vocabulary, rows)
