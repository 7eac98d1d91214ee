/* SPDX-License-Identifier: Apache-2.0 */
/* See gpu_compare.h. */
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/tensor/half.h"
#include "task/device/gpu.h"
#include "task/kernels/engine/gpu_table.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/runtime/runtime.h"
#include "tests/fake/cuda/fake_cuda.h"
#include "tests/kernels/gpu_compare.h"

static struct runtime *rt;
struct mu_err err;

static void no_recv(void *ctx, struct rendezvous *r, const char *key, rendezvous_done done,
		    void *arg)
{
	struct mu_err none;

	mu_fail(&none, MU_UNIMPLEMENTED, "there is no other task here");
	done(arg, &none, NULL, false);
}

/* A real plug-in runs on the GPUs of this machine. */
const struct cuda_plugin *gpu_plugin_to_test(void)
{
	const char *path = getenv("MUSTER_GPU_TEST");
	const struct cuda_plugin *p;
	char why[200];

	if (!path)
		return fake_cuda_plugin();
	void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	cuda_plugin_fn *open = NULL;
	if (so)
		*(void **)&open = dlsym(so, "muster_cuda_plugin");
	if (!open || open(&p, why, sizeof why)) {
		print_error("%s: %s\n", path, open ? why : dlerror());
		return NULL;
	}
	return p;
}

int setup(void **state)
{
	static const struct rendezvous_remote no_remote = {.recv = no_recv};

	fake_cuda_reset();
	if (runtime_new("test", 0, 1, &task_kernels, &no_remote, &rt, &err))
		return -1;
	const struct cuda_plugin *plugin = gpu_plugin_to_test();
	return plugin
		   ? gpu_set_open(plugin, &(struct gpu_options){.growth = true}, &rt->devices, &err)
		   : -1;
}

int teardown(void **state)
{
	struct fake_cuda_counts c;

	runtime_free(rt);
	fake_cuda_count(&c);
	return c.device_bytes || c.streams || c.events || c.contexts || c.libraries ||
	       c.descriptions;
}

/* ---- numbers ---- */

static double next_random(unsigned *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (double)(*seed >> 8) / (1 << 24);
}

void put(struct mu_tensor *t, int64_t i, double v)
{
	switch (t->dtype) {
	case MU_FLOAT:
		MU_DATA(float, t)[i] = (float)v;
		break;
	case MU_DOUBLE:
		MU_DATA(double, t)[i] = v;
		break;
	case MU_HALF:
		MU_DATA(uint16_t, t)[i] = float_to_half((float)v);
		break;
	case MU_BFLOAT16:
		MU_DATA(uint16_t, t)[i] = float_to_bfloat((float)v);
		break;
	case MU_INT64:
		MU_DATA(int64_t, t)[i] = (int64_t)v;
		break;
	case MU_INT32:
		MU_DATA(int32_t, t)[i] = (int32_t)v;
		break;
	default:
		MU_DATA(uint8_t, t)[i] = (uint8_t)(v > 0);
	}
}

double get(const struct mu_tensor *t, int64_t i)
{
	switch (t->dtype) {
	case MU_FLOAT:
		return (double)MU_DATA(float, t)[i];
	case MU_DOUBLE:
		return MU_DATA(double, t)[i];
	case MU_HALF:
		return (double)half_to_float(MU_DATA(uint16_t, t)[i]);
	case MU_BFLOAT16:
		return (double)bfloat_to_float(MU_DATA(uint16_t, t)[i]);
	case MU_INT64:
		return (double)MU_DATA(int64_t, t)[i];
	case MU_INT32:
		return MU_DATA(int32_t, t)[i];
	case MU_UINT64:
		return (double)MU_DATA(uint64_t, t)[i];
	default:
		return MU_DATA(uint8_t, t)[i];
	}
}

struct mu_shape dims_of(int rank, const int64_t *dims)
{
	struct mu_shape s;

	assert_int_equal(mu_shape_set(&s, rank, dims, &err), 0);
	return s;
}

struct mu_tensor filled(enum mu_dtype t, const struct mu_shape *s, double low, double span,
			unsigned seed)
{
	struct mu_tensor x;

	assert_int_equal(mu_tensor_new(&x, t, s, &err), 0);
	for (int64_t i = 0; i < s->count; i++)
		put(&x, i, low + span * next_random(&seed));
	return x;
}

struct mu_tensor ints(enum mu_dtype t, int64_t n, const int64_t *v)
{
	struct mu_shape s = n < 0 ? mu_shape_scalar() : mu_shape_vec(n);
	struct mu_tensor x;

