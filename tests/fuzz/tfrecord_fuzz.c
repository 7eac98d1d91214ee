/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the input as a TFRecord file, and its records as events and summaries. */
#include <sys/mman.h>
#include <unistd.h>

#include "lib/io/event_reader.h"
#include "lib/io/tfrecord.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
static void read_event(struct mu_span record)
{
	struct mu_summary_value v;
	struct mu_event e;
	size_t at = 0;

	if (mu_event_parse(&e, record, NULL) == 0 && e.kind == MU_EVENT_SUMMARY)
		while (mu_summary_next(e.body, &at, &v, NULL) == 1)
			;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	MU_AUTO(mu_tfrecord_reader_free) struct mu_tfrecord_reader *r = NULL;
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct mu_span record;
	char path[64];

	read_event((struct mu_span){(const char *)data, size});
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return 0;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (mu_tfrecord_open(&r, path, NULL) == 0)
		while (mu_tfrecord_next(r, &record, NULL) == 1)
			read_event(record);
	close(fd);
	return 0;
}
