/* SPDX-License-Identifier: Apache-2.0 */
/* Aggregation and delivery of events. */
#include "operator/controller/events.h"

#include <pthread.h>
#include <stdio.h>

#include "operator/controller/manager.h"
#include "operator/controller/reconcile.h"
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

static bool always(void *user)
{
	return true;
}

static double monotonic(void)
{
	return 1000;
}

/* `thread`: as if one were about to write. */
static void begin(struct controller *c, bool thread)
{
	static const struct controller_options options = {.identity = "test"};

	written.n = 0;
	controller_init(c, &options, monotonic);
	c->io = (struct controller_io){.call = write_down, .may_write = always};
	atomic_store(&c->events.posting, thread);
}

/* Writes what waits, as at the end. */
static void write_all(struct controller *c)
{
	pthread_t thread;

	events_stop(&c->events);
	assert_int_equal(pthread_create(&thread, NULL, events_run, c), 0);
	pthread_join(thread, NULL);
}

static void end(struct controller *c)
{
	for (int i = 0; i < written.n; i++)
		free(written.text[i]);
	controller_fini(c);
}

static struct job job = {.meta = {.namespace = "default", .name = "a", .uid = "uid-a"},
			 .resource_version = "1"};
static const struct snapshot seen = {.key = "default/a", .job = &job};

static void events__are_posted_in_order(void **state)
{
	static const char *const notes[] = {"a", "b", "a", "c"};
	struct controller c;

	begin(&c, true);
	struct reconcile r = {.controller = &c, .seen = &seen, .now = 1};
	for (unsigned i = 0; i < MU_COUNT(notes); i++)
		event_record(&r, true, "Reason", "%s", notes[i]);
	assert_int_equal(written.n, 0);
	write_all(&c);
	assert_int_equal(written.n, MU_COUNT(notes));
	assert_non_null(strstr(written.text[1], "\"note\":\"b\""));
	assert_non_null(strstr(written.text[2], "\"count\":2"));
	assert_non_null(strstr(written.text[3], "\"note\":\"c\""));
	end(&c);
}

static void event__of_any_words__says_them_as_they_are(void **state)
{
	static const char words[] = "it said \"no\\\" twice:\n\t\x01 caf\xc3\xa9 </b> %s";
	struct controller c;
	cJSON *e, *about;

	begin(&c, false);
	struct reconcile r = {.controller = &c, .seen = &seen, .now = 1.5};
	event_record(&r, true, "Failed", "%s", words);
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

static void events__beyond_the_limit__are_dropped(void **state)
{
	struct controller c;

	begin(&c, true);
	struct reconcile r = {.controller = &c, .seen = &seen, .now = 1};
	for (int i = 0; i < 5000; i++)
		event_record(&r, false, "Reason", "%d", i);
	assert_int_equal(c.events.n, 4096);
	assert_int_equal(written.n, 0);
	end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(event__of_any_words__says_them_as_they_are),
	    cmocka_unit_test(events__are_posted_in_order),
	    cmocka_unit_test(events__beyond_the_limit__are_dropped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
