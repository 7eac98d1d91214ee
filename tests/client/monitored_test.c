/* SPDX-License-Identifier: Apache-2.0 */
/* Savers, hooks and monitored sessions on a server in this process. */
#include "tests/test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/checkpoint/bundle.h"
#include "lib/checkpoint/checkpoint_state.h"
#include "lib/io/event_writer.h"
#include "muster/train.h"
#include "tests/client/server.h"

static struct mu_err err;
static char folder[64];

/* Minimises x², from x = 1 with learning rate 0.1. */
struct program {
	struct mu_builder *b;
	struct mu_var *x;
	struct mu_out loss, train;
	struct mu_saver *saver;
	struct mu_monitored *m;
};

static int setup(void **state)
{
	strcpy(folder, "/tmp/muster-monitored-XXXXXX");
	assert_non_null(mkdtemp(folder));
	err = (struct mu_err){0};
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

static void build(struct program *p, const char *variable)
{
	struct mu_init one = {.kind = MU_INIT_VALUE, .value = 1};
	struct mu_optimizer sgd;

	*p = (struct program){.b = mu_builder_new()};
	mu_global_step(p->b);
	p->x = mu_variable(p->b, variable, MU_FLOAT, MU_SHAPE(2), one, true);
	p->loss = mu_sum(p->b, mu_square(p->b, mu_read(p->x)), NULL, 0);
	assert_ok(mu_optimizer_named("sgd", 0.05, &sgd, &err), &err);
	p->train = mu_minimize(p->b, &sgd, p->loss, mu_global_step(p->b));
	p->saver = mu_saver_new(p->b, 2);
	assert_ok(mu_builder_check(p->b, &err), &err);
}

static int open_with(struct program *p, struct mu_hook **hooks, unsigned n)
{
	return mu_monitored_open(&p->m, p->b,
				 &(struct mu_monitored_options){
				     .target = test_server(),
				     .chief = true,
				     .train = p->train,
				     .saver = p->saver,
				     .folder = folder,
				     .hooks = hooks,
				     .n_hooks = n,
				     .session = {.isolate_state = true},
				 },
				 &err);
}

static void train_to_the_end(struct program *p)
{
	for (int i = 0; i < 1000 && !mu_monitored_should_stop(p->m); i++)
		assert_ok(mu_monitored_train(p->m, &(struct mu_run){0}, NULL, &err), &err);
}

static void close_all(struct program *p)
{
	if (p->m)
		assert_ok(mu_monitored_close(p->m, false, &err), &err);
	mu_saver_free(p->saver);
	mu_builder_free(p->b);
}

static void training__resumes_from_its_checkpoint(void **state)
{
	struct program p;
	struct mu_checkpoint_state s;
	MU_AUTO_TENSOR x = {0};

	build(&p, "x");
	assert_ok(
	    open_with(&p,
		      (struct mu_hook *[]){mu_checkpoint_hook(p.saver, folder, 0, 4, NULL, NULL),
					   mu_stop_at_step_hook(10)},
		      2),
	    &err);
	train_to_the_end(&p);
	assert_int_equal(mu_monitored_step(p.m), 10);
	close_all(&p);

	assert_ok(mu_checkpoint_state_read(&s, folder, &err), &err);
	assert_int_equal(s.n, 2); /* checkpoints of steps 0 and 4 were deleted */
	assert_non_null(strstr(s.latest, "model.ckpt-10"));
	assert_true(mu_bundle_exists(s.paths[0]));
	mu_checkpoint_state_fini(&s);

	build(
	    &p,
	    "x"); /* the state of the first session is gone, so the value must come from the file */
	assert_ok(open_with(&p, NULL, 0), &err);
	assert_int_equal(mu_monitored_step(p.m), 10);
	assert_ok(mu_session_get(mu_monitored_session(p.m), mu_read(p.x), &x, &err), &err);
	assert_float_equal(MU_DATA(float, &x)[1], 0.34867844f, 1e-5f); /* 0.9^10 */
	close_all(&p);
}

static void checkpoint_without_a_variable__names_the_variable(void **state)
{
	struct program p;

	build(&p, "x");
	assert_ok(
	    open_with(
		&p, (struct mu_hook *[]){mu_checkpoint_hook(p.saver, folder, 0, 0, NULL, NULL)}, 1),
	    &err);
	close_all(&p);
	build(&p, "renamed");
	assert_int_equal(open_with(&p, NULL, 0), -(int)MU_NOT_FOUND);
	assert_non_null(strstr(err.msg, "renamed"));
	p.m = NULL;
	close_all(&p);
}

static void nan_loss__fails_the_training(void **state)
{
	struct program p;
	struct mu_hook *nan;
	int rc = 0;

	build(&p, "x");
	struct mu_out bad = mu_div(p.b, p.loss, mu_const_float(p.b, 0));
	nan = mu_nan_hook(bad);
	assert_ok(open_with(&p, &nan, 1), &err);
	rc = mu_monitored_train(p.m, &(struct mu_run){0}, NULL, &err);
	assert_int_equal(rc, -(int)MU_INVALID_ARGUMENT);
	assert_non_null(strstr(err.msg, "at step 1"));
	close_all(&p);
}

static void loss_of_each_number_type__passes_the_nan_check(void **state)
{
	static const enum mu_dtype types[] = {MU_HALF, MU_BFLOAT16, MU_INT32, MU_DOUBLE};
	const char *tags[MU_COUNT(types)] = {"half", "bfloat16", "int32", "double"};
	struct mu_hook *hooks[2 * MU_COUNT(types) + 1];
	struct mu_out losses[MU_COUNT(types)];
	struct mu_event_writer *events;
	struct program p;
	unsigned n = 0;

	build(&p, "x");
	assert_ok(mu_event_create(&events, folder, "", &err), &err);
	for (unsigned i = 0; i < MU_COUNT(types); i++) {
		losses[i] = mu_cast(p.b, p.loss, types[i]);
		hooks[n++] = mu_nan_hook(losses[i]);
		hooks[n++] = mu_logging_hook(&tags[i], &losses[i], 1, 1);
	}
	hooks[n++] = mu_summary_hook(events, 1, tags, losses, MU_COUNT(types));
	assert_ok(open_with(&p, hooks, n), &err);
	assert_ok(mu_monitored_train(p.m, &(struct mu_run){0}, NULL, &err), &err);
	close_all(&p);
	assert_ok(mu_event_close(events, &err), &err);
}

static void closed_queue__does_not_reopen_the_session(void **state)
{
	struct program p;
	int64_t start = mu_clock_ms();

	build(&p, "x");
	struct mu_out queue =
	    mu_op(p.b, "FIFOQueueV2",
		  MU_ATTRS(MU_A_TYPES("component_types", ((enum mu_dtype[]){MU_FLOAT}), 1)));
	struct mu_out close = mu_op(p.b, "QueueCloseV2", MU_IN(queue));
	mu_push_control(p.b, &close, 1);
	struct mu_out enqueue = mu_op(p.b, "QueueEnqueueV2", MU_IN(queue, mu_const_float(p.b, 1)));
	mu_pop_control(p.b);
	assert_ok(open_with(&p, NULL, 0), &err);
	assert_int_equal(mu_monitored_train(p.m,
					    &(struct mu_run){.targets = &enqueue, .n_targets = 1},
					    NULL, &err),
			 -(int)MU_CANCELLED);
	assert_non_null(strstr(err.msg, "is closed"));
	assert_true(mu_clock_ms() - start < 20000); /* 20 sessions take 30 s */
	close_all(&p);
}

static void summaries__are_written_at_their_interval(void **state)
{
	const char *tag = "loss";
	struct mu_event_writer *events;
	struct program p;
	char path[1024];

	build(&p, "x");
	assert_ok(mu_event_create(&events, folder, "", &err), &err);
	snprintf(path, sizeof(path), "%s", mu_event_path(events));
	assert_ok(open_with(&p,
			    (struct mu_hook *[]){mu_summary_hook(events, 5, &tag, &p.loss, 1),
						 mu_stop_at_step_hook(10)},
			    2),
		  &err);
	train_to_the_end(&p);
	close_all(&p);
	assert_ok(mu_event_close(events, &err), &err);

	MU_AUTO_BUF file = {0};
	assert_ok(mu_buf_read_file(&file, path, 1 << 20, &err), &err);
	assert_non_null(memmem(file.data, file.len, "loss", 4));
	assert_non_null(memmem(file.data, file.len, "global_step/sec", 15));
}

static void unreachable_target__is_unavailable_after_the_timeout(void **state)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	MU_AUTO(mu_session_close) struct mu_session *s = NULL;
	struct mu_session_options o = {.connect_timeout_ms = 300};
	struct mu_out c = mu_const_float(b, 1);
	MU_AUTO_TENSOR v = {0};

	assert_ok(mu_session_open(&s, "127.0.0.1:1", b, &o, &err), &err);
	assert_fails(mu_session_get(s, c, &v, &err), &err, MU_UNAVAILABLE, "127.0.0.1:1");
}

