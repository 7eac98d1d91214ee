/* SPDX-License-Identifier: Apache-2.0 */
/* The speed of GPU work through our own entry points, each figure beside its target.
 *
 * 	gpu PLUGIN [SECONDS [SIDE [MIB]]]
 *
 * Products of SIDE by SIDE matrices, buffers of MIB. The limits of memory and link are measured in
 * the same run with the driver's own copies. The best of several rounds counts, because of other
 * load on the machine. Needs a C compiler, nvcc and the driver, as `make gpu-test` does.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "task/device/gpu_internal.h"
#include "task/device/gpu_product.h"
#include "task/kernels/engine/cuda/args.h"

enum { ROUNDS = 5 };

static struct mu_err err;
static struct gpu *g;
static double seconds = 2;
static int64_t side = 8192, bytes = (int64_t)256 << 20;

static void must(int rc, const char *doing)
{
	if (!rc)
		return;
	fprintf(stderr, "gpu: %s: %s (%d)\n", doing, rc < 0 ? err.msg : "the driver refuses", rc);
	exit(1);
}

/* Waits for all launched work. */
static void settle(void)
{
	must(g->api->stream_sync(g->compute), "waiting for kernels");
	must(g->api->stream_sync(g->in), "waiting for copies in");
	must(g->api->stream_sync(g->out), "waiting for copies out");
}

/* Seconds per call: the best of several rounds, each with as many calls as fit. */
static double time_of(void (*once)(void *arg), void *arg)
{
	double best = 1e300;
	int64_t calls = 1;

	once(arg);
	settle();
	for (int round = 0; round < ROUNDS;) {
		const int64_t from = mu_clock_ns();
		for (int64_t i = 0; i < calls; i++)
			once(arg);
		settle();
		const double took = (double)(mu_clock_ns() - from) / 1e9;
		if (took < seconds / ROUNDS / 2 && calls < 1 << 20) {
			calls *= 2;
			continue;
		}
		best = took / (double)calls < best ? took / (double)calls : best;
		round++;
	}
	return best;
}

static void tell(const char *what, double is, const char *unit, double of, double share)
{
	printf("%-44s %10.1f %-8s", what, is, unit);
	if (of > 0)
		printf(" of %10.1f: %5.1f %%, limit %.0f %%%s", of, 100 * is / of, 100 * share,
		       is < share * of ? "  SHORT" : "");
	printf("\n");
	fflush(stdout);
}

static struct mu_tensor new_tensor(enum mu_dtype t, int64_t n)
{
	struct mu_shape s = mu_shape_vec(n);
	struct mu_tensor out;

	must(gpu_tensor_new(g, t, &s, "bench", &out, &err), "memory");
	must(gpu_fill(g, &out, 0, &err), "zeros");
	return out;
}

/* ---- products ---- */

struct product {
	struct gpu_product p;
	bool done;
};

static void multiply(void *arg)
{
	struct product *p = arg;

	must(gpu_product(g, &p->p, &p->done, &err), "a product");
}

static void products(enum mu_dtype t, const char *what, const char *peer)
{
	MU_AUTO_TENSOR a = new_tensor(t, side * side), b = new_tensor(t, side * side),
		       out = new_tensor(t, side * side);
	struct product p = {.p = {.type = t,
				  .m = side,
				  .n = side,
				  .k = side,
				  .batch = 1,
				  .out = gpu_address(&out),
				  .a = gpu_address(&a),
				  .b = gpu_address(&b)}};
	const double flops = 2.0 * (double)side * (double)side * (double)side;

	multiply(&p);
	if (!p.done)
		printf("%-44s SKIPPED: cuBLAS is not installed here\n", what);
	else
		tell(what, flops / time_of(multiply, &p) / 1e12, "TFLOP/s", 0, 0);
	if (p.done)
		printf("%-44s %s\n", "", peer);
	settle();
}

/* ---- device memory ---- */

struct memory_op {
	cuda_ptr to, from;
	void *kernel;
	struct update_args u;
	const struct mu_tensor *host;
	int64_t n;
};

static void copy(void *arg)
{
	const struct memory_op *m = arg;

	must(gpu_copy_within(g, m->to, m->from, (size_t)bytes, &err), "a copy");
}

static void add(void *arg)
{
	const struct memory_op *m = arg;
	const struct binary_args a = {.out = m->to,
				      .a = m->from,
				      .b = m->to,
				      .n = m->n,
				      .by = {.rank = 1, .dim = {m->n}, .stride = {{1}, {1}}}};

	must(gpu_launch(g, m->kernel, gpu_grid_for(g, a.n), &a, &err), "adding");
}

static void update(void *arg)
{
	const struct memory_op *m = arg;

	must(gpu_launch(g, m->kernel, gpu_grid_for(g, m->u.n), &m->u, &err), "an update");
}

