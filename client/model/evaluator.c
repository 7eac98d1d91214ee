/* SPDX-License-Identifier: Apache-2.0 */
/* The score of a model on the test set, and the evaluator.
 *
 * The evaluator scores each new checkpoint and does not train.  Its variables are on its own
 * server, so it never waits for a ps task and no task waits for it. If a checkpoint cannot be read
 * (it may have been removed meanwhile), the evaluator waits for the next one. It ends after the
 * checkpoint of the final step.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/model/trainer.h"
#include "client/session/stop.h"
#include "lib/base/log.h"
#include "lib/checkpoint/checkpoint_state.h"

enum { POLL_INTERVAL_MS = 100, EVALUATE_ROWS = 512 };

/* The accuracy of the model on the test set. */
int trainer_score(void *arg, struct mu_session *s, int64_t step, double *accuracy,
		  struct mu_err *err)
{
	struct trainer *t = arg;
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
			rc = mu_session_run(s, &run, &hits, err);
		if (rc)
			return mu_wrap(err, "evaluate");
		correct += (double)*MU_DATA(float, &hits);
	}
	*accuracy = t->test.rows ? correct / (double)t->test.rows : 0;
	return 0;
}

static int64_t step_of(const char *checkpoint)
{
	const char *dash = strrchr(checkpoint, '-');

	return dash ? strtoll(dash + 1, NULL, 10) : 0;
}

static int evaluate_checkpoint(struct trainer *t, struct mu_session *s, const char *checkpoint,
			       struct mu_train_result *r, struct mu_err *err)
{
	int64_t step = step_of(checkpoint);
	int rc = mu_saver_restore(t->saver, s, checkpoint, err);

	if (rc) {
		mu_warn("evaluator", "%s", err->msg);
		return 0;
	}
	rc = trainer_score(t, s, step, &r->accuracy, err);
	if (!rc && t->events)
		rc = mu_event_scalar(t->events, step, "accuracy", (float)r->accuracy, err);
	if (!rc && t->events)
		rc = mu_event_flush(t->events, err);
	if (rc)
		return rc;
	printf("evaluation step=%lld accuracy=%.4f\n", (long long)step, r->accuracy);
	fflush(stdout);
	r->step = step;
	snprintf(r->checkpoint, sizeof(r->checkpoint), "%s", checkpoint);
	return 0;
}

static int evaluate_all(struct trainer *t, struct mu_session *s, struct mu_train_result *r,
			struct mu_err *err)
{
	const struct mu_train_options *o = t->o;
	MU_AUTO_FREE char *evaluated = NULL;
	bool is_last_check = false; /* after a stop request: the chief saves before it ends */
	int rc = 0;

	while (!rc && r->step < o->steps && !is_last_check) {
		char *latest = NULL;

		is_last_check = stop_is_set(o->stop);
		/* The folder does not exist before the chief's first checkpoint. */
		if (mu_checkpoint_latest(&latest, o->checkpoint_folder, NULL) || !latest ||
		    (evaluated && strcmp(latest, evaluated) == 0)) {
			free(latest);
			if (!is_last_check)
				usleep(POLL_INTERVAL_MS * 1000);
			continue;
		}
		free(evaluated);
		evaluated = latest;
		rc = evaluate_checkpoint(t, s, latest, r, err);
	}
	r->stopped = r->step < o->steps;
	return rc;
}

int trainer_evaluate(struct trainer *t, struct mu_train_result *r, struct mu_err *err)
{
	const struct mu_train_options *o = t->o;
	MU_AUTO(mu_session_close) struct mu_session *s = NULL;
	char device[160];
	const char *filters[] = {device};
	int rc;

	if (!t->saver || !t->test.rows)
		return mu_fail(err, MU_FAILED_PRECONDITION,
			       "an evaluator needs a checkpoint path and a test set");
	snprintf(device, sizeof(device), "/job:%s/task:%d", o->job, o->index);
	rc = mu_session_open(&s, o->target, t->b,
			     &(struct mu_session_options){.device_filters = filters,
							  .n_device_filters = 1,
							  .transport = o->transport},
			     err);
	return rc ? rc : evaluate_all(t, s, r, err);
}
