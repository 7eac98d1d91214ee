/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the input as a file of training data: IDX and CSV, gzipped if it begins with the gzip
 * magic. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/io/csv.h"
#include "lib/io/idx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct mu_tensor *t)
{
	if (t->shape.count < 0 || mu_tensor_bytes(t) > (size_t)mu_tensor_limit)
		abort();
	mu_tensor_unref(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct mu_tensor t = {0};
	struct mu_err err;
	char path[64];

	mu_tensor_limit = 1 << 20;
	if (mu_csv_parse(&t, (struct mu_span){(const char *)data, size}, "fuzz", NULL, false,
			 &err) == 0)
		check(&t);
	if (fd >= 0 && write(fd, data, size) == (ssize_t)size) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		t = (struct mu_tensor){0};
		if (mu_idx_read(&t, path, &err) == 0)
			check(&t);
		t = (struct mu_tensor){0};
		if (mu_csv_read(&t, path, NULL, data && size && data[0] & 1, &err) == 0)
			check(&t);
	}
	if (fd >= 0)
		close(fd);
	return 0;
}
