/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the input as the index file of a bundle, unchanged and with corrected checksums, because
 * the checksums reject nearly all mutated blocks. */
#include "lib/checkpoint/bundle_table.h"
#include "lib/io/crc32c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
static int on_pair(void *user, struct mu_span key, struct mu_span value, struct mu_err *err)
{
	*(size_t *)user += key.len + value.len;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mu_span file = {(const char *)data, size};
	struct bundle_index index;
	struct table_builder t;
	MU_AUTO_BUF made = {0};
	size_t total = 0;

	if (bundle_index_parse(&index, file, "fuzz", NULL) == 0)
		bundle_index_fini(&index);
	table_parse(file, "fuzz", on_pair, &total, NULL);
	/* Uses the input as header and entries of a valid table. */
	if (size < 4)
		return 0;
	size_t cut = data[0] % size;
	table_begin(&t, &made);
	table_add(&t, (struct mu_span){"", 0}, MU_SPAN("\x08\x02\x1a\x02\x08\x01"));
	table_add(&t, MU_SPAN("a"), (struct mu_span){file.data + 1, cut ? cut - 1 : 0});
	table_add(&t, MU_SPAN("b"), (struct mu_span){file.data + cut, size - cut});
	table_end(&t);
	if (bundle_index_parse(&index, mu_buf_span(&made), "fuzz", NULL) == 0)
		bundle_index_fini(&index);
	return 0;
}