	assert_int_equal(mu_tensor_new(&x, t, &s, &err), 0);
	for (int64_t i = 0; i < s.count; i++)
		put(&x, i, (double)v[i]);
	return x;
}

/* ---- a graph with the node, constants as inputs and a _Send for each output ---- */

/* Splits "a,b" at the commas. */
static unsigned split_at_commas(const char *text, struct mu_span *out)
{
	unsigned n = 0;

	for (const char *end; *text; text = end + (*end == ',')) {
		end = strchrnul(text, ',');
		assert_true(n < 8);
		out[n++] = (struct mu_span){text, (size_t)(end - text)};
	}
	return n;
}

static void set_attrs(struct mu_graph *g, struct mu_node *n, const struct attr *a)
{
	struct mu_span texts[8];
	int64_t numbers[8];

	for (; a && a->name; a++) {
		struct mu_attr v = {0};
		switch (a->kind) {
		case A_TYPE:
			v.kind = MU_ATTR_TYPE;
			v.type = (enum mu_dtype)a->value;
			break;
		case A_BOOL:
			v.kind = MU_ATTR_BOOL;
			v.b = a->value != 0;
			break;
		case A_INT:
			v.kind = MU_ATTR_INT;
			v.i = a->value;
			break;
		case A_TEXT:
			v.kind = MU_ATTR_STRING;
			v.s = mu_span_of(a->text);
			break;
		case A_TEXTS:
			v.kind = MU_ATTR_LIST + MU_ATTR_STRING;
			v.n = split_at_commas(a->text, texts);
			v.ss = texts;
			break;
		case A_INTS:
			v.kind = MU_ATTR_LIST + MU_ATTR_INT;
			v.n = split_at_commas(a->text, texts);
			for (unsigned i = 0; i < v.n; i++)
				numbers[i] = strtoll(texts[i].data, NULL, 10);
			v.is = numbers;
			break;
		case A_FLOAT:
			v.kind = MU_ATTR_FLOAT;
			v.f = (float)a->value / 1000;
			break;
		}
		mu_node_set_attr(g, n, a->name, &v);
	}
}

struct waiter {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned pending;
	struct mu_err err;
	struct mu_tensor *out;
};

static void on_step_done(void *arg, const struct mu_err *e)
{
	struct waiter *w = arg;

	pthread_mutex_lock(&w->lock);
	if (e)
		w->err = *e;
	w->pending--;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
}

struct fetch {
	struct waiter *w;
	struct mu_tensor *to;
};

static void on_tensor(void *arg, const struct mu_err *e, struct mu_tensor *t, bool dead)
{
	struct fetch *f = arg;

	if (!e)
		*f->to = *t;
	on_step_done(f->w, NULL);
}

static int run_graph(struct mu_graph *g, const struct mu_node *const *sends, unsigned n,
		     struct mu_tensor *out)
{
	struct waiter w = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, n + 1, {0}, out};
	static int64_t last;
	int64_t id = ++last;
	struct rendezvous *r = rendezvous_table_get(rt->steps, id);
	struct fetch f[MAX_OUT];
	struct executor *e;
	struct step *s;
	int rc = executor_new(rt, g, "", &e, &err);

	if (rc) {
		rendezvous_unref(r);
		rendezvous_table_drop(rt->steps, id, NULL);
		return rc;
	}
	for (unsigned i = 0; i < n; i++) {
		char key[300];
		f[i] = (struct fetch){&w, &out[i]};
		snprintf(key, sizeof key, CPU ";0000000000000001;" CPU ";out%u;0:0", i);
		rendezvous_recv_local(r, key, on_tensor, &f[i]);
	}
	s = executor_start(e, r, NULL, NULL, on_step_done, &w);
	pthread_mutex_lock(&w.lock);
	while (w.pending) {
		if (w.err.code) {
			struct mu_err why = w.err;
			pthread_mutex_unlock(&w.lock);
			rendezvous_abort(r, &why);
			pthread_mutex_lock(&w.lock);
			if (!w.pending)
				break;
		}
		pthread_cond_wait(&w.changed, &w.lock);
	}
	pthread_mutex_unlock(&w.lock);
	step_unref(s);
	executor_unref(e);
	rendezvous_table_drop(rt->steps, id, NULL);
	rendezvous_unref(r);
	err = w.err;
	return -(int)w.err.code;
}

static struct mu_node *add_const(struct mu_graph *g, const char *name, const struct mu_tensor *t)
{
	struct mu_attr value = {.kind = MU_ATTR_TENSOR, .tensor = (struct mu_tensor *)t};
	struct mu_attr type = {.kind = MU_ATTR_TYPE, .type = t->dtype};
	struct mu_node *n;

