/* SPDX-License-Identifier: Apache-2.0 */
/* The form of events. */
#include "operator/controller/events.h"

#include <pthread.h>
#include <stdio.h>

#include "operator/controller/manager.h"
#include "operator/controller/reconcile.h"
#include "tests/test.h"

static char *posted;

static int record_call(void *user, const struct kube_request *rq, cJSON **out, struct mu_err *err)
{
	assert_null(posted);
	posted = mu_xasprintf("%.*s", (int)rq->body.len, rq->body.data);
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

static struct job job = {.meta = {.namespace = "default", .name = "a", .uid = "uid-a"},
			 .resource_version = "1"};
static const struct snapshot job_snapshot = {.key = "default/a", .job = &job};

static void event__with_special_characters__has_them_unchanged(void **state)
{
	static const char note[] = "it said \"no\\\" twice:\n\t\x01 caf\xc3\xa9 </b> %s";
	static const struct controller_options options = {.identity = "test"};
	struct controller c;
	cJSON *e, *about;

	controller_init(&c, &options, monotonic);
	c.io = (struct controller_io){.call = record_call, .may_write = always};
	struct reconcile r = {.controller = &c, .snapshot = &job_snapshot, .now = 1.5};
	event_record(&r, true, "Failed", "%s", note);
	assert_non_null(e = cJSON_Parse(posted));
	about = cJSON_GetObjectItem(e, "regarding");
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(e, "note")), note);
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(e, "type")), "Warning");
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(about, "uid")), "uid-a");
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(about, "resourceVersion")),
			    "1");
	cJSON_Delete(e);
	free(mu_steal(&posted));
	controller_fini(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(event__with_special_characters__has_them_unchanged),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
