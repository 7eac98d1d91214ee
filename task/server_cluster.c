/* SPDX-License-Identifier: Apache-2.0 */
/* Handles POST /cluster, which updates the members of the cluster:
 *
 *	{"epoch": 3, "cluster": {"ps": ["host:port"], "worker": ["host:port", …]}}
 *
 * The operator or launcher sends it when members join or leave after the start of this task.
 * /status reports the epoch of the last accepted update; updates with an older epoch have no
 * effect.  New members are added, so that this task can fetch tensors from them.  The address of a
 * known member does not change.  Removed members stay in the table: no step refers to them, and a
 * replacement has the same name and address.
 *
 * An update that does not list this task at its own address is rejected with 409.  It is meant for
 * another task, because a pod may get an IP address that another pod had before.
 */
#include "lib/base/log.h"
#include "lib/io/json.h"
#include "task/peer/peer.h"
#include "task/server_internal.h"

static void http_reply_error(struct mu_http_answer *out, int status, const struct mu_err *err)
{
	out->status = status;
	mu_buf_printf(&out->body, "%s\n", err->msg);
}

static int read_epoch(struct mu_span text, int *epoch, struct mu_err *err)
{
	MU_AUTO(mu_doc_free) struct mu_doc *d = NULL;
	int rc = mu_json_parse(&d, text, "cluster", err);
	int64_t n;

	if (rc)
		return rc;
	n = d->root->kind == MU_DOC_MAP ? mu_doc_int(d->root, "epoch", 0) : 0;
	if (n < 1 || n > INT32_MAX)
		return mu_fail(err, MU_INVALID_ARGUMENT, "epoch must be an integer greater than 0");
	*epoch = (int)n;
	return 0;
}

static bool contains_own_task(struct task_server *s, const struct mu_cluster *c)
{
	const struct peer *self = peers_at(s->peers, 0);
	const char *address = mu_cluster_address(c, self->job, self->index, NULL);

	return address && !strcmp(address, peers_own_address(s->peers));
}

static int add_members(struct task_server *s, const struct mu_cluster *c, struct mu_err *err)
{
	int rc = 0;

	for (unsigned j = 0; j < c->n_jobs; j++)
		for (unsigned t = 0; t < c->jobs[j].n_tasks && !rc; t++) {
			const struct mu_cluster_task *task = &c->jobs[j].tasks[t];

			MU_AUTO_FREE char *name =
			    mu_xasprintf("/job:%s/replica:0/task:%d", c->jobs[j].name, task->index);

			rc = peers_add_task(s->peers, name, task->address, err);
		}
	return rc;
}

void server_cluster_post(struct task_server *s, struct mu_span text, struct mu_http_answer *out)
{
	MU_AUTO_CLUSTER c = {0};
	struct mu_err err = {0};
	int epoch = 0;

	if (read_epoch(text, &epoch, &err) || mu_cluster_parse_json(&c, text, &err)) {
		http_reply_error(out, 400, &err);
		return;
	}
	if (!contains_own_task(s, &c)) {
		mu_fail(&err, MU_FAILED_PRECONDITION, "%s at %s is not in this cluster",
			s->rt->task_prefix, peers_own_address(s->peers));
		http_reply_error(out, 409, &err);
		return;
	}
	if (epoch > s->epoch) { /* only the HTTP thread writes it */
		if (add_members(s, &c, &err)) {
			http_reply_error(out, 503, &err);
			return;
		}
		mu_info("task", "cluster membership updated: epoch %d", epoch);
		s->epoch = epoch;
	}
	out->type = "application/json";
	mu_buf_printf(&out->body, "{\"epoch\":%d}\n", s->epoch);
}
