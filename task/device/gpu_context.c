/* SPDX-License-Identifier: Apache-2.0 */
/* The context of a GPU: the driver's errors, the current context of a thread, and the order of
 * streams. */
#include <stdio.h>

#include "task/device/gpu_internal.h"

/* ---- errors ---- */

/* Results after which every call with the context fails: uncorrectable memory errors, faults and
 * traps of kernels, lost devices, "unknown". */
static bool is_sticky(int result)
{
	static const short sticky[] = {214, 220, 226, 700, 702, 709, 710, 714,
				       715, 716, 717, 718, 719, 721, 999, 4};

	for (unsigned i = 0; i < MU_COUNT(sticky); i++)
		if (result == sticky[i])
			return true;
	return false;
}

static int fail_out_of_service(struct gpu *g, struct mu_err *err)
{
	pthread_mutex_lock(&g->lock);
	int rc = mu_fail(err, MU_UNAVAILABLE,
			 "GPU:%u is out of service: %s.  Restart the task to use it again",
			 g->device.number, g->info.broken);
	pthread_mutex_unlock(&g->lock);
	return rc;
}

static const char *text_of(struct gpu *g, int result)
{
	const char *text = NULL;

	return g->api->error_text(result, &text) || !text ? "unknown error" : text;
}

/* Takes the GPU out of service. */
static int gpu_mark_broken(struct gpu *g, int result, const char *action, struct mu_err *err)
{
	pthread_mutex_lock(&g->lock);
	if (!*g->info.broken)
		snprintf(g->info.broken, sizeof g->info.broken, "%.40s: %.60s (CUDA error %d)",
			 action, text_of(g, result), result);
	pthread_mutex_unlock(&g->lock);
	atomic_store(&g->broken, true);
	return fail_out_of_service(g, err);
}

int gpu_check(struct gpu *g, int result, const char *action, struct mu_err *err)
{
	if (!result)
		return 0;
	if (!is_sticky(result))
		return mu_fail(err, result == CUDA_NO_MEMORY ? MU_RESOURCE_EXHAUSTED : MU_INTERNAL,
			       "GPU:%u, %s: %s (CUDA error %d)", g->device.number, action,
			       text_of(g, result), result);
	return gpu_mark_broken(g, result, action, err);
}

/* The serial number of the GPU whose context is current on this thread; 0: none.  Handles are not
 * compared, because a new context may have the handle of a destroyed one. */
static _Thread_local uint64_t current_serial;

int gpu_enter(struct gpu *g, struct mu_err *err)
{
	int rc;

	if (atomic_load_explicit(&g->broken, memory_order_relaxed))
		return fail_out_of_service(g, err);
	if (current_serial == g->serial)
		return 0;
	rc = gpu_check(g, g->api->context_set(g->context), "entering its context", err);
	if (!rc)
		current_serial = g->serial;
	return rc;
}

void gpu_leave(void)
{
	current_serial = 0;
}

bool gpu_is_usable(struct gpu *g)
{
	return !atomic_load(&g->broken);
}

int gpu_stream_wait(struct gpu *g, void *first, void *second, struct mu_err *err)
{
	const struct cuda_api *api = g->api;
	void *event;
	int rc = gpu_check(g, api->event_new(&event, CUDA_EVENT_NO_TIMING), "making an event", err);

	if (rc)
		return rc;
	if (!(rc = gpu_check(g, api->event_record(event, first), "recording an event", err)))
		rc = gpu_check(g, api->stream_wait(second, event, 0), "ordering its streams", err);
	api->event_free(event); /* the waiting stream does not need it any more */
	return rc;
}
