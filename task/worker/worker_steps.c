/* SPDX-License-Identifier: Apache-2.0 */
/* Running steps.  A struct running_step has two references: that of worker_start_step until it
 * returns, and that of the executor until worker_step_ended.  The worker's map `steps` borrows it
 * until worker_step_ended.  A cancellation may arrive before the executor has returned the step;
 * worker_start_step checks `cancelled` afterwards. */
#include "lib/base/pb.h"
#include "task/messages/step_messages.h"
#include "task/runtime/collective.h"
#include "task/runtime/trace.h"
#include "task/worker/worker.h"

static void running_step_unref(struct running_step *r)
{
	struct worker *w = r->worker;
	bool is_last;

	pthread_mutex_lock(&w->lock);
	is_last = --r->refs == 0;
	pthread_mutex_unlock(&w->lock);
	if (!is_last)
		return;
	if (r->step)
		step_unref(r->step);
	executor_unref(r->executor);
	rendezvous_unref(r->rendezvous);
	step_trace_free(r->trace);
	free(r);
	pthread_mutex_lock(&w->lock);
	if (--w->n_running == 0)
		pthread_cond_broadcast(&w->idle);
	pthread_mutex_unlock(&w->lock);
}

/* Appends the records as fields of a RunGraphResponse. */
static void put_record(struct mu_buf *b, const struct running_step *r)
{
	size_t at;

	if (r->record & RECORD_TIMELINE) {
		at = mu_pb_begin(b, 2);
		step_trace_write(r->trace, b);
		mu_pb_end(b, at);
	}
	if (r->record & RECORD_COSTS) {
		at = mu_pb_begin(b, 3);
		step_trace_write_costs(r->trace, b);
		mu_pb_end(b, at);
	}
	if (r->record & RECORD_PARTITIONS) {
		at = mu_pb_begin(b, 4);
		mu_graph_write(executor_graph(r->executor), b);
		mu_pb_end(b, at);
	}
}

/* Fails the collective ops of the other members, which would wait for this step forever. */
static void report_collective_failures(const struct running_step *r, const struct mu_err *err)
{
	struct collectives *cs = r->worker->rt->collectives;
	const struct mu_graph *g = executor_graph(r->executor);

	for (unsigned i = 0; cs && i < g->n_nodes; i++)
		if (!strncmp(g->nodes[i]->op, "Collective", strlen("Collective")))
			collective_report_failure(cs, g->nodes[i]->device, err);
}

static void worker_step_ended(void *arg, const struct mu_err *err)
{
	struct running_step *r = arg;
	struct worker *w = r->worker;
	MU_AUTO_BUF record = {0};
	struct mu_err why;

	pthread_mutex_lock(&w->lock);
	r->ended = true;
	mu_map_del_n(&w->steps, &r->step_id, sizeof(r->step_id));
	if (err && r->cancelled && err->code == MU_CANCELLED) {
		why = r->why; /* report the reason of the cancellation */
		err = &why;
	}
	pthread_mutex_unlock(&w->lock);
	if (err) {
		rendezvous_abort(r->rendezvous, err);
		report_collective_failures(r, err);
	}
	if (r->record)
		put_record(&record, r);
	r->done(r->arg, err, mu_buf_span(&record));
	if (err) /* after the reply: the master receives this error before those of other tasks */
		peers_drop_step(w->peers, r->step_id);
	running_step_unref(r);
}

/* Adds r to the running steps.  Fails if its step already runs on this task, or the task stops. */
static int add_running_step(struct worker *w, struct running_step *r, struct mu_err *err)
{
	int rc = 0;

	pthread_mutex_lock(&w->lock);
	if (w->stopping) {
		rc = mu_fail(err, MU_UNAVAILABLE, "%s is shutting down", w->rt->task_prefix);
	} else if (mu_map_get_n(&w->steps, &r->step_id, sizeof(r->step_id))) {
		rc = mu_fail(err, MU_ABORTED, "Step %lld already runs on this task",
			     (long long)r->step_id);
	} else {
		mu_map_put_n(&w->steps, &r->step_id, sizeof(r->step_id), r);
		w->n_running++;
		w->n_steps++;
	}
	pthread_mutex_unlock(&w->lock);
	return rc;
}

