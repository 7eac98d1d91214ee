/* SPDX-License-Identifier: Apache-2.0 */
/* The controller in the simulated cluster: its watches, its worker, and injected faults.
 *
 * The calls of a killed controller no longer arrive. The next controller starts from a list, which
 * can be stale. Or it is a second replica, which has seen the events of its own watches. If the
 * lease of a controller expires during a call, that call can arrive while the other controller
 * acts.
 */
#include "tests/fake/sim.h"
#include "tests/workqueue_next.h"

enum { STEPS_MAX = 40000, FAULTS_MAX = 600, LATE_STEPS = 40 };
enum { MEMBERS_RETRY_STEPS = 20, MEMBERS_RETRY_PAUSE_S = 60 };

static struct sim *clock_of; /* the clock function of the queue has no argument */

static double queue_now(void)
{
	return clock_of->now;
}

static double wall_now(void *user)
{
	const struct sim *s = ((const struct sim_operator *)user)->sim;
	return s->now + s->skew;
}

/* A step of the clock may shorten the wait between a CA and its certificate. */
static void set_skew(struct sim *s, double skew)
{
	if (s->skew != skew)
		s->ca_since = 0;
	s->skew = skew;
}

static bool may_write(void *user)
{
	const struct sim_operator *o = user;
	return o->sim->leader == o && !o->sim->dead;
}

/* ---- watches ---- */

static const enum object_kind watched[SIM_WATCHED] = {KIND_JOB, KIND_POD, KIND_SERVICE, KIND_NODE};

static void deliver_object(struct sim_operator *o, int kind, bool gone, const cJSON *object)
{
	struct store_watch watch = {&o->controller.store, watched[kind], NULL};

	(gone ? store_object_gone : store_object_seen)(&watch, object);
}

static bool is_selected(const struct sim_event *e)
{
	return e->kind == SIM_JOB || e->kind == SIM_NODE ||
	       cJSON_GetObjectItemCaseSensitive(sim_at(e->json, "metadata.labels"), LABEL_JOB);
}

/* The next event of this kind, or NULL at the end of the history. Skips other kinds. */
static const struct sim_event *next_event(struct sim_operator *o, int kind)
{
	const struct sim *s = o->sim;

	for (; o->position[kind] < s->n_events; o->position[kind]++) {
		const struct sim_event *e = &s->events[o->position[kind]];
		if ((int)e->kind == kind && is_selected(e))
			return e;
	}
	return NULL;
}

static bool deliver(struct sim_operator *o, int kind)
{
	const struct sim_event *e = next_event(o, kind);

	if (!e)
		return false;
	deliver_object(o, kind, e->deleted, e->json);
	if (!sim_chance(o->sim, 20)) /* otherwise the event is delivered again */
		o->position[kind]++;
	return true;
}

static bool is_last(const struct sim *s, int at, int until)
{
	const char *uid = sim_text(s->events[at].json, "metadata.uid");

	for (int i = at + 1; i < until; i++)
		if (s->events[i].kind == s->events[at].kind &&
		    strcmp(sim_text(s->events[i].json, "metadata.uid"), uid) == 0)
			return false;
	return !s->events[at].deleted;
}

/* Delivers the list as it was after `until` events. */
static void list(struct sim_operator *o, int kind, int until)
{
	struct store_watch watch = {&o->controller.store, watched[kind], NULL};
	const struct sim *s = o->sim;

	store_list_begins(&watch);
	for (int i = 0; i < until; i++)
		if ((int)s->events[i].kind == kind && is_selected(&s->events[i]) &&
		    is_last(s, i, until))
			deliver_object(o, kind, false, s->events[i].json);
	store_list_ends(&watch);
	o->position[kind] = until;
}

static int list_position(struct sim *s)
{
	int back = sim_chance(s, 500) ? (int)(sim_random(s) % 12) : 0;
	return back < s->n_events ? s->n_events - back : s->n_events;
}

static bool has_backlog(struct sim *s)
{
	for (int k = 0; k < SIM_WATCHED; k++)
		if (next_event(s->leader, k))
			return true;
	return false;
}

static bool deliver_to(struct sim_operator *o)
{
	int first = o->sim->faulty ? (int)(sim_random(o->sim) % SIM_WATCHED) : 0;

	for (int k = 0; k < SIM_WATCHED; k++)
		if (deliver(o, (first + k) % SIM_WATCHED))
			return true;
	return false;
}