	assert_int_equal(mu_graph_add(g, name, "Const", &n, &err), 0);
	mu_node_set_attr(g, n, "value", &value);
	mu_node_set_attr(g, n, "dtype", &type);
	mu_node_set_device(g, n, CPU);
	return n;
}

static const struct mu_node *add_send(struct mu_graph *g, struct mu_input in, enum mu_dtype t,
				      unsigned number)
{
	char name[16];
	const struct attr attrs[] = {
	    {"T", A_TYPE, (long)t, NULL},    {"tensor_name", A_TEXT, 0, name},
	    {"send_device", A_TEXT, 0, CPU}, {"send_device_incarnation", A_INT, 1, NULL},
	    {"recv_device", A_TEXT, 0, CPU}, {"client_terminated", A_BOOL, 0, NULL},
	    {NULL, A_INT, 0, NULL}};
	struct mu_node *n;

	snprintf(name, sizeof name, "out%u", number);
	assert_int_equal(mu_graph_add(g, name, "_Send", &n, &err), 0);
	set_attrs(g, n, attrs);
	mu_node_set_device(g, n, CPU);
	mu_node_set_inputs(g, n, &in, 1, NULL, 0);
	return n;
}

int run_op(const char *device, const char *op, const struct attr *attrs, const struct mu_tensor *in,
	   unsigned n_in, struct mu_tensor *out, unsigned *n_out)
{
	struct mu_graph *g = mu_graph_new();
	struct mu_input inputs[MAX_IN];
	const struct mu_node *sends[MAX_OUT];
	struct mu_node *n;
	struct mu_arena arena;
	enum mu_dtype *types;

	for (unsigned i = 0; i < n_in; i++) {
		char name[16];
		snprintf(name, sizeof name, "in%u", i);
		inputs[i] = (struct mu_input){add_const(g, name, &in[i]), 0};
	}
	assert_int_equal(mu_graph_add(g, "tested", op, &n, &err), 0);
	set_attrs(g, n, attrs);
	mu_node_set_device(g, n, device);
	mu_node_set_inputs(g, n, inputs, n_in, NULL, 0);
	mu_arena_init(&arena);
	assert_ok(mu_op_output_types(n, &arena, &types, n_out, &err), &err);
	for (unsigned i = 0; i < *n_out; i++)
		sends[i] = add_send(g, (struct mu_input){n, (int)i}, types[i], i);
	mu_arena_fini(&arena);
	return run_graph(g, sends, *n_out, out);
}

/* ---- graphs of ops that update variables ---- */

static const struct variable_ops {
	const char *variable, *assign, *read, *type_attr;
} by_handle = {"VarHandleOp", "AssignVariableOp", "ReadVariableOp", "dtype"},
  by_reference = {"VariableV2", "Assign", "Identity", "T"};

static struct mu_node *add_node(struct mu_graph *g, const char *device, const char *op, unsigned k,
				const char *type_attr, enum mu_dtype t)
{
	struct attr attrs[] = {
	    {type_attr, A_TYPE, (long)t, NULL}, {"validate_shape", A_BOOL, 0, NULL}, {0}};
	char name[64];
	struct mu_node *n;

	snprintf(name, sizeof name, "%s_%s_%u", op, mu_dtype_name(t), k);
	assert_int_equal(mu_graph_add(g, name, op, &n, &err), 0);
	set_attrs(g, n, attrs);
	mu_node_set_device(g, n, device);
	return n;
}

