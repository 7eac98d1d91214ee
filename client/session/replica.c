/* SPDX-License-Identifier: Apache-2.0 */
/* See replica.h; grad.h describes the protocol of synchronous replicas. */
#include "client/session/replica.h"

#include "client/session/stop.h"

static void drop_feeds(struct replica *r)
{
	for (unsigned i = 0; i < r->n_last_feeds; i++)
		mu_tensor_unref(&r->last_feeds[i].value);
	free(r->last_feeds);
	r->last_feeds = NULL;
	r->n_last_feeds = 0;
}

void replica_fini(struct replica *r)
{
	drop_feeds(r);
	mu_tensor_unref(&r->step_value);
	mu_tensor_unref(&r->members);
}

/* The initial members: the first `workers` of `capacity`. */
static int initial_members(const struct mu_sync *sync, struct mu_tensor *out, struct mu_err *err)
{
	struct mu_shape shape;
	int rc = mu_shape_set(&shape, 1, (int64_t[]){sync->capacity}, err);

	if (!rc)
		rc = mu_tensor_new(out, MU_INT32, &shape, err);
	for (unsigned i = 0; i < sync->capacity && !rc; i++)
		MU_DATA(int32_t, out)[i] = i < sync->workers;
	return rc;
}

int replica_set_members(struct replica *r, struct mu_session *s, struct mu_err *err)
{
	struct mu_feed feed = {r->sync.members_value, &r->members};
	int rc = mu_tensor_is_set(&r->members) ? 0 : initial_members(&r->sync, &r->members, err);

	if (rc)
		return rc;
	return mu_session_run(
	    s,
	    &(struct mu_run){
		.feeds = &feed, .n_feeds = 1, .targets = &r->sync.set_members, .n_targets = 1},
	    NULL, err);
}

int replica_init_members(struct replica *r, struct mu_session *s, struct mu_err *err)
{
	MU_AUTO_TENSOR members = {0};
	int rc = mu_session_get(s, r->sync.members, &members, err);

	return rc == -(int)MU_FAILED_PRECONDITION ? replica_set_members(r, s, err) : rc;
}

int replica_read_epoch(struct replica *r, struct mu_session *s, struct mu_err *err)
{
	MU_AUTO_TENSOR epoch = {0};

	int rc = replica_is_synchronous(r) ? mu_session_get(s, r->sync.epoch, &epoch, err) : 0;

	if (!rc && mu_tensor_is_set(&epoch))
		r->epoch = mu_tensor_int(&epoch, 0);
	return rc;
}

int replica_has_chief(struct replica *r, struct mu_session *s, bool *has_chief, struct mu_err *err)
{
	int rc = replica_read_epoch(r, s, err);

	*has_chief = !replica_is_synchronous(r) || r->epoch > 0;
	return rc;
}

int replica_join(struct replica *r, struct mu_session *s, struct mu_err *err)
{
	if (!replica_is_synchronous(r) || r->leaving)
		return 0;
	int rc = mu_session_do(s, r->sync.join, err);

	if (rc == -(int)MU_FAILED_PRECONDITION)
		return mu_wrap(
		    err,
		    "the chief allows fewer workers than this one's index: restart it with the "
		    "current number of workers");
	/* After joining: only the members at that time receive the token of the next epoch. */
	return rc ? rc : replica_read_epoch(r, s, err);
}

int replica_feed(struct replica *r, int64_t step, struct mu_feed *feeds, unsigned *n,
		 struct mu_err *err)
{
	struct mu_shape scalar;
	int rc = 0;

	if (mu_tensor_is_set(&r->step_value) && !mu_tensor_is_sole(&r->step_value))
		mu_tensor_unref(&r->step_value);
	if (!mu_tensor_is_set(&r->step_value))
		rc = mu_shape_set(&scalar, 0, NULL, err);
	if (!rc && !mu_tensor_is_set(&r->step_value))
		rc = mu_tensor_new(&r->step_value, MU_INT64, &scalar, err);
	if (rc)
		return rc;
	*MU_DATA(int64_t, &r->step_value) = step + r->epoch * MU_SYNC_EPOCH;
	feeds[(*n)++] = (struct mu_feed){r->sync.local_step, &r->step_value};
	return 0;
}