static void memory(void)
{
	const int64_t n = bytes / (int64_t)sizeof(float);
	struct mu_tensor of[4] = {new_tensor(MU_FLOAT, n), new_tensor(MU_FLOAT, n),
				  new_tensor(MU_FLOAT, n), new_tensor(MU_FLOAT, n)};
	MU_AUTO_TENSOR half = new_tensor(MU_FLOAT, 1);
	struct memory_op m = {.to = gpu_address(&of[0]), .from = gpu_address(&of[1]), .n = n};
	const double most = 2 * (double)bytes / time_of(copy, &m) / 1e9;

	tell("copy on the device, read and written", most, "GB/s", 0, 0);
	must(gpu_kernel(g, "AddV2_f32", &m.kernel, &err), "a kernel");
	tell("elementwise, two read and one written", 3 * (double)bytes / time_of(add, &m) / 1e9,
	     "GB/s", most, 0.85);
	must(gpu_kernel(g, "up_adam_f32", &m.kernel, &err), "a kernel");
	m.u = (struct update_args){
	    .at = {gpu_address(&of[0]), gpu_address(&of[1]), gpu_address(&of[2])},
	    .grad = gpu_address(&of[3]),
	    .scalars = 6,
	    .n = n};
	for (int i = 0; i < m.u.scalars; i++)
		m.u.scalar[i] = gpu_address(&half);
	tell("Adam, four read and three written", 7 * (double)bytes / time_of(update, &m) / 1e9,
	     "GB/s", most, 0.85);
	for (unsigned i = 0; i < MU_COUNT(of); i++)
		mu_tensor_unref(&of[i]);
}

/* ---- between host and device ---- */

static void raw_in(void *arg)
{
	const struct memory_op *m = arg;

	must(g->api->copy_in(m->to, m->host->data, (size_t)bytes, g->in), "the driver's copy");
}

static void copy_to_device(void *arg)
{
	const struct memory_op *m = arg;
	struct mu_tensor there;

	must(gpu_copy_to_device(g, m->host, "bench", &there, &err), "a copy in");
	mu_tensor_unref(&there);
}

struct copy_state {
	pthread_mutex_t lock;
	pthread_cond_t news;
	bool done;
};

static void copy_state(void *arg, const struct mu_err *e)
{
	struct copy_state *c = arg;

	must(e ? -1 : 0, "a copy out");
	pthread_mutex_lock(&c->lock);
	c->done = true;
	pthread_cond_signal(&c->news);
	pthread_mutex_unlock(&c->lock);
}

static void fetch(const struct mu_tensor *from, struct mu_tensor *out)
{
	struct copy_state c = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};

	must(gpu_copy_to_host(g, from, out, copy_state, &c, &err), "a copy out");
	pthread_mutex_lock(&c.lock);
	while (!c.done)
		pthread_cond_wait(&c.news, &c.lock);
	pthread_mutex_unlock(&c.lock);
}

static void copy_to_host(void *arg)
{
	struct mu_tensor out;

	fetch(arg, &out);
	mu_tensor_unref(&out);
}

/* All copies are of pageable memory. */
static void link_speed(void)
{
	MU_AUTO_TENSOR on = new_tensor(MU_FLOAT, bytes / (int64_t)sizeof(float)), off = {0};
	struct memory_op m = {.to = gpu_address(&on)};

	fetch(&on, &off);
	m.host = &off;
	const double most = (double)bytes / time_of(raw_in, &m) / 1e9;
	tell("the driver's copy in", most, "GB/s", 0, 0);
	tell("a tensor in", (double)bytes / time_of(copy_to_device, &m) / 1e9, "GB/s", most, 0.9);
	tell("a tensor out", (double)bytes / time_of(copy_to_host, &on) / 1e9, "GB/s", most, 0.9);
	settle();
}

int main(int argc, char **argv)
{
	const struct cuda_plugin *plugin = NULL;
	const struct gpu_options growth = {.growth = true};
	cuda_plugin_fn *get = NULL;
	struct device_set *set;
	struct gpu_info f;
	char why[200] = "";
	void *so = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;

	if (so)
		*(void **)&get = dlsym(so, "muster_cuda_plugin");
	if (!get || get(&plugin, why, sizeof why)) {
		fprintf(stderr, "gpu: %s\n", get ? why : argc > 1 ? dlerror() : "which plug-in?");
		return 1;
	}
	seconds = argc > 2 ? strtod(argv[2], NULL) : seconds;
	side = argc > 3 ? strtoll(argv[3], NULL, 10) : side;
	bytes = argc > 4 ? strtoll(argv[4], NULL, 10) << 20 : bytes;
	if (!(seconds > 0) || side < 1 || side > 1 << 16 || bytes < 1 << 20 ||
	    bytes > (int64_t)1 << 36) {
		fprintf(stderr, "usage: gpu PLUGIN [SECONDS [SIDE [MIB]]]\n");
		return 1;
	}
	must(gpu_set_open(plugin, &growth, &set, &err), "opening");
	g = gpu_at(set, 0);
	gpu_get_info(g, &f);
	printf("%s, sm_%d%d, %d processors\n", f.name, f.major, f.minor, f.multiprocessors);
	must(gpu_enter(g, &err), "its context");
	products(MU_FLOAT, "float product", "at least 90 % of PyTorch's below (cuBLAS)");
	products(MU_BFLOAT16, "bfloat16 product", "at least 90 % of PyTorch's below");
	memory();
	link_speed();
	device_set_free(set);
	return 0;
}
