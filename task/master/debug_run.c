/* SPDX-License-Identifier: Apache-2.0 */
#include "task/master/debug_run.h"

#include "lib/base/map.h"
#include "lib/base/pb.h"
#include "lib/io/json.h"
#include "task/messages/control.h"
#include "task/runtime/runtime.h"

enum { EVENT_LOG_MESSAGE = 6, MESSAGE_TEXT = 2 };

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

static void put_json(struct mu_buf *json, const struct run_step_request *r, int64_t global_step,
		     int64_t steps_before)
{
	mu_buf_printf(json,
		      "{\"global_step\":%lld,\"session_run_index\":%lld,"
		      "\"executor_step_index\":%lld",
		      (long long)global_step, (long long)steps_before, (long long)steps_before);
	put_names(json, "input_names", &r->feeds, ":0");
	put_names(json, "output_names", &r->fetches, ":0");
	put_names(json, "target_nodes", &r->targets, "");
}

/* Appends the path of a URL "grpc://host:port/path". */
static void put_grpc_path(struct mu_buf *json, const char *url)
{
	const char *path = strchr(url + strlen("grpc://"), '/');

	mu_buf_puts(json, ",\"grpc_path\":");
	mu_json_quote(json, mu_span_of(path ? path : ""));
}

/* Publishes an Event with the names.  As in TensorFlow, an unknown kind of URL is an error only
 * when the first tensor is published. */
static int publish_names(struct runtime *rt, const char *url, struct mu_span names, int64_t time_us,
			 const char *path, struct mu_err *err)
{
	const struct debug_sink *sink = debug_sink_find(url);
	MU_AUTO_BUF event = {0};
	size_t message, text;

	if (!sink)
		return 0;
	debug_event_begin(&event, time_us);
	message = mu_pb_begin(&event, EVENT_LOG_MESSAGE);
	text = mu_pb_begin(&event, MESSAGE_TEXT);
	mu_buf_put(&event, names.data, names.len);
	if (sink->is_stream)
		put_grpc_path(&event, url);
	mu_buf_putc(&event, '}');
	mu_pb_end(&event, text);
	mu_pb_end(&event, message);
	return sink->publish(
	    rt, url,
	    &(struct debug_event){
		.bytes = mu_buf_span(&event), .path = path, .time_us = time_us, .is_last = true},
	    err);
}

/* Collects the URLs of all watches as the keys and values of `urls`. */
static const Muster__DebugOptions *read_urls(const struct run_step_request *r, struct mu_arena *a,
					     struct mu_map *urls, struct mu_err *err)
{
	const Muster__DebugOptions *o =
	    control_unpack(a, &muster__debug_options__descriptor, r->debug, err);

	for (size_t i = 0; o && i < o->n_debug_tensor_watch_opts; i++) {
		const Muster__DebugTensorWatch *w = o->debug_tensor_watch_opts[i];

		for (size_t j = 0; j < w->n_debug_urls; j++)
			mu_map_put(urls, w->debug_urls[j], w->debug_urls[j]);
	}
	return o;
}

int debug_publish_run(struct runtime *rt, const struct run_step_request *r, int64_t steps_before,
		      struct mu_err *err)
{
	MU_AUTO_FREE char *path =
	    mu_xasprintf("_tfdbg_core_metadata_sessionrun%014lld", (long long)steps_before);
	const Muster__DebugOptions *o;
	MU_AUTO_BUF names = {0};
	struct mu_map urls;
	MU_AUTO_ARENA a = {0};
	int64_t time_us = debug_event_time();
	int rc = -MU_INVALID_ARGUMENT;

	mu_map_init(&urls);
	o = read_urls(r, &a, &urls, err);
	if (o) {
		rc = 0;
		put_json(&names, r, o->global_step, steps_before);
		mu_map_each (&urls, url)
			if (!rc)
				rc = publish_names(rt, url->value, mu_buf_span(&names), time_us,
						   path, err);
	}
	mu_map_fini(&urls);
	return rc;
}

void debug_end_run(struct runtime *rt, const struct run_step_request *r)
{
	const struct debug_streams *s = &rt->debug_streams;
	struct mu_map urls;
	MU_AUTO_ARENA a = {0};

	mu_map_init(&urls);
	read_urls(r, &a, &urls, NULL);
	mu_map_each (&urls, url) {
		const struct debug_sink *sink = debug_sink_find(url->value);

		if (sink && sink->is_stream && s->close)
			s->close(s->ctx, url->value);
	}
	mu_map_fini(&urls);
}
