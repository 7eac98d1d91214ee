/* SPDX-License-Identifier: Apache-2.0 */
/* Concurrent calls from one thread, to a server that replies only after it has received a given
 * number of requests. */
#include "tests/test.h"
#include "tests/wait.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/kube/kube_client.h"

enum { PATHS = 32, TRIES = 3, CONNECTIONS = 64, REQUEST = 4096, CALLS = 6, MANY = 12 };

/* The reply to each request for a path, in order; default: {"n":PATH}. */
struct script {
	const char *says[TRIES];
};
static const char hang_up[] = "hang up", nothing[] = "nothing";

#define ANSWER(status, more)                                                                       \
	"HTTP/1.1 " status "\r\n" more "Content-Type: application/json\r\nContent-Length: 2\r\n"   \
	"\r\n{}"

struct server {
	pthread_mutex_t lock; /* all below */
	pthread_cond_t changed;
	const struct script *script; /* of PATHS; NULL: nothing said */
	int hold;                    /* answers wait until so many have been heard */
	int heard, under_way, most, accepted, ended;
	int times[PATHS]; /* that each was asked for */
	char last[REQUEST];
	int open[CONNECTIONS];
	bool done;
	int fd, port;
	pthread_t thread, threads[CONNECTIONS];
};
struct connection {
	struct server *server;
	int fd;
};

/* Called with the lock held. Returns the reply; NULL: close the connection. */
static const char *answer_to(struct server *s, int path, char *room, size_t size)
{
	int time = s->times[path]++;
	const char *says = s->script && time < TRIES ? s->script[path].says[time] : NULL;

	s->heard++;
	s->under_way++;
	s->most = s->under_way > s->most ? s->under_way : s->most;
	pthread_cond_broadcast(&s->changed);
	while (!s->done && (s->heard < s->hold || says == nothing))
		pthread_cond_wait(&s->changed, &s->lock);
	s->under_way--;
	if (says)
		return says == hang_up || says == nothing ? NULL : says;
	snprintf(room, size, "HTTP/1.1 201 Made\r\nContent-Length: %d\r\n\r\n{\"n\":%d}",
		 path < 10 ? 7 : 8, path);
	return room;
}

static void *serve_one(void *arg)
{
	struct connection c = *(struct connection *)arg;
	struct server *s = c.server;
	char request[REQUEST], room[128];
	ssize_t n;
	int path;

	free(arg);
	while ((n = read(c.fd, request, sizeof(request) - 1)) > 0) {
		const char *answer;

		request[n] = 0;
		if (sscanf(request, "POST /%d ", &path) != 1 || path < 0 || path >= PATHS)
			break;
		pthread_mutex_lock(&s->lock);
		memcpy(s->last, request, (size_t)n + 1);
		answer = answer_to(s, path, room, sizeof(room));
		pthread_mutex_unlock(&s->lock);
		if (!answer || send(c.fd, answer, strlen(answer), MSG_NOSIGNAL) < 0)
			break;
	}
	pthread_mutex_lock(&s->lock);
	s->ended++;
	pthread_mutex_unlock(&s->lock);
	shutdown(c.fd, SHUT_RDWR); /* closed when all is over: its number must not be another's */
	return NULL;
}

static void *serve(void *arg)
{
	struct server *s = arg;
	int fd;

	while ((fd = accept(s->fd, NULL, NULL)) >= 0) {
		struct connection *c = malloc(sizeof(*c));

		*c = (struct connection){s, fd};
		pthread_mutex_lock(&s->lock);
		assert_true(s->accepted < CONNECTIONS);
		s->open[s->accepted] = fd;
		pthread_create(&s->threads[s->accepted++], NULL, serve_one, c);
		pthread_mutex_unlock(&s->lock);
	}
	return NULL;
}

static struct server *start(int hold, const struct script *script)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct server *s = calloc(1, sizeof(*s));
	socklen_t n = sizeof(a);

	s->hold = hold;
	s->script = script;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	s->fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(s->fd, (struct sockaddr *)&a, n), 0);
	assert_int_equal(listen(s->fd, CONNECTIONS), 0);
	assert_int_equal(getsockname(s->fd, (struct sockaddr *)&a, &n), 0);
	s->port = ntohs(a.sin_port);
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
	return s;
}

