/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions on a server with GPUs: placement, training and errors. The server loads a CUDA fake in
 * host memory (tests/fake/cuda) as its plug-in. */
#include "tests/ports.h"
#include "tests/test.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/pb.h"
#include "muster/grad.h"
#include "muster/session.h"
#include "task/device/gpu.h"
#include "task/server_internal.h"
#include "tests/fake/cuda/fake_cuda.h"
#include "tests/wait.h"

static struct mu_err err;
static struct task_server *cpu, *gpu;
static void (*get_counts)(struct fake_cuda_counts *out); /* function of the plug-in */

/* Path of build/<mode>/libmuster-fake-cuda.so, relative to build/<mode>/tests/client. */
static void name_plugin(void)
{
	char self[2048], path[2200];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

	assert_true(n > 0);
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	snprintf(path, sizeof path, "%s/../../libmuster-fake-cuda.so", self);
	assert_int_equal(access(path, R_OK), 0);
	setenv("MUSTER_CUDA_PLUGIN", path, 1);
	*(void **)&get_counts = dlsym(dlopen(path, RTLD_NOW | RTLD_LOCAL), "fake_cuda_count");
	assert_non_null(get_counts);
}

static int start_with(const char *kernels, struct mu_span config, struct task_server **out)
{
	struct mu_cluster c = {0};
	int rc;
	struct task_server_options o = {.cluster = &c,
					.job = "local",
					.bind = "127.0.0.1:0",
					.http_port = -1,
					.threads = 1,
					.session_config = config,
					.kernels = kernels};

	assert_ok(mu_cluster_add(&c, "local", 0, "127.0.0.1:1", &err), &err);
	rc = task_server_start(&o, out, &err);
	mu_cluster_fini(&c);
	return rc;
}

static struct task_server *start(const char *kernels, struct mu_span config)
{
	struct task_server *s = NULL;

	assert_ok(start_with(kernels, config, &s), &err);
	return s;
}

/* Session config: a quarter of a GPU of 256 MiB, with allow_growth. */
static struct mu_span small_memory(void)
{
	static struct mu_buf b;

	if (!b.len) {
		size_t at = mu_pb_begin(&b, 6);
		mu_pb_put_double(&b, 1, 0.25);
		mu_pb_put_int(&b, 4, 1);
		mu_pb_end(&b, at);
	}
	return mu_buf_span(&b);
}

static int start_servers(void **state)
{
	mu_log_set_level(MU_WARN);
	name_plugin();
	cpu = start("auto", MU_SPAN(""));
	gpu = start("cuda", small_memory());
	return 0;
}

static int stop_servers(void **state)
{
	task_server_stop(cpu, 1000);
	task_server_stop(gpu, 1000);
	return 0;
}

static struct gpu_info info_of(unsigned i)
{
	struct gpu_info f;

	gpu_get_info(gpu_at(gpu->rt->devices, i), &f);
	return f;
}

static struct mu_session *open_on(struct task_server *s, struct mu_builder *b)
{
	struct mu_session_options options = {.isolate_state = true,
					     .run_timeout_ms = TEST_TIMEOUT_S * 1000};
	struct mu_session *session = NULL;

	assert_ok(mu_builder_check(b, &err), &err);
	assert_ok(mu_session_open(&session, task_server_target(s), b, &options, &err), &err);
	return session;
}

/* ---- training ---- */

enum { ROWS = 24, COLUMNS = 12, HIDDEN = 20, CLASSES = 5, STEPS = 25 };

static void draw_batch(float *x, int64_t *label)
{
	unsigned seed = 3;

	for (int i = 0; i < ROWS; i++) {
		label[i] = i % CLASSES;
		for (int k = 0; k < COLUMNS; k++) {
			seed = seed * 1664525u + 1013904223u;
			x[i * COLUMNS + k] =
			    (float)(seed >> 8) / (1 << 24) + (k == label[i] ? 1 : 0);
		}
	}
}

