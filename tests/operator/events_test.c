/* SPDX-License-Identifier: Apache-2.0 */
/* What is written of what was said. */
#include "operator/control/events.h"

#include <pthread.h>
#include <stdio.h>

#include "operator/control/controller.h"
#include "operator/control/reconcile.h"
#include "tests/test.h"

enum { SAID_MAX = 8 };

static struct {
	char *text[SAID_MAX];
	int n;
} written;

static int write_down(void *user, const struct kube_request *rq, cJSON **out, struct mu_err *err)
{
	assert_true(written.n < SAID_MAX);
	written.text[written.n++] = mu_xasprintf("%.*s", (int)rq->body.len, rq->body.data);
	return 0;
}

static unsigned together[SAID_MAX], n_together;

static unsigned write_many(void *user, const struct kube_request *rqs, unsigned n,
			   struct kube_reply *out)
{
	together[n_together++] = n;
	for (unsigned i = 0; i < n; i++) {
		assert_true(rqs[i].unread);
		out[i] = (struct kube_reply){0};
		write_down(user, &rqs[i], NULL, NULL);
	}
	return n;
}

static bool always(void *user)
{
	return true;
}

static double clock_now;

static double monotonic(void)
{
	return clock_now;
}

/* `thread`: as if one were about to write. */
static void begin(struct control *c, bool thread)
{
	static const struct control_options options = {.identity = "test"};

	written.n = 0;
	clock_now = 1000;
	control_init(c, &options, monotonic);
	c->io = (struct control_io){.call = write_down, .may_write = always};
	atomic_store(&c->events.posting, thread);
}

/* Writes what waits, as at the end. */
static void write_all(struct control *c)
{
	pthread_t thread;

	events_stop(&c->events);
	assert_int_equal(pthread_create(&thread, NULL, events_run, c), 0);
	pthread_join(thread, NULL);
}

static void end(struct control *c)
{
	for (int i = 0; i < written.n; i++)
		free(written.text[i]);
	control_fini(c);
}

static struct snapshot job(const char *name, const char *uid)
{
	return (struct snapshot){
	    .ns = "default", .name = name, .uid = uid, .resource_version = "1"};
}

static void what_is_made__before_it_was_told__is_one_event(void **state)
{
	struct snapshot a = job("a", "uid-a"), b = job("b", "uid-b");
	struct control c;

	begin(&c, true);
	struct reconcile of_a = {.control = &c, .seen = &a, .now = 1},
			 of_b = {.control = &c, .seen = &b, .now = 1};
	event_made(&of_a, "2 ps");
	event_say(&of_a, false, "Running", "it runs");
	event_made(&of_b, "1 ps");
	event_made(&of_a, "4 worker");
	write_all(&c);
	assert_int_equal(written.n, 3);
	assert_non_null(strstr(written.text[0], "\"created 2 ps, 4 worker\""));
	assert_non_null(strstr(written.text[1], "\"it runs\""));
	assert_non_null(strstr(written.text[2], "\"created 1 ps\""));
	end(&c);
}

/* But one that counts another goes after it, and nothing goes with it. */
static void events__that_are_due__are_written_together(void **state)
{
	static const char *const said[] = {"a", "b", "c", "a", "d", "e"};
	struct snapshot a = job("a", "uid-a");

	for (int busy = 0; busy < 2; busy++) { /* beside pods that are made: one at a time */
		struct control c;

		begin(&c, true);
		n_together = 0;
		c.io.call_many = write_many;
		atomic_store(&c.making, (unsigned)busy);
		struct reconcile r = {.control = &c, .seen = &a, .now = 1};
		for (unsigned i = 0; i < MU_COUNT(said); i++)
			event_say(&r, true, "Reason", "%s", said[i]);
		write_all(&c);
		assert_int_equal(written.n, MU_COUNT(said));
		assert_int_equal(n_together, busy ? 0 : 2);
		assert_true(busy || (together[0] == 3 && together[1] == 2));
		assert_non_null(strstr(written.text[2], "\"note\":\"c\""));
		assert_non_null(strstr(written.text[3], "\"count\":2"));
		assert_non_null(strstr(written.text[4], "\"note\":\"d\""));
		end(&c);
	}
}

static void what_is_made__after_it_was_told__is_another_event(void **state)
{
	struct snapshot a = job("a", "uid-a");
	struct control c;

	begin(&c, false);
	struct reconcile r = {.control = &c, .seen = &a, .now = 1};
	event_made(&r, "2 ps");
	event_made(&r, "4 worker");
	event_made(&r, "2 ps"); /* once more the same: a series */
	assert_int_equal(written.n, 3);
	assert_non_null(strstr(written.text[0], "\"created 2 ps\""));
	assert_non_null(strstr(written.text[1], "\"created 4 worker\""));
	assert_non_null(strstr(written.text[2], "\"count\":2"));
	end(&c);
}

