/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the input as a tf.Example or a SequenceExample, in place and as a training record; as a
 * CIFAR-10 file; and as an example in JSON. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/io/crc32c.h"
#include "muster/data.h"
#include "task/kernels/io/example.h"
#include "task/kernels/io/json_example.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_list(void *arg, struct mu_span key, const struct example_list *list)
{
	MU_AUTO_TENSOR t = {0};
	struct mu_shape shape = mu_shape_vec(list->count);
	struct mu_err err;

	if (list->type == MU_DT_INVALID)
		return;
	if (list->count > (int64_t)list->values.len)
		abort(); /* each value needs at least one byte */
	if (mu_tensor_new(&t, list->type, &shape, &err) == 0)
		example_values(list, &t, 0);
}

static void check_rows(void *arg, struct mu_span key, struct mu_span bytes)
{
	struct mu_pb rows = mu_pb_of(bytes);
	struct example_list row;

	while (example_row(&rows, &row))
		check_list(arg, key, &row);
}

/* Creates a memory file and returns its path, or NULL on failure. */
static const char *memory_file(struct mu_span bytes, int *fd)
{
	static char path[64];

	*fd = memfd_create("fuzz", MFD_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", *fd);
	return *fd >= 0 && write(*fd, bytes.data, bytes.len) == (ssize_t)bytes.len ? path : NULL;
}

static void read_dataset(int (*read)(struct mu_dataset *, const struct mu_records *,
				     struct mu_err *),
			 struct mu_span bytes, bool skip_bad)
{
	struct mu_dataset d = {0};
	struct mu_err err;
	int fd;
	const char *path = memory_file(bytes, &fd);
	struct mu_records o = {.pattern = path, .feature = "x", .label = "y", .skip_bad = skip_bad};

	if (path && read(&d, &o, &err) == 0) {
		if (d.x.shape.count != d.rows * d.features || d.y.shape.count != d.rows)
			abort();
		mu_dataset_fini(&d);
	}
	close(fd);
}

/* Appends a TFRecord record with valid checksums. */
static void put_record(struct mu_buf *b, struct mu_span record)
{
	uint64_t n = record.len;
	uint32_t crc = mu_crc32c_mask(mu_crc32c(0, &n, sizeof(n)));

	mu_buf_put(b, &n, sizeof(n));
	mu_buf_put(b, &crc, sizeof(crc));
	mu_buf_put(b, record.data, record.len);
	crc = mu_crc32c_mask(mu_crc32c(0, record.data, record.len));
	mu_buf_put(b, &crc, sizeof(crc));
}

/* The result of a valid JSON example must parse as an example. */
static void parse_json(struct mu_span text)
{
	MU_AUTO_BUF b = {0};
	struct mu_err err;

	if (json_example(&b, text, &err) == 0 && !example_read(mu_buf_span(&b), check_list, NULL))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mu_span bytes = {(const char *)data, size};
	MU_AUTO_BUF framed = {0};

	mu_tensor_limit = 1 << 20;
	mu_log_set_level(MU_ERROR);
	example_read(bytes, check_list, NULL);
	example_read_sequence(bytes, check_list, NULL, check_rows, NULL);
	parse_json(bytes);
	put_record(&framed, bytes);
	put_record(&framed, bytes);
	read_dataset(mu_dataset_tfrecord, mu_buf_span(&framed), size & 1);
	read_dataset(mu_dataset_cifar10, bytes, size & 1);
	return 0;
}