static struct mu_tensor batch(enum mu_dtype t, int64_t columns, const void *data)
{
	struct mu_shape s = mu_shape_vec(ROWS);
	struct mu_tensor out;

	if (columns)
		assert_ok(mu_shape_push(&s, columns, &err), &err);
	assert_ok(mu_tensor_new(&out, t, &s, &err), &err);
	memcpy(out.data, data, mu_tensor_bytes(&out));
	return out;
}

/* Trains a model and records the loss of each step. */
static void train_on(struct task_server *server, const char *optimizer, float *losses)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	MU_AUTO(mu_session_close) struct mu_session *s = NULL;
	struct mu_init drawn = {.kind = MU_INIT_UNIFORM, .value = 0.3, .seed = 11};
	struct mu_out x = mu_placeholder(b, "x", MU_FLOAT, MU_SHAPE(-1, COLUMNS));
	struct mu_out y = mu_placeholder(b, "y", MU_INT64, MU_SHAPE(-1));
	struct mu_var *w1 = mu_variable(b, "w1", MU_FLOAT, MU_SHAPE(COLUMNS, HIDDEN), drawn, true);
	struct mu_var *b1 = mu_variable(b, "b1", MU_FLOAT, MU_SHAPE(HIDDEN), MU_ZEROS, true);
	struct mu_var *w2 = mu_variable(b, "w2", MU_FLOAT, MU_SHAPE(HIDDEN, CLASSES), drawn, true);
	struct mu_var *b2 = mu_variable(b, "b2", MU_FLOAT, MU_SHAPE(CLASSES), MU_ZEROS, true);
	struct mu_out h = mu_relu(b, mu_bias_add(b, mu_matmul(b, x, mu_read(w1)), mu_read(b1)));
	struct mu_out logits = mu_bias_add(b, mu_matmul(b, h, mu_read(w2)), mu_read(b2));
	struct mu_out loss = mu_mean(b, mu_sparse_softmax_xent(b, logits, y), NULL, 0);
	float data[ROWS * COLUMNS];
	int64_t label[ROWS];
	struct mu_optimizer o;

	assert_ok(mu_optimizer_named(optimizer, 0.05, &o, &err), &err);
	/* A norm that is never reached, but it makes all updates wait for all gradients. The CPU
	 * updates in place, so a later gradient would read the new value. */
	o.clip_norm = 1e6;
	struct mu_out step = mu_minimize(b, &o, loss, mu_global_step(b)), init = mu_init_all(b);
	draw_batch(data, label);
	MU_AUTO_TENSOR xs = batch(MU_FLOAT, COLUMNS, data);
	MU_AUTO_TENSOR ys = batch(MU_INT64, 0, label);
	const struct mu_feed feeds[] = {{x, &xs}, {y, &ys}};
	const struct mu_run run = {.feeds = feeds,
				   .n_feeds = 2,
				   .fetches = &loss,
				   .n_fetches = 1,
				   .targets = &step,
				   .n_targets = 1};
	s = open_on(server, b);
	assert_ok(mu_session_do(s, init, &err), &err);
	for (int i = 0; i < STEPS; i++) {
		MU_AUTO_TENSOR value = {0};
		assert_ok(mu_session_run(s, &run, &value, &err), &err);
		losses[i] = *MU_DATA(float, &value);
	}
}

static void training__on_a_gpu__has_the_losses_of_the_cpu(void **state)
{
	static const char *const optimizers[] = {"sgd", "momentum", "adagrad", "adam", "rmsprop"};

	for (unsigned k = 0; k < MU_COUNT(optimizers); k++) {
		float want[STEPS], got[STEPS];
		train_on(cpu, optimizers[k], want);
		train_on(gpu, optimizers[k], got);
		for (int i = 0; i < STEPS; i++)
			if (!(fabsf(want[i] - got[i]) <= 1e-4f))
				fail_msg("%s, step %d: a loss of %g, the CPU's is %g",
					 optimizers[k], i, (double)got[i], (double)want[i]);
		assert_true(got[STEPS - 1] < got[0]);
	}
	assert_true(info_of(0).peak > 4 * (COLUMNS * HIDDEN + HIDDEN * CLASSES));
}

