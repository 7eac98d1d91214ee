/* SPDX-License-Identifier: Apache-2.0 */
/* When a job's certificates are made, and when they are replaced.
 *
 * All tasks of a job mount one Secret.  Its kubelets bring a new version to them within some two
 * minutes, not all at once, so a new CA goes ahead of the certificate that it signed: first
 * (SPREAD) ca.crt gets the new CA beside the old, minutes later (SWITCH) the certificate follows,
 * when every task trusts both.  Whoever was to switch keeps the new certificate's key in memory
 * only; when it is gone (another operator leads), a later look spreads another CA, and nothing is
 * lost but time.  Its certificate may have followed all the same, so all CAs stay until one has:
 * next_spread keeps them few.
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
	double watched = p->seen->first_observed_at;
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
		plan_requeue_at(p, since + (waits < look ? look : next_look(look)));
	}
	return check;
}

static int count_cas(const char *pem)
{
	static const char begin[] = "-----BEGIN CERTIFICATE-----";
	int n = 0;

	for (; (pem = strstr(pem, begin)); pem++)
		n++;
	return n;
}

/* When another CA may join after the last one, whose certificate nobody has any more: in the time
 * that spreading takes, and twice that for each one more that has joined, lest operators that come
 * and go add theirs without end; but not so late that its certificate would be. */
static double next_spread(const struct security_status *s, double life, double spread_s)
{
	double wait = spread_s, latest = s->made + life - 2 * spread_s - s->spread;

	for (int n = count_cas(s->ca); n > 2 && wait < latest; n--)
		wait *= 2;
	wait = wait < latest ? wait : latest;
	return s->spread + (wait > spread_s ? wait : spread_s);
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
	bool early, due, over, lost, waits;

	if (!plan_has_tls(p))
		return true;
	early = p->now < s->made - renew_after; /* the clock has gone back */
	due = s->secret && (early || p->now >= s->made + renew_after);
	over = due && (early || p->now >= s->made + life);
	if (!s->secret || (over && !p->seen->n_pods)) {
		plan_add_action(p, ACTION_MAKE_SECRET, NULL, 0, NULL,
				"certificates for the tasks of the job");
		return false;
	}
	lost = due && s->spread > 0 && p->seen->next_since <= 0;
	waits = lost && p->now >= s->spread && p->now < next_spread(s, life, spread_s);
	if ((!due || waits) && may_miss_secret(p))
		plan_add_action(p, ACTION_CHECK_SECRET, NULL, 0, NULL, "pods wait for a volume");
	if (!due)
		plan_requeue_at(p, s->made + renew_after);
	else if (waits)
		plan_requeue_at(p, next_spread(s, life, spread_s));
	else if (s->spread <= 0 || lost)
		plan_add_action(p, ACTION_SPREAD_CA, NULL, 0, NULL,
				"the next certificates' CA, ahead of them");
	else if (p->seen->next_since < spread_s)
		plan_requeue_at(p, p->now + spread_s - p->seen->next_since);
	else
		plan_add_action(p, ACTION_SWITCH_SECRET, NULL, 0, NULL,
				"new certificates for the tasks of the job");
	return true;
}
