/* SPDX-License-Identifier: Apache-2.0 */
/* Monitored sessions.
 *
 * How a session becomes ready. Chief: if all variables are initialised, the chief leaves the model
 * unchanged (the ps tasks survived and are newer than any checkpoint). Else it restores the latest
 * checkpoint, or initialises the model if there is none. Other workers: open a session once and
 * poll it until the model is ready. If a task is lost, any of this fails with ABORTED or
 * UNAVAILABLE. Then the procedure starts again with a new session, until wait_seconds have passed.
 */
#include <unistd.h>

#include "client/session/replica.h"
#include "client/session/stop.h"
#include "client/session/wait.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/builder/builder.h"
#include "lib/checkpoint/checkpoint_state.h"
#include "muster/train.h"

enum {
	MAX_FETCHES = 256,
	MAX_HOOKS = 32,
	POLL_MIN_MS = 50,
	POLL_MAX_MS = 1000,
	DEFAULT_WAIT_SECONDS = 600,
	DEFAULT_RECOVERIES = 20,
	MAX_CANCELLATIONS = 3, /* in a row, which open a new session */
	RECOVERY_WAIT_MS = 200,
};

struct mu_monitored {
	struct mu_builder *b;
	struct mu_monitored_options o;
	char *target, *folder;
	char **filters; /* device filters of each session; a copy */
	struct mu_hook **hooks;
	struct mu_session *session;
	struct mu_out init, step_read;
	struct replica replica;
	struct mu_out *initialised; /* one bool for each variable */
	unsigned n_vars, recoveries;
	int64_t step;
	unsigned n_created; /* number of hooks whose `created` was called for the current session */
	bool stop;
};

/* A server that shuts down cancels its steps. */
static bool is_lost_session(int rc)
{
	return rc == -(int)MU_ABORTED || rc == -(int)MU_UNAVAILABLE || rc == -(int)MU_CANCELLED;
}

/* Further cancellations in a row are the program's: it uses a closed queue, for example. */
static bool may_recover(const struct mu_monitored *m, int rc)
{
	return is_lost_session(rc) &&
	       (rc != -(int)MU_CANCELLED || m->recoveries < MAX_CANCELLATIONS);
}

static int is_ready(struct mu_monitored *m, bool *ready, struct mu_err *err)
{
	struct mu_tensor *v = MU_NEW_ARRAY(struct mu_tensor, m->n_vars + 1);
	struct mu_run run = {.fetches = m->initialised, .n_fetches = m->n_vars};
	int rc = mu_session_run(m->session, &run, v, err);

	*ready = rc == 0;
	for (unsigned i = 0; i < m->n_vars && !rc; i++) {
		if (v[i].dtype != MU_BOOL || v[i].shape.count != 1 || !*MU_DATA(bool, &v[i]))
			*ready = false;
		mu_tensor_unref(&v[i]);
	}
	free(v);
	return rc;
}

static int prepare_as_chief(struct mu_monitored *m, struct mu_err *err)
{
	MU_AUTO_FREE char *latest = NULL;
	bool ready;
	int rc = is_ready(m, &ready, err);

	if (!rc && replica_is_synchronous(&m->replica))
		rc = ready ? replica_init_members(&m->replica, m->session, err)
			   : replica_set_members(&m->replica, m->session, err);
	if (rc || ready)
		return rc;
	if (m->o.saver && m->folder) {
		rc = mu_checkpoint_latest(&latest, m->folder, err);
		if (rc && rc != -(int)MU_NOT_FOUND)
			return rc;
	}
	if (latest) {
		mu_info("train", "restoring %s", latest);
		return mu_saver_restore(m->o.saver, m->session, latest, err);
	}
	return mu_session_do(m->session, m->init, err);
}

static bool stop_requested(const struct mu_monitored *m)
{
	return stop_is_set(m->o.stop);
}

static int wait_for_chief(struct mu_monitored *m, double deadline, struct mu_err *err)
{
	unsigned pause_ms = POLL_MIN_MS;
	struct wait wait;
	long seconds;
	bool ready;

	wait_begin(&wait);
	for (;;) {
		int rc = is_ready(m, &ready, err);

		if (!rc && ready)
			rc = replica_has_chief(&m->replica, m->session, &ready, err);
		if (rc || ready)
			return rc;
		if (stop_requested(m))
			return mu_fail(err, MU_CANCELLED, "stopped before the model was ready");
		if (mu_clock() > deadline)
			return mu_fail(err, MU_DEADLINE_EXCEEDED,
				       "the chief did not initialise the model in time: is it "
				       "running?");
		if (wait_report_is_due(&wait, &seconds))
			mu_warn("train",
				"the chief has not initialised the model on %s for %ld s: is it "
				"running?",
				m->target, seconds);
		usleep(pause_ms * 1000);
		pause_ms = 2 * pause_ms < POLL_MAX_MS ? 2 * pause_ms : POLL_MAX_MS;
	}
}

