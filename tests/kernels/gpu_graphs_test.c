/* SPDX-License-Identifier: Apache-2.0 */
/* Segments of launches that come again: how many calls of the driver they take, and that nothing
 * else is seen of it.  Calls are counted on the stand-in only; the numbers have to be right on a
 * GPU, too. */
#include <pthread.h>
#include <stdlib.h>

#include "task/device/gpu_product.h"
#include "task/kernels/cuda/args.h"
#include "tests/kernels/gpu_one.h"

enum { N = 512, SIDE = 16 };

static int begin_without(void **state)
{
	setenv("MUSTER_CUDA_GRAPHS", "0", 1);
	int rc = begin(state);
	unsetenv("MUSTER_CUDA_GRAPHS");
	return rc;
}

static bool is_real(void)
{
	return getenv("MUSTER_GPU_TEST") != NULL;
}

#define NEEDS_THE_STAND_IN()                                                                       \
	do {                                                                                       \
		if (is_real())                                                                     \
			skip();                                                                    \
	} while (0)
#define EXPECT_COUNT(is, wanted)                                                                   \
	do {                                                                                       \
		if (!is_real())                                                                    \
			assert_int_equal(is, wanted);                                              \
	} while (0)

static struct fake_cuda_counts counted(void)
{
	struct fake_cuda_counts c;

	fake_cuda_count(&c);
	return c;
}

/* ---- numbers on the device and back ---- */

struct waiter {
	pthread_mutex_t lock;
	pthread_cond_t came;
	bool done;
	int code;
};

static void came(void *arg, const struct mu_err *e)
{
	struct waiter *w = arg;

	pthread_mutex_lock(&w->lock);
	w->done = true;
	w->code = e ? (int)e->code : 0;
	pthread_cond_signal(&w->came);
	pthread_mutex_unlock(&w->lock);
}

static struct mu_tensor on_device(int64_t n, float value)
{
	struct mu_shape s = mu_shape_vec(n);
	struct mu_tensor there;
	MU_AUTO_TENSOR t = {0};
	struct mu_err e;

	assert_int_equal(mu_tensor_new(&t, MU_FLOAT, &s, &e), 0);
	for (int64_t i = 0; i < n; i++)
		MU_DATA(float, &t)[i] = value;
	assert_int_equal(gpu_bring_in(g, &t, "test", &there, &e), 0);
	return there;
}

/* All elements, which are the same. */
static float fetched(const struct mu_tensor *t)
{
	struct waiter w = {.lock = PTHREAD_MUTEX_INITIALIZER, .came = PTHREAD_COND_INITIALIZER};
	MU_AUTO_TENSOR out = {0};
	struct mu_err e;

	assert_int_equal(gpu_bring_out(g, t, &out, came, &w, &e), 0);
	pthread_mutex_lock(&w.lock);
	while (!w.done)
		pthread_cond_wait(&w.came, &w.lock);
	pthread_mutex_unlock(&w.lock);
	assert_int_equal(w.code, 0);
	for (int64_t i = 1; i < t->shape.count; i++)
		assert_float_equal(MU_DATA(float, &out)[i], MU_DATA(float, &out)[0], 0);
	return MU_DATA(float, &out)[0];
}

/* to = a op b, launched */
static int apply(const char *op, const struct mu_tensor *to, const struct mu_tensor *a,
		 const struct mu_tensor *b)
{
	struct binary_args args = {.out = gpu_address(to),
				   .a = gpu_address(a),
				   .b = gpu_address(b),
				   .n = to->shape.count,
				   .a_step = 1,
				   .b_step = 1};
	struct mu_err e;
	void *kernel;
	int rc = gpu_kernel(g, op, &kernel, &e);

	return rc ? rc : gpu_launch(g, kernel, gpu_grid_for(g, args.n), &args, &e);
}

/* x = 2 * (x + 1), by four launches, a fill and a copy. */
static int step_on(const struct mu_tensor *x, const struct mu_tensor *one,
		   const struct mu_tensor *room)
{
	struct mu_err e;
	int rc = 0;

	rc |= apply("AddV2_f32", x, x, one);
	rc |= gpu_copy_within(g, gpu_address(room), gpu_address(x), N * sizeof(float), &e);
	rc |= apply("AddV2_f32", x, x, room);
	rc |= gpu_fill(g, room, 0, &e);
	rc |= apply("AddV2_f32", x, x, room);
	rc |= apply("Mul_f32", x, x, one);
	return rc;
}

static float twice_and_two(float x)
{
	return 2 * (x + 1);
}

/* ---- what is repeated ---- */

