/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the input as a checkpoint of the V1 format.  Checksums reject nearly all mutations, so the
 * input is also used as the contents of a valid table: the metadata of the tensors (length in the
 * first two bytes) and the values of tensor "a". */
#include <stdint.h>

#include "lib/checkpoint/bundle_slice.h"
#include "lib/checkpoint/v1_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned n_read; /* number of tensors */

static void read_checkpoint(struct mu_span file)
{
	struct mu_v1_reader *r;
	struct mu_tensor t;
	struct mu_slice slice;
	struct mu_err err;
	bool part;

	if (mu_v1_format_parse(&r, file, "fuzz", &err))
		return;
	if (!mu_v1_format_read(r, "a", NULL, &t, &err)) {
		mu_tensor_unref(&t);
		n_read++;
	}
	if (!mu_slice_parse(&slice, &part, MU_SPAN("4 1,2"), &err) &&
	    !mu_v1_format_read(r, "a", &slice, &t, &err)) {
		mu_tensor_unref(&t);
		n_read++;
	}
	mu_v1_reader_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mu_span file = {(const char *)data, size};
	struct table_builder t;
	MU_AUTO_BUF table = {0};

	read_checkpoint(file);
	if (size < 2)
		return 0;
	size_t cut = 2 + (data[0] | (size_t)data[1] << 8) % (size - 1);
	table_begin(&t, &table);
	table_add(&t, (struct mu_span){"", 0}, (struct mu_span){file.data + 2, cut - 2});
	for (int rank = 0; rank < 3; rank++) {
		struct bundle_slice e = {.rank = rank, .length = {-1, -1}};
		MU_AUTO_BUF key = {0};
		bundle_slice_key(&key, "a", &e);
		table_add(&t, mu_buf_span(&key), (struct mu_span){file.data + cut, size - cut});
	}
	table_end(&t);
	read_checkpoint(mu_buf_span(&table));
	return 0;
}
