/* SPDX-License-Identifier: Apache-2.0 */
/* Membership updates to tasks, and the check of what the status reports about them. */
#include <stdlib.h>

#include "operator/controller/controller.h"
#include "tests/fake/sim.h"

static int label_of(const struct sim_object *o)
{
	const cJSON *labels = sim_at(o->json, "metadata.labels");
	const char *text =
	    cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(labels, LABEL_EPOCH));

	return text ? atoi(text) : 0;
}

static struct sim_object *pod_of(struct sim *s, const char *uid)
{
	for (int i = 0; i < s->n_objects; i++)
		if (s->objects[i].kind == SIM_POD &&
		    strcmp(sim_text(s->objects[i].json, "metadata.uid"), uid) == 0)
			return &s->objects[i];
	return NULL;
}

/* Sends an update to a task; the request or its response can be lost. */
int sim_send_members_to(struct sim *s, const struct pod *task, const char *members)
{
	struct sim_object *o = pod_of(s, task->meta.uid);
	int epoch = 0;

	assert_int_equal(sscanf(members, "{\"epoch\":%d,", &epoch), 1);
	if (!o || o->stage != STAGE_READY || s->dead || sim_chance(s, 200))
		return -MU_UNAVAILABLE;
	o->acked_epoch = epoch > o->acked_epoch ? epoch : o->acked_epoch;
	return sim_chance(s, 200) ? -MU_UNAVAILABLE : 0;
}

bool sim_send_members(struct sim *s)
{
	return progress_poll(&s->leader->controller, SIM_KEY);
}

static int number_at(const cJSON *job, const char *dotted)
{
	const cJSON *n = sim_at(job, dotted);

	return cJSON_IsNumber(n) ? n->valueint : 0;
}

static bool needs_update(const cJSON *job, const struct observed_pod *p)
{
	char replicas[64];

	/* a task outside the cluster gets no updates */
	if (strcmp(p->task, "evaluator") == 0 && sim_at(job, "spec.program.command"))
		return false;
	snprintf(replicas, sizeof(replicas), "spec.tasks.%s.replicas", p->task);
	return !p->deleting && !p->is_departure_pod && p->index < number_at(job, replicas) &&
	       (p->phase == POD_PENDING || p->phase == POD_RUNNING);
}

/* Checks the tasks that the writer has in its store. Another operator may have died while one of
 * its updates was in flight. */
void sim_check_epoch(struct sim *s, const cJSON *was, const cJSON *is)
{
	int epoch_seen = number_at(is, "status.cluster.epochSeen");
	int before = number_at(was, "status.cluster.epochSeen");
	struct snapshot snapshot;

	if (epoch_seen > number_at(is, "status.cluster.epoch"))
		sim_violation(s, "epoch %d was seen and is not yet", epoch_seen);
	if (epoch_seen < before)
		sim_violation(s, "epoch %d was seen, and only %d is", before, epoch_seen);
	if (epoch_seen == before || s->in_flight_call)
		return;
	/* a stale watch may have brought a former job of this name back */
	if (snapshot_take(&s->leader->controller.store, "default/j", s->now, &snapshot) &&
	    strcmp(snapshot.job->meta.uid, sim_text(is, "metadata.uid")) == 0)
		for (unsigned i = 0; i < snapshot.observed.n_pods; i++) {
			const struct observed_pod *p = &snapshot.observed.pods[i];
			const struct sim_object *o = pod_of(s, p->uid);
			if (o && needs_update(is, p) && label_of(o) < epoch_seen &&
			    o->acked_epoch < epoch_seen)
				sim_violation(s, "%s/%d has epoch %d, all are said to have %d",
					      p->task, p->index,
					      o->acked_epoch > label_of(o) ? o->acked_epoch
									   : label_of(o),
					      epoch_seen);
		}
	snapshot_fini(&snapshot);
	s->epochs_acked += before > 0;
}
