// SPDX-License-Identifier: Apache-2.0
/* The ready-made trainer: what one worker task does, chief or not.
 *
 * Between-graph replication: every worker builds the same graph with the variables on the ps tasks
 * and steps on its own, without waiting for the others.  The session sees only the ps tasks and
 * this one, so that a worker that comes, goes or hangs disturbs nobody.
 */
#include <stdio.h>

#include "client/model/model.h"
#include "lib/base/log.h"
#include "lib/io/event_writer.h"
#include "muster/data.h"

enum { EVALUATE_ROWS = 512 };

struct trainer {
	const struct mu_train_options *o;
	struct mu_dataset data, test;
	struct mu_builder *b;
	struct model model;
	struct mu_out train;
	struct mu_sync sync; /* when it is wanted */
	struct mu_saver *saver;
	struct mu_event_writer *events;
	struct mu_monitored *session;
};

static int load(struct trainer *t, struct mu_err *err)
{
	const struct mu_train_options *o = t->o;
	int rc;

	if (o->csv)
		return mu_dataset_csv(&t->data, &t->test, o->csv, o->test_fraction, o->split_seed,
				      o->scale, err);
	rc = mu_dataset_idx(&t->data, o->train_images, o->train_labels, o->scale, err);
	if (!rc && o->test_images && o->test_labels)
		rc = mu_dataset_idx(&t->test, o->test_images, o->test_labels, o->scale, err);
	if (!rc && t->test.rows && t->test.features != t->data.features)
		rc = mu_fail(err, MU_INVALID_ARGUMENT, "%s has %lld values an image, %s has %lld",
			     o->test_images, (long long)t->test.features, o->train_images,
			     (long long)t->data.features);
	return rc;
}

static int build(struct trainer *t, struct mu_err *err)
{
	const struct mu_train_options *o = t->o;
	struct model_sizes sizes = {t->data.features, t->data.classes > t->test.classes
							  ? t->data.classes
							  : t->test.classes};
	char device[160];
	int rc;

	t->b = mu_builder_new();
	snprintf(device, sizeof(device), "/job:%s/task:%d", o->job, o->index);
	if (o->n_ps)
		mu_replica_device_setter(t->b, o->n_ps, device);
	else
		mu_push_device(t->b, device);
	mu_global_step(t->b);
	rc = model_build(t->b, o, sizes, &t->model, err);
	if (rc)
		return rc;
	if (o->sync_aggregate) {
		mu_minimize_sync(t->b, &o->optimizer, t->model.loss, mu_global_step(t->b),
				 o->sync_aggregate, o->sync_workers, o->sync_self, &t->sync);
		t->train = t->sync.train;
	} else {
		t->train = mu_minimize(t->b, &o->optimizer, t->model.loss, mu_global_step(t->b));
	}
	if (o->checkpoint_folder)
		t->saver = mu_saver_new(t->b, o->checkpoint_keep);
	return mu_builder_check(t->b, err);
}

static int open_events(struct trainer *t, struct mu_err *err)
{
	MU_AUTO_BUF graph = {0};
	int rc;

	if (!t->o->chief || !t->o->summary_folder)
		return 0;
	rc = mu_event_create(&t->events, t->o->summary_folder, "", err);
	if (rc)
		return rc;
	mu_graph_write(mu_builder_graph(t->b), &graph);
	rc = mu_event_graph(t->events, mu_buf_span(&graph), err);
	if (!rc)
		rc = mu_event_session_log(t->events, 0, MU_SESSION_START, "", err);
	return rc;
}

static int open_session(struct trainer *t, struct mu_err *err)
{
	const struct mu_train_options *o = t->o;
	static const char *const tags[] = {"loss", "accuracy"};
	struct mu_out outs[] = {t->model.loss, t->model.accuracy};
	struct mu_hook *hooks[8];
	unsigned n = 0;
	char own[160];
	const char *filters[] = {own, "/job:ps"};

	snprintf(own, sizeof(own), "/job:%s/task:%d", o->job, o->index);
	hooks[n++] = mu_nan_hook(t->model.loss);
	hooks[n++] =
	    mu_progress_hook(t->model.loss, 0.5, o->steps, o->batch, o->progress, o->progress_arg);
	if (t->events)
		hooks[n++] = mu_summary_hook(t->events, o->summary_steps, tags, outs, 2);
	if (o->chief && t->saver)
		hooks[n++] =
		    mu_checkpoint_hook(t->saver, o->checkpoint_folder, o->checkpoint_seconds,
				       o->checkpoint_steps, t->events, NULL);
	if (o->chief && o->sync_aggregate)
		hooks[n++] = mu_sync_hook(&t->sync);
	hooks[n++] = mu_stop_at_step_hook(o->steps);
	return mu_monitored_open(&t->session, t->b,
				 &(struct mu_monitored_options){
				     .target = o->target,
				     .chief = o->chief,
				     .train = t->train,
				     .sync = o->sync_aggregate ? &t->sync : NULL,
				     .saver = t->saver,
				     .folder = o->checkpoint_folder,
				     .hooks = hooks,
				     .n_hooks = n,
				     .session = {.device_filters = filters,
						 .n_device_filters = o->n_ps ? 2 : 1,
						 .transport = o->transport},
				 },
				 err);
}

