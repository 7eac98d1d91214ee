/* SPDX-License-Identifier: Apache-2.0 */
#include "task/runtime/debug_sink.h"

#include <stdatomic.h>

#include "lib/base/clock.h"
#include "lib/base/pb.h"
#include "lib/io/folders.h"

#define FILE_SCHEME "file://"

int64_t debug_event_begin(struct mu_buf *event)
{
	static _Atomic int64_t last_us;
	int64_t before = atomic_load(&last_us), now;

	do {
		now = mu_wall_ns() / 1000;
		if (now <= before)
			now = before + 1;
	} while (!atomic_compare_exchange_weak(&last_us, &before, now));
	mu_pb_put_double(event, 1, (double)now);
	return now;
}

void debug_put_folder(struct mu_buf *path, const char *device)
{
	if (!*device)
		return;
	mu_buf_puts(path, "_tfdbg_device_");
	for (; *device; device++)
		mu_buf_putc(path, *device == '/' ? ',' : *device == ':' ? '_' : *device);
	mu_buf_putc(path, '/');
}

static int publish_file(const char *root, const char *path, int64_t time_us, struct mu_span event,
			struct mu_err *err)
{
	MU_AUTO_FREE char *file = mu_xasprintf("%s/%s_%lld", root, path, (long long)time_us);
	struct mu_err why;

	if (mu_make_folders(file, &why))
		return mu_fail(err, MU_FAILED_PRECONDITION,
			       "Failed to create directory  %s, due to: %s", root, why.msg);
	return mu_write_unsynced(file, event.data, event.len, err);
}

int debug_publish(const char *url, const char *path, int64_t time_us, struct mu_span event,
		  struct mu_err *err)
{
	size_t scheme = strlen(FILE_SCHEME);

	if (strncmp(url, FILE_SCHEME, scheme) != 0 || !url[scheme])
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "the debugger's URL '%s' does not begin with file:// and a folder",
			       url);
	return publish_file(url + scheme, path, time_us, event, err);
}
