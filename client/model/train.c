/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in trainer: the program of one worker task, chief or not.
 *
 * Between-graph replication: every worker builds the same graph with the variables on the ps tasks
 * and steps independently. The session uses only the ps tasks and its own task. So workers that
 * start, end or hang do not disturb others.
 */
#include <math.h>
#include <stdio.h>

#include "client/model/trainer.h"
#include "lib/base/log.h"
#include "lib/checkpoint/checkpoint_state.h"
#include "lib/io/event_writer.h"
#include "muster/data.h"

/* INVALID_ARGUMENT if the test images have another size than the training images. */
static int check_same_features(const struct trainer *t, const char *test, const char *train,
			       struct mu_err *err)
{
	if (!t->test.rows || t->test.features == t->data.features)
		return 0;
	return mu_fail(err, MU_INVALID_ARGUMENT, "%s has %lld values an example, %s has %lld", test,
		       (long long)t->test.features, train, (long long)t->data.features);
}

static int load_records(struct trainer *t, struct mu_err *err)
{
	const struct mu_train_options *o = t->o;
	struct mu_records test = o->records;
	int (*read)(struct mu_dataset * out, const struct mu_records *r, struct mu_err *err) =
	    o->cifar10 ? mu_dataset_cifar10 : mu_dataset_tfrecord;
	struct mu_dataset all;
	int rc = read(&all, &o->records, err);

	if (rc)
		return rc;
	test.pattern = o->test_records;
	if (!test.pattern) {
		rc = mu_dataset_split(&t->data, &t->test, &all, o->test_fraction, o->split_seed,
				      err);
		if (rc)
			mu_dataset_fini(&all);
		return rc;
	}
	t->data = all;
	rc = read(&t->test, &test, err);
	return rc ? rc : check_same_features(t, test.pattern, o->records.pattern, err);
}

static int load_data(struct trainer *t, struct mu_err *err)
{
	const struct mu_train_options *o = t->o;
	/* Categorical columns stay unscaled; the model scales the other columns individually. */
	double scale = o->n_categorical ? 1 : o->scale;
	int rc;

	if (o->records.pattern)
		return load_records(t, err);
	if (o->csv)
		return mu_dataset_csv(&t->data, &t->test,
				      &(struct mu_records){.pattern = o->csv,
							   .skip_bad = o->records.skip_bad,
							   .scale = scale},
				      o->test_fraction, o->split_seed, err);
	if (!o->train_images || !o->train_labels)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "there is no training data: set csv, records, or train_images and "
			       "train_labels");
	rc = mu_dataset_idx(&t->data, o->train_images, o->train_labels, scale, err);
	if (!rc && o->test_images && o->test_labels)
		rc = mu_dataset_idx(&t->test, o->test_images, o->test_labels, scale, err);
	return rc ? rc : check_same_features(t, o->test_images, o->train_images, err);
}

static struct mu_saver *export_saver(struct mu_builder *b)
{
	struct mu_saved *trainable_vars = MU_NEW_ARRAY(struct mu_saved, mu_var_count(b) + 1);
	unsigned n = 0;
	struct mu_saver *saver;

	for (unsigned i = 0; i < mu_var_count(b); i++)
		if (mu_var_at(b, i)->trainable)
			trainable_vars[n++].var = mu_var_at(b, i);
	saver =
	    mu_saver_new_with(b, &(struct mu_saver_options){.vars = trainable_vars, .n_vars = n});
	free(trainable_vars);
	return saver;
}

static int build_graph(struct trainer *t, struct mu_err *err)
{
	const struct mu_train_options *o = t->o;
	char device[160];
	int rc = model_measure(&t->sizes, o, &t->data, &t->test, err);

	if (rc)
		return rc;

	t->b = mu_builder_new();
	snprintf(device, sizeof(device), "/job:%s/task:%d", o->job, o->index);
	if (o->n_ps && !o->evaluator)
		mu_replica_device_setter(t->b, o->n_ps, device);
	else
		mu_push_device(t->b, device);
	mu_global_step(t->b);
	rc = model_build(t->b, o, &t->sizes, &t->model, err);
	if (rc)
		return rc;
	if (o->sync.workers) {
		mu_minimize_sync(t->b, &o->optimizer, t->model.objective, mu_global_step(t->b),
				 &o->sync, &t->sync);
		t->train = t->sync.train;
	} else {
		t->train =
		    mu_minimize(t->b, &o->optimizer, t->model.objective, mu_global_step(t->b));
	}
	if (o->checkpoint_folder)
		t->saver = mu_saver_new(t->b, o->checkpoint_keep);
	if (o->chief && o->checkpoint_folder && o->validation_steps)
		t->best = mu_saver_new(t->b, 1);
	if (o->chief && o->export_prefix)
		t->export = export_saver(t->b);
	return mu_builder_check(t->b, err);
}