/* Ends all connections that there are. */
static void cut(struct server *s)
{
	pthread_mutex_lock(&s->lock);
	for (int i = 0; i < s->accepted; i++)
		shutdown(s->open[i], SHUT_RDWR);
	pthread_mutex_unlock(&s->lock);
}

static int read_int(struct server *s, const int *what)
{
	int n;

	pthread_mutex_lock(&s->lock);
	n = *what;
	pthread_mutex_unlock(&s->lock);
	return n;
}

static void stop(struct server *s)
{
	pthread_mutex_lock(&s->lock);
	s->done = true;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	shutdown(s->fd, SHUT_RDWR);
	pthread_join(s->thread, NULL);
	cut(s);
	for (int i = 0; i < s->accepted; i++) {
		pthread_join(s->threads[i], NULL);
		close(s->open[i]);
	}
	close(s->fd);
	free(s);
}

static struct kube_client *client_of(const struct server *s)
{
	struct kube_config k = {.server = mu_xasprintf("http://127.0.0.1:%d", s->port),
				.token = mu_xstrdup("the-token")};
	struct kube_client *c;

	assert_int_equal(kube_client_new(&c, &k, NULL), 0);
	return c;
}

static void end(struct kube_client *c, struct server *s)
{
	kube_client_free(c);
	stop(s);
}

/* POSTs to /FROM, /FROM+1, ... */
struct calls {
	char paths[MANY][8];
	struct kube_request rqs[MANY];
	struct kube_reply replies[MANY];
};

static void prepare(struct calls *k, int from, long timeout_ms)
{
	memset(k, 0, sizeof(*k));
	for (int i = 0; i < MANY; i++) {
		snprintf(k->paths[i], sizeof(k->paths[i]), "/%d", from + i);
		k->rqs[i] = (struct kube_request){.method = "POST",
						  .path = k->paths[i],
						  .body = MU_SPAN("{}"),
						  .timeout_ms = timeout_ms};
	}
}

static void fini(struct calls *k)
{
	for (int i = 0; i < MANY; i++)
		cJSON_Delete(k->replies[i].out);
}

/* The answer is the one to this very call. */
static void assert_made(struct calls *k, int i, int path)
{
	if (k->replies[i].rc != 0)
		fail_msg("call %d: %s", i, k->replies[i].err.msg);
	assert_int_equal(cJSON_GetNumberValue(cJSON_GetObjectItem(k->replies[i].out, "n")), path);
}

/* A server that has to hear all of them before it answers the first. */
static void calls__made_together__are_all_under_way_at_once(void **state)
{
	struct server *s = start(CALLS, NULL);
	struct kube_client *c = client_of(s);
	struct calls k;

	for (int round = 0; round < 3; round++) {
		prepare(&k, 0, 0);
		assert_int_equal(kube_call_many(c, k.rqs, CALLS, k.replies), CALLS);
		for (int i = 0; i < CALLS; i++)
			assert_made(&k, i, i);
		fini(&k);
	}
	assert_int_equal(read_int(s, &s->most), CALLS);
	assert_int_equal(read_int(s, &s->accepted), CALLS); /* they are kept */
	assert_non_null(strstr(s->last, "\r\nAuthorization: Bearer the-token\r\n"));
	end(c, s);
}

