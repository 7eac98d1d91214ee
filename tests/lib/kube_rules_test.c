/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for clients of an API server: wait for Retry-After, repeat a call with a renewed token,
 * watch with bookmarks from their version, and list again when the history is gone. */
#include "tests/test.h"
#include "tests/wait.h"

#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/kube/kube_stream.h"

enum { MAX_REQUESTS = 16, REQUEST = 4096 };

/* Answers each request on a separate connection. The last answer repeats. */
struct server {
	const char *const *answers;
	void (*before)(int nth); /* (optional) called before each answer */
	char asked[MAX_REQUESTS][REQUEST];
	double at[MAX_REQUESTS];
	_Atomic int n;
	_Atomic bool done;
	int fd, port;
	pthread_t thread;
};

static void *serve(void *arg)
{
	struct server *s = arg;
	int fd;

	while (!s->done && (fd = accept(s->fd, NULL, NULL)) >= 0) {
		int nth = s->n < MAX_REQUESTS ? s->n : MAX_REQUESTS - 1, last = 0;
		ssize_t n = read(fd, s->asked[nth], REQUEST - 1);

		if (n > 0) {
			s->asked[nth][n] = 0;
			s->at[nth] = mu_clock();
			while (last < nth && s->answers[last + 1])
				last++;
			if (s->before)
				s->before(nth);
			s->n++;
			if (send(fd, s->answers[last], strlen(s->answers[last]), MSG_NOSIGNAL) < 0)
				print_message("the client did not read the answer\n");
		}
		close(fd);
	}
	return NULL;
}

static void start(struct server *s, const char *const *answers)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t n = sizeof(a);

	memset(s, 0, sizeof(*s));
	s->answers = answers;
	s->fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(s->fd, (struct sockaddr *)&a, n), 0);
	assert_int_equal(listen(s->fd, 8), 0);
	assert_int_equal(getsockname(s->fd, (struct sockaddr *)&a, &n), 0);
	s->port = ntohs(a.sin_port);
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void stop(struct server *s)
{
	s->done = true;
	shutdown(s->fd, SHUT_RDWR);
	pthread_join(s->thread, NULL);
	close(s->fd);
}

static struct kube_client *client_of(const struct server *s, const char *token_file)
{
	struct kube_config k = {.server = mu_xasprintf("http://127.0.0.1:%d", s->port),
				.token_file = token_file ? mu_xstrdup(token_file) : NULL};
	struct kube_client *c;

	assert_int_equal(kube_client_new(&c, &k, NULL), 0);
	return c;
}

static int get(struct kube_client *c, struct mu_err *err)
{
	cJSON *out = NULL;
	int rc = kube_call(c, &(struct kube_request){.method = "GET", .path = "/x"}, &out, err);

	cJSON_Delete(out);
	return rc;
}

#define ANSWER(status, more, body)                                                                 \
	"HTTP/1.1 " status "\r\nConnection: close\r\nContent-Type: application/json\r\n" more      \
	"\r\n" body
#define GOOD ANSWER("200 OK", "Content-Length: 2\r\n", "{}")
#define BARE "Content-Length: 0\r\n"

static void call__answered_with_429__waits_for_retry_after(void **state)
{
	static const struct {
		const char *first;
		double min_wait_s; /* seconds before the retry; < 0: no retry */
		enum mu_code code;
	} cases[] = {
	    {ANSWER("429 Too Many Requests", "Retry-After: 1\r\n" BARE, ""), 1, MU_OK},
	    {ANSWER("429 Too Many Requests", BARE, ""), 0.4, MU_OK},
	    {ANSWER("503 Unavailable", "Retry-After: 1\r\n" BARE, ""), 1, MU_OK},
	    {ANSWER("503 Unavailable", BARE, ""), -1, MU_UNAVAILABLE},
	    {ANSWER("504 Timeout", BARE, ""), -1, MU_UNAVAILABLE},
	    {ANSWER("403 Forbidden", "Retry-After: 1\r\n" BARE, ""), -1, MU_PERMISSION_DENIED},
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		const char *const answers[] = {cases[i].first, GOOD, NULL};
		struct mu_err err = {0};
		struct kube_client *c;
		struct server s;

		start(&s, answers);
		c = client_of(&s, NULL);
		assert_int_equal(get(c, &err), -(int)cases[i].code);
		assert_int_equal(s.n, cases[i].min_wait_s < 0 ? 1 : 2);
		if (cases[i].min_wait_s >= 0)
			assert_true(s.at[1] - s.at[0] >= cases[i].min_wait_s);
		kube_client_free(c);
		stop(&s);
	}
}

