/* SPDX-License-Identifier: Apache-2.0 */
/* The driver: devices, contexts and kernels; see fake_cuda.h. One lock protects everything:
 * correctness is more important than speed. */
#include "tests/fake/cuda/fake_jobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	FAULT = 700,
	MAX_ARGS = 4096,
	MAX_THREADS = 1024,
	MAX_BLOCK_DEPTH = 64,
	MAX_SHARED_BYTES = 48 << 10
};

struct device {
	int fault, retained;
	unsigned long life; /* id of the current context; changes with each new context */
};

struct fake_cuda fake_cuda;
struct fake_cuda_counts fake_counts;
static struct device devices[FAKE_MAX_DEVICES];
pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t fake_news = PTHREAD_COND_INITIALIZER;
static _Thread_local struct {
	int device;
	unsigned long life;
} current = {-1, 0};

void fake_cuda_reset(void)
{
	fake_cuda = (struct fake_cuda){
	    .devices = 2, .memory = 256 << 20, .major = 9, .minor = 0, .driver = 13000};
	for (unsigned i = 0; i < sizeof devices / sizeof *devices; i++)
		devices[i].fault = devices[i].retained = 0;
	fake_counts = (struct fake_cuda_counts){0};
}

void fake_cuda_count(struct fake_cuda_counts *out)
{
	pthread_mutex_lock(&fake_lock);
	*out = fake_counts;
	pthread_mutex_unlock(&fake_lock);
}

void fake_cuda_note(void (*how)(struct fake_cuda_counts *c))
{
	pthread_mutex_lock(&fake_lock);
	how(&fake_counts);
	pthread_mutex_unlock(&fake_lock);
}

void fake_cuda_note_library(int more)
{
	pthread_mutex_lock(&fake_lock);
	fake_counts.libraries += more;
	pthread_mutex_unlock(&fake_lock);
}

void fake_cuda_note_description(int more)
{
	pthread_mutex_lock(&fake_lock);
	fake_counts.descriptions += more;
	pthread_mutex_unlock(&fake_lock);
}

int fake_current(void)
{
	return current.device;
}

void fake_fault(int device, int result)
{
	pthread_mutex_lock(&fake_lock);
	devices[device].fault = result;
	pthread_mutex_unlock(&fake_lock);
}

bool fake_has_fault(int device)
{
	return devices[device].fault != 0;
}

/* Called with the lock: the result that a test has requested for this call. */
static int injected_result(const char *call)
{
	if (!fake_cuda.fail_call || strcmp(call, fake_cuda.fail_call) != 0 ||
	    --fake_cuda.fail_at > 0)
		return 0;
	fake_cuda.fail_call = NULL;
	return fake_cuda.fail_result;
}

int fake_cuda_answer(const char *call)
{
	pthread_mutex_lock(&fake_lock);
	int result = injected_result(call);
	pthread_mutex_unlock(&fake_lock);
	return result;
}

int fake_cuda_answer_here(const char *call)
{
	const struct device *d = current.device < 0 ? NULL : &devices[current.device];

	pthread_mutex_lock(&fake_lock);
	int result = injected_result(call);
	if (!result)
		result = !d                                        ? INVALID_CONTEXT
			 : !d->retained || d->life != current.life ? CONTEXT_IS_GONE
								   : d->fault;
	pthread_mutex_unlock(&fake_lock);
	return result;
}

/* ---- devices ---- */

int fake_init(unsigned flags)
{
	return fake_cuda.init_result;
}

int fake_driver_version(int *version)
{
	*version = fake_cuda.driver;
	return 0;
}

int fake_device_count(int *count)
{
	*count = fake_cuda.devices;
	return 0;
}

int fake_device_get(int *device, int ordinal)
{
	*device = ordinal;
	return ordinal >= 0 && ordinal < fake_cuda.devices ? 0 : 101;
}

int fake_device_name(char *name, int len, int device)
{
	snprintf(name, (size_t)len, "Fake GPU %d", device);
	return 0;
}

int fake_device_bus_id(char *id, int len, int device)
{
	snprintf(id, (size_t)len, "0000:%02x:00.0", device);
	return 0;
}

int fake_device_attribute(int *value, int attribute, int device)
{
	*value = attribute == CUDA_MAJOR   ? fake_cuda.major
		 : attribute == CUDA_MINOR ? fake_cuda.minor
					   : 2;
	return 0;
}