static void a_segment__from_the_third_time_on__is_one_launch(void **state)
{
	MU_AUTO_TENSOR x = on_device(N, 1), one = on_device(N, 1), room = on_device(N, 0);
	float want = 1;

	for (unsigned i = 0; i < 8; i++) {
		struct fake_cuda_counts before = counted();
		assert_int_equal(step_on(&x, &one, &room), 0);
		want = twice_and_two(want);
		assert_float_equal(fetched(&x), want, 0);
		EXPECT_COUNT(counted().launches - before.launches, i < 2 ? 4 : 0);
		EXPECT_COUNT(counted().graph_launches - before.graph_launches, i >= 2);
		EXPECT_COUNT(counted().pieces_set - before.pieces_set, 0);
	}
}

static void a_segment__with_graphs_off__is_launched_piece_by_piece(void **state)
{
	MU_AUTO_TENSOR x = on_device(N, 1), one = on_device(N, 1), room = on_device(N, 0);

	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(step_on(&x, &one, &room), 0);
		fetched(&x);
	}
	EXPECT_COUNT(counted().launches, 5 * 4);
	EXPECT_COUNT(counted().graph_launches, 0);
}

/* Steps that fetch nothing end at their end. */
static void steps__without_fetches__are_one_launch_each(void **state)
{
	MU_AUTO_TENSOR x = on_device(N, 0), one = on_device(N, 1), room = on_device(N, 0);
	float want = 0;

	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(step_on(&x, &one, &room), 0);
		want = twice_and_two(want);
		assert_int_equal(gpu_set_send(set, &err), 0);
		gpu_set_end_segments(set);
	}
	EXPECT_COUNT(counted().graph_launches, 8);
	assert_float_equal(fetched(&x), want, 0);
}

/* The same kernels at other places: pieces are set, and what runs already keeps its own. */
static void kernels__at_other_addresses__are_set_in_the_graph(void **state)
{
	MU_AUTO_TENSOR one = on_device(N, 1), x = on_device(N, 1), y = on_device(N, 2);
	float want_x = 1, want_y = 2;

	fake_cuda.slow = 50;
	for (unsigned i = 0; i < 40; i++) {
		const struct mu_tensor *t = i & 1 ? &y : &x;
		for (unsigned k = 0; k < 3; k++)
			assert_int_equal(apply("AddV2_f32", t, t, &one), 0);
		*(i & 1 ? &want_y : &want_x) += 3;
		assert_int_equal(gpu_set_send(set, &err), 0);
		gpu_set_end_segments(set);
	}
	EXPECT_COUNT(counted().graph_launches, 38);
	assert_true(is_real() || counted().pieces_set >= 37 * 3);
	assert_float_equal(fetched(&x), want_x, 0);
	assert_float_equal(fetched(&y), want_y, 0);
}

/* What goes on otherwise than it did is launched as it is, in its order. */
static void a_segment__that_goes_on_otherwise__is_right_all_the_same(void **state)
{
	MU_AUTO_TENSOR x = on_device(N, 0), one = on_device(N, 1);
	float want = 0;

	for (unsigned i = 0; i < 60; i++) {
		const unsigned cut = i % 7;
		for (unsigned k = 0; k < 6; k++) {
			bool add = k != cut;
			assert_int_equal(apply(add ? "AddV2_f32" : "Sub_f32", &x, &x, &one), 0);
			want += add ? 1 : -1;
			if (k == i % 5 && i % 3 == 0)
				assert_float_equal(fetched(&x), want, 0);
		}
		if (i % 2)
			gpu_set_end_segments(set);
		assert_float_equal(fetched(&x), want, 0);
	}
	assert_true(is_real() || counted().graph_launches > 10);
}

static void what_is_held__when_a_thread_has_no_more__is_sent(void **state)
{
	MU_AUTO_TENSOR x = on_device(N, 0), one = on_device(N, 1);

	for (unsigned i = 0; i < 3; i++) {
		for (unsigned k = 0; k < 4; k++)
			assert_int_equal(apply("AddV2_f32", &x, &x, &one), 0);
		gpu_set_end_segments(set);
	}
	EXPECT_COUNT(counted().launches, 8);
	EXPECT_COUNT(counted().graph_launches, 1);
	for (unsigned k = 0; k < 2; k++)
		assert_int_equal(apply("AddV2_f32", &x, &x, &one), 0);
	EXPECT_COUNT(counted().launches, 8); /* held */
	assert_int_equal(gpu_set_send(set, &err), 0);
	EXPECT_COUNT(counted().launches, 10);
	assert_float_equal(fetched(&x), 14, 0);
}

/* ---- updates of variables ---- */