static bool may_once(void *asked)
{
	return (*(int *)asked)++ == 0;
}

/* may_send() is also asked before a retry. */
static void call__refused_by_may_send__is_not_sent(void **state)
{
	static const char *const answers[] = {
	    ANSWER("429 Too Many Requests", "Retry-After: 1\r\n" BARE, ""), GOOD, NULL};
	struct mu_err err = {0};
	struct kube_client *c;
	struct server s;
	int asked = 0;
	const struct kube_request rq = {
	    .method = "GET", .path = "/x", .may_send = may_once, .arg = &asked};

	start(&s, answers);
	c = client_of(&s, NULL);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(kube_call(c, &rq, NULL, &err), -MU_CANCELLED);
		assert_int_equal(s.n, 1);
	}
	assert_int_equal(asked, 3);
	kube_client_free(c);
	stop(&s);
}

#define STATUS(status, length, message)                                                            \
	ANSWER(status, "Content-Length: " length "\r\n",                                           \
	       "{\"kind\":\"Status\",\"message\":\"" message "\"}")

static void object__rejected_by_etcd__is_an_invalid_argument(void **state)
{
	static const struct {
		const char *answer;
		enum mu_code code;
	} cases[] = {
	    {STATUS("500 Error", "62", "etcdserver: request is too large"), MU_INVALID_ARGUMENT},
	    {STATUS("500 Error", "133",
		    "rpc error: code = ResourceExhausted desc = trying to send message larger than "
		    "max (3000000 vs. 2097152)"),
	     MU_INVALID_ARGUMENT},
	    {STATUS("413 Too Large", "72", "Request entity too large: limit is 3145728"),
	     MU_INVALID_ARGUMENT},
	    {STATUS("500 Error", "59", "etcdserver: request timed out"), MU_UNAVAILABLE},
	    {STATUS("500 Error", "99",
		    "Internal error occurred: failed calling webhook x: connection refused"),
	     MU_PERMISSION_DENIED},
	    {STATUS("500 Error", "104",
		    "Internal error occurred: add operation does not apply: doc is missing path"),
	     MU_PERMISSION_DENIED},
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		const char *const answers[] = {cases[i].answer, NULL};
		struct mu_err err = {0};
		struct kube_client *c;
		struct server s;

		start(&s, answers);
		c = client_of(&s, NULL);
		assert_int_equal(get(c, &err), -(int)cases[i].code);
		assert_non_null(strstr(err.msg, "("));
		assert_int_equal(s.n, 1);
		kube_client_free(c);
		stop(&s);
	}
}

static char token_path[] = "/tmp/kube_rules.XXXXXX";