static int loop(struct trainer *t, struct mu_err *err)
{
	const struct mu_train_options *o = t->o;
	uint64_t walk = (uint64_t)o->seed * 1000003 + (uint64_t)o->index + (o->chief ? 0 : 7919);
	MU_AUTO(mu_batches_free)
	struct mu_batches *batches = mu_batches_new(&t->data, o->batch, walk);
	const struct mu_tensor *x, *y;
	int rc = 0;

	while (!rc && !mu_monitored_should_stop(t->session) && !(o->stop && *o->stop) &&
	       mu_monitored_step(t->session) < o->steps) {
		rc = mu_batches_next(batches, &x, &y, err);
		if (!rc) {
			struct mu_feed feeds[] = {{t->model.x, x}, {t->model.y, y}};

			rc = mu_monitored_train(
			    t->session, &(struct mu_run){.feeds = feeds, .n_feeds = 2}, NULL, err);
		}
	}
	return rc;
}

static int evaluate(struct trainer *t, double *accuracy, struct mu_err *err)
{
	double correct = 0;

	for (int64_t at = 0; at < t->test.rows; at += EVALUATE_ROWS) {
		int64_t to = at + EVALUATE_ROWS < t->test.rows ? at + EVALUATE_ROWS : t->test.rows;
		MU_AUTO_TENSOR x = {0};
		MU_AUTO_TENSOR y = {0};
		MU_AUTO_TENSOR hits = {0};
		struct mu_feed feeds[] = {{t->model.x, &x}, {t->model.y, &y}};
		struct mu_run run = {
		    .feeds = feeds, .n_feeds = 2, .fetches = &t->model.correct, .n_fetches = 1};
		int rc = mu_dataset_rows(&t->test, at, to, &x, &y, err);

		if (!rc)
			rc = mu_session_run(mu_monitored_session(t->session), &run, &hits, err);
		if (rc)
			return mu_wrap(err, "evaluate");
		correct += (double)*MU_DATA(float, &hits);
	}
	*accuracy = t->test.rows ? correct / (double)t->test.rows : 0;
	return 0;
}

/* Everything between an open session and a result. */
static int train(struct trainer *t, struct mu_train_result *r, struct mu_err *err)
{
	int rc = loop(t, err);

	r->step = mu_monitored_step(t->session);
	r->stopped = r->step < t->o->steps;
	if (!rc && t->o->chief && !r->stopped)
		rc = evaluate(t, &r->accuracy, err);
	if (!rc && t->events && !r->stopped)
		rc = mu_event_scalar(t->events, r->step, "test_accuracy", (float)r->accuracy, err);
	return rc;
}

static int run(struct trainer *t, struct mu_train_result *r, struct mu_err *err)
{
	struct mu_err later = {0};
	int rc = load(t, err), end;

	if (!rc)
		rc = build(t, err);
	if (!rc)
		rc = open_events(t, err);
	if (!rc)
		rc = open_session(t, err);
	if (rc)
		return rc;
	rc = train(t, r, err);
	end = mu_monitored_close(t->session, rc != 0, &later);
	if (!rc && end)
		rc = mu_fail(err, later.code, "%s", later.msg);
	if (!rc && t->o->chief && t->saver)
		snprintf(r->checkpoint, sizeof(r->checkpoint), "%s/model.ckpt-%lld",
			 t->o->checkpoint_folder, (long long)r->step);
	return rc;
}

int mu_train(const struct mu_train_options *o, struct mu_train_result *out, struct mu_err *err)
{
	struct trainer t = {.o = o};
	struct mu_train_result r = {0};
	int rc = run(&t, &r, err);

	if (t.events) {
		struct mu_err later = {0};

		snprintf(r.events, sizeof(r.events), "%s", mu_event_path(t.events));
		mu_event_session_log(t.events, r.step, MU_SESSION_STOP, "", NULL);
		if (mu_event_close(t.events, &later) && !rc)
			rc = mu_fail(err, later.code, "%s", later.msg);
	}
	mu_saver_free(t.saver);
	mu_builder_free(t.b);
	mu_dataset_fini(&t.data);
	mu_dataset_fini(&t.test);
	if (!rc)
		*out = r;
	return rc;
}