static int open_events(struct trainer *t, struct mu_err *err)
{
	MU_AUTO_BUF graph = {0};
	MU_AUTO_FREE char *folder = NULL;
	int rc;

	if (!(t->o->chief || t->o->evaluator) || !t->o->summary_folder)
		return 0;
	folder = t->o->evaluator ? mu_xasprintf("%s/evaluator", t->o->summary_folder)
				 : mu_xstrdup(t->o->summary_folder);
	rc = mu_event_create(&t->events, folder, "", err);
	if (rc)
		return rc;
	mu_graph_write(mu_builder_graph(t->b), &graph);
	return mu_event_graph(t->events, 0, mu_buf_span(&graph), err);
}

/* TensorBoard drops the points of earlier runs from the step of this event on. */
static int log_session_start(struct trainer *t, struct mu_err *err)
{
	int64_t first_step = mu_monitored_step(t->session) + 1;

	return t->events ? mu_event_session_log(t->events, first_step, MU_SESSION_START, "", err)
			 : 0;
}

/* Returns a new string, or NULL without a checkpoint folder. */
static char *best_folder(const struct trainer *t)
{
	return t->best ? mu_xasprintf("%s/best", t->o->checkpoint_folder) : NULL;
}

static struct mu_hook *new_validation_hook(struct trainer *t)
{
	const struct mu_train_options *o = t->o;
	MU_AUTO_FREE char *best = best_folder(t);

	return mu_validation_hook(&(struct mu_validation){.steps = o->validation_steps,
							  .patience = o->patience,
							  .score = trainer_score,
							  .arg = t,
							  .saver = t->best,
							  .best_folder = best,
							  .events = t->events,
							  .tag = "validation_accuracy",
							  .ended_early = &t->stopped_early});
}

static int open_session(struct trainer *t, struct mu_err *err)
{
	const struct mu_train_options *o = t->o;
	static const char *const tags[] = {"loss", "accuracy"};
	struct mu_out outs[] = {t->model.loss, t->model.accuracy};
	struct mu_hook *hooks[8];
	unsigned n = 0;
	char device[160];
	const char *filters[] = {device, "/job:ps"};

	snprintf(device, sizeof(device), "/job:%s/task:%d", o->job, o->index);
	hooks[n++] = mu_nan_hook(t->model.loss);
	hooks[n++] =
	    mu_progress_hook(t->model.loss, 0.5, o->steps, o->batch, o->progress, o->progress_arg);
	if (t->events)
		hooks[n++] = mu_summary_hook(t->events, o->summary_steps, tags, outs, 2);
	if (o->chief && t->saver)
		hooks[n++] =
		    mu_checkpoint_hook(t->saver, o->checkpoint_folder, o->checkpoint_seconds,
				       o->checkpoint_steps, t->events, NULL);
	if (o->chief && o->validation_steps && t->test.rows)
		hooks[n++] = new_validation_hook(t);
	if (o->chief && o->sync.workers)
		hooks[n++] = mu_sync_hook(&t->sync);
	hooks[n++] = mu_stop_at_step_hook(o->steps);
	return mu_monitored_open(&t->session, t->b,
				 &(struct mu_monitored_options){
				     .target = o->target,
				     .chief = o->chief,
				     .train = t->train,
				     .sync = o->sync.workers ? &t->sync : NULL,
				     .saver = t->saver,
				     .folder = o->checkpoint_folder,
				     .hooks = hooks,
				     .n_hooks = n,
				     .stop = o->leave ? &t->is_registered : o->stop,
				     .session = {.device_filters = filters,
						 .n_device_filters = o->n_ps ? 2 : 1,
						 .transport = o->transport},
				 },
				 err);
}

/* The loss of the final model on one batch. The loss of the chief's last step can belong to an
 * older model, if other workers updated it meanwhile. NAN after an error. */
static double final_loss(struct trainer *t, const struct mu_tensor *x, const struct mu_tensor *y)
{
	MU_AUTO_TENSOR loss = {0};
	struct mu_feed feeds[] = {{t->model.x, x}, {t->model.y, y}};
	struct mu_run run = {
	    .feeds = feeds, .n_feeds = 2, .fetches = &t->model.loss, .n_fetches = 1};
	struct mu_err ignored = {0};

	if (mu_session_run(mu_monitored_session(t->session), &run, &loss, &ignored) ||
	    loss.dtype != MU_FLOAT || loss.shape.count != 1)
		return NAN;
	return (double)*MU_DATA(float, &loss);
}