/* The variables of an isolated session are freed with the session, also on the GPU. */
static void memory__after_the_end_of_a_session__is_freed(void **state)
{
	float losses[STEPS];

	train_on(gpu, "momentum", losses);
	WAIT_UNTIL(info_of(0).used == 0);
}

static void task__with_wrong_gpu_options__does_not_start(void **state)
{
	const struct {
		const char *visible, *error;
		double fraction;
	} wrong[] = {{"", "per_process_gpu_memory_fraction is 1.5", 1.5}, {"9", "9", 0}};

	for (unsigned i = 0; i < MU_COUNT(wrong); i++) {
		struct task_server *s = NULL;
		MU_AUTO_BUF config = {0};
		size_t at = mu_pb_begin(&config, 6);

		mu_pb_put_double(&config, 1, wrong[i].fraction);
		mu_pb_put_str(&config, 5, wrong[i].visible);
		mu_pb_end(&config, at);
		assert_int_equal(start_with("cuda", mu_buf_span(&config), &s),
				 -MU_INVALID_ARGUMENT);
		assert_non_null(strstr(err.msg, wrong[i].error));
	}
}

/* ---- placement ---- */

static void nodes__on_two_gpus__exchange_tensors(void **state)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	MU_AUTO(mu_session_close) struct mu_session *s = NULL;
	MU_AUTO_TENSOR value = {0};

	mu_push_device(b, "/device:GPU:0");
	struct mu_out x = mu_add(b, mu_const_float(b, 1), mu_const_float(b, 2));
	mu_pop_device(b);
	mu_push_device(b, "/device:GPU:1");
	struct mu_out y = mu_mul(b, x, mu_const_float(b, 10));
	mu_pop_device(b);
	s = open_on(gpu, b);
	assert_ok(mu_session_get(s, y, &value, &err), &err);
	assert_float_equal(*MU_DATA(float, &value), 30, 0);
}

static struct task_server *start_member(const struct mu_cluster *c, const char *job)
{
	struct task_server *s = NULL;
	struct task_server_options o = {.cluster = c,
					.job = job,
					.local = "127.0.0.1:0",
					.http_port = -1,
					.threads = 1,
					.session_config = small_memory(),
					.kernels = "cuda"};

	assert_ok(task_server_start(&o, &s, &err), &err);
	return s;
}

/* Sends a tensor to another task and back. A tensor that leaves a GPU is identified by the
 * incarnation of its task. */
static void nodes__on_gpus_of_two_tasks__exchange_tensors(void **state)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	struct mu_session *s = NULL;
	MU_AUTO_TENSOR value = {0};
	struct mu_cluster c = {0};
	char address[2][32];

	for (unsigned i = 0; i < 2; i++) {
		snprintf(address[i], sizeof address[i], "127.0.0.1:%d", free_port());
		assert_ok(mu_cluster_add(&c, i ? "worker" : "ps", 0, address[i], &err), &err);
	}
	struct task_server *ps = start_member(&c, "ps"), *worker = start_member(&c, "worker");

	mu_push_device(b, "/job:ps/device:GPU:1");
	struct mu_out x = mu_add(b, mu_const_float(b, 1), mu_const_float(b, 2));
	mu_pop_device(b);
	mu_push_device(b, "/job:worker/device:GPU:0");
	struct mu_out y = mu_mul(b, x, mu_const_float(b, 10));
	mu_pop_device(b);
	mu_push_device(b, "/job:ps/device:GPU:0");
	struct mu_out z = mu_add(b, y, x);
	mu_pop_device(b);
	s = open_on(worker, b);
	assert_ok(mu_session_get(s, z, &value, &err), &err);
	assert_float_equal(*MU_DATA(float, &value), 33, 0);
	mu_session_close(s);
	task_server_stop(worker, 1000);
	task_server_stop(ps, 1000);
	mu_cluster_fini(&c);
}

