/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the input as a compressed file.  If mu_gz_read_file accepts it as gzip, reading it in
 * pieces must return the same bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/io/decompress.h"
#include "lib/io/gz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUTPUT_MAX = 1 << 20, PIECE = 1000 };

/* Returns false if the stream is invalid, or its output larger than OUTPUT_MAX. */
static bool decompress(struct mu_buf *out, const char *path, const char *compression)
{
	char piece[PIECE];
	size_t n = 0;
	FILE *file;
	bool ok;

	if (mu_decompress_open(&file, path, mu_span_of(compression), NULL) < 0)
		return false;
	while (out->len <= OUTPUT_MAX && (n = fread(piece, 1, sizeof(piece), file)) > 0)
		mu_buf_put(out, piece, n);
	ok = !ferror(file) && out->len <= OUTPUT_MAX;
	if (ok && ftello(file) != (off_t)out->len)
		abort();
	fclose(file);
	return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	MU_AUTO_BUF zlib = {0};
	MU_AUTO_BUF gzip = {0};
	MU_AUTO_BUF whole = {0};
	char path[64];

	if (fd < 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (write(fd, data, size) == (ssize_t)size) {
		decompress(&zlib, path, "ZLIB");
		if (decompress(&gzip, path, "GZIP") &&
		    mu_gz_read_file(&whole, path, OUTPUT_MAX, NULL) == 0 &&
		    (gzip.len != whole.len ||
		     (whole.len && memcmp(gzip.data, whole.data, whole.len) != 0)))
			abort();
	}
	close(fd);
	return 0;
}
