/* SPDX-License-Identifier: Apache-2.0 */
/* When a job's certificates are made, and when they are replaced.
 *
 * All tasks of a job mount one Secret.  Its kubelets bring a new version to them within some two
 * minutes, not all at once, so a new CA goes ahead of the certificate that it signed: first
 * (SPREAD) ca.crt gets the new CA beside the old, minutes later (SWITCH) the certificate follows,
 * when every task trusts both.  Whoever was to switch keeps the new certificate's key in memory
 * only; when it is gone (another operator leads), the next look spreads another CA, and nothing is
 * lost but time.
 *
 * Each MAKE makes a Secret of another name, and pods are made with the name that the status has,
 * not before it has one: of two operators that each believe to lead, the later to arrive changes
 * nothing that a task has.  What was made in vain goes with the job.
 *
 * A job without pods whose certificates are merely due has them replaced like any other: a list
 * that lags may show none of the pods that mount the Secret there is. */
#include "operator/plan/plan_internal.h"

/* Replaced after two thirds of their life, which leaves an operator that is down a third to come
 * back; spread for minutes, or a tenth of a short life. */
enum { SPREAD_MOST = 300 };
/* A Secret that somebody has deleted is missed by the next pod to be made: its kubelet has placed
 * it and waits for the volume.  After PATIENCE seconds of that, whenever it has waited twice as
 * long again, and in the end each RARELY, lest a clock that is set forward puts it off for ever, we
 * look whether it is there, for SPAN seconds in case a look at the job is late.  An operator that
 * was away counts from when it came. */
enum { PATIENCE = 30, SPAN = 10, RARELY = 960 };

static double next_look(double look)
{
	return look < RARELY ? 2 * look : look + RARELY;
}

static bool may_miss_secret(struct planner *p)
{
	double watched = p->seen->watched_since;
	bool check = false;

	for (unsigned i = 0; i < p->seen->n_pods; i++) {
		const struct observed_pod *pod = &p->seen->pods[i];
		double since = pod->created > watched ? pod->created : watched;
		double waits = p->now - since, look = PATIENCE;

		if (pod->phase != POD_PENDING || pod->deleting || !pod->node)
			continue;
		while (waits >= look + SPAN)
			look = next_look(look);
		check = check || waits >= look;
		plan_wake(p, since + (waits < look ? look : next_look(look)));
	}
	return check;
}

bool plan_has_tls(const struct planner *p)
{
	return p->spec->mtls && !p->options->in_the_clear;
}

bool plan_security(struct planner *p)
{
	const struct security_status *s = &p->status->security;
	double life = p->options->cert_life ? p->options->cert_life : PLAN_CERT_LIFE;
	double renew_after = life * 2 / 3;
	double spread_s = life / 10 < SPREAD_MOST ? life / 10 : SPREAD_MOST;
	bool early, due, over;

	if (!plan_has_tls(p))
		return true;
	early = p->now < s->made - renew_after; /* the clock has gone back */
	due = s->secret && (early || p->now >= s->made + renew_after);
	over = due && (early || p->now >= s->made + life);
	if (!s->secret || (over && !p->seen->n_pods)) {
		plan_act(p, ACTION_MAKE_SECRET, NULL, 0, NULL,
			 "certificates for the tasks of the job");
		return false;
	}
	if (!due && may_miss_secret(p))
		plan_act(p, ACTION_CHECK_SECRET, NULL, 0, NULL, "pods wait for a volume");
	if (!due)
		plan_wake(p, s->made + renew_after);
	else if (s->spread <= 0 || p->seen->next_since <= 0)
		plan_act(p, ACTION_SPREAD_CA, NULL, 0, NULL,
			 "the next certificates' CA, ahead of them");
	else if (p->seen->next_since < spread_s)
		plan_wake(p, p->now + spread_s - p->seen->next_since);
	else
		plan_act(p, ACTION_SWITCH_SECRET, NULL, 0, NULL,
			 "new certificates for the tasks of the job");
	return true;
}
