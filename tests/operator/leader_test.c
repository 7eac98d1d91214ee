/* SPDX-License-Identifier: Apache-2.0 */
/* Leadership of one process. The lease is in a scripted API server. */
#include "tests/operator/controller_fixture.h"

#include <math.h>

#include "tests/wait.h"
#include "tests/workqueue_next.h"

#include "tests/fake/api_server.c"

static void leader__whose_lease_may_have_expired__does_not_write(void **state)
{
	struct controller_fixture *s = fixture_new("", "{}", NULL);
	struct controller *c = &s->controller;

	c->options.leader_election = true;
	assert_false(leader_may_write(c));
	atomic_store(&c->leading, true);
	atomic_store(&c->lease_until_ms, mu_clock_ms() + 60000);
	assert_true(leader_may_write(c));
	atomic_store(&c->lease_until_ms, mu_clock_ms() - 1); /* the lease expired during the wait */
	assert_false(leader_may_write(c));
	c->options.leader_election = false;
	assert_true(leader_may_write(c));
	fixture_free(s);
}

/* A worker drops the keys that it takes while the lease may have expired. */
static void lease__renewed_late__queues_the_dropped_keys_again(void **state)
{
	struct api_server *server = api_server_start(0);
	struct kube_config config = {
	    .server = mu_xasprintf("http://127.0.0.1:%d", api_server_port(server))};
	struct controller_fixture *s = fixture_new("", "{}", NULL);
	struct controller *c = &s->controller;
	struct mu_err err = {0};
	double after = 0;
	int rc;
	pthread_t thread;
	char *key;

	assert_ok(kube_client_new(&c->kube, &config, &err), &err);
	c->options.leader_election = true;
	atomic_store(&c->leading, true);
	atomic_store(&c->lease_until_ms, mu_clock_ms() - 1);
	s->may_write = false;
	key = workqueue_try(&c->queue);
	assert_string_equal(key, "d/j");
	rc = reconcile(c, key, &after, &err);
	controller_requeue(c, key, rc, after, &err);
	free(key);
	assert_true(isinf(workqueue_next(&c->queue)));

	assert_int_equal(pthread_create(&thread, NULL, leader_run, c), 0);
	WAIT_UNTIL(leader_may_write(c) && !isinf(workqueue_next(&c->queue)));
	kube_client_stop(c->kube);
	pthread_join(thread, NULL);
	key = workqueue_try(&c->queue);
	assert_string_equal(key, "d/j");
	free(key);
	assert_int_equal(s->n, 0);

	kube_client_free(c->kube);
	fixture_free(s);
	api_server_stop(server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(leader__whose_lease_may_have_expired__does_not_write),
	    cmocka_unit_test(lease__renewed_late__queues_the_dropped_keys_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
