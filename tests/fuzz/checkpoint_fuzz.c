/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the input as a checkpoint state file, and as a bundle with a valid index.  The bundle's
 * parts are the entry of a tensor (length in the first byte), the entry of a slice (length in the
 * second byte), and the data file. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/checkpoint/bundle.h"
#include "lib/checkpoint/bundle_table.h"
#include "lib/checkpoint/checkpoint_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[] = "/dev/shm/checkpoint-fuzz-XXXXXX";
static const char *const names[] = {"checkpoint", "b.index", "b.data-00000-of-00001"};

static char *path_of(unsigned i)
{
	return mu_xasprintf("%s/%s", folder, names[i]);
}

static void remove_folder(void)
{
	for (unsigned i = 0; i < MU_COUNT(names); i++) {
		MU_AUTO_FREE char *path = path_of(i);
		unlink(path);
	}
	rmdir(folder);
}

static void write_file(unsigned i, struct mu_span bytes)
{
	MU_AUTO_FREE char *path = path_of(i);
	FILE *f = fopen(path, "w");

	if (!f || fwrite(bytes.data, 1, bytes.len, f) != bytes.len || fclose(f))
		abort();
}

static void read_state(struct mu_span bytes)
{
	struct mu_checkpoint_state s, again;
	struct mu_err err;

	write_file(0, bytes);
	if (mu_checkpoint_state_read(&s, folder, &err))
		return;
	if (mu_checkpoint_state_write(&s, folder, &err) ||
	    mu_checkpoint_state_read(&again, folder, &err) || again.n != s.n)
		abort();
	for (unsigned i = 0; i < s.n; i++)
		if (strcmp(s.paths[i], again.paths[i]) != 0)
			abort();
	mu_checkpoint_state_fini(&again);
	mu_checkpoint_state_fini(&s);
}

static void read_bundle(struct mu_span entry, struct mu_span slice_entry, struct mu_span content)
{
	MU_AUTO_FREE char *prefix = mu_xasprintf("%s/b", folder);
	MU_AUTO(mu_bundle_reader_free) struct mu_bundle_reader *r = NULL;
	MU_AUTO_BUF index = {0};
	struct bundle_slice first = {.rank = 1, .start = {0}, .length = {1}};
	struct table_builder t;
	MU_AUTO_BUF key = {0};
	struct mu_err err;

	bundle_slice_key(&key, "a", &first);
	table_begin(&t, &index);
	table_add(&t, (struct mu_span){"", 0}, MU_SPAN("\x08\x01\x1a\x02\x08\x01"));
	if (slice_entry.len) /* keys are ascending; keys of slices begin with a zero byte */
		table_add(&t, mu_buf_span(&key), slice_entry);
	table_add(&t, MU_SPAN("a"), entry);
	table_end(&t);
	write_file(1, mu_buf_span(&index));
	write_file(2, content);
	if (mu_bundle_open(&r, prefix, &err))
		return;
	for (unsigned i = 0; i < mu_bundle_count(r); i++) {
		const struct mu_bundle_entry *e = mu_bundle_entry(r, i);
		MU_AUTO_TENSOR whole = {0};

		if (mu_bundle_read(r, e->name, &whole, &err) == 0 &&
		    (whole.dtype != e->dtype || !mu_shape_eq(&whole.shape, &e->shape)))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mu_span all = {(const char *)data, size};
	size_t entry, slice_entry;

	if (strstr(folder, "XXXXXX") && (!mkdtemp(folder) || atexit(remove_folder)))
		abort();
	mu_tensor_limit = 1 << 20;
	read_state(all);
	if (size < 2)
		return 0;
	entry = data[0] < size - 2 ? data[0] : size - 2;
	slice_entry = data[1] < size - 2 - entry ? data[1] : size - 2 - entry;
	read_bundle(
	    (struct mu_span){all.data + 2, entry},
	    (struct mu_span){all.data + 2 + entry, slice_entry},
	    (struct mu_span){all.data + 2 + entry + slice_entry, size - 2 - entry - slice_entry});
	return 0;
}