static void stop_flag__ends_the_wait_for_a_session(void **state)
{
	struct program p;
	const volatile int stop = 1;

	build(&p, "x");
	assert_fails(mu_monitored_open(&p.m, p.b,
				       &(struct mu_monitored_options){.target = "127.0.0.1:1",
								      .chief = true,
								      .train = p.train,
								      .stop = &stop},
				       &err),
		     &err, MU_CANCELLED, "stopped before");
	p.m = NULL;
	close_all(&p);
}

static void reopened_session__has_the_device_filters_of_the_first(void **state)
{
	const char *filters[] = {"/job:*"};
	struct program p;

	build(&p, "x");
	assert_ok(
	    mu_monitored_open(&p.m, p.b,
			      &(struct mu_monitored_options){
				  .target = test_server(),
				  .chief = true,
				  .train = p.train,
				  .session = {.device_filters = filters, .n_device_filters = 1}},
			      &err),
	    &err);
	filters[0] = NULL; /* the session must have its own copy */
	mu_session_cancel(mu_monitored_session(p.m));
	assert_ok(mu_monitored_train(p.m, &(struct mu_run){.n_fetches = 0}, NULL, &err), &err);
	assert_int_equal(mu_monitored_step(p.m), 1);
	close_all(&p);
}

static void nodes_added_after_a_run__are_sent(void **state)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	MU_AUTO(mu_session_close) struct mu_session *s = NULL;
	struct mu_out c = mu_const_float(b, 21);
	MU_AUTO_TENSOR first = {0};
	MU_AUTO_TENSOR second = {0};

	assert_ok(mu_session_open(&s, test_server(), b, NULL, &err), &err);
	assert_ok(mu_session_get(s, c, &first, &err), &err);
	assert_ok(mu_session_get(s, mu_add(b, c, c), &second, &err), &err);
	assert_float_equal(*MU_DATA(float, &second), 42, 0);
}