/* var -= grad * rate */
static void descend(const struct mu_tensor *var, const struct mu_tensor *grad,
		    const struct mu_tensor *rate)
{
	struct update_args u = {.at = {gpu_address(var)},
				.grad = gpu_address(grad),
				.scalar = {gpu_address(rate)},
				.scalars = 1,
				.n = var->shape.count};
	void *kernel;

	assert_int_equal(gpu_kernel(g, "up_sgd_f32", &kernel, &err), 0);
	assert_int_equal(gpu_update(g, kernel, MU_FLOAT, &u, &err), 0);
}

static void updates__that_follow_one_another__are_one_launch(void **state)
{
	enum { MANY = 40, MOST = CUDA_MAX_UPDATES };
	struct mu_tensor var[MANY], grad[MANY];
	MU_AUTO_TENSOR rate = on_device(1, 0.5f);

	for (int i = 0; i < MANY; i++) { /* of one block, and of several */
		var[i] = on_device(1 + i * i * 37, (float)i);
		grad[i] = on_device(1 + i * i * 37, 2.0f * (float)i);
	}
	for (unsigned step = 1; step <= 4; step++) {
		unsigned long before = counted().launches;
		for (int i = 0; i < MANY; i++)
			descend(&var[i], &grad[i], &rate);
		EXPECT_COUNT(counted().launches - before, 1); /* the first so many */
		assert_int_equal(gpu_set_send(set, &err), 0);
		EXPECT_COUNT(counted().launches - before, (MANY + MOST - 1) / MOST);
		for (int i = 0; i < MANY; i++)
			assert_float_equal(fetched(&var[i]), (float)i - (float)step * (float)i, 0);
	}
	for (int i = 0; i < MANY; i++) {
		mu_tensor_unref(&var[i]);
		mu_tensor_unref(&grad[i]);
	}
}

/* One variable twice, a variable as another's gradient and as its rate, and what reads one. */
static void updates__that_need_each_other__keep_their_order(void **state)
{
	MU_AUTO_TENSOR a = on_device(N, 10), b = on_device(N, 4), one = on_device(N, 1);
	MU_AUTO_TENSOR rate = on_device(1, 1), c = on_device(N, 0);

	fake_cuda.slow = 20;
	descend(&a, &one, &rate);   /* a = 9 */
	descend(&a, &one, &rate);   /* a = 8 */
	descend(&b, &a, &rate);     /* b = -4 */
	descend(&a, &one, &rate);   /* a = 7 */
	descend(&rate, &a, &one);   /* rate = 1 - 7 = -6 */
	descend(&b, &one, &rate);   /* b = -4 + 6 = 2 */
	descend(&rate, &one, &one); /* rate = -7 */
	assert_int_equal(apply("AddV2_f32", &c, &a, &b), 0);
	descend(&a, &one, &one); /* a = 6 */
	assert_float_equal(fetched(&c), 9, 0);
	assert_float_equal(fetched(&rate), -7, 0);
	assert_float_equal(fetched(&a), 6, 0);
	assert_float_equal(fetched(&b), 2, 0);
}

/* ---- products of the library ---- */

static void product_of(struct gpu_plan *plan, const struct mu_tensor *out,
		       const struct mu_tensor *a, const struct mu_tensor *b, int64_t m)
{
	struct gpu_product p = {.type = MU_FLOAT,
				.m = m,
				.n = SIDE,
				.k = SIDE,
				.out = gpu_address(out),
				.a = gpu_address(a),
				.b = gpu_address(b),
				.bias = gpu_address(b)};
	bool done;

	assert_int_equal(gpu_product(g, plan, &p, "test", &done, &err), 0);
	assert_true(done);
}

/* A plan for another shape frees what the first one's products are described by. */
static void products__in_a_segment__are_part_of_the_graph(void **state)
{
	MU_AUTO_TENSOR a = on_device(SIDE * SIDE, 1), b = on_device(SIDE * SIDE, 2);
	MU_AUTO_TENSOR out = on_device(SIDE * SIDE, 0), sum = on_device(SIDE * SIDE, 0);
	struct gpu_plan *plan = gpu_product_plan_new();
	float want = 0;

	for (unsigned i = 0; i < 12; i++) {
		unsigned long before = counted().graph_launches;
		int64_t m = i < 8 ? SIDE : SIDE / 2; /* the rest stays as it was */
		for (unsigned k = 0; k < 2; k++) {
			product_of(plan, &out, &a, &b, m);
			assert_int_equal(apply("AddV2_f32", &sum, &sum, &out), 0);
		}
		want += 2 * (2 * SIDE + 2);
		assert_float_equal(fetched(&sum), want, 0);
		if (i == 7 || i == 11)
			EXPECT_COUNT(counted().graph_launches - before, 1);
	}
	for (unsigned k = 0; k < 2; k++) { /* held, when the plan goes */
		product_of(plan, &out, &a, &b, SIDE / 2);
		assert_int_equal(apply("AddV2_f32", &sum, &sum, &out), 0);
		if (!k) {
			gpu_plan_free(plan);
			plan = gpu_product_plan_new();
		}
	}
	assert_float_equal(fetched(&sum), want + 2 * (2 * SIDE + 2), 0);
	gpu_plan_free(plan);
}