static int read_step(struct mu_monitored *m, struct mu_err *err)
{
	MU_AUTO_TENSOR v = {0};
	int rc;

	if (!m->step_read.node)
		return 0;
	rc = mu_session_get(m->session, m->step_read, &v, err);
	if (!rc)
		m->step = mu_tensor_int(&v, 0);
	return rc;
}

static void close_session(struct mu_monitored *m)
{
	while (m->n_created > 0) {
		struct mu_hook *h = m->hooks[--m->n_created];

		if (h->session_closing)
			h->session_closing(h, m->session);
	}
	mu_session_close(m->session);
	m->session = NULL;
}

static bool goal_is_reached(const struct mu_monitored *m)
{
	for (unsigned i = 0; i < m->o.n_hooks; i++)
		if (m->hooks[i]->is_over && m->hooks[i]->is_over(m->hooks[i], m->step))
			return true;
	return false;
}

/* Tries once to open a session with a ready model. */
static int try_prepare(struct mu_monitored *m, double deadline, struct mu_err *err)
{
	int rc = mu_session_open(&m->session, m->target, m->b, &m->o.session, err);

	if (!rc)
		rc = m->o.chief ? prepare_as_chief(m, err) : wait_for_chief(m, deadline, err);
	if (!rc)
		rc = replica_join(&m->replica, m->session, err);
	/* After the join: the update of this step may be the first to wait for this worker. */
	if (!rc)
		rc = read_step(m, err);
	for (unsigned i = 0; i < m->o.n_hooks && !rc; i++) {
		m->n_created = i + 1;
		if (m->hooks[i]->created)
			rc = m->hooks[i]->created(m->hooks[i], m->session, m->step, err);
	}
	m->stop |= !rc && goal_is_reached(m);
	if (!rc && m->o.chief) /* the chief's sync hook has started an epoch */
		rc = replica_read_epoch(&m->replica, m->session, err);
	return rc;
}

static int prepare(struct mu_monitored *m, struct mu_err *err)
{
	double deadline =
	    mu_clock() + (m->o.wait_seconds > 0 ? m->o.wait_seconds : DEFAULT_WAIT_SECONDS);
	struct mu_err why = {0};
	int rc;

	for (;;) {
		close_session(m);
		rc = try_prepare(m, deadline, &why);
		if (!is_lost_session(rc) || stop_requested(m) || mu_clock() > deadline)
			break;
		mu_warn("train", "not ready, retrying: %s", why.msg);
		usleep(POLL_MAX_MS * 1000);
	}
	return rc ? mu_fail(err, why.code, "%s", why.msg) : 0;
}

static void add_nodes(struct mu_monitored *m)
{
	struct mu_builder *b = m->b;

	m->n_vars = mu_var_count(b);
	m->init = mu_init_all(b);
	m->initialised = MU_ARENA_ARRAY(&b->graph->arena, struct mu_out, m->n_vars + 1);
	for (unsigned i = 0; i < m->n_vars; i++) {
		struct mu_var *v = mu_var_at(b, i);

		mu_push_device(b, v->ref.node->device);
		m->initialised[i] = mu_op(b, "IsVariableInitialized", MU_IN(v->ref));
		mu_pop_device(b);
	}
	if (b->global_step)
		m->step_read = b->global_step->read;
}

static void monitored_free(struct mu_monitored *m)
{
	close_session(m);
	for (unsigned i = 0; i < m->o.n_hooks; i++)
		if (m->hooks[i]->free)
			m->hooks[i]->free(m->hooks[i]);
	replica_fini(&m->replica);
	for (unsigned i = 0; i < m->o.session.n_device_filters; i++)
		free(m->filters[i]);
	free(m->filters);
	free(m->hooks);
	free(m->target);
	free(m->folder);
	free(m);
}

int mu_monitored_open(struct mu_monitored **out, struct mu_builder *b,
		      const struct mu_monitored_options *o, struct mu_err *err)
{
	struct mu_monitored *m = MU_NEW(struct mu_monitored);
	int rc;

	m->b = b;
	m->o = *o;
	m->o.session.stop = o->stop;
	if (o->sync)
		m->replica.sync = *o->sync;
	m->o.sync = NULL; /* the caller may free it after this call */
	m->target = mu_xstrdup(o->target);
	m->folder = o->folder ? mu_xstrdup(o->folder) : NULL;
	m->filters = MU_NEW_ARRAY(char *, o->session.n_device_filters + 1);
	for (unsigned i = 0; i < o->session.n_device_filters; i++)
		m->filters[i] = mu_xstrdup(o->session.device_filters[i]);
	m->o.session.device_filters = (const char *const *)m->filters;
	m->hooks = MU_NEW_ARRAY(struct mu_hook *, o->n_hooks + 1);
	for (unsigned i = 0; i < o->n_hooks; i++)
		m->hooks[i] = o->hooks[i];
	add_nodes(m);
	rc = mu_builder_check(b, err);
	if (!rc && o->n_hooks > MAX_HOOKS)
		rc = mu_fail(err, MU_INVALID_ARGUMENT, "%u hooks: at most %d are allowed",
			     o->n_hooks, MAX_HOOKS);
	if (!rc)
		rc = prepare(m, err);
	if (rc)
		monitored_free(m);
	else
		*out = m;
	return rc;
}

