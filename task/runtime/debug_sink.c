/* SPDX-License-Identifier: Apache-2.0 */
#include "task/runtime/debug_sink.h"

#include <stdatomic.h>

#include "lib/base/clock.h"
#include "lib/base/pb.h"
#include "lib/io/folders.h"
#include "task/runtime/runtime.h"

int64_t debug_event_time(void)
{
	static _Atomic int64_t last_us;
	int64_t before = atomic_load(&last_us), now;

	do {
		now = mu_wall_ns() / 1000;
		if (now <= before)
			now = before + 1;
	} while (!atomic_compare_exchange_weak(&last_us, &before, now));
	return now;
}

void debug_event_begin(struct mu_buf *event, int64_t time_us)
{
	mu_pb_put_double(event, 1, (double)time_us);
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

static int publish_file(struct runtime *rt, const char *url, const struct debug_event *e,
			struct mu_err *err)
{
	const char *root = url + strlen("file://");
	MU_AUTO_FREE char *file = mu_xasprintf("%s/%s_%lld", root, e->path, (long long)e->time_us);
	struct mu_err why;

	if (!*root)
		return mu_fail(err, MU_INVALID_ARGUMENT, "the debug URL '%s' names no folder", url);
	if (mu_make_folders(file, &why))
		return mu_fail(err, MU_FAILED_PRECONDITION,
			       "Failed to create directory  %s, due to: %s", root, why.msg);
	return mu_write_unsynced(file, e->bytes.data, e->bytes.len, err);
}

static int publish_stream(struct runtime *rt, const char *url, const struct debug_event *e,
			  struct mu_err *err)
{
	const struct debug_streams *s = &rt->debug_streams;

	if (!s->send)
		return mu_fail(err, MU_UNIMPLEMENTED, "no client for the debug URL %s", url);
	return s->send(s->ctx, url, e, err);
}

const struct debug_sink *debug_sink_find(const char *url)
{
	static const struct debug_sink sinks[] = {
	    {"file://", false, publish_file},
	    {"grpc://", true, publish_stream},
	};

	for (unsigned i = 0; i < MU_COUNT(sinks); i++)
		if (strncmp(url, sinks[i].scheme, strlen(sinks[i].scheme)) == 0)
			return &sinks[i];
	return NULL;
}
