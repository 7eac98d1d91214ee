/* SPDX-License-Identifier: Apache-2.0 */
/* The task itself as a peer: direct calls of its worker. */
#include "task/peer/peer.h"

struct peer_local {
	struct peer base;
	const struct local_worker *worker;
};

static const struct local_worker *local_worker_of(struct peer *p)
{
	return MU_CONTAINER(p, struct peer_local, base)->worker;
}

static uint64_t local_call(struct peer *p, enum peer_method m, struct mu_span request,
			   long timeout_ms, bool wait_for_ready, peer_done done, void *arg)
{
	const struct local_worker *w = local_worker_of(p);
	MU_AUTO_BUF reply = {0};
	struct mu_err err;

	if (w->ops->control(w->worker, m, request, &reply, &err))
		done(arg, &err, MU_SPAN(""));
	else
		done(arg, NULL, mu_buf_span(&reply));
	return 0;
}

static int local_register(struct peer *p, const char *session, struct mu_graph *g,
			  struct mu_span config, struct mu_span debug, char **handle,
			  struct mu_err *err)
{
	const struct local_worker *w = local_worker_of(p);

	return w->ops->register_graph(w->worker, session, true, config, debug, g, handle, err);
}

static uint64_t local_run(struct peer *p, const struct peer_run *run, peer_done done, void *arg)
{
	const struct local_worker *w = local_worker_of(p);

	w->ops->run(w->worker, run, true, done, arg);
	return 1;
}

static void local_cancel(struct peer *p, uint64_t id)
{
}

static void local_cancel_run(struct peer *p, uint64_t id, int64_t step_id)
{
	const struct local_worker *w = local_worker_of(p);
	struct mu_err why;

	mu_fail(&why, MU_CANCELLED, "Step %lld was cancelled", (long long)step_id);
	w->ops->cancel_step(w->worker, step_id, &why);
}

static void local_peer_free(struct peer *p)
{
	free(MU_CONTAINER(p, struct peer_local, base));
}

static const struct peer_ops ops = {
    .call = local_call,
    .register_graph = local_register,
    .run_graph = local_run,
    .cancel = local_cancel,
    .cancel_run = local_cancel_run,
    .free = local_peer_free,
};

struct peer *peer_local_new(void)
{
	struct peer_local *l = MU_NEW(struct peer_local);

	l->base.ops = &ops;
	return &l->base;
}

void peer_local_set_worker(struct peer *p, const struct local_worker *w)
{
	MU_CONTAINER(p, struct peer_local, base)->worker = w;
}
