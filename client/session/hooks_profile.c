/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a traced step as a file for trace viewers.
 *
 * RunMetadata{step_stats=1}, StepStats{dev_stats=1}, DeviceStepStats{device=1, node_stats=2},
 * NodeExecStats{node_name=1, all_start_micros=2, all_end_rel_micros=5, thread_id=10}. In the trace
 * a device is a process, and a thread of the device is a thread.
 */
#include <cjson/cJSON.h>

#include "lib/base/log.h"
#include "lib/base/pb.h"
#include "lib/io/folders.h"
#include "lib/io/json.h"
#include "muster/train.h"

struct profiler_hook {
	struct mu_hook base;
	char *folder;
	int64_t interval_steps, last_step;
	bool trace_requested;
};

struct node_stats {
	struct mu_span name;
	int64_t start, length, thread;
};

static bool read_node_stats(struct mu_span body, struct node_stats *e)
{
	struct mu_pb m = mu_pb_of(body);
	struct mu_pb_field f;

	*e = (struct node_stats){.name = {"", 0}};
	while (mu_pb_next(&m, &f)) {
		if (f.number == 1)
			e->name = f.bytes;
		else if (f.number == 2)
			e->start = (int64_t)f.value;
		else if (f.number == 5)
			e->length = (int64_t)f.value;
		else if (f.number == 10)
			e->thread = (int64_t)f.value;
	}
	return !m.bad;
}

/* A trace event: "M" names a process, "X" is a time span. */
static cJSON *new_event(const char *phase, struct mu_span name, unsigned device)
{
	MU_AUTO_FREE char *text = mu_xstrndup(name.data, name.len);
	cJSON *e = cJSON_CreateObject(), *args;

	cJSON_AddStringToObject(e, "ph", phase);
	cJSON_AddNumberToObject(e, "pid", device);
	if (*phase == 'M') {
		cJSON_AddStringToObject(e, "name", "process_name");
		args = cJSON_AddObjectToObject(e, "args");
		cJSON_AddStringToObject(args, "name", text);
	} else {
		cJSON_AddStringToObject(e, "name", text);
	}
	return e;
}

static bool profile_add_device(cJSON *events, struct mu_span body, unsigned device)
{
	struct mu_pb m = mu_pb_of(body);
	struct mu_pb_field f;

	while (mu_pb_next(&m, &f)) {
		struct node_stats n;
		cJSON *e;

		if (f.number == 1) {
			cJSON_AddItemToArray(events, new_event("M", f.bytes, device));
		} else if (f.number == 2) {
			if (!read_node_stats(f.bytes, &n))
				return false;
			e = new_event("X", n.name, device);
			cJSON_AddNumberToObject(e, "tid", (double)n.thread);
			cJSON_AddNumberToObject(e, "ts", (double)n.start);
			cJSON_AddNumberToObject(e, "dur", (double)n.length);
			cJSON_AddItemToArray(events, e);
		}
	}
	return !m.bad;
}

/* Adds all devices of a RunMetadata. False if the message is invalid. */
static bool profile_add_devices(cJSON *events, struct mu_span metadata)
{
	struct mu_pb m = mu_pb_of(metadata);
	struct mu_pb_field stats, device;
	unsigned n = 0;

	while (mu_pb_next(&m, &stats)) {
		struct mu_pb inner = mu_pb_of(stats.bytes);

		while (stats.number == 1 && mu_pb_next(&inner, &device))
			if (device.number == 1 && !profile_add_device(events, device.bytes, n++))
				return false;
		if (stats.number == 1 && inner.bad)
			return false;
	}
	return !m.bad && n > 0;
}

static bool profiler_wants_trace(struct mu_hook *base, int64_t step)
{
	struct profiler_hook *h = (struct profiler_hook *)base;

	h->trace_requested = step - h->last_step >= h->interval_steps;
	return h->trace_requested;
}

static int profiler_after(struct mu_hook *base, struct mu_hook_step *s, struct mu_err *err)
{
	struct profiler_hook *h = (struct profiler_hook *)base;
	MU_AUTO_BUF text = {0};
	MU_AUTO_FREE char *path = NULL;
	cJSON *trace, *events;
	bool is_valid;

	if (!h->trace_requested || !s->trace.len)
		return 0;
	h->last_step = s->step;
	trace = cJSON_CreateObject();
	events = cJSON_AddArrayToObject(trace, "traceEvents");
	is_valid = profile_add_devices(events, s->trace);
	if (is_valid)
		mu_json_print(&text, trace);
	cJSON_Delete(trace);
	if (!is_valid) {
		mu_warn("train", "step %lld: the server returned no trace", (long long)s->step);
		return 0;
	}
	path = mu_xasprintf("%s/timeline-%lld.json", h->folder, (long long)s->step);
	int rc = mu_make_folders(path, err);
	return rc ? rc : mu_write_unsynced(path, text.data, text.len, err);
}

static void profiler_free(struct mu_hook *base)
{
	free(((struct profiler_hook *)base)->folder);
	free(base);
}

struct mu_hook *mu_profiler_hook(const char *folder, int64_t steps)
{
	struct profiler_hook *h = MU_NEW(struct profiler_hook);

	h->base = (struct mu_hook){
	    .wants_trace = profiler_wants_trace, .after = profiler_after, .free = profiler_free};
	h->folder = mu_xstrdup(folder);
	h->interval_steps = steps > 0 ? steps : 1;
	return &h->base;
}
