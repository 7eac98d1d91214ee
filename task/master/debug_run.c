/* SPDX-License-Identifier: Apache-2.0 */
#include "task/master/debug_run.h"

#include "lib/base/map.h"
#include "lib/base/pb.h"
#include "lib/io/json.h"
#include "task/messages/control.h"
#include "task/runtime/debug_sink.h"

enum { WATCHES = 4, EVENT_LOG_MESSAGE = 6, MESSAGE_TEXT = 2 };

void debug_put_watches(struct mu_buf *key, struct mu_span debug)
{
	struct mu_pb m = mu_pb_of(debug);
	struct mu_pb_field f;

	while (mu_pb_next(&m, &f))
		if (f.number == WATCHES)
			mu_pb_put_bytes(key, f.number, f.bytes);
}

static void put_names(struct mu_buf *json, const char *key, const struct name_list *names,
		      const char *port)
{
	mu_buf_printf(json, ",\"%s\":[", key);
	for (unsigned i = 0; i < names->n; i++) {
		const char *name = names->list[i];
		MU_AUTO_FREE char *full = mu_xasprintf("%s%s", name, strchr(name, ':') ? "" : port);

		if (i)
			mu_buf_putc(json, ',');
		mu_json_quote(json, mu_span_of(full));
	}
	mu_buf_putc(json, ']');
}

static int64_t put_event(struct mu_buf *event, const struct run_step_request *r,
			 int64_t global_step, int64_t steps_before)
{
	int64_t time_us = debug_event_begin(event);
	size_t at = mu_pb_begin(event, EVENT_LOG_MESSAGE), text;

	text = mu_pb_begin(event, MESSAGE_TEXT);
	mu_buf_printf(event,
		      "{\"global_step\":%lld,\"session_run_index\":%lld,"
		      "\"executor_step_index\":%lld",
		      (long long)global_step, (long long)steps_before, (long long)steps_before);
	put_names(event, "input_names", &r->feeds, ":0");
	put_names(event, "output_names", &r->fetches, ":0");
	put_names(event, "target_nodes", &r->targets, "");
	mu_buf_putc(event, '}');
	mu_pb_end(event, text);
	mu_pb_end(event, at);
	return time_us;
}

/* Publishes at each URL of the watches once. */
static int publish_at_all(const Muster__DebugOptions *o, const char *path, int64_t time_us,
			  struct mu_span event, struct mu_err *err)
{
	struct mu_map done;
	int rc = 0;

	mu_map_init(&done);
	for (size_t i = 0; !rc && i < o->n_debug_tensor_watch_opts; i++) {
		Muster__DebugTensorWatch *w = o->debug_tensor_watch_opts[i];

		for (size_t j = 0; !rc && j < w->n_debug_urls; j++)
			if (!mu_map_put(&done, w->debug_urls[j], w))
				rc = debug_publish(w->debug_urls[j], path, time_us, event, err);
	}
	mu_map_fini(&done);
	return rc;
}

int debug_publish_run(const struct run_step_request *r, int64_t steps_before, struct mu_err *err)
{
	MU_AUTO_FREE char *path =
	    mu_xasprintf("_tfdbg_core_metadata_sessionrun%014lld", (long long)steps_before);
	const Muster__DebugOptions *o;
	MU_AUTO_BUF event = {0};
	struct mu_arena a;
	int64_t time_us;
	int rc = -MU_INVALID_ARGUMENT;

	mu_arena_init(&a);
	o = control_unpack(&a, &muster__debug_options__descriptor, r->debug, err);
	if (o) {
		time_us = put_event(&event, r, o->global_step, steps_before);
		rc = publish_at_all(o, path, time_us, mu_buf_span(&event), err);
	}
	mu_arena_fini(&a);
	return rc;
}