/* ConfigProto(device_count={"GPU": N}) */
static void device_count__of_the_server__limits_its_gpus(void **state)
{
	for (unsigned n = 0; n < 2; n++) {
		MU_AUTO_BUF config = {0};
		size_t at = mu_pb_begin(&config, 1);

		mu_pb_put_bytes(&config, 1, MU_SPAN("GPU"));
		mu_pb_put_int(&config, 2, n);
		mu_pb_end(&config, at);
		at = mu_pb_begin(&config, 6);
		mu_pb_put_int(&config, 4, 1); /* allow_growth */
		mu_pb_end(&config, at);

		struct task_server *s = start("cuda", mu_buf_span(&config));

		assert_int_equal(device_count(s->rt->devices), n);
		task_server_stop(s, 1000);
	}
}

/* Muster's client enables soft placement: an op without a kernel for its device, or on a GPU that
 * does not exist, runs on the CPU. */
static void op_without_a_gpu_kernel__with_soft_placement__runs_on_the_cpu(void **state)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	MU_AUTO(mu_session_close) struct mu_session *s = NULL;
	MU_AUTO_TENSOR value = {0};

	mu_push_device(b, "/device:GPU:0");
	struct mu_out x = mu_op(b, "StringLength", .name = "len", MU_IN(mu_const_str(b, "abc")));
	mu_pop_device(b);
	mu_push_device(b, "/device:GPU:7");
	struct mu_out y = mu_cast(b, mu_add(b, x, mu_const_int(b, MU_INT32, 1)), MU_FLOAT);
	mu_pop_device(b);
	s = open_on(gpu, b);
	assert_ok(mu_session_get(s, y, &value, &err), &err);
	assert_float_equal(*MU_DATA(float, &value), 4, 0);
}

/* ---- tensor containers of loops ---- */

enum { WIDTH = 7 };

/* Scatters rows into an array, writes one of them twice as a gradient, leaves an element unset, and
 * concatenates all. Also passes two rows through a stack. */
static struct mu_out through_arrays(struct mu_builder *b, struct mu_out rows)
{
	struct mu_pshape wide = MU_SHAPE(WIDTH);
	struct mu_out zero = mu_const_int(b, MU_INT32, 0), one = mu_const_int(b, MU_INT32, 1);
	struct mu_out which = mu_const_ints(b, (int32_t[]){2, 0, 1}, 3);
	struct mu_out all = mu_const_ints(b, (int32_t[]){0, 1, 2, 3}, 4);
	struct mu_out a =
	    mu_op(b, "TensorArrayV3", MU_IN(mu_const_int(b, MU_INT32, 4)),
		  MU_ATTRS(MU_A_TYPE("dtype", MU_FLOAT), MU_A_SHAPE("element_shape", &wide),
			   MU_A_BOOL("clear_after_read", false)));
	struct mu_out flow =
	    mu_op(b, "TensorArrayScatterV3", MU_IN(a, which, mu_square(b, rows), mu_port(a, 1)));
	struct mu_out row = mu_op(b, "TensorArrayReadV3", MU_IN(a, one, flow),
				  MU_ATTRS(MU_A_TYPE("dtype", MU_FLOAT)));
	struct mu_out grad =
	    mu_op(b, "TensorArrayGradV3", MU_IN(a, flow), MU_ATTRS(MU_A_STR("source", "g")));
	struct mu_out once =
	    mu_op(b, "TensorArrayWriteV3", MU_IN(grad, one, mu_neg(b, row), mu_port(grad, 1)));
	struct mu_out twice =
	    mu_op(b, "TensorArrayWriteV3", MU_IN(grad, one, mu_exp(b, row), once));
	struct mu_out thrice = mu_op(b, "TensorArrayWriteV3", MU_IN(grad, zero, row, twice));
	struct mu_out gathered =
	    mu_op(b, "TensorArrayGatherV3", MU_IN(grad, all, thrice),
		  MU_ATTRS(MU_A_TYPE("dtype", MU_FLOAT), MU_A_SHAPE("element_shape", &wide)));
	struct mu_out stack = mu_op(b, "StackV2", MU_IN(mu_const_int(b, MU_INT32, -1)),
				    MU_ATTRS(MU_A_TYPE("elem_type", MU_FLOAT)));
	struct mu_out pushed = mu_op(b, "StackPushV2", MU_IN(stack, mu_relu(b, gathered)));
	mu_push_control(b, &pushed, 1);
	struct mu_out popped =
	    mu_op(b, "StackPopV2", MU_IN(stack), MU_ATTRS(MU_A_TYPE("elem_type", MU_FLOAT)));
	mu_pop_control(b);
	struct mu_out both = mu_op(b, "IdentityN", MU_IN(popped, one));
	return mu_add(b, both, gathered);
}