int run_update(const char *device, const char *op, const struct attr *attrs,
	       const struct mu_tensor *values, unsigned n_values, const struct mu_tensor *in,
	       unsigned n_in, struct mu_tensor *out)
{
	const struct variable_ops *w =
	    strncmp(op, "Resource", strlen("Resource")) == 0 ? &by_handle : &by_reference;
	const struct mu_node *sends[MAX_OUT];
	struct mu_input controls[MAX_OUT];
	struct mu_pshape any = {.rank = -1};
	struct mu_attr unknown = {.kind = MU_ATTR_SHAPE, .shape = &any};
	struct mu_graph *g = mu_graph_new();
	struct mu_input inputs[MAX_IN];
	struct mu_node *n;
	char name[16];

	for (unsigned i = 0; i < n_values; i++) {
		snprintf(name, sizeof name, "value%u", i);
		inputs[i] = (struct mu_input){
		    n = add_node(g, device, w->variable, i, "dtype", values[i].dtype), 0};
		mu_node_set_attr(g, n, "shape", &unknown);
		n = add_node(g, device, w->assign, i, w->type_attr, values[i].dtype);
		struct mu_input to[2] = {inputs[i], {add_const(g, name, &values[i]), 0}};
		mu_node_set_inputs(g, n, to, 2, NULL, 0);
		controls[i] = (struct mu_input){n, MU_CONTROL};
	}
	for (unsigned i = 0; i < n_in; i++) {
		snprintf(name, sizeof name, "in%u", i);
		inputs[n_values + i] = (struct mu_input){add_const(g, name, &in[i]), 0};
	}
	struct mu_node *tested;
	assert_int_equal(mu_graph_add(g, "tested", op, &tested, &err), 0);
	set_attrs(g, tested, attrs);
	mu_node_set_device(g, tested, device);
	mu_node_set_inputs(g, tested, inputs, n_values + n_in, controls, n_values);
	for (unsigned i = 0; i < n_values; i++) {
		n = add_node(g, device, w->read, i, w->type_attr, values[i].dtype);
		mu_node_set_inputs(g, n, &inputs[i], 1, &(struct mu_input){tested, MU_CONTROL}, 1);
		sends[i] = add_send(g, (struct mu_input){n, 0}, values[i].dtype, i);
	}
	return run_graph(g, sends, n_values, out);
}

double tolerance(enum mu_dtype t)
{
	return t == MU_FLOAT ? 2e-6 : t == MU_DOUBLE ? 1e-13 : t == MU_HALF ? 2e-3 : 1.6e-2;
}

static void expect_same(const char *op, const struct mu_tensor *want, const struct mu_tensor *got,
			double slack)
{
	double tol = tolerance(want->dtype) * slack;

	assert_int_equal(want->dtype, got->dtype);
	if (!mu_shape_eq(&want->shape, &got->shape))
		fail_msg("%s: shape %s, want %s", op, mu_shape_str(&got->shape),
			 mu_shape_str(&want->shape));
	for (int64_t i = 0; i < want->shape.count; i++) {
		double a = get(want, i), b = get(got, i);
		bool same = (isnan(a) && isnan(b)) || a == b;
		if (!same && !(fabs(a - b) <= tol * (fabs(a) > 1 ? fabs(a) : 1)))
			fail_msg("%s, %s %s: element %lld is %.17g, want %.17g", op,
				 mu_dtype_name(want->dtype), mu_shape_str(&want->shape),
				 (long long)i, b, a);
	}
}

static void expect_same_results(const char *op, int cpu, const struct mu_err *cpu_err, int gpu,
				struct mu_tensor *want, struct mu_tensor *got, unsigned n,
				double slack)
{
	if (cpu != gpu)
		fail_msg("%s: %s (CPU: %s)", op, err.msg, cpu_err->msg);
	for (unsigned i = 0; i < n; i++) {
		if (!gpu)
			expect_same(op, &want[i], &got[i], slack);
		mu_tensor_unref(&want[i]);
		mu_tensor_unref(&got[i]);
	}
}

void compare(const char *op, const struct attr *attrs, const struct mu_tensor *in, unsigned n_in,
	     double slack)
{
	struct mu_tensor want[MAX_OUT] = {0}, got[MAX_OUT] = {0};
	struct fake_cuda_counts before, after;
	unsigned n_want, n_got;
	int cpu = run_op(CPU, op, attrs, in, n_in, want, &n_want);
	struct mu_err cpu_err = err;

	fake_cuda_count(&before);
	int gpu = run_op(GPU, op, attrs, in, n_in, got, &n_got);
	fake_cuda_count(&after);
	if (!gpu && got[0].shape.count && after.launches == before.launches &&
	    after.fills == before.fills && !getenv("MUSTER_GPU_TEST"))
		fail_msg("%s: nothing was done on the GPU", op);
	expect_same_results(op, cpu, &cpu_err, gpu, want, got, n_want, slack);
}

int compare_update(const char *op, const struct attr *attrs, const struct mu_tensor *values,
		   unsigned n_values, const struct mu_tensor *in, unsigned n_in, double slack)
{
	struct mu_tensor want[MAX_OUT] = {0}, got[MAX_OUT] = {0};
	int cpu = run_update(CPU, op, attrs, values, n_values, in, n_in, want);
	struct mu_err cpu_err = err;
	int gpu = run_update(GPU, op, attrs, values, n_values, in, n_in, got);

	expect_same_results(op, cpu, &cpu_err, gpu, want, got, n_values, slack);
	return cpu;
}