/* The event of the first name says more than "2 ps": it cannot be counted on. */
static void what_was_told_with_more__and_is_made_again__is_no_series(void **state)
{
	struct snapshot a = job("a", "uid-a");
	struct control c;

	begin(&c, true);
	struct reconcile r = {.control = &c, .seen = &a, .now = 1};
	event_made(&r, "2 ps");
	event_made(&r, "4 worker");
	write_all(&c);
	event_made(&r, "2 ps"); /* nobody writes behind us any more: at once */
	assert_int_equal(written.n, 2);
	assert_non_null(strstr(written.text[1], "\"created 2 ps\""));
	end(&c);
}

static void what_is_made__time_and_again__stays_a_note_that_fits(void **state)
{
	struct snapshot a = job("a", "uid-a");
	char what[64];
	struct control c;

	begin(&c, true);
	struct reconcile r = {.control = &c, .seen = &a, .now = 1};
	for (int i = 0; i < 40; i++) {
		snprintf(what, sizeof(what), "%d of a task whose name is long", i);
		event_made(&r, what);
	}
	write_all(&c);
	assert_in_range(written.n, 2, 4);
	for (int i = 0; i < written.n; i++)
		assert_true(strlen(written.text[i]) < 1500);
	assert_non_null(strstr(written.text[written.n - 1], "39 of a task"));
	end(&c);
}

static void event__of_any_words__says_them_as_they_are(void **state)
{
	static const char words[] = "it said \"no\\\" twice:\n\t\x01 caf\xc3\xa9 </b> %s";
	struct snapshot a = job("a", "uid-a");
	struct control c;
	cJSON *e, *about;

	begin(&c, false);
	struct reconcile r = {.control = &c, .seen = &a, .now = 1.5};
	event_say(&r, true, "Failed", "%s", words);
	assert_int_equal(written.n, 1);
	assert_non_null(e = cJSON_Parse(written.text[0]));
	about = cJSON_GetObjectItem(e, "regarding");
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(e, "note")), words);
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(e, "type")), "Warning");
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(about, "uid")), "uid-a");
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(about, "resourceVersion")),
			    "1");
	cJSON_Delete(e);
	end(&c);
}

/* All that is due at this time; how many that were. */
static int write_at(struct control *c, double when)
{
	int before = written.n;

	clock_now = 1000 + when;
	while (events_write_due(c))
		;
	return written.n - before;
}

static void events__on_a_quiet_cluster__come_a_second_later(void **state)
{
	struct snapshot a = job("a", "uid-a");
	struct control c;

	begin(&c, true);
	struct reconcile r = {.control = &c, .seen = &a, .now = 1};
	event_made(&r, "2 ps");
	event_say(&r, true, "Failed", "it has failed");
	assert_int_equal(write_at(&c, 0.9), 0);
	assert_int_equal(write_at(&c, 1.1), 2);
	end(&c);
}

static void events__while_pods_are_made__wait__but_warnings_little_and_none_for_ever(void **state)
{
	struct snapshot a = job("a", "uid-a");
	struct control c;

	begin(&c, true);
	struct reconcile r = {.control = &c, .seen = &a, .now = 1};
	atomic_store(&c.making, 1);
	event_made(&r, "2 ps");
	event_say(&r, true, "Failed", "it has failed");
	assert_int_equal(write_at(&c, 1.9), 0);
	assert_int_equal(write_at(&c, 2.1), 1);
	assert_non_null(strstr(written.text[0], "it has failed"));
	event_made(&r, "4 worker");
	assert_int_equal(write_at(&c, 14.9), 0);
	assert_int_equal(write_at(&c, 15.1), 1);
	assert_non_null(strstr(written.text[1], "created 2 ps, 4 worker"));
	event_say(&r, false, "Running", "it runs");
	assert_int_equal(write_at(&c, 17), 0);
	atomic_store(&c.making, 0); /* it is quiet again */
	assert_int_equal(write_at(&c, 17.1), 1);
	end(&c);
}

static void events__of_too_many_jobs__do_not_wait_for_quiet(void **state)
{
	enum { JOBS = 1030 };
	char name[32], uid[32];
	struct control c;

	begin(&c, true);
	atomic_store(&c.making, 1);
	for (int i = 0; i < JOBS; i++) {
		snprintf(name, sizeof(name), "j%d", i);
		snprintf(uid, sizeof(uid), "uid-%d", i);
		struct snapshot one = job(name, uid);
		struct reconcile r = {.control = &c, .seen = &one, .now = 1};
		event_made(&r, "2 ps");
	}
	assert_int_equal(write_at(&c, 1.1), JOBS - 1024);
	end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(event__of_any_words__says_them_as_they_are),
	    cmocka_unit_test(events__on_a_quiet_cluster__come_a_second_later),
	    cmocka_unit_test(
		events__while_pods_are_made__wait__but_warnings_little_and_none_for_ever),
	    cmocka_unit_test(events__of_too_many_jobs__do_not_wait_for_quiet),
	    cmocka_unit_test(what_is_made__before_it_was_told__is_one_event),
	    cmocka_unit_test(events__that_are_due__are_written_together),
	    cmocka_unit_test(what_is_made__after_it_was_told__is_another_event),
	    cmocka_unit_test(what_was_told_with_more__and_is_made_again__is_no_series),
	    cmocka_unit_test(what_is_made__time_and_again__stays_a_note_that_fits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
