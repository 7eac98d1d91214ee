/* SPDX-License-Identifier: Apache-2.0 */
/* GenerateVocabRemapping: the old row of each line of a new vocabulary file, for warm starts. */
#include "lib/base/map.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/io/vocabulary_file.h"

static int remap(struct kernel_call *c, const struct mu_buf *new_vocab,
		 const struct mu_map *old_rows, struct mu_err *err)
{
	int64_t skip = args_attr_int(c->node, "new_vocab_offset", 0), i = 0;
	int64_t n = args_attr_int(c->node, "num_new_vocab", 0);
	struct mu_tensor *out;
	struct mu_span line;
	int32_t present = 0;
	size_t at = 0;

	if (n < 0 || skip < 0)
		return mu_invalid(err, "num_new_vocab and new_vocab_offset must be >= 0");

	MU_RETURN_IF_ERROR(kernel_out_vec(c, 0, MU_INT64, n, &out, err));
	for (; skip && vocabulary_line(new_vocab, &at, &line); skip--) {}
	for (; i < n && vocabulary_line(new_vocab, &at, &line); i++) {
		int64_t old_row =
		    (int64_t)(intptr_t)mu_map_get_n(old_rows, line.data, line.len) - 1;
		MU_DATA(int64_t, out)[i] = old_row;
		present += old_row >= 0;
	}
	if (i < n || skip)
		return mu_invalid(err,
				  "the new vocabulary has too few lines: %lld of %lld are there",
				  (long long)i, (long long)n);
	return kernel_out_value(c, 1, MU_INT32, &present, err);
}

static int generate_remapping(struct kernel_call *c, struct mu_err *err)
{
	int64_t old_vocab_size = args_attr_int(c->node, "old_vocab_size", -1), n = 0;
	MU_AUTO_BUF new_vocab = {0};
	MU_AUTO_BUF old = {0};
	struct mu_span line;
	struct mu_map rows;
	size_t at = 0;
	int rc;

	MU_RETURN_IF_ERROR(vocabulary_read(c, 0, &new_vocab, err));
	MU_RETURN_IF_ERROR(vocabulary_read(c, 1, &old, err));
	mu_map_init(&rows);
	while ((old_vocab_size < 0 || n < old_vocab_size) && vocabulary_line(&old, &at, &line))
		mu_map_put_n(&rows, line.data, line.len, (void *)(intptr_t)++n);
	rc = remap(c, &new_vocab, &rows, err);
	mu_map_fini(&rows);
	return rc;
}

static const struct kernel rows[] = {
    {"GenerateVocabRemapping", .run = generate_remapping},
};
KERNEL_TABLE(io_vocabulary, rows)