static void call__that_goes_wrong_among_others__is_the_only_one(void **state)
{
	static const struct {
		struct script script;
		int rc, times; /* times: that it was asked for */
	} cases[] = {
	    {{{ANSWER("500 No", "")}}, -MU_UNAVAILABLE, 1},
	    {{{ANSWER("409 No", "")}}, -MU_ABORTED, 1},
	    {{{ANSWER("403 No", "")}}, -MU_PERMISSION_DENIED, 1},
	    {{{hang_up}}, -MU_UNAVAILABLE, 1},
	    {{{"HTTP/1.1 201 Made\r\nContent-Length: 9\r\n\r\n{", hang_up}},
	     -MU_DEADLINE_EXCEEDED,
	     1},
	    {{{nothing}}, -MU_DEADLINE_EXCEEDED, 1},
	    /* and these come to a good end */
	    {{{ANSWER("429 Later", "Retry-After: 1\r\n")}}, 0, 2},
	    {{{ANSWER("503 Later", "Retry-After: 1\r\n"),
	       ANSWER("429 Later", "Retry-After: 1\r\n")}},
	     0,
	     3},
	    {{{ANSWER("401 Who?", "")}}, 0, 2},
	    {{{ANSWER("401 Who?", ""), ANSWER("401 Who?", "")}}, -MU_UNAUTHENTICATED, 2},
	};

	for (unsigned n = 0; n < MU_COUNT(cases); n++) {
		struct script script[PATHS] = {0};
		struct kube_client *c;
		struct server *s;
		struct calls k;
		int at = (int)n % CALLS;

		script[at] = cases[n].script;
		s = start(CALLS, script);
		c = client_of(s);
		prepare(&k, 0, 1500);
		assert_int_equal(kube_call_many(c, k.rqs, CALLS, k.replies), CALLS);
		for (int i = 0; i < CALLS; i++)
			if (i != at || cases[n].rc == 0)
				assert_made(&k, i, i);
		assert_int_equal(k.replies[at].rc, cases[n].rc);
		assert_int_equal(read_int(s, &s->times[at]), cases[n].times);
		fini(&k);
		end(c, s);
	}
}

/* One Retry-After for all is waited for once, as their answers came together. */
static void calls__that_come_too_often__wait_together(void **state)
{
	struct script script[PATHS] = {0};
	double began = mu_clock();
	struct kube_client *c;
	struct server *s;
	struct calls k;

	for (int i = 0; i < CALLS; i++)
		script[i].says[0] = ANSWER("429 Later", "Retry-After: 2\r\n");
	s = start(CALLS, script);
	c = client_of(s);
	prepare(&k, 0, 0);
	assert_int_equal(kube_call_many(c, k.rqs, CALLS, k.replies), CALLS);
	assert_true(mu_clock() - began >= 2);
	assert_true(mu_clock() - began < 2 * CALLS);
	for (int i = 0; i < CALLS; i++)
		assert_made(&k, i, i);
	assert_int_equal(read_int(s, &s->heard), 2 * CALLS);
	fini(&k);
	end(c, s);
}

static void calls__on_connections_that_were_closed__are_made_again(void **state)
{
	struct server *s = start(CALLS, NULL);
	struct kube_client *c = client_of(s);
	struct calls k;

	for (int round = 0; round < 2; round++) {
		prepare(&k, 0, 0);
		assert_int_equal(kube_call_many(c, k.rqs, CALLS, k.replies), CALLS);
		for (int i = 0; i < CALLS; i++)
			assert_made(&k, i, i);
		fini(&k);
		cut(s);
		UNTIL(read_int(s, &s->ended) == read_int(s, &s->accepted));
	}
	/* a connection of the second round may carry several calls */
	assert_in_range(read_int(s, &s->accepted), CALLS + 1, 2 * CALLS);
	end(c, s);
}

struct thread {
	struct kube_client *client;
	struct calls calls;
	int from;
	pthread_t thread;
};

static void *make_all(void *arg)
{
	struct thread *t = arg;

	prepare(&t->calls, t->from, 0);
	for (unsigned n = 0; n < MANY;)
		n += kube_call_many(t->client, t->calls.rqs + n, MANY - n, t->calls.replies + n);
	return NULL;
}

