/* SPDX-License-Identifier: Apache-2.0 */
/* Leader election by a Lease.  The leader renews it every 3 s and stops leading 10 s after the last
 * renewal; the lease expires after 15 s.  A request times out after 5 s and is repeated after 1 s,
 * so a second attempt fits before the 10 s.
 *
 * The lease of another replica has expired when its record has not changed for 15 s of our own
 * monotonic clock.  Clocks of two machines are never compared.  A renewal counts from before its
 * request was sent.  It carries the resource version of the last one, so the server rejects it when
 * another replica has written since.  may_write is false from 10 s on: a write in flight can end
 * before the lease does.  It reads the clock each time, which also works after a SIGSTOP. */
#include "operator/controller/controller.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/rfc3339.h"
#include "lib/io/json_build.h"
#include "operator/api/object_json.h"

enum {
	LEASE_S = 15,
	RENEW_DEADLINE_MS = 10000,
	RENEW_S = 3,
	RETRY_S = 1,        /* interval at which a leader retries a renewal */
	STANDBY_POLL_S = 2, /* interval at which a standby polls the lease */
	CALL_MS = 5000,
	RELEASE_READ_MS = 2000,
	RELEASES_MAX = 3
};
#define LEASE_NAME "muster-operator"

struct observed_lease {
	char version[64];
	long long since_ms; /* ours, monotonic */
	cJSON *held;        /* as our last write left it; NULL: read the lease first */
};

bool leader_may_write(void *controller)
{
	struct controller *c = controller;

	if (!c->options.leader_election)
		return true;
	return atomic_load(&c->leading) && mu_clock_ms() < atomic_load(&c->lease_until_ms);
}

static char *lease_path(const struct controller *c, const char *name)
{
	return mu_xasprintf("/apis/coordination.k8s.io/v1/namespaces/%s/leases%s",
			    c->options.lease_namespace, name);
}

static int read_lease(struct controller *c, long timeout_ms, cJSON **out, struct mu_err *err)
{
	MU_AUTO_FREE char *path = lease_path(c, "/" LEASE_NAME);

	return kube_call(
	    c->kube,
	    &(struct kube_request){.method = "GET", .path = path, .timeout_ms = timeout_ms}, out,
	    err);
}

static bool is_ours(const struct controller *c, const cJSON *lease)
{
	return strcmp(text_or_empty(at(lease, "spec"), "holderIdentity"), c->options.identity) == 0;
}

/* Creates or updates the lease, with this holder; "": none. */
static int write_lease(struct controller *c, cJSON *lease, const char *holder, cJSON **out,
		       struct mu_err *err)
{
	bool new = !at(at(lease, "metadata"), "resourceVersion");
	MU_AUTO_FREE char *path = lease_path(c, new ? "" : "/" LEASE_NAME);
	MU_AUTO_FREE char *body = NULL;
	const cJSON *old = at(at(lease, "spec"), "leaseTransitions");
	int transitions = cJSON_IsNumber(old) ? old->valueint + 1 : 0;
	char now[MU_RFC3339];

	mu_rfc3339_write_micro(now, c->io.now(c->io.user));
	if (*holder && !is_ours(c, lease))
		mu_json_set(lease,
			    mu_json_pack("{'spec': {'leaseTransitions': %d, 'acquireTime': %s}}",
					 transitions, now));
	mu_json_set(lease, mu_json_pack("{'spec': {'holderIdentity': %s, 'renewTime': %s,"
					" 'leaseDurationSeconds': %d}}",
					holder, now, *holder ? LEASE_S : 1));
	body = cJSON_PrintUnformatted(lease);
	return kube_call(c->kube,
			 &(struct kube_request){.method = new ? "POST" : "PUT",
						.path = path,
						.body = mu_span_of(body),
						.timeout_ms = CALL_MS},
			 out, err);
}

/* True if the lease may be taken.  Records its last change by the clock of this process. */
static bool may_be_taken(const struct controller *c, const cJSON *lease,
			 struct observed_lease *observed)
{
	const char *version = text_or_empty(at(lease, "metadata"), "resourceVersion");
	const cJSON *seconds = at(at(lease, "spec"), "leaseDurationSeconds");
	double length = cJSON_IsNumber(seconds) ? seconds->valuedouble : LEASE_S;

