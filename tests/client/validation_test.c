/* SPDX-License-Identifier: Apache-2.0 */
/* Validation with early stopping, and savers of selected variables, on a server in this process. */
#include "tests/test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/checkpoint/bundle.h"
#include "lib/checkpoint/checkpoint_state.h"
#include "muster/train.h"
#include "tests/client/server.h"

static struct mu_err err;
static char folder[64], best[80];

struct program {
	struct mu_builder *b;
	struct mu_var *x;
	struct mu_out train;
	struct mu_saver *saver;
	struct mu_monitored *m;
};

static int setup(void **state)
{
	strcpy(folder, "/tmp/muster-validation-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(best, sizeof(best), "%s/best", folder);
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

static void build_graph(struct program *p, const struct mu_saver_options *o)
{
	struct mu_init one = {.kind = MU_INIT_VALUE, .value = 1};
	struct mu_optimizer sgd;

	*p = (struct program){.b = mu_builder_new()};
	mu_global_step(p->b);
	p->x = mu_variable(p->b, "x", MU_FLOAT, MU_SHAPE(2), one, true);
	assert_ok(mu_optimizer_named("sgd", 0.05, &sgd, &err), &err);
	p->train = mu_minimize(p->b, &sgd, mu_sum(p->b, mu_square(p->b, mu_read(p->x)), NULL, 0),
			       mu_global_step(p->b));
	p->saver = mu_saver_new_with(p->b, o);
	assert_ok(mu_builder_check(p->b, &err), &err);
}

static void open_with(struct program *p, struct mu_hook **hooks, unsigned n)
{
	assert_ok(mu_monitored_open(&p->m, p->b,
				    &(struct mu_monitored_options){
					.target = test_server(),
					.chief = true,
					.train = p->train,
					.hooks = hooks,
					.n_hooks = n,
					.session = {.isolate_state = true},
				    },
				    &err),
		  &err);
}

static void run_to_end(struct program *p)
{
	for (int i = 0; i < 1000 && !mu_monitored_should_stop(p->m); i++)
		assert_ok(mu_monitored_train(p->m, &(struct mu_run){0}, NULL, &err), &err);
}

static void close_all(struct program *p)
{
	assert_ok(mu_monitored_close(p->m, false, &err), &err);
	mu_saver_free(p->saver);
	mu_builder_free(p->b);
}

/* A sequence of given scores. */
struct scores {
	const double *list;
	unsigned at;
};

static int next_score(void *arg, struct mu_session *s, int64_t step, double *out, struct mu_err *e)
{
	struct scores *k = arg;

	*out = k->list[k->at++];
	return 0;
}

static int64_t steps_until_stopped(struct scores *k, unsigned patience, bool *early)
{
	struct program p;
	int64_t step;

	build_graph(&p, &(struct mu_saver_options){.keep = 1});
	struct mu_validation v = {.steps = 10,
				  .patience = patience,
				  .score = next_score,
				  .arg = k,
				  .saver = p.saver,
				  .best_folder = best,
				  .ended_early = early};
	open_with(&p, (struct mu_hook *[]){mu_validation_hook(&v), mu_stop_at_step_hook(60)}, 2);
	run_to_end(&p);
	step = mu_monitored_step(p.m);
	close_all(&p);
	return step;
}

static void scores_without_improvement__end_the_training(void **state)
{
	struct scores k = {(double[]){0.5, 0.7, 0.6, 0.7, 0.9, 0.9}, 0};
	MU_AUTO_FREE char *latest = NULL;
	bool early = false;

	assert_int_equal(steps_until_stopped(&k, 2, &early), 40);
	assert_true(early);
	assert_ok(mu_checkpoint_latest(&latest, best, &err), &err);
	assert_non_null(strstr(latest, "best/model.ckpt-20"));
	assert_true(mu_bundle_exists(latest));
}

static void without_patience__training_continues_and_keeps_the_best(void **state)
{
	struct scores k = {(double[]){0.5, 0.7, 0.6, 0.7, 0.9, 0.8}, 0};
	MU_AUTO_FREE char *latest = NULL;
	bool early = false;

	assert_int_equal(steps_until_stopped(&k, 0, &early), 60);
	assert_false(early);
	assert_ok(mu_checkpoint_latest(&latest, best, &err), &err);
	assert_non_null(strstr(latest, "best/model.ckpt-50"));
}

static void restarted_chief__reads_the_best_score(void **state)
{
	struct scores first = {(double[]){0.9, 0.8, 0.9, 0.9, 0.9, 0.9}, 0};
	struct scores later = {(double[]){0.7, 0.7, 0.7, 0.7, 0.7, 0.7}, 0};
	MU_AUTO_FREE char *latest = NULL;
	bool early = false;

	assert_int_equal(steps_until_stopped(&first, 3, &early), 40);
	early = false;
	assert_int_equal(steps_until_stopped(&later, 5, &early), 20); /* 3 + 2 */
	assert_true(early);
	assert_ok(mu_checkpoint_latest(&latest, best, &err), &err);
	assert_non_null(strstr(latest, "best/model.ckpt-10"));
}

static int files_after_saves(double keep_every_hours)
{
	struct program p;
	int n_files = 0;

	build_graph(&p,
		    &(struct mu_saver_options){.keep = 1, .keep_every_hours = keep_every_hours});
	open_with(&p, NULL, 0);
	for (int i = 0; i < 4; i++) {
		MU_AUTO_FREE char *path = NULL;

		assert_ok(mu_saver_save(p.saver, mu_monitored_session(p.m), folder, i, &path, &err),
			  &err);
	}
	for (int i = 0; i < 4; i++) {
		char path[128];

		snprintf(path, sizeof(path), "%s/model.ckpt-%d", folder, i);
		n_files += mu_bundle_exists(path);
	}
	close_all(&p);
	return n_files;
}

static void one_checkpoint_per_interval__stays(void **state)
{
	assert_int_equal(files_after_saves(1e-12), 4);
}

static void checkpoints_within_the_interval__are_deleted(void **state)
{
	assert_int_equal(files_after_saves(1000), 1);
}

/* The checkpoint's x initialises "y" of another model; other variables are unchanged. */
static void selected_variables__are_restored_under_other_names(void **state)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	MU_AUTO(mu_session_close) struct mu_session *s = NULL;
	struct mu_init seven = {.kind = MU_INIT_VALUE, .value = 7};
	struct mu_var *y = mu_variable(b, "y", MU_FLOAT, MU_SHAPE(2), seven, true);
	struct mu_var *z = mu_variable(b, "z", MU_FLOAT, MU_SHAPE(2), seven, true);
	struct mu_saved only = {y, "x"};
	MU_AUTO(mu_saver_free)
	struct mu_saver *v =
	    mu_saver_new_with(b, &(struct mu_saver_options){.vars = &only, .n_vars = 1});
	struct mu_out init = mu_init_all(b);
	MU_AUTO_TENSOR got_y = {0};
	MU_AUTO_TENSOR got_z = {0};
	struct program p;
	char prefix[128];

	snprintf(prefix, sizeof(prefix), "%s/whole", folder);
	build_graph(&p, &(struct mu_saver_options){0});
	open_with(&p, (struct mu_hook *[]){mu_stop_at_step_hook(1)}, 1);
	run_to_end(&p);
	assert_ok(mu_saver_write(p.saver, mu_monitored_session(p.m), prefix, &err), &err);
	close_all(&p);

	assert_ok(mu_session_open(&s, test_server(), b,
				  &(struct mu_session_options){.isolate_state = true}, &err),
		  &err);
	assert_ok(mu_session_do(s, init, &err), &err);
	assert_ok(mu_saver_restore(v, s, prefix, &err), &err);
	assert_ok(mu_session_get(s, mu_read(y), &got_y, &err), &err);
	assert_ok(mu_session_get(s, mu_read(z), &got_z, &err), &err);
	assert_float_equal(MU_DATA(float, &got_y)[0], 0.9f, 1e-6);
	assert_float_equal(MU_DATA(float, &got_z)[0], 7, 0);
}

/* An export of the best model: selected variables get the values of the checkpoint. */
static void selected_variables__are_copied_from_a_checkpoint_without_a_session(void **state)
{
	MU_AUTO(mu_bundle_reader_free) struct mu_bundle_reader *r = NULL;
	MU_AUTO(mu_saver_free) struct mu_saver *choice = NULL;
	MU_AUTO_TENSOR x = {0};
	struct program p;
	char whole[128], chosen[128];

	snprintf(whole, sizeof(whole), "%s/whole", folder);
	snprintf(chosen, sizeof(chosen), "%s/chosen", folder);
	build_graph(&p, &(struct mu_saver_options){0});
	choice = mu_saver_new_with(
	    p.b, &(struct mu_saver_options){.vars = &(struct mu_saved){p.x, NULL}, .n_vars = 1});
	open_with(&p, (struct mu_hook *[]){mu_stop_at_step_hook(1)}, 1);
	run_to_end(&p);
	assert_ok(mu_saver_write(p.saver, mu_monitored_session(p.m), whole, &err), &err);
	assert_ok(mu_saver_copy(choice, whole, chosen, &err), &err);
	assert_ok(mu_bundle_open(&r, chosen, &err), &err);
	assert_int_equal(mu_bundle_count(r), 1);
	assert_ok(mu_bundle_read(r, "x", &x, &err), &err);
	assert_float_equal(MU_DATA(float, &x)[1], 0.9f, 1e-6);
	close_all(&p);
}

static void final_hook__returns_the_values_after_the_last_step(void **state)
{
	MU_AUTO_TENSOR last = {0};
	struct program p;

	build_graph(&p, &(struct mu_saver_options){0});
	open_with(
	    &p, (struct mu_hook *[]){mu_final_hook(&p.x->read, 1, &last), mu_stop_at_step_hook(2)},
	    2);
	run_to_end(&p);
	close_all(&p);
	assert_float_equal(MU_DATA(float, &last)[1], 0.81f, 1e-6);
}

/* Opens a chief that waits for step 5, which does not come. */
static int open_waiting(struct program *p, double seconds, const volatile int *stop)
{
	struct mu_hook *wait = mu_wait_for_step_hook(5, seconds);

	build_graph(p, &(struct mu_saver_options){0});
	return mu_monitored_open(&p->m, p->b,
				 &(struct mu_monitored_options){
				     .target = test_server(),
				     .chief = true,
				     .train = p->train,
				     .hooks = &wait,
				     .n_hooks = 1,
				     .session = {.isolate_state = true},
				     .stop = stop,
				 },
				 &err);
}

static void wait_for_step__fails_after_its_timeout(void **state)
{
	struct program p;

	assert_fails(open_waiting(&p, 0.01, NULL), &err, MU_DEADLINE_EXCEEDED,
		     "timed out waiting for step 5");
	mu_saver_free(p.saver);
	mu_builder_free(p.b);
}

static void wait_for_step__if_a_stop_is_requested__ends_the_training(void **state)
{
	struct program p;
	const volatile int stop = 1;

	assert_ok(open_waiting(&p, 3, &stop), &err);
	assert_true(mu_monitored_should_stop(p.m));
	close_all(&p);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
	    T(scores_without_improvement__end_the_training),
	    T(without_patience__training_continues_and_keeps_the_best),
	    T(restarted_chief__reads_the_best_score),
	    T(one_checkpoint_per_interval__stays),
	    T(checkpoints_within_the_interval__are_deleted),
	    T(selected_variables__are_restored_under_other_names),
	    T(selected_variables__are_copied_from_a_checkpoint_without_a_session),
	    T(final_hook__returns_the_values_after_the_last_step),
	    T(wait_for_step__fails_after_its_timeout),
	    T(wait_for_step__if_a_stop_is_requested__ends_the_training),
	};

	return cmocka_run_group_tests(tests, NULL, test_server_stop);
}