/* Each thread has one, and ahead of those are 8 of all at most, 7 of a thread's own. */
static void calls_of_many_threads__are_bounded(void **state)
{
	enum { THREADS = 8, AHEAD = 8, TOGETHER = 8 };
	struct thread t[THREADS] = {0};
	struct server *s = start(0, NULL);
	struct kube_client *c = client_of(s);
	struct calls k;

	prepare(&k, 0, 0);
	assert_int_equal(kube_call_many(c, k.rqs, MANY, k.replies), TOGETHER);
	for (int i = 0; i < TOGETHER; i++)
		assert_made(&k, i, i);
	fini(&k);
	pthread_mutex_lock(&s->lock);
	s->hold = s->heard + THREADS + AHEAD; /* none is answered before so many are there */
	pthread_mutex_unlock(&s->lock);
	for (int i = 0; i < THREADS; i++) {
		t[i].client = c;
		t[i].from = i;
		pthread_create(&t[i].thread, NULL, make_all, &t[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(t[i].thread, NULL);
		for (int j = 0; j < MANY; j++)
			assert_made(&t[i].calls, j, i + j);
		fini(&t[i].calls);
	}
	assert_int_equal(read_int(s, &s->most), THREADS + AHEAD);
	end(c, s);
}

struct permission {
	int left, asked;
};

static bool may(void *arg)
{
	struct permission *p = arg;

	p->asked++;
	return p->left-- > 0;
}

/* Also what was sent once already, and has to be sent again. */
static void call__that_may_not_be_sent__is_not(void **state)
{
	struct script script[PATHS] = {[1] = {{ANSWER("429 Later", "Retry-After: 1\r\n")}}};
	struct permission p = {.left = 3};
	struct server *s = start(3, script);
	struct kube_client *c = client_of(s);
	struct calls k;

	prepare(&k, 0, 0);
	for (int i = 0; i < CALLS; i++) {
		k.rqs[i].may = may;
		k.rqs[i].arg = &p;
	}
	assert_int_equal(kube_call_many(c, k.rqs, CALLS, k.replies), CALLS);
	assert_made(&k, 0, 0);
	assert_int_equal(k.replies[1].rc, -MU_CANCELLED);
	assert_made(&k, 2, 2);
	for (int i = 3; i < CALLS; i++)
		assert_int_equal(k.replies[i].rc, -MU_CANCELLED);
	assert_int_equal(p.asked, CALLS + 1);
	assert_int_equal(read_int(s, &s->heard), 3);
	fini(&k);
	end(c, s);
}

static void *make_six(void *arg)
{
	struct thread *t = arg;

	prepare(&t->calls, 0, 60000);
	assert_int_equal(kube_call_many(t->client, t->calls.rqs, CALLS, t->calls.replies), CALLS);
	return NULL;
}

static void calls__under_way__end_when_the_client_is_stopped(void **state)
{
	struct server *s = start(CALLS + 1, NULL); /* which never comes */
	struct thread t = {.client = client_of(s)};

	pthread_create(&t.thread, NULL, make_six, &t);
	UNTIL(read_int(s, &s->heard) == CALLS);
	kube_client_stop(t.client);
	pthread_join(t.thread, NULL);
	for (int i = 0; i < CALLS; i++)
		assert_int_equal(t.calls.replies[i].rc, -MU_CANCELLED);
	end(t.client, s);
}

/* A server that says nothing is waited for once, not once for each. */
static void calls__without_an_answer__end_in_time(void **state)
{
	struct server *s = start(CALLS + 1, NULL);
	struct kube_client *c = client_of(s);
	double began = mu_clock();
	struct calls k;

	prepare(&k, 0, 3000);
	assert_int_equal(kube_call_many(c, k.rqs, CALLS, k.replies), CALLS);
	for (int i = 0; i < CALLS; i++)
		assert_int_equal(k.replies[i].rc, -MU_DEADLINE_EXCEEDED);
	assert_true(mu_clock() - began >= 3);
	assert_true(mu_clock() - began < 3 * CALLS);
	end(c, s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(calls__made_together__are_all_under_way_at_once),
	    cmocka_unit_test(call__that_goes_wrong_among_others__is_the_only_one),
	    cmocka_unit_test(calls__that_come_too_often__wait_together),
	    cmocka_unit_test(calls__on_connections_that_were_closed__are_made_again),
	    cmocka_unit_test(calls_of_many_threads__are_bounded),
	    cmocka_unit_test(call__that_may_not_be_sent__is_not),
	    cmocka_unit_test(calls__under_way__end_when_the_client_is_stopped),
	    cmocka_unit_test(calls__without_an_answer__end_in_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
