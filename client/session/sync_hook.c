/* SPDX-License-Identifier: Apache-2.0 */
/* The chief's update thread of a synchronous training.
 *
 * It runs the update in a loop in the training's session. `leaving` cancels the session, which ends
 * the step of the thread, and joins the thread. If an update fails, the thread cancels the session.
 * Then the training, which may be waiting for a token, fails and recovers.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "client/session/hooks.h"
#include "lib/base/log.h"

struct sync_hook {
	struct mu_hook base;
	struct mu_sync sync;
	struct mu_session *session;
	pthread_t thread;
	bool running;
	_Atomic bool leaving;
};

static void *update_thread(void *arg)
{
	struct sync_hook *h = arg;
	struct mu_err err;

	while (!atomic_load(&h->leaving)) {
		if (!mu_session_do(h->session, h->sync.update, &err))
			continue;
		if (!atomic_load(&h->leaving)) {
			mu_warn("train", "the update of all workers failed: %s", err.msg);
			mu_session_cancel(h->session);
		}
		break;
	}
	return NULL;
}

static int sync_created(struct mu_hook *base, struct mu_session *s, int64_t step,
			struct mu_err *err)
{
	struct sync_hook *h = (struct sync_hook *)base;
	int rc = mu_session_do(s, h->sync.reset, err);

	if (rc)
		return rc;
	h->session = s;
	atomic_store(&h->leaving, false);
	rc = pthread_create(&h->thread, NULL, update_thread, h);
	if (rc)
		return mu_fail_errno(err, rc, "start the update thread");
	h->running = true;
	return 0;
}

/* Sends the last token. Without it, workers that still wait for a token would wait forever. */
static int sync_end(struct mu_hook *base, struct mu_session *s, int64_t step, struct mu_err *err)
{
	return mu_session_do(s, ((struct sync_hook *)base)->sync.end_workers, err);
}

static void sync_session_closing(struct mu_hook *base, struct mu_session *s)
{
	struct sync_hook *h = (struct sync_hook *)base;

	if (!h->running)
		return;
	atomic_store(&h->leaving, true);
	mu_session_cancel(s);
	pthread_join(h->thread, NULL);
	h->running = false;
}

struct mu_hook *mu_sync_hook(const struct mu_sync *sync)
{
	struct sync_hook *h = MU_NEW(struct sync_hook);

	h->base = (struct mu_hook){.created = sync_created,
				   .session_closing = sync_session_closing,
				   .end = sync_end,
				   .free = hook_free};
	h->sync = *sync;
	return &h->base;
}
