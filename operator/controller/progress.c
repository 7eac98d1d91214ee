/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the chief of each running job how far it is: GET /status on its HTTP port.  Tells the tasks
 * of a job whose members have changed who is in their cluster now: POST /cluster.
 *
 * One thread, one request at a time, a second each at most; with many jobs a round simply takes
 * longer.  A chief that does not answer, since its program has no such page, is asked less and less
 * often.  One that ends may leave its last word in its container's message (pod.c).
 */
#include "operator/controller/progress.h"

#include "operator/api/object_json.h"
#include "operator/controller/controller.h"
#include "operator/controller/leader.h"
#include "operator/controller/task_token.h"

static void ask(struct controller *c, const struct task_address *chief)
{
	MU_AUTO_BUF body = {0};
	struct progress_report report;
	cJSON *page = NULL;
	char url[128];

	task_url(chief->ip, "status", url, sizeof(url));
	if (kube_fetch(c->kube, url, &body, NULL) == 0)
		page = kube_json(mu_buf_span(&body));
	if (!page) {
		store_poll_failed(&c->store, chief, c->io.now(c->io.user));
		return;
	}
	progress_report_decode(&report, at(page, "progress"));
	if (!report.set)
		progress_report_decode(&report, page);
	if (store_set_progress(&c->store, chief, &report, text_at(page, "kernels"),
			       c->io.now(c->io.user)))
		workqueue_add(&c->queue, chief->key);
	cJSON_Delete(page);
}

static void ask_all(struct controller *c)
{
	unsigned n;
	struct task_address *chiefs = store_due_chiefs(&c->store, c->io.now(c->io.user), &n);

	for (unsigned i = 0; i < n && !kube_client_stopped(c->kube); i++)
		ask(c, &chiefs[i]);
	task_addresses_free(chiefs, n);
}

/* A task answers 200 once it has taken up that epoch, or a later one. */
static void tell(struct controller *c, const struct membership_update *notice)
{
	bool any = false;

	for (unsigned i = 0; i < notice->n && !kube_client_stopped(c->kube); i++) {
		const struct task_address *task = &notice->tasks[i];

		if (task_post(c, task->ip, task->job_uid, "cluster", mu_span_of(notice->text),
			      NULL) < 0) {
			store_update_failed(&c->store, task, c->io.now(c->io.user));
			continue;
		}
		store_confirm_epoch(&c->store, task, notice->epoch);
		any = true;
	}
	if (any)
		workqueue_add(&c->queue, notice->tasks[0].key);
}

static void tell_all(struct controller *c)
{
	unsigned n;
	struct membership_update *notices = store_due_updates(&c->store, c->io.now(c->io.user), &n);

	for (unsigned i = 0; i < n && !kube_client_stopped(c->kube); i++)
		tell(c, &notices[i]);
	membership_updates_free(notices, n);
}

void *progress_run(void *controller)
{
	struct controller *c = controller;

	while (!kube_client_stopped(c->kube)) {
		if (leader_may_write(c)) {
			tell_all(c);
			ask_all(c);
		}
		kube_client_sleep(c->kube, c->options.progress_seconds);
	}
	return NULL;
}