	if (!*version || strcmp(version, observed->version) != 0) {
		snprintf(observed->version, sizeof(observed->version), "%s", version);
		observed->since_ms = mu_clock_ms();
	}
	return !*text_or_empty(at(lease, "spec"), "holderIdentity") || is_ours(c, lease) ||
	       (double)(mu_clock_ms() - observed->since_ms) > length * 1000;
}

static int take_lease(struct controller *c, struct observed_lease *observed, cJSON *lease,
		      struct mu_err *err)
{
	long long start = mu_clock_ms();
	bool had_lapsed;
	int rc;

	if (atomic_load(&c->released)) { /* this process has just released the lease */
		cJSON_Delete(lease);
		return mu_fail(err, MU_CANCELLED, "the lease is being handed over");
	}
	rc = write_lease(c, lease, c->options.identity, &observed->held, err);
	cJSON_Delete(lease);
	if (rc < 0)
		return rc;
	had_lapsed = atomic_exchange(&c->lease_until_ms, start + RENEW_DEADLINE_MS) < mu_clock_ms();
	if (!atomic_exchange(&c->leading, true)) {
		mu_info("leader", "%s leads", c->options.identity);
		had_lapsed = true;
	}
	if (had_lapsed) /* workers drop the keys that they take without a lease */
		store_requeue_all(&c->store);
	return 0;
}

/* 0: this process leads; 1: another one holds the lease; negative: an error. */
static int try_once(struct controller *c, struct observed_lease *observed, struct mu_err *err)
{
	cJSON *lease = NULL;
	int rc;

	if (observed->held) {
		rc = take_lease(c, observed, mu_steal(&observed->held), err);
		if (rc != -MU_ABORTED && rc != -MU_NOT_FOUND)
			return rc;
	}
	rc = read_lease(c, CALL_MS, &lease, err);
	if (rc == -MU_NOT_FOUND)
		lease = mu_json_pack("{'apiVersion': 'coordination.k8s.io/v1', 'kind': 'Lease',"
				     " 'metadata': {'name': '" LEASE_NAME "', 'namespace': %s}}",
				     c->options.lease_namespace);
	else if (rc < 0)
		return rc;
	if (!may_be_taken(c, lease, observed)) {
		atomic_store(&c->leading, false);
		cJSON_Delete(lease);
		return 1;
	}
	return take_lease(c, observed, lease, err);
}

void *leader_run(void *controller)
{
	struct controller *c = controller;
	struct observed_lease observed = {0};
	bool failure_logged = false;

	while (!kube_client_stopped(c->kube)) {
		bool leads = atomic_load(&c->leading);
		struct mu_err err = {0};
		int rc = try_once(c, &observed, &err);

		if (leads && mu_clock_ms() >= atomic_load(&c->lease_until_ms)) {
			mu_error("leader", "the lease could not be renewed in time: %s",
				 rc < 0 ? err.msg : "another operator has it");
			atomic_store(&c->lost, true);
			controller_wake(c);
			break;
		}
		if (rc < 0 && !failure_logged && rc != -MU_ABORTED && !kube_client_stopped(c->kube))
			mu_warn("leader", "lease: %s", err.msg);
		failure_logged = rc < 0;
		kube_client_sleep(c->kube, rc == 0 ? RENEW_S : leads ? RETRY_S : STANDBY_POLL_S);
	}
	cJSON_Delete(observed.held);
	return NULL;
}

/* Releases the lease by an empty holder, so that another replica need not wait.  A renewal in
 * flight may cause a conflict; it is the last one. */
void leader_release(struct controller *c)
{
	int rc = -MU_ABORTED;

	if (!c->options.leader_election || !leader_may_write(c))
		return;
	atomic_store(&c->released, true);
	atomic_store(&c->leading, false);
	for (int i = 0; i < RELEASES_MAX && rc == -MU_ABORTED; i++) {
		cJSON *lease = NULL;

		rc = read_lease(c, RELEASE_READ_MS, &lease, NULL);
		if (rc == 0 && is_ours(c, lease))
			rc = write_lease(c, lease, "", NULL, NULL);
		cJSON_Delete(lease);
	}
}