static int training_loop(struct trainer *t, struct mu_train_result *r, struct mu_err *err)
{
	const struct mu_train_options *o = t->o;
	uint64_t batch_seed =
	    (uint64_t)o->seed * 1000003 + (uint64_t)o->index + (o->chief ? 0 : 7919);
	MU_AUTO(mu_batches_free) struct mu_batches *batches = NULL;
	const struct mu_tensor *x = NULL, *y = NULL;
	int rc =
	    mu_batches_open(&batches, &t->data,
			    &(struct mu_batch_options){.batch = o->batch, .seed = batch_seed}, err);

	while (!rc && !mu_monitored_should_stop(t->session) &&
	       mu_monitored_step(t->session) < o->steps) {
		rc = mu_batches_next(batches, &x, &y, err);
		if (!rc) {
			struct mu_feed feeds[] = {{t->model.x, x}, {t->model.y, y}};

			rc = mu_monitored_train(
			    t->session, &(struct mu_run){.feeds = feeds, .n_feeds = 2}, NULL, err);
		}
	}
	r->step = mu_monitored_step(t->session);
	r->stopped_by_validation = t->stopped_early;
	r->stopped = r->step < o->steps && !t->stopped_early;
	if (!rc && o->chief && !r->stopped && x)
		r->loss = final_loss(t, x, y);
	return rc;
}

/* Exports the best model's weights if one was saved, else the current weights. */
static int export_weights(struct trainer *t, struct mu_err *err)
{
	MU_AUTO_FREE char *folder = best_folder(t);
	MU_AUTO_FREE char *best = NULL;
	int rc = folder ? mu_checkpoint_latest(&best, folder, err) : 0;

	if (rc && rc != -(int)MU_NOT_FOUND)
		return rc;
	return best ? mu_saver_copy(t->export, best, t->o->export_prefix, err)
		    : mu_saver_write(t->export, mu_monitored_session(t->session),
				     t->o->export_prefix, err);
}

/* Runs the training in an open session and fills in the result. */
static int train_and_evaluate(struct trainer *t, struct mu_train_result *r, struct mu_err *err)
{
	int rc = training_loop(t, r, err);

	if (!rc && t->o->chief && !r->stopped && t->test.rows)
		rc = trainer_score(t, mu_monitored_session(t->session), r->step, &r->accuracy, err);
	if (!rc && t->export && !r->stopped)
		rc = export_weights(t, err);
	if (!rc && t->events && r->accuracy >= 0)
		rc = mu_event_scalar(t->events, r->step, "test_accuracy", (float)r->accuracy, err);
	return rc;
}

static int run_trainer(struct trainer *t, struct mu_train_result *r, struct mu_err *err)
{
	struct mu_err close_err = {0};
	int rc = load_data(t, err), close_rc;

	if (!rc)
		rc = build_graph(t, err);
	if (!rc)
		rc = open_events(t, err);
	if (!rc && t->o->evaluator)
		return trainer_evaluate(t, r, err);
	if (!rc)
		rc = open_session(t, err);
	if (rc)
		return rc;
	t->is_registered = 1; /* for o->leave: this task is registered now, so it can deregister */
	rc = log_session_start(t, err);
	if (!rc)
		rc = train_and_evaluate(t, r, err);
	close_rc = mu_monitored_close(t->session, rc != 0, &close_err);
	if (!rc && close_rc)
		rc = mu_fail(err, close_err.code, "%s", close_err.msg);
	if (!rc && t->o->chief && t->saver)
		snprintf(r->checkpoint, sizeof(r->checkpoint), "%s/model.ckpt-%lld",
			 t->o->checkpoint_folder, (long long)r->step);
	return rc;
}

int mu_train(const struct mu_train_options *o, struct mu_train_result *out, struct mu_err *err)
{
	struct trainer t = {.o = o};
	struct mu_train_result r = {.accuracy = -1, .loss = NAN};
	int rc = run_trainer(&t, &r, err);

	if (t.events) {
		struct mu_err close_err = {0};

		snprintf(r.events, sizeof(r.events), "%s", mu_event_path(t.events));
		mu_event_session_log(t.events, r.step, MU_SESSION_STOP, "", NULL);
		if (mu_event_close(t.events, &close_err) && !rc)
			rc = mu_fail(err, close_err.code, "%s", close_err.msg);
	}
	mu_saver_free(t.saver);
	mu_saver_free(t.best);
	mu_saver_free(t.export);
	mu_builder_free(t.b);
	model_sizes_fini(&t.sizes);
	mu_dataset_fini(&t.data);
	mu_dataset_fini(&t.test);
	if (!rc)
		*out = r;
	return rc;
}