enum { MAX_FEEDS = 64 };

/* Collects the feeds of the caller and of the hooks, and the step that the gradients are for. */
static int collect_feeds(struct mu_monitored *m, struct mu_run *r, struct mu_feed *feeds,
			 struct mu_err *err)
{
	int rc = 0;

	if (r->n_feeds + 1 > MAX_FEEDS)
		return mu_fail(err, MU_INVALID_ARGUMENT, "%u feeds are too many", r->n_feeds);
	for (unsigned i = 0; i < r->n_feeds; i++)
		feeds[i] = r->feeds[i];
	r->feeds = feeds;
	for (unsigned i = 0; i < m->o.n_hooks && !rc; i++)
		if (m->hooks[i]->feeds)
			rc =
			    m->hooks[i]->feeds(m->hooks[i], feeds, MAX_FEEDS - 1, &r->n_feeds, err);
	if (rc || !replica_is_synchronous(&m->replica))
		return rc;
	if (!m->o.chief)
		replica_keep_feeds(&m->replica, feeds, r->n_feeds);
	return replica_feed(&m->replica, m->step, feeds, &r->n_feeds, err);
}

static bool is_traced(const struct mu_monitored *m)
{
	for (unsigned i = 0; i < m->o.n_hooks; i++)
		if (m->hooks[i]->wants_trace && m->hooks[i]->wants_trace(m->hooks[i], m->step))
			return true;
	return false;
}

/* The fetches of one step: of the caller, of the session itself, of each hook. */
struct fetches {
	struct mu_out out[MAX_FETCHES];
	struct mu_tensor value[MAX_FETCHES];
	unsigned n;
};

/* Adds the session's own fetches: the step or the token; for a replica the newest step; for the
 * chief of replicas the members. */
static void add_session_fetches(struct mu_monitored *m, struct fetches *f)
{
	if (m->replica.leaving) /* the replica adds its last gradients and takes no token */
		return;
	f->out[f->n++] = m->o.train;
	if (!replica_is_synchronous(&m->replica))
		return;
	f->out[f->n++] = m->replica.sync.latest;
	if (m->o.chief)
		f->out[f->n++] = m->replica.sync.members;
}

/* Adds the fetches of the hooks. at[i]: index of the first value of hook i. */
static int add_hook_fetches(struct mu_monitored *m, struct fetches *f, unsigned *at,
			    struct mu_err *err)
{
	for (unsigned i = 0; i < m->o.n_hooks; i++) {
		unsigned left = MAX_FETCHES - f->n, n = 0;

		at[i] = f->n;
		if (m->hooks[i]->fetches)
			n = m->hooks[i]->fetches(m->hooks[i], f->out + f->n, left);
		if (n > left)
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "hook %u fetches %u values, but only %u of %d are left", i,
				       n, left, (int)MAX_FETCHES);
		f->n += n;
	}
	return 0;
}

/* Updates the session from the values of its own fetches. */
static int update_step(struct mu_monitored *m, struct mu_tensor *session_values, struct mu_err *err)
{
	int rc;

	if (m->replica.leaving)
		m->stop = true;
	if (!replica_is_synchronous(&m->replica))
		m->step = mu_tensor_int(&session_values[0], 0);
	if (m->replica.leaving || !replica_is_synchronous(&m->replica))
		return 0;
	if (m->o.chief) {
		mu_tensor_unref(&m->replica.members);
		m->replica.members = mu_tensor_ref(&session_values[2]);
	}
	rc = replica_take_token(&m->replica, m->session, mu_tensor_int(&session_values[0], 0),
				mu_tensor_int(&session_values[1], 0), m->o.stop, &m->step, err);
	if (rc || !stop_requested(m))
		return rc;
	/* When the chief ends, all workers end; without a chief a worker does not wait. */
	m->stop = m->o.chief || m->replica.chief_ended;
	return m->o.chief ? 0 : replica_leave(&m->replica, m->session, &m->step, err);
}

/* A synchronous worker waits until the chief has saved the last step.  If the ps are lost before
 * that, the training continues from an older checkpoint, and the chief needs the worker again. */
