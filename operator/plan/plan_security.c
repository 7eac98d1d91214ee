/* SPDX-License-Identifier: Apache-2.0 */
/* Creates the certificates of a job and replaces them.
 *
 * All tasks of a job mount one Secret.  Kubelets deliver a new version of it within two minutes,
 * not all at once.  So a new CA is added before the certificate that it signed.
 * ACTION_ADD_CA adds the new CA to ca.crt beside the old one, and the certificate as next.crt.
 * Minutes later, when every task trusts both CAs, ACTION_ROTATE_CERTIFICATE replaces the old one.
 *
 * Each ACTION_MAKE_SECRET creates a Secret of another name, and pods use only the name in the
 * status.  So if two operators both act as leader, the later write changes no Secret that a task
 * mounts.  An unused Secret is deleted with the job.
 *
 * The certificates of a job without pods are replaced in the same way: a stale list may not show
 * the pods that mount the Secret. */
#include "operator/plan/planner.h"

/* Certificates are replaced after two thirds of their life; the last third covers an outage of the
 * operator.  A CA is trusted for minutes (or a tenth of a short life) before its certificate is
 * used. */
enum { CA_PROPAGATION_MAX_S = 300 };
/* A user may delete the Secret.  A pod that was placed then waits for its volume.  The Secret is
 * checked after a wait of CHECK_FIRST_S and each CHECK_AGAIN_S after that.  Each check is due for
 * CHECK_SPAN_S, in case a reconcile is late.  The wait starts when this operator first observed the
 * job. */
enum { CHECK_FIRST_S = 30, CHECK_SPAN_S = 10, CHECK_AGAIN_S = 600 };

/* Also requests the reconcile of the next check. */
static bool secret_check_is_due(struct planner *p)
{
	double since = p->observed->first_observed_at;
	bool is_due = false;

	for (unsigned i = 0; i < p->observed->n_pods; i++) {
		const struct observed_pod *pod = &p->observed->pods[i];
		double due = (pod->created > since ? pod->created : since) + CHECK_FIRST_S;

		if (pod->phase != POD_PENDING || pod->deleting || !pod->node)
			continue;
		while (p->now >= due + CHECK_SPAN_S)
			due += CHECK_AGAIN_S;
		is_due = is_due || p->now >= due;
		plan_requeue_at(p, p->now < due ? due : due + CHECK_AGAIN_S);
	}
	return is_due;
}

bool plan_security(struct planner *p)
{
	const struct security_status *s = &p->status->security;
	double life = p->options->cert_life ? p->options->cert_life : PLAN_CERT_LIFE;
	double renew_after = life * 2 / 3;
	double propagation_s = life / 10 < CA_PROPAGATION_MAX_S ? life / 10 : CA_PROPAGATION_MAX_S;
	bool is_early, due, has_expired, waits, mounted = false;

	if (!plan_has_tls(p))
		return true;
	is_early = p->now < s->issued_at - renew_after; /* the clock was set back */
	due = s->secret && (is_early || p->now >= s->issued_at + renew_after);
	has_expired = due && (is_early || p->now >= s->issued_at + life);
	for (unsigned i = 0; i < p->observed->n_pods; i++)
		mounted = mounted || !plan_pod_has_ended(&p->observed->pods[i]);
	if (!s->secret || (has_expired && !mounted)) {
		plan_add_action(p, ACTION_MAKE_SECRET, NULL, 0, NULL,
				"certificates for the tasks of the job");
		return false;
	}
	waits = due && p->now >= s->ca_added_at && !plan_is_due(p, s->ca_added_at + propagation_s);
	if ((!due || waits) && secret_check_is_due(p))
		plan_add_action(p, ACTION_CHECK_SECRET, NULL, 0, NULL, "pods wait for a volume");
	if (!due)
		plan_requeue_at(p, s->issued_at + renew_after);
	else if (s->ca_added_at <= 0 || p->now < s->ca_added_at)
		plan_add_action(p, ACTION_ADD_CA, NULL, 0, NULL,
				"the next certificates' CA, ahead of them");
	else if (!waits)
		plan_add_action(p, ACTION_ROTATE_CERTIFICATE, NULL, 0, NULL,
				"new certificates for the tasks of the job");
	return true;
}
