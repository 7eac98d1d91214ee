/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing GPUs. */
#include <stdio.h>
#include <string.h>

#include "task/device/gpu_internal.h"

/* Memory for the driver and other libraries if all memory is requested.  Their code and workspaces
 * use about 1 GiB.  A library without enough memory does not start; the task works without it. */
#define SPARE_MEMORY ((size_t)2 << 30)
enum { MAX_GPUS = 64 };

/* ---- open and close ---- */

static int read_device_info(struct gpu *g, struct mu_err *err)
{
	struct gpu_info *f = &g->info;
	const struct cuda_api *api = g->api;
	int rc;

	if ((rc = gpu_check(g, api->device_name(f->name, sizeof f->name, g->ordinal),
			    "reading its name", err)) ||
	    (rc = gpu_check(g, api->device_bus_id(f->bus, sizeof f->bus, g->ordinal),
			    "reading its PCI bus id", err)) ||
	    (rc = gpu_check(g, api->device_attribute(&f->major, CUDA_MAJOR, g->ordinal),
			    "its compute capability", err)) ||
	    (rc = gpu_check(g, api->device_attribute(&f->minor, CUDA_MINOR, g->ordinal),
			    "its compute capability", err)))
		return rc;
	return gpu_check(
	    g, api->device_attribute(&f->multiprocessors, CUDA_MULTIPROCESSORS, g->ordinal),
	    "its number of processors", err);
}

static int load_kernels(struct gpu *g, const void *image, struct mu_err *err)
{
	int result = g->api->module_load(&g->module, image);

	if (result == CUDA_NO_IMAGE_FOR_GPU || result == CUDA_UNSUPPORTED_PTX)
		return mu_fail(err, MU_FAILED_PRECONDITION,
			       "GPU:%u (%s, sm_%d%d) can run none of the plug-in's kernels, which "
			       "are for sm_80 and newer, with driver %d.%d; update the driver or "
			       "ask for cpu kernels",
			       g->device.number, g->info.name, g->info.major, g->info.minor,
			       g->info.driver / 1000, g->info.driver % 1000 / 10);
	return gpu_check(g, result, "loading the kernels", err);
}

static bool env_is_true(const char *variable)
{
	const char *value = getenv(variable);

	return value && (strcmp(value, "1") == 0 || strcmp(value, "true") == 0);
}

/* If a library is not installed or does not start, the plug-in's own kernels replace it. */
static void open_libraries(struct gpu *g, const struct cuda_plugin *plugin)
{
	g->tf32 = env_is_true("MUSTER_TF32");
	g->is_deterministic = env_is_true("TF_DETERMINISTIC_OPS");
	g->blas_api = plugin->blas;
	if (plugin->blas && plugin->blas->library_new(&g->blas))
		g->blas = NULL;
	if (g->blas)
		g->blas_api->stream_set(g->blas, g->compute);
	g->dnn_api = plugin->dnn;
}

static size_t memory_limit(const struct gpu_options *o, size_t free, size_t total)
{
	size_t spare = SPARE_MEMORY < free / 8 ? SPARE_MEMORY : free / 8;

	if (o->limit)
		return o->limit;
	if (o->fraction > 0)
		return (size_t)((double)total * o->fraction);
	return free - spare;
}

static int stream_new(struct gpu *g, void **out, struct mu_err *err)
{
	return gpu_check(g, g->api->stream_new(out, CUDA_STREAM_NON_BLOCKING), "making a stream",
			 err);
}

static int open_gpu(struct gpu *g, const struct cuda_plugin *plugin, const struct gpu_options *o,
		    int ordinal, struct mu_err *err)
{
	static _Atomic uint64_t n_opened;
	size_t free;
	int rc;

	g->api = plugin->api;
	g->serial = atomic_fetch_add(&n_opened, 1) + 1;
	pthread_mutex_init(&g->lock, NULL);
	pthread_mutex_init(&g->library_lock, NULL);
	mu_map_init(&g->kernels);
	g->api->driver_version(&g->info.driver);
	if ((rc = gpu_check(g, g->api->device_get(&g->ordinal, ordinal), "finding it", err)) ||
	    (rc = read_device_info(g, err)) ||
	    (rc = gpu_check(g, g->api->context_retain(&g->context, g->ordinal), "opening it", err)))
		return rc;
	g->has_context = true;
	if ((rc = gpu_enter(g, err)) ||
	    (rc = gpu_check(g, g->api->memory_info(&free, &g->info.memory), "its memory", err)) ||
	    (rc = load_kernels(g, plugin->image, err)))
		return rc;
	g->info.limit = memory_limit(o, free, g->info.memory);
	if ((rc = stream_new(g, &g->compute, err)) || (rc = stream_new(g, &g->in, err)) ||
	    (rc = stream_new(g, &g->out, err)) || (rc = gpu_memory_open(g, o->growth, err)))
		return rc;
	open_libraries(g, plugin);
	return gpu_copies_start(g, err);
}