/* Returns 1, 2, 3, … */
static int count_up(void *arg, const struct mu_tensor **values, struct mu_err *e)
{
	struct mu_tensor *t = arg;

	*MU_DATA(float, t) += 1;
	values[0] = t;
	return 0;
}

/* Returns three values, then OUT_OF_RANGE. */
static int count_to_three(void *arg, const struct mu_tensor **values, struct mu_err *e)
{
	if (*MU_DATA(float, (struct mu_tensor *)arg) >= 3)
		return mu_fail(e, MU_OUT_OF_RANGE, "that was all");
	return count_up(arg, values, e);
}

/* Subtracts the fed value from x. */
static void build_fed(struct program *p, struct mu_out *fed, struct mu_tensor *next)
{
	struct mu_shape scalar;

	*p = (struct program){.b = mu_builder_new()};
	*fed = mu_placeholder(p->b, "fed", MU_FLOAT, MU_SCALAR);
	mu_global_step(p->b);
	p->x = mu_variable(p->b, "x", MU_FLOAT, MU_SCALAR, MU_ZEROS, true);
	p->loss = mu_mul(p->b, mu_read(p->x), *fed);
	p->train = mu_minimize(p->b, &(struct mu_optimizer){.kind = MU_SGD, .rate = 1}, p->loss,
			       mu_global_step(p->b));
	assert_ok(mu_shape_set(&scalar, 0, NULL, &err), &err);
	assert_ok(mu_tensor_new(next, MU_FLOAT, &scalar, &err), &err);
	*MU_DATA(float, next) = 0;
}

static void end_of_data__ends_the_training_without_failure(void **state)
{
	struct program p;
	struct mu_out fed;
	MU_AUTO_TENSOR next = {0};
	MU_AUTO_TENSOR last = {0};
	int rc = 0;

	build_fed(&p, &fed, &next);
	struct mu_hook *hooks[] = {mu_feed_hook(&fed, 1, count_to_three, &next),
				   mu_final_hook(&p.x->read, 1, &last)};
	assert_ok(open_with(&p, hooks, 2), &err);
	while (!rc && !mu_monitored_should_stop(p.m))
		rc = mu_monitored_train(p.m, &(struct mu_run){.n_feeds = 0}, NULL, &err);
	assert_int_equal(rc, -(int)MU_OUT_OF_RANGE);
	assert_true(mu_monitored_should_stop(p.m));
	close_all(&p);
	assert_float_equal(*MU_DATA(float, &last), -(1 + 2 + 3), 1e-6);
}

