/* SPDX-License-Identifier: Apache-2.0 */
/* A C client that only requests steps, so that the time is that of the server and the RPC. It runs
 * one RunStep at a time on each of its channels.
 *
 * 	raw_client HOST PORT GRAPH INIT FETCH TARGET CONNECTIONS SECONDS
 *
 * GRAPH is a file with a GraphDef; INIT, FETCH and TARGET are names, or "-" for none. Prints one
 * line of JSON. With 0 SECONDS it runs one step and measures nothing.
 *
 * With several connections a TensorFlow server answers about one of ten thousand steps with
 * ABORTED: "The same RunGraph (Worker) request was received twice". Such a step is counted, and the
 * next one is requested.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/pb.h"
#include "task/rpc/channel.h"

enum {
	MAX_CONNS = 64,
	WARMUP_STEPS = 200,
	MAX_TIMES = 4 << 20,
	MAX_GRAPH = 1 << 20,
	CALL_MS = 60000
};

static const char create_session_path[] = "/tensorflow.MasterService/CreateSession";
static const char run_step_path[] = "/tensorflow.MasterService/RunStep";

static const char *host = "?", *port = "?"; /* for error messages */

struct conn {
	struct rpc_channel *ch;
	double since;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the variables below */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct rpc_message request;
static double *times, end;
static size_t done, aborted;
static unsigned running;

static void __attribute__((format(printf, 1, 2), noreturn)) die(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "raw_client: %s:%s: ", host, port);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	_exit(1);
}

static void call(struct conn *c, const char *method, struct mu_span message, struct mu_buf *reply)
{
	struct rpc_message m = {.head = message};
	struct mu_err err;

	if (rpc_call(c->ch, method, &m, CALL_MS, RPC_WAIT_SHORT, reply, &err))
		die("%s", err.msg);
}

static void create_session(struct conn *c, const char *graph, char *handle, size_t size)
{
	MU_AUTO_BUF def = {0}, bytes = {0}, reply = {0};
	struct mu_pb_field f;
	struct mu_err err;
	struct mu_pb m;

	if (mu_buf_read_file(&def, graph, MAX_GRAPH, &err))
		die("%s", err.msg);
	mu_pb_put_bytes(&bytes, 1, mu_buf_span(&def));
	call(c, create_session_path, mu_buf_span(&bytes), &reply);
	m = mu_pb_of(mu_buf_span(&reply));
	*handle = 0;
	while (mu_pb_next(&m, &f))
		if (f.number == 1)
			snprintf(handle, size, "%.*s", (int)f.bytes.len, f.bytes.data);
	if (!*handle)
		die("no session came back");
}

static void run_step(struct mu_buf *b, const char *handle, const char *fetch, const char *target)
{
	mu_buf_clear(b);
	mu_pb_put_str(b, 1, handle);
	if (strcmp(fetch, "-") != 0)
		mu_pb_put_str(b, 3, fetch);
	if (strcmp(target, "-") != 0)
		mu_pb_put_str(b, 4, target);
}

static void answered(void *arg, const struct mu_err *err, struct rpc_bytes *reply);

static void start_step(struct conn *c)
{
	struct mu_err err;

	c->since = mu_clock();
	if (!rpc_start(c->ch, run_step_path, &request, CALL_MS, 0, answered, c, &err))
		die("%s", err.msg);
}

static void answered(void *arg, const struct mu_err *err, struct rpc_bytes *reply)
{
	struct conn *c = arg;
	double now = mu_clock();
	bool again;

	if (err && err->code != MU_ABORTED)
		die("%s", err->msg);
	pthread_mutex_lock(&lock);
	if (err)
		aborted++;
	else
		times[done++] = now - c->since;
	again = now < end && done < MAX_TIMES - MAX_CONNS;
	if (!again && --running == 0)
		pthread_cond_signal(&changed);
	pthread_mutex_unlock(&lock);
	if (again)
		start_step(c);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure(struct conn *c, unsigned n, double seconds)
{
	double start;

	for (int i = 0; i < (seconds > 0 ? WARMUP_STEPS : 1); i++)
		call(&c[0], run_step_path, request.head, NULL);
	if (seconds <= 0)
		return;
	for (unsigned i = 1; i < n; i++)
		call(&c[i], run_step_path, request.head, NULL);
	times = MU_NEW_ARRAY(double, MAX_TIMES);
	start = mu_clock();
	end = start + seconds;
	running = n;
	for (unsigned i = 0; i < n; i++)
		start_step(&c[i]);
	pthread_mutex_lock(&lock);
	while (running > 0)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	end = mu_clock();
	if (done == 0)
		die("no step came to its end");
	qsort(times, done, sizeof(*times), by_size);
	printf("{\"p50_us\": %.1f, \"p99_us\": %.1f, \"per_s\": %.0f, \"aborted\": %zu}\n",
	       times[done / 2] * 1e6, times[done * 99 / 100] * 1e6, (double)done / (end - start),
	       aborted);
	free(times);
}

int main(int argc, char **argv)
{
	static struct conn conns[MAX_CONNS];
	MU_AUTO_FREE char *target = NULL;
	MU_AUTO_BUF bytes = {0};
	char handle[256];
	struct mu_err err;
	unsigned n;

	if (argc != 9)
		die("HOST PORT GRAPH INIT FETCH TARGET CONNECTIONS SECONDS are meant");
	host = argv[1];
	port = argv[2];
	n = (unsigned)atoi(argv[7]);
	if (n < 1 || n > MAX_CONNS)
		die("CONNECTIONS is 1 to %d", MAX_CONNS);
	target = mu_xasprintf("%s:%s", host, port);
	for (unsigned i = 0; i < n; i++)
		if (rpc_channel_open(target, &conns[i].ch, &err))
			die("%s", err.msg);
	create_session(&conns[0], argv[3], handle, sizeof(handle));
	if (strcmp(argv[4], "-") != 0) {
		run_step(&bytes, handle, "-", argv[4]);
		call(&conns[0], run_step_path, mu_buf_span(&bytes), NULL);
	}
	run_step(&bytes, handle, argv[5], argv[6]);
	request.head = mu_buf_span(&bytes);
	measure(conns, n, atof(argv[8]));
	for (unsigned i = 0; i < n; i++)
		rpc_channel_close(conns[i].ch);
	return 0;
}