/* Uses a token: returns true and advances *step, or false if the token is stale. */
static bool accept_token(struct replica *r, int64_t token, int64_t latest, int64_t *step)
{
	if (token <= MU_SYNC_AGAIN && MU_SYNC_AGAIN - token > r->epoch) {
		r->epoch = MU_SYNC_AGAIN - token;
		*step = latest;
		return true;
	}
	if (token <= *step || token < latest)
		return false;
	*step = token;
	return true;
}

int replica_take_token(struct replica *r, struct mu_session *s, int64_t token, int64_t latest,
		       const volatile int *stop, int64_t *step, struct mu_err *err)
{
	const struct mu_out fetches[] = {r->sync.token, r->sync.token_latest};

	while (!accept_token(r, token, latest, step)) {
		struct mu_tensor v[2];
		int rc;

		r->chief_ended = token == MU_SYNC_OVER && stop_is_set(stop);
		if (r->chief_ended)
			return 0;
		rc =
		    mu_session_run(s, &(struct mu_run){.fetches = fetches, .n_fetches = 2}, v, err);
		if (rc)
			return rc;
		token = mu_tensor_int(&v[0], 0);
		latest = mu_tensor_int(&v[1], 0);
		mu_tensor_unref(&v[0]);
		mu_tensor_unref(&v[1]);
	}
	return 0;
}

int replica_wait_for_end(struct replica *r, struct mu_session *s, struct mu_err *err)
{
	MU_AUTO_TENSOR token = {0};

	do {
		mu_tensor_unref(&token);
		int rc = mu_session_get(s, r->sync.token, &token, err);
		if (rc)
			return rc;
	} while (mu_tensor_int(&token, 0) != MU_SYNC_OVER);
	r->chief_ended = true;
	return 0;
}

int replica_leave(struct replica *r, struct mu_session *s, int64_t *step, struct mu_err *err)
{
	const struct mu_out fetches[] = {r->sync.leave, r->sync.leave_epoch};
	struct mu_tensor v[2];
	int rc = mu_session_run(s, &(struct mu_run){.fetches = fetches, .n_fetches = 2}, v, err);

	if (rc)
		return rc;
	r->leaving = true;
	*step = mu_tensor_int(&v[0], 0);
	r->epoch = mu_tensor_int(&v[1], 0);
	mu_tensor_unref(&v[0]);
	mu_tensor_unref(&v[1]);
	return 0;
}

void replica_keep_feeds(struct replica *r, const struct mu_feed *feeds, unsigned n)
{
	drop_feeds(r);
	r->last_feeds = MU_NEW_ARRAY(struct kept_feed, n + 1);
	for (; r->n_last_feeds < n; r->n_last_feeds++)
		r->last_feeds[r->n_last_feeds] = (struct kept_feed){
		    feeds[r->n_last_feeds].at, mu_tensor_ref(feeds[r->n_last_feeds].value)};
}

/* Adds the gradients that an update may be waiting for. */
static int add_last_gradients(struct replica *r, struct mu_session *s, int64_t step,
			      struct mu_err *err)
{
	struct mu_feed *feeds = MU_NEW_ARRAY(struct mu_feed, r->n_last_feeds + 1);
	struct mu_run run = {.feeds = feeds, .targets = &r->sync.add_gradients, .n_targets = 1};
	int rc;

	for (; run.n_feeds < r->n_last_feeds; run.n_feeds++)
		feeds[run.n_feeds] = (struct mu_feed){r->last_feeds[run.n_feeds].at,
						      &r->last_feeds[run.n_feeds].value};
	rc = replica_feed(r, step, feeds, &run.n_feeds, err);
	if (!rc)
		rc = mu_session_run(s, &run, NULL, err);
	free(feeds);
	return rc;
}

int replica_end(struct replica *r, struct mu_session *s, struct mu_err *err)
{
	int64_t awaited_step;
	int rc;

	if (!replica_is_synchronous(r) || r->leaving || r->chief_ended || !r->last_feeds)
		return 0;
	rc = replica_leave(r, s, &awaited_step, err);
	return rc ? rc : add_last_gradients(r, s, awaited_step, err);
}