static void summaries_of_many_values__are_written_up_to_the_limit(void **state)
{
	enum { MANY = 100, TOO_MANY = 300 };
	struct mu_event_writer *events;
	struct mu_hook *hooks[2];
	const char *tags[TOO_MANY];
	struct mu_out outs[TOO_MANY];
	struct program p;
	char path[1024], names[TOO_MANY][24];
	MU_AUTO_BUF file = {0};

	build(&p, "x");
	for (int i = 0; i < TOO_MANY; i++) {
		snprintf(names[i], sizeof(names[i]), "value-%d.", i);
		tags[i] = names[i];
		outs[i] = p.loss;
	}
	assert_ok(mu_event_create(&events, folder, "", &err), &err);
	snprintf(path, sizeof(path), "%s", mu_event_path(events));
	hooks[0] = mu_summary_hook(events, 1, tags, outs, MANY);
	hooks[1] = mu_logging_hook(tags, outs, TOO_MANY, 2);
	assert_ok(open_with(&p, hooks, 2), &err);
	assert_ok(mu_monitored_train(p.m, &(struct mu_run){0}, NULL, &err), &err);
	assert_fails(mu_monitored_train(p.m, &(struct mu_run){0}, NULL, &err), &err,
		     MU_INVALID_ARGUMENT, "hook 1 fetches 300 values, but only 155");
	close_all(&p);
	assert_ok(mu_event_close(events, &err), &err);
	assert_ok(mu_buf_read_file(&file, path, 1 << 20, &err), &err);
	for (int i = 0; i < MANY; i++)
		assert_non_null(memmem(file.data, file.len, names[i], strlen(names[i])));
}

static size_t read_file(const char *name, char *out, size_t size)
{
	char path[128];
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "r");
	n = f ? fread(out, 1, size - 1, f) : 0;
	if (f)
		fclose(f);
	out[n] = 0;
	return n;
}

static void hooks__feed_and_profile_a_step(void **state)
{
	struct program p;
	struct mu_out fed;
	MU_AUTO_TENSOR next = {0};
	MU_AUTO_TENSOR last = {0};
	char text[16384];

	build_fed(&p, &fed, &next);
	struct mu_hook *hooks[] = {mu_feed_hook(&fed, 1, count_up, &next),
				   mu_profiler_hook(folder, 2), mu_final_hook(&p.x->read, 1, &last),
				   mu_stop_at_step_hook(4)};
	assert_ok(open_with(&p, hooks, 4), &err);
	while (!mu_monitored_should_stop(p.m))
		assert_ok(mu_monitored_train(p.m, &(struct mu_run){.n_feeds = 0}, NULL, &err),
			  &err);
	assert_ok(mu_monitored_close(p.m, false, &err), &err);
	mu_builder_free(p.b);
	assert_float_equal(*MU_DATA(float, &last), -(1 + 2 + 3 + 4), 1e-6);
	assert_int_equal(read_file("timeline-1.json", text, sizeof(text)), 0);
	assert_true(read_file("timeline-3.json", text, sizeof(text)) > 0);
	assert_non_null(strstr(text, "{\"traceEvents\":["));
	assert_non_null(strstr(text, "/job:local/replica:0/task:0"));
	assert_non_null(strstr(text, "ApplyGradientDescent"));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(training__resumes_from_its_checkpoint),
	    T(checkpoint_without_a_variable__names_the_variable),
	    T(nan_loss__fails_the_training),
	    T(loss_of_each_number_type__passes_the_nan_check),
	    T(closed_queue__does_not_reopen_the_session),
	    T(summaries__are_written_at_their_interval),
	    T(summaries_of_many_values__are_written_up_to_the_limit),
	    T(unreachable_target__is_unavailable_after_the_timeout),
	    T(stop_flag__ends_the_wait_for_a_session),
	    T(reopened_session__has_the_device_filters_of_the_first),
	    T(nodes_added_after_a_run__are_sent),
	    T(end_of_data__ends_the_training_without_failure),
	    T(hooks__feed_and_profile_a_step),
	};

	return cmocka_run_group_tests(tests, NULL, test_server_stop);
}