int fake_context_retain(void **context, int device)
{
	FAKE_RETURN_IF(fake_cuda_answer("context_retain"));
	pthread_mutex_lock(&fake_lock);
	fake_counts.contexts++;
	if (!devices[device].retained++)
		devices[device].life++;
	pthread_mutex_unlock(&fake_lock);
	*context = &devices[device];
	return 0;
}

int fake_context_release(int device)
{
	pthread_mutex_lock(&fake_lock);
	bool was = devices[device].retained > 0;
	if (was) {
		fake_counts.contexts--;
		if (!--devices[device].retained)
			fake_pool_release(device);
	}
	pthread_mutex_unlock(&fake_lock);
	return was ? 0 : INVALID_CONTEXT;
}

int fake_context_set(void *context)
{
	const struct device *d = context;

	pthread_mutex_lock(&fake_lock);
	current.device = d ? (int)(d - devices) : -1;
	current.life = d ? d->life : 0;
	pthread_mutex_unlock(&fake_lock);
	return d && !d->retained ? CONTEXT_IS_GONE : 0;
}

/* ---- kernels ---- */

struct module {
	struct function *first;
	int device;
};

int fake_module_load(void **module, const void *image)
{
	struct module *m;

	FAKE_ANSWER_TO("module_load");
	m = calloc(1, sizeof *m);
	m->device = current.device;
	*module = m;
	return 0;
}

int fake_module_unload(void *module)
{
	struct module *m = module;

	while (m->first) {
		struct function *f = m->first;
		m->first = f->next;
		free(f);
	}
	free(m);
	return 0;
}

int fake_module_function(void **function, void *module, const char *name)
{
	const struct host_kernel *k = host_kernel_find(name);
	struct module *m = module;

	FAKE_ANSWER_TO("module_function");
	if (!k)
		return CUDA_NOT_FOUND;
	if (m->device != current.device)
		return INVALID_HANDLE;
	struct function *f = malloc(sizeof *f);
	pthread_mutex_lock(&fake_lock);
	*f = (struct function){m->first, k, m->device};
	m->first = f;
	pthread_mutex_unlock(&fake_lock);
	*function = f;
	return 0;
}

/* Checks the limits of a device, and that grids and blocks have one dimension, as ours do. */
bool fake_shape_is_possible(const struct function *f, const unsigned *blocks,
			    const unsigned *threads, unsigned shared)
{
	const unsigned long all = (unsigned long)threads[0] * threads[1] * threads[2];

	return blocks[0] && blocks[0] <= INT32_MAX && all && all <= MAX_THREADS &&
	       threads[2] <= MAX_BLOCK_DEPTH && shared <= MAX_SHARED_BYTES &&
	       f->kernel->size <= MAX_ARGS && blocks[1] == 1 && blocks[2] == 1 && threads[1] == 1 &&
	       threads[2] == 1;
}

int fake_launch(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
		unsigned bz, unsigned shared, void *stream, void **args, void **extra)
{
	const unsigned blocks[] = {gx, gy, gz}, threads[] = {bx, by, bz};
	const struct function *f = function;
	struct stream *s = stream;

	FAKE_ANSWER_TO("launch");
	if (!args || extra || !fake_shape_is_possible(f, blocks, threads, shared))
		return INVALID_VALUE;
	if (!fake_stream_is_here(s) || f->device != s->device)
		return INVALID_HANDLE;
	pthread_mutex_lock(&fake_lock);
	fake_counts.launches++;
	fake_append(s,
		    &(struct job){.deed = LAUNCH, .kernel = f->kernel, .blocks = gx, .threads = bx},
		    args[0], f->kernel->size);
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

bool fake_cuda_put(void *stream, const struct host_kernel *k, const void *args)
{
	if (!fake_stream_is_here(stream))
		return false;
	pthread_mutex_lock(&fake_lock);
	fake_append(stream, &(struct job){.deed = LAUNCH, .kernel = k, .blocks = 1, .threads = 1},
		    args, k->size);
	pthread_mutex_unlock(&fake_lock);
	return true;
}

int fake_error_text(int result, const char **text)
{
	*text = result == FAULT            ? "an illegal memory access was encountered"
		: result == CUDA_NO_MEMORY ? "out of memory"
					   : "made up";
	return 0;
}

const struct cuda_plugin *fake_cuda_plugin(void)
{
#define ENTRY(field, symbol, args) .field = fake_##field,
	static const struct cuda_api api = {CUDA_API(ENTRY)};
	static const struct cuda_plugin plugin = {CUDA_PLUGIN_VERSION, &api, &fake_blas, &fake_dnn,
						  "kernels"};

	return &plugin;
}