void worker_start_step(struct worker *w, struct executor *e, struct peers *renamed_peers,
		       const struct peer_run *run, peer_done done, void *arg)
{
	struct rendezvous_remote remote;
	struct running_step *r;
	struct step *step;
	struct mu_err err;
	bool must_cancel;

	r = MU_NEW(struct running_step);
	*r = (struct running_step){.worker = w,
				   .step_id = run->step_id,
				   .refs = 2,
				   .executor = e,
				   .record = run->record,
				   .done = done,
				   .arg = arg};
	r->rendezvous = rendezvous_table_get(w->rt->steps, run->step_id);
	if (add_running_step(w, r, &err)) {
		executor_unref(e);
		rendezvous_unref(r->rendezvous);
		free(r);
		done(arg, &err, MU_SPAN(""));
		return;
	}
	if (renamed_peers) {
		remote = peers_remote(renamed_peers);
		rendezvous_rename(r->rendezvous, peers_at(renamed_peers, 0)->task, &remote);
	}
	if (r->record & (RECORD_TIMELINE | RECORD_COSTS))
		r->trace = step_trace_new(r->record & RECORD_COSTS ? executor_graph(e) : NULL);
	if (rendezvous_was_aborted(r->rendezvous, &err)) /* the step was cancelled before it came */
		worker_cancel_step(w, r->step_id, &err);
	step = executor_start(e, r->rendezvous, r->trace, NULL, worker_step_ended, r);
	pthread_mutex_lock(&w->lock);
	r->step = step;
	must_cancel = r->cancelled && !r->ended;
	pthread_mutex_unlock(&w->lock);
	if (must_cancel && step)
		step_cancel(step, &r->why);
	running_step_unref(r);
}

void worker_cancel_step(struct worker *w, int64_t step_id, const struct mu_err *why)
{
	struct step *step = NULL;
	struct running_step *r;

	pthread_mutex_lock(&w->lock);
	r = mu_map_get_n(&w->steps, &step_id, sizeof(step_id));
	if (r) {
		r->refs++;
		if (!r->cancelled)
			r->why = *why;
		r->cancelled = true;
		step = r->step;
	}
	pthread_mutex_unlock(&w->lock);
	if (!r)
		return;
	if (step)
		step_cancel(step, why);
	rendezvous_abort(r->rendezvous, why);
	peers_drop_step(w->peers, step_id);
	running_step_unref(r);
}

bool worker_runs_step(struct worker *w, int64_t step_id)
{
	bool runs;

	pthread_mutex_lock(&w->lock);
	runs = mu_map_get_n(&w->steps, &step_id, sizeof(step_id)) != NULL;
	pthread_mutex_unlock(&w->lock);
	return runs;
}

void worker_each_step(struct worker *w, const struct worker_visitor *visitor)
{
	pthread_mutex_lock(&w->lock);
	mu_map_each (&w->steps, s) {
		const struct running_step *r = s->value;
		visitor->step(visitor->arg, r->step_id);
		if (r->step)
			step_each_waiting(r->step, visitor->node, visitor->arg);
		rendezvous_each_waiting(r->rendezvous, visitor->key, visitor->arg);
	}
	pthread_mutex_unlock(&w->lock);
}

void worker_cleanup_step(struct worker *w, int64_t step_id)
{
	rendezvous_table_drop(w->rt->steps, step_id, NULL);
	peers_drop_step(w->peers, step_id);
}

void worker_drop_step(struct worker *w, int64_t step_id, const struct mu_err *why)
{
	/* first, so that a step that starts meanwhile is cancelled by this call or by itself */
	rendezvous_table_drop(w->rt->steps, step_id, why);
	worker_cancel_step(w, step_id, why);
}

void worker_reject_new_steps(struct worker *w)
{
	pthread_mutex_lock(&w->lock);
	w->stopping = true;
	pthread_mutex_unlock(&w->lock);
}

void worker_stop(struct worker *w)
{
	struct mu_err why;
	int64_t *ids;
	unsigned n = 0;

	worker_reject_new_steps(w);
	mu_fail(&why, MU_UNAVAILABLE, "%s is shutting down", w->rt->task_prefix);
	pthread_mutex_lock(&w->lock);
	ids = MU_NEW_ARRAY(int64_t, w->steps.count + 1);
	mu_map_each (&w->steps, s)
		ids[n++] = ((struct running_step *)s->value)->step_id;
	pthread_mutex_unlock(&w->lock);
	for (unsigned i = 0; i < n; i++)
		worker_cancel_step(w, ids[i], &why);
	free(ids);
	pthread_mutex_lock(&w->lock);
	while (w->n_running > 0)
		pthread_cond_wait(&w->idle, &w->lock);
	pthread_mutex_unlock(&w->lock);
}
