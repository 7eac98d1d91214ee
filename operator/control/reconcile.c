/* SPDX-License-Identifier: Apache-2.0 */
/* One look at one job: snapshot, plan, create, store the status, remove. */
#include <stdio.h>

#include "lib/base/log.h"
#include "lib/io/json.h"
#include "operator/control/control.h"

static const cJSON *at(const cJSON *object, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(object, key);
}

/* Says what changed since the stored status, once for each change. */
static void say_transitions(struct reconcile *r, const struct job_status *was,
			    const struct job_status *is)
{
	if (was->phase == is->phase)
		return;
	mu_info("control", "%s: %s -> %s", r->seen->key,
		was->phase == JOB_NEW ? "New" : job_phase_names[was->phase],
		job_phase_names[is->phase]);
	for (int i = 0; i < JOB_CONDITIONS; i++) {
		const struct condition *c = &is->conditions[i];
		bool before = was->conditions[i].set && was->conditions[i].status;

		if (!c->set || !c->status || before || i == COND_READY || i == COND_CREATED)
			continue;
		event_say(r, i == COND_FAILED || i == COND_RESTARTING, condition_names[i], "%s",
			  c->message[0] ? c->message : c->reason);
	}
}

static int refuse(struct reconcile *r, const char *message, struct mu_err *err)
{
	const char *was = cJSON_GetStringValue(at(at(r->object, "status"), "phase"));

	if (!was || strcmp(was, job_phase_names[JOB_FAILED]) != 0)
		event_say(r, true, "InvalidSpec", "%s", message);
	cache_set_phase(&r->control->cache, r->seen->key, JOB_FAILED);
	return status_store(r, status_invalid(r->object, message, r->now), err);
}

static int look(struct reconcile *r, struct snapshot *seen, struct mu_err *err)
{
	struct control *c = r->control;
	struct plan_options options = {.image = c->options.image,
				       .image_gpu = c->options.image_gpu};
	const struct mu_doc_node *stored = mu_doc_key(r->spec->doc->root, "status");
	MU_AUTO(job_plan_free) struct job_plan *plan = NULL;
	struct mu_err ignored = {0};
	int rc, rc_store, rc_remove;

	if (stored && job_status_read(&seen->observed.status, stored, &ignored) < 0)
		mu_warn("control", "%s: the stored status does not read, starting anew: %s",
			seen->key, ignored.msg);
	plan = job_plan_new(r->spec, &options, &seen->observed, r->now);
	rc = apply_creates(r, plan, err);
	if (rc == -MU_UNAVAILABLE || rc == -MU_CANCELLED || rc == -MU_DEADLINE_EXCEEDED)
		goto out; /* the status of a world that was not reached is no news */
	rc_store = status_store(r, status_wanted(r, &plan->status), rc < 0 ? &ignored : err);
	if (rc_store == 0) {
		say_transitions(r, &seen->observed.status, &plan->status);
		cache_set_phase(&c->cache, seen->key, plan->status.phase);
		rc_remove = apply_removals(r, plan, rc < 0 ? &ignored : err);
		rc = rc < 0 ? rc : rc_remove;
	} else {
		rc = rc < 0 ? rc : rc_store;
	}
	if (plan->wake > 0) {
		double left = plan->wake > r->now ? plan->wake - r->now : 0.01;
		if (r->wake <= 0 || left < r->wake)
			r->wake = left;
	}
out:
	job_status_fini(&seen->observed.status);
	return rc;
}

static int read_spec(struct job_spec **out, const struct snapshot *seen, struct mu_err *err)
{
	struct mu_doc *doc;
	int rc = mu_json_parse(&doc, mu_span_of(seen->text), seen->key, err);

	return rc < 0 ? rc : job_spec_from_doc(out, doc, err);
}

int reconcile(struct control *c, const char *key, double *wake, struct mu_err *err)
{
	struct snapshot seen;
	struct reconcile r = {.control = c, .now = c->io.now(c->io.user), .seen = &seen};
	MU_AUTO(job_spec_free) struct job_spec *spec = NULL;
	struct mu_err why = {0};
	cJSON *object;
	int rc;

	*wake = 0;
	if (!cache_snapshot(&c->cache, key, r.now, &seen)) {
		snapshot_fini(&seen);
		return 0; /* the job is gone; the garbage collector has what it owned */
	}
	object = cJSON_Parse(seen.text);
	r.object = object;
	rc = read_spec(&spec, &seen, &why);
	r.spec = spec;
	if (rc < 0)
		rc = at(at(object, "metadata"), "deletionTimestamp") ? 0 : refuse(&r, why.msg, err);
	else
		rc = look(&r, &seen, err);
	*wake = r.wake;
	cJSON_Delete(object);
	snapshot_fini(&seen);
	return rc < 0 ? mu_wrap(err, "job %s", key) : 0;
}