static void stream_free(struct gpu *g, void *stream)
{
	if (stream)
		g->api->stream_free(stream);
}

static void gpu_close(struct device *d)
{
	struct gpu *g = (struct gpu *)d;

	if (g->has_context)
		g->api->context_set(g->context); /* also if the GPU is out of service */
	gpu_leave();
	gpu_copies_stop(g);
	stream_free(g, g->out);
	stream_free(g, g->in);
	stream_free(g, g->compute);
	if (g->blas)
		g->blas_api->library_free(g->blas);
	if (g->dnn)
		g->dnn_api->library_free(g->dnn);
	if (g->module)
		g->api->module_unload(g->module);
	if (g->has_context)
		g->api->context_release(g->ordinal);
	mu_map_fini(&g->kernels);
	pthread_mutex_destroy(&g->library_lock);
	pthread_mutex_destroy(&g->lock);
	free(g);
}

/* ---- device_ops ---- */

static struct gpu *gpu_of(struct device *d)
{
	return (struct gpu *)d;
}

static bool device_works(struct device *d)
{
	return gpu_is_usable(gpu_of(d));
}

static int device_tensor_new(struct device *d, enum mu_dtype dtype, const struct mu_shape *shape,
			     const char *holder, struct mu_tensor *out, struct mu_err *err)
{
	return gpu_tensor_new(gpu_of(d), dtype, shape, holder, out, err);
}

static int device_tensor_copy(struct device *d, const struct mu_tensor *from, const char *holder,
			      struct mu_tensor *out, struct mu_err *err)
{
	return gpu_tensor_copy(gpu_of(d), from, holder, out, err);
}

/* Kernels that read the tensor before precede the writer on the compute stream. */
static bool device_is_writable(const struct mu_tensor *t)
{
	return mu_tensor_is_sole(t);
}

static int device_copy_in(struct device *d, const struct mu_tensor *from, const char *holder,
			  struct mu_tensor *out, struct mu_err *err)
{
	return gpu_copy_to_device(gpu_of(d), from, holder, out, err);
}

static int device_copy_out(struct device *d, const struct mu_tensor *from, struct mu_tensor *out,
			   device_done done, void *arg, struct mu_err *err)
{
	return gpu_copy_to_host(gpu_of(d), from, out, done, arg, err);
}

static const struct device_ops gpu_device_ops = {.free = gpu_close,
						 .works = device_works,
						 .tensor_new = device_tensor_new,
						 .tensor_copy = device_tensor_copy,
						 .is_writable = device_is_writable,
						 .copy_in = device_copy_in,
						 .copy_out = device_copy_out};

/* ---- sets ---- */

/* "0,2" -> numbers below `count`, each at most once. */
static int read_visible(const char *text, int count, int *out, unsigned *n, struct mu_err *err)
{
	*n = 0;
	for (const char *at = text; *at;) {
		char *end;
		long v = strtol(at, &end, 10);
		bool is_duplicate = false;
		for (unsigned i = 0; i < *n; i++)
			is_duplicate |= out[i] == v;
		if (end == at || (*end && *end != ',') || v < 0 || v >= count || is_duplicate ||
		    *n == MAX_GPUS)
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "'visible_device_list' listed '%s': there are GPUs 0 to %d "
				       "here, each may be named once",
				       text, count - 1);
		out[(*n)++] = (int)v;
		at = *end ? end + 1 : end;
	}
	if (!*text)
		for (int i = 0; i < count && *n < MAX_GPUS; i++)
			out[(*n)++] = i;
	return 0;
}

int gpu_set_open(const struct cuda_plugin *plugin, const struct gpu_options *o,
		 struct device_set **out, struct mu_err *err)
{
	int ordinals[MAX_GPUS], count = 0, rc = 0;
	unsigned n;

	if (plugin->api->device_count(&count) || count <= 0)
		return mu_fail(err, MU_FAILED_PRECONDITION,
			       "no CUDA here: the driver reports no GPU");
	if ((rc = read_visible(o->visible, count, ordinals, &n, err)))
		return rc;
	if (o->max_gpus && n > o->max_gpus)
		n = o->max_gpus;
	struct device_set *s = mu_xcalloc(1, sizeof *s + n * sizeof s->at[0]);
	for (; s->n < n && !rc; s->n++) {
		struct gpu *g = MU_NEW(struct gpu);
		g->device = (struct device){.ops = &gpu_device_ops, .number = s->n};
		snprintf(g->device.name, sizeof g->device.name, "GPU:%u", s->n);
		s->at[s->n] = &g->device;
		rc = open_gpu(g, plugin, o, ordinals[s->n], err);
	}
	if (rc)
		device_set_free(s);
	else
		*out = s;
	return rc;
}

void gpu_get_info(struct gpu *g, struct gpu_info *out)
{
	pthread_mutex_lock(&g->lock);
	*out = g->info;
	out->used = g->memory.used;
	out->peak = g->memory.peak;
	pthread_mutex_unlock(&g->lock);
}