static int wait_for_end(struct mu_monitored *m, struct mu_err *err)
{
	if (!replica_is_synchronous(&m->replica) || m->o.chief || m->replica.leaving ||
	    stop_requested(m))
		return 0;
	return replica_wait_for_end(&m->replica, m->session, err);
}

static int run_once(struct mu_monitored *m, const struct mu_run *run, struct mu_tensor *values,
		    struct mu_err *err)
{
	struct fetches f = {.n = 0};
	unsigned at[MAX_HOOKS], n_caller_fetches = run->n_fetches;
	struct mu_feed feeds[MAX_FEEDS];
	struct mu_run r = *run;
	MU_AUTO_BUF trace = {0};
	int rc = collect_feeds(m, &r, feeds, err);

	if (rc)
		return rc;
	if (n_caller_fetches + 3 > MAX_FETCHES)
		return mu_fail(err, MU_INVALID_ARGUMENT, "%u fetches are too many",
			       n_caller_fetches);
	for (unsigned i = 0; i < n_caller_fetches; i++)
		f.out[f.n++] = run->fetches[i];
	add_session_fetches(m, &f);
	rc = add_hook_fetches(m, &f, at, err);
	if (rc)
		return rc;
	r.fetches = f.out;
	r.n_fetches = f.n;
	if (m->replica.leaving) {
		r.targets = &m->replica.sync.add_gradients;
		r.n_targets = 1;
	}
	if (!r.metadata && is_traced(m))
		r.metadata = &trace;
	rc = mu_session_run(m->session, &r, f.value, err);
	if (rc)
		return rc;
	rc = update_step(m, f.value + n_caller_fetches, err);
	if (!rc)
		m->recoveries = 0;
	for (unsigned i = 0; i < m->o.n_hooks && !rc; i++) {
		struct mu_hook_step s = {.session = m->session,
					 .step = m->step,
					 .values = f.value + at[i],
					 .trace = r.metadata ? mu_buf_span(r.metadata)
							     : (struct mu_span){"", 0}};

		if (m->hooks[i]->after)
			rc = m->hooks[i]->after(m->hooks[i], &s, err);
		m->stop |= s.stop;
	}
	if (!rc && goal_is_reached(m))
		rc = wait_for_end(m, err);
	for (unsigned i = 0; i < f.n; i++) {
		if (i < n_caller_fetches && !rc)
			values[i] = f.value[i];
		else
			mu_tensor_unref(&f.value[i]);
	}
	return rc;
}

int mu_monitored_train(struct mu_monitored *m, const struct mu_run *run, struct mu_tensor *values,
		       struct mu_err *err)
{
	unsigned max_recoveries = m->o.max_recoveries ? m->o.max_recoveries : DEFAULT_RECOVERIES;
	struct mu_err why = {0};
	int rc;

	if (!m->o.train.node || m->o.train.port == MU_CONTROL)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "`train` must be the result of mu_minimize with a global step");
	while (may_recover(m, rc = run_once(m, run, values, &why)) &&
	       m->recoveries++ < max_recoveries) {
		mu_warn("train", "lost the session at step %lld, opening a new one: %s",
			(long long)m->step, why.msg);
		if (m->recoveries > 1) /* wait before a second recovery in a row */
			usleep(RECOVERY_WAIT_MS * 1000 * (m->recoveries < 10 ? m->recoveries : 10));
		m->stop = false;
		rc = prepare(m, &why);
		if (rc)
			break;
		if (m->stop) { /* the new session is at the last step: nothing is left to do */
			for (unsigned i = 0; i < run->n_fetches; i++)
				values[i] = (struct mu_tensor){0};
			break;
		}
	}
	if (rc == -(int)MU_OUT_OF_RANGE) {
		struct mu_err leave_err;

		if (mu_monitored_leave(m, &leave_err))
			mu_warn("train", "cannot deregister from the other workers: %s",
				leave_err.msg);
	}
	return rc ? mu_fail(err, why.code, "%s", why.msg) : 0;
}

int mu_monitored_leave(struct mu_monitored *m, struct mu_err *err)
{
	m->stop = true;
	return m->session && !m->o.chief ? replica_end(&m->replica, m->session, err) : 0;
}

bool mu_monitored_should_stop(const struct mu_monitored *m)
{
	return m->stop || (stop_requested(m) && !replica_is_synchronous(&m->replica));
}

int64_t mu_monitored_step(const struct mu_monitored *m)
{
	return m->step;
}

struct mu_session *mu_monitored_session(struct mu_monitored *m)
{
	return m->session;
}

int mu_monitored_close(struct mu_monitored *m, bool failed, struct mu_err *err)
{
	int rc = 0;

	for (unsigned i = 0; i < m->o.n_hooks && !failed && !rc; i++)
		if (m->hooks[i]->end)
			rc = m->hooks[i]->end(m->hooks[i], m->session, m->step, err);
	monitored_free(m);
	return rc;
}