/* Delivers an event to the leader, and sometimes to the waiting operator. */
static bool deliver_some(struct sim *s)
{
	for (int i = 0; i < s->n_operators; i++)
		if (&s->operators[i] != s->leader && (!s->faulty || sim_random(s) % 2))
			deliver_to(&s->operators[i]);
	return deliver_to(s->leader);
}

/* ---- calls ---- */

static void store_in_flight(struct sim *s, const struct kube_request *rq, const cJSON *body)
{
	struct sim_call *c = &s->in_flight[s->n_in_flight];

	if (s->n_in_flight == SIM_IN_FLIGHT || strcmp(rq->method, "GET") == 0)
		return;
	snprintf(c->method, sizeof(c->method), "%s", rq->method);
	snprintf(c->path, sizeof(c->path), "%s", rq->path);
	c->body = cJSON_Duplicate(body, true);
	s->n_in_flight++;
}

static void execute_in_flight(struct sim *s)
{
	struct sim_call c;

	if (!s->n_in_flight)
		return;
	c = s->in_flight[--s->n_in_flight];
	s->in_flight_call = true;
	sim_serve(s, c.method, c.path, c.body, NULL, NULL);
	s->in_flight_call = false;
	cJSON_Delete(c.body);
}

static int random_error(struct sim *s, struct mu_err *err)
{
	static const enum mu_code codes[] = {
	    MU_UNAVAILABLE,  MU_UNAVAILABLE,      MU_RESOURCE_EXHAUSTED, MU_ABORTED,
	    MU_OUT_OF_RANGE, MU_INVALID_ARGUMENT, MU_PERMISSION_DENIED,  MU_DEADLINE_EXCEEDED};
	return mu_fail(err, codes[sim_random(s) % MU_COUNT(codes)], "scripted");
}

static void take_over(struct sim *s);
static bool work_once(struct sim *s);

/* Events during a call; the lease can pass, and the next leader can act. */
static void run_other_events(struct sim *s)
{
	while (sim_chance(s, 200)) {
		switch (sim_random(s) % 4) {
		case 0:
			sim_world(s);
			break;
		case 1:
			if (s->leader->busy && sim_chance(s, 100))
				take_over(s);
			else if (!s->leader->busy)
				work_once(s);
			break;
		default:
			deliver_some(s);
		}
	}
}

static void kill_leader(struct sim *s)
{
	if (s->trace)
		fprintf(stderr, "%8.2f * killed\n", s->now - SIM_EPOCH);
	s->dead = true;
	s->crashes++;
}

/* The call arrives, unless its sender was killed before; then it may arrive much later. */
static int call_now(struct sim_operator *o, const struct kube_request *rq, const cJSON *body,
		    cJSON **out, struct mu_err *err)
{
	struct sim *s = o->sim;
	cJSON *answer = NULL;
	int rc;

	run_other_events(s);
	if (s->leader != o && sim_random(s) % 2)
		return mu_fail(err, MU_UNAVAILABLE, "the lease passed before it arrived");
	if (s->leader == o && (s->dead || sim_chance(s, 12))) {
		if (sim_random(s) % 2)
			store_in_flight(s, rq, body);
		if (!s->dead)
			kill_leader(s);
		return mu_fail(err, MU_UNAVAILABLE, "killed");
	}
	if (sim_chance(s, 40))
		return random_error(s, err);
	if (strcmp(rq->method, "DELETE") == 0 && !*sim_text(body, "preconditions.uid"))
		sim_violation(s, "%s was to be deleted, whichever it is by now", rq->path);
	s->in_flight_call = s->leader != o; /* sent by a leader, arrived after its term */
	rc = sim_serve(s, rq->method, rq->path, body, &answer, err);
	s->in_flight_call = false;
	run_other_events(s);
	if (s->leader == o && sim_chance(s, 12))
		kill_leader(s);
	if ((s->leader == o && s->dead) || sim_chance(s, 25)) {
		cJSON_Delete(answer);
		return mu_fail(err, MU_UNAVAILABLE, "the answer was lost");
	}
	if (out)
		*out = mu_steal(&answer);
	cJSON_Delete(answer);
	return rc;
}

static int call(void *user, const struct kube_request *rq, cJSON **out, struct mu_err *err)
{
	struct sim_operator *o = user;
	cJSON *body;
	int rc;

	if (strcmp(rq->method, "GET") != 0 && !may_write(o))
		return mu_fail(err, MU_CANCELLED, "another operator may lead now");
	body = kube_json(rq->body);
	rc = call_now(o, rq, body, out, err);
	cJSON_Delete(body);
	return rc;
}