static struct mu_out const_longs(struct mu_builder *b, const int64_t *v, int64_t n)
{
	struct mu_shape s = mu_shape_vec(n);
	MU_AUTO_TENSOR t = {0};

	assert_ok(mu_tensor_new(&t, MU_INT64, &s, &err), &err);
	memcpy(t.data, v, mu_tensor_bytes(&t));
	return mu_const(b, "longs", &t);
}

static struct mu_out const_false(struct mu_builder *b)
{
	const bool no = false;
	MU_AUTO_TENSOR t = {0};

	assert_ok(mu_tensor_scalar(&t, MU_BOOL, &no, &err), &err);
	return mu_const(b, "no", &t);
}

#define FLOATS MU_ATTRS(MU_A_TYPE("element_dtype", MU_FLOAT))
#define LISTS  MU_ATTRS(MU_A_TYPE("T", MU_VARIANT))

/* A list of 100 elements, more than one launch copies. Splits, sets, gets, pushes and pops
 * elements, leaves others unset, uses a list of lists with zeros and sums, and concatenates
 * everything. */
static struct mu_out through_lists(struct mu_builder *b, struct mu_out rows)
{
	struct mu_out two = mu_const_int(b, MU_INT32, 2);
	struct mu_out wide = mu_const_ints(b, (int32_t[]){WIDTH}, 1);
	struct mu_out any = mu_const_int(b, MU_INT32, -1), no = const_false(b);
	struct mu_out cut =
	    mu_op(b, "TensorListFromTensor", MU_IN(mu_square(b, rows), wide), FLOATS);
	struct mu_out row = mu_op(b, "TensorListGetItem", MU_IN(cut, two, wide), FLOATS);
	struct mu_out empty =
	    mu_op(b, "TensorListReserve", MU_IN(wide, mu_const_int(b, MU_INT32, 100)), FLOATS);
	struct mu_out unset = mu_op(b, "TensorListGetItem", MU_IN(empty, two, wide), FLOATS);
	struct mu_out one = mu_op(b, "TensorListSetItem",
				  MU_IN(empty, two, mu_add(b, mu_neg(b, row), unset)), FLOATS);
	struct mu_out switched = mu_op(b, "Switch", MU_IN(one, no), LISTS);
	struct mu_out back = mu_op(b, "Merge", MU_IN(switched, mu_port(switched, 1)),
				   MU_ATTRS(MU_A_TYPE("T", MU_VARIANT), MU_A_INT("N", 2)));
	struct mu_out more = mu_op(
	    b, "TensorListScatterIntoExistingList",
	    MU_IN(back, mu_exp(b, rows), mu_const_ints(b, (int32_t[]){99, 0, 70}, 3)), FLOATS);
	struct mu_out none = mu_op(b, "ZerosLike", MU_IN(more), LISTS);
	struct mu_out sum = mu_op(b, "AddN", MU_IN(more, none, more),
				  MU_ATTRS(MU_A_TYPE("T", MU_VARIANT), MU_A_INT("N", 3)));
	struct mu_out outer = mu_op(b, "TensorListPushBack",
				    MU_IN(mu_op(b, "EmptyTensorList", MU_IN(any, any),
						MU_ATTRS(MU_A_TYPE("element_dtype", MU_VARIANT))),
					  sum),
				    MU_ATTRS(MU_A_TYPE("element_dtype", MU_VARIANT)));
	struct mu_out popped = mu_op(b, "TensorListPopBack", MU_IN(outer, any),
				     MU_ATTRS(MU_A_TYPE("element_dtype", MU_VARIANT)));
	struct mu_out stack = mu_op(b, "TensorListStack", MU_IN(mu_port(popped, 1), wide), FLOATS);
	struct mu_out some =
	    mu_op(b, "TensorListGather",
		  MU_IN(mu_port(popped, 1), mu_const_ints(b, (int32_t[]){70, 2, 3, 99}, 4), wide),
		  FLOATS);
	struct mu_out parts = mu_op(b, "TensorListSplit",
				    MU_IN(stack, mu_const_ints(b, (int32_t[]){-1, WIDTH}, 2),
					  const_longs(b, (int64_t[]){30, 0, 70}, 3)),
				    FLOATS);
	struct mu_out pushed = mu_op(b, "TensorListPushBack", MU_IN(parts, some), FLOATS);
	struct mu_out length = mu_op(b, "TensorListLength", MU_IN(pushed));
	mu_push_control(b, &length, 1);
	struct mu_out joined = mu_op(b, "TensorListConcatV2",
				     MU_IN(pushed, mu_const_ints(b, (int32_t[]){-1, WIDTH}, 2),
					   const_longs(b, (int64_t[]){0}, 0)),
				     FLOATS);
	mu_pop_control(b);
	return joined;
}