static void write_token(const char *text)
{
	FILE *f = fopen(token_path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* Renews the token file as the kubelet does, before the first answer. */
static void renew(int nth)
{
	if (nth == 0)
		write_token("the-second\n");
}

static void token__rejected__is_read_again_once(void **state)
{
	static const char *const answers[] = {ANSWER("401 Unauthorized", BARE, ""), GOOD, NULL};
	static const char *const rejections[] = {ANSWER("401 Unauthorized", BARE, ""), NULL};
	struct mu_err err = {0};
	struct kube_client *c;
	struct server s;
	int fd = mkstemp(token_path);

	assert_true(fd >= 0);
	close(fd);
	write_token("the-first\n");
	start(&s, answers);
	s.before = renew;
	c = client_of(&s, token_path);
	assert_int_equal(get(c, &err), 0);
	assert_int_equal(s.n, 2);
	assert_non_null(strstr(s.asked[0], "\r\nAuthorization: Bearer the-first\r\n"));
	assert_non_null(strstr(s.asked[1], "\r\nAuthorization: Bearer the-second\r\n"));
	kube_client_free(c);
	stop(&s);
	start(&s, rejections);
	c = client_of(&s, token_path);
	assert_int_equal(get(c, &err), -MU_UNAUTHENTICATED);
	assert_int_equal(s.n, 2);
	kube_client_free(c);
	stop(&s);
	unlink(token_path);
}

/* ---- watch ---- */

static void ignore(void *arg)
{
}

static void ignore_object(void *arg, const cJSON *object)
{
}

static void count_begin(void *n)
{
	++*(int *)n;
}

static long number_after(const char *text, const char *what)
{
	const char *at = strstr(text, what);

	return at ? strtol(at + strlen(what), NULL, 10) : -1;
}

#define BODY(text) ANSWER("200 OK", "", text)
#define LIST       BODY("{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[]}")
#define MARK(rv)                                                                                   \
	BODY("{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"" rv "\"}}}"  \
	     "\n")
#define FAULT ANSWER("504 Gateway Timeout", BARE, "")
#define GONE                                                                                       \
	BODY("{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"message\":"       \
	     "\"old\"}}\n")

static void watch__interrupted__resumes_from_its_bookmark_or_lists(void **state)
{
	/* the second list is older than the last watch event, so the reflector lists once more */
	static const char *const answers[] = {LIST, MARK("6"), MARK("9"), GONE,  LIST,
					      LIST, MARK("6"), FAULT,     FAULT, FAULT,
					      LIST, LIST,      MARK("8"), NULL};
	static const struct {
		int nth;
		const char *from; /* NULL: a list request */
	} asked[] = {{0, NULL}, {1, "5"}, {2, "6"}, {3, "9"},   {4, NULL},  {5, NULL}, {6, "5"},
		     {7, "6"},  {8, "6"}, {9, "6"}, {10, NULL}, {11, NULL}, {12, "5"}};
	int n_lists = 0;
	struct kube_reflector r = {.name = "things",
				   .path = "/things",
				   .arg = &n_lists,
				   .list_begin = count_begin,
				   .on_upsert = ignore_object,
				   .on_delete = ignore_object,
				   .list_end = ignore};
	long first = 0;
	bool is_randomized = false;
	pthread_t thread;
	struct server s;

	start(&s, answers);
	r.client = client_of(&s, NULL);
	assert_int_equal(pthread_create(&thread, NULL, kube_reflector_run, &r), 0);
	WAIT_UNTIL(s.n >= 13);
	kube_client_stop(r.client);
	pthread_join(thread, NULL);
	stop(&s);
	for (unsigned i = 0; i < MU_COUNT(asked); i++) {
		const char *text = s.asked[asked[i].nth];
		MU_AUTO_FREE char *from = mu_xasprintf("resourceVersion=%s ", asked[i].from);
		long seconds = number_after(text, "timeoutSeconds=");

		if (!asked[i].from) {
			assert_non_null(strstr(text, "GET /things?limit=250 "));
			continue;
		}
		assert_non_null(strstr(text, "watch=1&allowWatchBookmarks=true"));
		if (!strstr(text, from))
			fail_msg("request %d is not from %s: %.200s", asked[i].nth, asked[i].from,
				 text);
		assert_in_range(seconds, 300, 599);
		is_randomized = is_randomized || (first && seconds != first);
		first = seconds;
	}
	assert_int_equal(n_lists, 7); /* five lists, and all known objects were dropped twice */
	assert_true(is_randomized);   /* random timeouts keep watchers from reconnecting at once */
	kube_client_free(r.client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(call__answered_with_429__waits_for_retry_after),
	    cmocka_unit_test(call__refused_by_may_send__is_not_sent),
	    cmocka_unit_test(object__rejected_by_etcd__is_an_invalid_argument),
	    cmocka_unit_test(token__rejected__is_read_again_once),
	    cmocka_unit_test(watch__interrupted__resumes_from_its_bookmark_or_lists),
	};

	signal(SIGPIPE, SIG_IGN);
	mu_log_set_level(MU_ERROR + 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