static int post(void *user, const struct pod *task, const char *page, const char *body,
		struct mu_err *err)
{
	struct sim_operator *o = user;
	struct sim *s = o->sim;

	if (strcmp(page, "cluster") == 0)
		return sim_send_members_to(s, task, body);
	if (s->leader != o || s->dead || sim_chance(s, 50))
		return mu_fail(err, MU_UNAVAILABLE, "no answer");
	return sim_finish(s, task->ip) < 0 || sim_chance(s, 50)
		   ? mu_fail(err, MU_UNAVAILABLE, "no answer")
		   : 0;
}

static int get_status(void *user, const struct pod *task, struct mu_buf *out)
{
	const struct sim_operator *o = user;

	if (o->sim->script.unreachable)
		return -MU_UNAVAILABLE;
	mu_buf_puts(out, "{}");
	return 0;
}

/* ---- life cycle ---- */

static void start_operator(struct sim *s, struct sim_operator *o)
{
	struct controller_options options = {.image = "i",
					     .image_gpu = s->script.no_gpu_image ? NULL : "g",
					     .image_tensorboard = "b",
					     .identity = "sim",
					     .lease_namespace = "default",
					     .cert_life = s->script.cert_life};

	o->sim = s;
	o->lost_lease = false;
	controller_init(&o->controller, &options, queue_now);
	o->controller.io = (struct controller_io){.call = call,
						  .post = post,
						  .get_status = get_status,
						  .now = wall_now,
						  .may_write = may_write,
						  .certs = sim_certs,
						  .user = o};
	for (int k = 0; k < SIM_WATCHED; k++)
		list(o, k, list_position(s));
}

static void restart(struct sim_operator *o)
{
	controller_fini(&o->controller);
	start_operator(o->sim, o);
}

void sim_restart(struct sim *s)
{
	s->dead = false;
	restart(s->leader);
}

/* The other operator becomes leader and reconciles everything with its current view. A replaced
 * operator in the middle of a reconcile restarts afterwards. */
static void take_over(struct sim *s)
{
	struct sim_operator *was = s->leader, *next;

	if (s->n_operators < 2)
		return;
	next = &s->operators[was == s->operators];
	if (next->busy) /* it has not noticed the end of its term yet */
		return;
	if (s->trace)
		fprintf(stderr, "%8.2f * the other one leads\n", s->now - SIM_EPOCH);
	s->splits++;
	s->leader = next;
	s->dead = false;
	if (was->busy)
		was->lost_lease = true;
	else
		restart(was);
	store_requeue_all(&next->controller.store);
}

static void add_node(struct sim *s, const char *name)
{
	MU_AUTO_FREE char *path = mu_xasprintf("/api/v1/nodes/%s", name);
	MU_AUTO_FREE char *text = mu_xasprintf(
	    "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"kubernetes.io/arch\":\"amd64\"%s}},"
	    "\"status\":{%s}}",
	    name,
	    s->script.gpus ? ",\"nvidia.com/gpu.compute.major\":\"9\","
			     "\"nvidia.com/gpu.compute.minor\":\"0\""
			   : "",
	    s->script.gpus ? "\"allocatable\":{\"nvidia.com/gpu\":\"8\"}" : "");

	sim_add(s, path, cJSON_Parse(text));
}

static void add_foreign(struct sim *s, const char *path)
{
	MU_AUTO_FREE char *text =
	    mu_xasprintf("{\"metadata\":{\"name\":\"%s\",\"namespace\":\"default\"},\"spec\":{}}",
			 strrchr(path, '/') + 1);

	sim_add(s, path, cJSON_Parse(text))->due = INFINITY;
}