/* A temporary variable with slice updates, and its final value. */
static struct mu_out through_a_variable(struct mu_builder *b, struct mu_out rows)
{
	struct mu_pshape shape = MU_SHAPE(3, WIDTH);
	struct mu_out temporary =
	    mu_op(b, "TemporaryVariable", .name = "t",
		  MU_ATTRS(MU_A_TYPE("dtype", MU_FLOAT), MU_A_SHAPE("shape", &shape),
			   MU_A_STR("var_name", "room")));
	struct mu_out full = mu_op(b, "Assign", MU_IN(temporary, mu_exp(b, rows)));
	struct mu_out cut =
	    mu_op(b, "StridedSliceAssign",
		  MU_IN(full, mu_const_ints(b, (int32_t[]){2, 1}, 2),
			mu_const_ints(b, (int32_t[]){0, 6}, 2),
			mu_const_ints(b, (int32_t[]){-1, 2}, 2), mu_const_float(b, 7)),
		  MU_ATTRS(MU_A_TYPE("T", MU_FLOAT), MU_A_TYPE("Index", MU_INT32)));
	struct mu_out more = mu_op(b, "AssignAdd", MU_IN(cut, mu_square(b, rows)));
	return mu_op(b, "DestroyTemporaryVariable", MU_IN(more),
		     MU_ATTRS(MU_A_STR("var_name", "room")));
}

typedef struct mu_out container_fn(struct mu_builder *b, struct mu_out rows);

static void run_containers(struct task_server *server, container_fn *container,
			   struct mu_tensor *out)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	MU_AUTO(mu_session_close) struct mu_session *s = NULL;
	struct mu_out x = mu_placeholder(b, "x", MU_FLOAT, MU_SHAPE(3, WIDTH));
	struct mu_out made = container(b, x);
	struct mu_shape shape;
	MU_AUTO_TENSOR rows = {0};

	assert_ok(mu_shape_set(&shape, 2, (int64_t[]){3, WIDTH}, &err), &err);
	assert_ok(mu_tensor_new(&rows, MU_FLOAT, &shape, &err), &err);
	for (int i = 0; i < 3 * WIDTH; i++)
		MU_DATA(float, &rows)[i] = (float)(i % 5) - 1.5f;
	const struct mu_feed feed = {x, &rows};
	s = open_on(server, b);
	assert_ok(
	    mu_session_run(
		s, &(struct mu_run){.feeds = &feed, .n_feeds = 1, .fetches = &made, .n_fetches = 1},
		out, &err),
	    &err);
}