/* ---- what goes wrong ---- */

/* Three launches at a time, on x and then elsewhere. */
static void steps_without(const char *call)
{
	MU_AUTO_TENSOR one = on_device(N, 1), x = on_device(N, 0), y = on_device(N, 0);

	fake_cuda.fail_call = call;
	fake_cuda.fail_at = 1;
	fake_cuda.fail_result = 801;
	for (unsigned i = 0; i < 6; i++) {
		const struct mu_tensor *t = i < 4 ? &x : &y;
		for (unsigned k = 0; k < 3; k++)
			assert_int_equal(apply("AddV2_f32", t, t, &one), 0);
		fetched(t);
	}
	assert_null(fake_cuda.fail_call);
	assert_float_equal(fetched(&x), 12, 0);
	assert_float_equal(fetched(&y), 6, 0);
}

static void graphs__that_the_driver_refuses__change_no_result(void **state)
{
	static const char *const calls[] = {"capture_begin", "capture_see", "capture_end",
					    "graph_make",    "graph_set",   "graph_launch"};

	NEEDS_THE_STAND_IN();
	for (unsigned c = 0; c < MU_COUNT(calls); c++) {
		steps_without(calls[c]);
		gpu_set_free(set); /* that segment, or all, is without graphs on this one */
		assert_int_equal(begin(state), 0);
	}
}

/* Its caller has been told that it was accepted: nobody may go on from there. */
static void a_launch__that_was_held_and_is_refused__takes_the_gpu_out(void **state)
{
	NEEDS_THE_STAND_IN();
	MU_AUTO_TENSOR x = on_device(N, 0), one = on_device(N, 1);

	for (unsigned i = 0; i < 3; i++) {
		for (unsigned k = 0; k < 4; k++)
			assert_int_equal(apply("AddV2_f32", &x, &x, &one), 0);
		gpu_set_end_segments(set);
	}
	assert_int_equal(apply("AddV2_f32", &x, &x, &one), 0);
	fake_cuda.fail_call = "launch";
	fake_cuda.fail_at = 1;
	fake_cuda.fail_result = 701;
	assert_int_equal(gpu_set_send(set, &err), -MU_UNAVAILABLE);
	assert_non_null(strstr(err.msg, "launching what was held back"));
	assert_false(gpu_works(g));
}

/* ---- several threads ---- */

static void *steps_of_its_own(void *arg)
{
	const struct mu_tensor *one = arg;
	struct mu_tensor x = on_device(N, 0), room = on_device(N, 0);
	struct mu_err e;
	float want = 0;

	for (unsigned i = 0; i < 15; i++) {
		want = twice_and_two(want);
		if (step_on(&x, one, &room) || gpu_set_send(set, &e))
			break;
		if (i % 3 == 0)
			gpu_set_end_segments(set);
		if (fetched(&x) < want || fetched(&x) > want)
			break;
		want = i == 14 ? -1 : want;
	}
	mu_tensor_unref(&x);
	mu_tensor_unref(&room);
	return want < 0 ? arg : NULL;
}

static void steps__of_several_threads_at_once__do_not_mix(void **state)
{
	MU_AUTO_TENSOR one = on_device(N, 1);
	pthread_t threads[4];
	void *well;

	for (unsigned i = 0; i < MU_COUNT(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, steps_of_its_own, &one), 0);
	for (unsigned i = 0; i < MU_COUNT(threads); i++) {
		pthread_join(threads[i], &well);
		assert_ptr_equal(well, &one);
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)
	const struct CMUnitTest tests[] = {
	    T(a_segment__from_the_third_time_on__is_one_launch),
	    cmocka_unit_test_setup_teardown(a_segment__with_graphs_off__is_launched_piece_by_piece,
					    begin_without, end),
	    T(steps__without_fetches__are_one_launch_each),
	    T(kernels__at_other_addresses__are_set_in_the_graph),
	    T(a_segment__that_goes_on_otherwise__is_right_all_the_same),
	    T(what_is_held__when_a_thread_has_no_more__is_sent),
	    T(updates__that_follow_one_another__are_one_launch),
	    T(updates__that_need_each_other__keep_their_order),
	    T(products__in_a_segment__are_part_of_the_graph),
	    T(graphs__that_the_driver_refuses__change_no_result),
	    T(a_launch__that_was_held_and_is_refused__takes_the_gpu_out),
	    T(steps__of_several_threads_at_once__do_not_mix),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