void sim_start(struct sim *s, const struct sim_script *script, uint64_t seed, bool faulty)
{
	memset(s, 0, sizeof(*s));
	s->script = *script;
	s->random = seed;
	s->faulty = faulty;
	s->now = SIM_EPOCH;
	s->trace = getenv("SIM_TRACE") != NULL;
	s->events = MU_NEW_ARRAY(struct sim_event, SIM_EVENTS);
	for (int i = 0; i < SIM_USER_ACTIONS; i++)
		s->script.user_actions[i].at += SIM_EPOCH;
	add_node(s, "node-1");
	add_node(s, "node-2");
	sim_add(s, "/api/v1/namespaces/default/pods/foreign",
		cJSON_Parse("{\"metadata\":{\"name\":\"foreign\",\"namespace\":\"default\","
			    "\"labels\":{\"muster.dev/job\":\"j\",\"muster.dev/task\":\"worker\","
			    "\"muster.dev/index\":\"0\"}},\"spec\":{}}"))
	    ->due = INFINITY;
	if (script->taken_name)
		add_foreign(s, script->taken_name);
	sim_add(s, "/apis/muster.dev/v1/namespaces/default/distributedtrainingjobs/j",
		cJSON_Duplicate(script->job, true));
	s->n_operators = faulty && sim_random(s) % 2 ? SIM_OPERATORS : 1;
	s->leader = s->operators;
	clock_of = s;
	for (int i = 0; i < s->n_operators; i++)
		start_operator(s, &s->operators[i]);
}

void sim_end(struct sim *s)
{
	for (int i = 0; i < s->n_operators; i++)
		controller_fini(&s->operators[i].controller);
	for (int i = 0; i < s->n_events; i++)
		cJSON_Delete(s->events[i].json);
	for (int i = 0; i < s->n_objects; i++)
		cJSON_Delete(s->objects[i].json);
	while (s->n_in_flight)
		cJSON_Delete(s->in_flight[--s->n_in_flight].body);
	free(s->events);
}

static bool work_once(struct sim *s)
{
	struct sim_operator *o = s->leader;
	char *key = workqueue_try(&o->controller.queue);
	struct mu_err err = {0};
	double after = 0;
	int rc;

	if (!key)
		return false;
	o->busy = true;
	rc = reconcile(&o->controller, key, &after, &err);
	controller_requeue(&o->controller, key, rc, after, &err);
	o->busy = false;
	free(key);
	if (o->lost_lease)
		restart(o);
	else if (s->dead)
		sim_restart(s);
	return true;
}

static bool advance(struct sim *s, double until)
{
	double next = fmin(sim_world_due(s), workqueue_next(&s->leader->controller.queue));

	if (isinf(next) || next > until)
		return false;
	if (next > s->now)
		s->now = next;
	sim_world(s);
	return true;
}

static void inject_fault(struct sim *s)
{
	if (sim_chance(s, 8)) {
		kill_leader(s);
		sim_restart(s);
	}
	if (sim_chance(s, 5))
		take_over(s);
	if (sim_chance(s, 15))
		list(s->leader, (int)(sim_random(s) % SIM_WATCHED), list_position(s));
	if (sim_chance(s, 3))
		s->skew = s->skew != 0 ? 0 : sim_between(s, -4000, 100);
	s->ca_since = 0; /* a step of the clock may shorten the wait for a new CA */
	if (s->n_in_flight && sim_random(s) % LATE_STEPS == 0)
		execute_in_flight(s);
}

/* Makes one event happen; false if there is none before `until`. */
static bool step(struct sim *s, double until)
{
	inject_fault(s);
	if (sim_random(s) % MEMBERS_RETRY_STEPS == 0)
		sim_send_members(s);
	if (sim_chance(s, 300) || !s->faulty) {
		if (deliver_some(s) || work_once(s))
			return true;
	} else if (sim_chance(s, 500)) {
		if (work_once(s))
			return true;
	}
	if (s->faulty &&
	    (has_backlog(s) || workqueue_next(&s->leader->controller.queue) <= s->now) &&
	    !sim_chance(s, 100))
		return true; /* time rarely passes while work is pending */
	return advance(s, until) || has_backlog(s);
}

/* When nothing else happens, repeats membership updates that were lost. */
static bool send_pending_members(struct sim *s, double until)
{
	if (s->now + MEMBERS_RETRY_PAUSE_S > until)
		return false;
	s->now += MEMBERS_RETRY_PAUSE_S;
	return sim_send_members(s);
}

void sim_settle(struct sim *s, double seconds)
{
	double until = s->now + seconds;
	int steps = 0;

	s->faulty = false;
	set_skew(s, 0);
	while (s->n_in_flight)
		execute_in_flight(s);
	while (!s->violation[0] && (step(s, until) || send_pending_members(s, until)))
		if (++steps > STEPS_MAX)
			sim_violation(s, "no rest after %d steps", steps);
	if (s->now < until)
		s->now = until;
}

void sim_run(struct sim *s)
{
	int faults = s->faulty ? FAULTS_MAX : 0;

	while (faults-- > 0 && !s->violation[0] && step(s, INFINITY))
		;
	sim_settle(s, 7200);
}