/* The step makes one copy to the host, so the stored tensors never left the GPU. */
static void compare_devices(container_fn *container, int rows)
{
	MU_AUTO_TENSOR want = {0}, got = {0};
	struct fake_cuda_counts before, after;

	run_containers(cpu, container, &want);
	get_counts(&before);
	run_containers(gpu, container, &got);
	get_counts(&after);
	assert_int_equal(want.shape.count, rows * WIDTH);
	assert_int_equal(got.shape.count, rows * WIDTH);
	for (int i = 0; i < rows * WIDTH; i++)
		assert_float_equal(MU_DATA(float, &got)[i], MU_DATA(float, &want)[i], 1e-5);
	assert_int_equal(after.copies_out - before.copies_out, 1);
	WAIT_UNTIL(info_of(0).used == 0);
}

static void arrays_and_stacks__on_a_gpu__store_tensors_on_the_gpu(void **state)
{
	compare_devices(through_arrays, 4);
}

static void temporary_variables__on_a_gpu__are_on_the_gpu(void **state)
{
	compare_devices(through_a_variable, 3);
}

static void lists__on_a_gpu__store_tensors_on_the_gpu(void **state)
{
	compare_devices(through_lists, 104);
}

/* ---- out of memory ---- */

static void tensor__that_is_too_large__fails_with_a_report_of_memory_use(void **state)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	MU_AUTO(mu_session_close) struct mu_session *s = NULL;
	MU_AUTO_TENSOR value = {0};
	struct mu_var *w = mu_variable(b, "weights", MU_FLOAT, MU_SHAPE(1 << 22), MU_ZEROS, true);
	struct mu_out tall =
	    mu_op(b, "Fill", .name = "tall",
		  MU_IN(mu_const_ints(b, (int32_t[]){30 << 20}, 1), mu_const_float(b, 1)));
	struct mu_out sum = mu_sum(b, tall, NULL, 0), init = mu_init_all(b);

	(void)w;
	s = open_on(gpu, b);
	assert_ok(mu_session_do(s, init, &err), &err);
	assert_fails(mu_session_get(s, sum, &value, &err), &err, MU_RESOURCE_EXHAUSTED,
		     "GPU:0 is out of memory: tall wants 120.0 MiB");
	assert_non_null(strstr(err.msg, "(16.0 MiB)"));
}

/* ---- state ---- */

static void required_kernel_level__above_that_of_the_gpu__fails(void **state)
{
	struct device_choice c;

	assert_fails(device_open("cuda-sm120", NULL, &c, &err), &err, MU_FAILED_PRECONDITION,
		     "sm_90 at most");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(training__on_a_gpu__has_the_losses_of_the_cpu),
	    cmocka_unit_test(memory__after_the_end_of_a_session__is_freed),
	    cmocka_unit_test(task__with_wrong_gpu_options__does_not_start),
	    cmocka_unit_test(nodes__on_two_gpus__exchange_tensors),
	    cmocka_unit_test(nodes__on_gpus_of_two_tasks__exchange_tensors),
	    cmocka_unit_test(op_without_a_gpu_kernel__with_soft_placement__runs_on_the_cpu),
	    cmocka_unit_test(device_count__of_the_server__limits_its_gpus),
	    cmocka_unit_test(arrays_and_stacks__on_a_gpu__store_tensors_on_the_gpu),
	    cmocka_unit_test(lists__on_a_gpu__store_tensors_on_the_gpu),
	    cmocka_unit_test(temporary_variables__on_a_gpu__are_on_the_gpu),
	    cmocka_unit_test(tensor__that_is_too_large__fails_with_a_report_of_memory_use),
	    cmocka_unit_test(required_kernel_level__above_that_of_the_gpu__fails),
	};
	return cmocka_run_group_tests(tests, start_servers, stop_servers);
}
