/* SPDX-License-Identifier: Apache-2.0 */
/* A client that costs almost nothing, so that a step's time is the server's: RunStep over plain
 * HTTP/2 with fixed headers, one request at a time on each of its connections.
 *
 *   raw_client HOST PORT GRAPH INIT FETCH TARGET CONNECTIONS SECONDS
 *
 * GRAPH is a file with a GraphDef, at most some kilobytes; INIT, FETCH and TARGET are names, or "-"
 * for none.  Prints one line of JSON; with 0 SECONDS it asks for one step and measures nothing.
 *
 * Stock's servers answer one of some ten thousand such steps with ABORTED when several connections
 * ask at once: "The same RunGraph (Worker) request was received twice".  Such a step is counted,
 * and the next one asked for.
 *
 * What else goes wrong is told as it came, with the server's address: who looks at a benchmark that
 * failed has only these words. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/pb.h"
#include "task/rpc/h2/frame.h"
#include "task/rpc/h2/hpack.h"

enum {
	MOST = 64,
	WARM = 200,
	MOST_TIMES = 4 << 20,
	LONGEST = 16000,
	ENOUGH = 1 << 24,
	PATIENCE_SECONDS = 60
};

struct conn {
	int fd;
	uint32_t stream, consumed;
	struct mu_buf in, message; /* bytes that are no whole frame yet; the answer so far */
	struct hpack hpack;
	struct mu_buf status, text; /* the answer's, when they have come */
	double since;
};

static const char *host = "?", *port = "?"; /* for what is told */

static void __attribute__((format(printf, 1, 2), noreturn)) die(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "raw_client: %s:%s: ", host, port);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

static void frame(struct mu_buf *b, uint8_t type, uint8_t flags, uint32_t stream, const void *p,
		  size_t n)
{
	char head[H2_HEADER];

	h2_frame_put(head, (uint32_t)n, type, flags, stream);
	mu_buf_put(b, head, sizeof(head));
	mu_buf_put(b, p, n);
}

static void put(struct conn *c, const struct mu_buf *b)
{
	for (size_t at = 0; at < b->len;) {
		ssize_t n = send(c->fd, b->data + at, b->len - at, MSG_NOSIGNAL);

		if (n < 0 && errno != EINTR)
			die("cannot send on stream %u: %s", c->stream, strerror(errno));
		at += n > 0 ? (size_t)n : 0;
	}
}

static void number(struct mu_buf *b, uint8_t type, uint32_t n)
{
	char bytes[4];

	h2_put32(bytes, n);
	frame(b, type, 0, 0, bytes, 4);
}

static void open_conn(struct conn *c, const struct sockaddr_in *to)
{
	MU_AUTO_BUF b = {0};
	struct timeval patience = {.tv_sec = PATIENCE_SECONDS};
	int one = 1;

	c->fd = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (c->fd < 0 || connect(c->fd, (const struct sockaddr *)to, sizeof(*to)))
		die("cannot connect: %s", strerror(errno));
	hpack_init(&c->hpack);
	mu_buf_puts(&b, H2_PREFACE);
	frame(&b, H2_SETTINGS, 0, 0, "\0\4\x7f\xff\xff\xff", 6); /* streams: any number of bytes */
	number(&b, H2_WINDOW_UPDATE, 2 * ENOUGH);
	put(c, &b);
	c->stream = UINT32_MAX; /* the next one is 1 */
}

static void literal(struct mu_buf *b, const char *name, const char *value)
{
	mu_buf_putc(b, 0);
	mu_buf_putc(b, (char)strlen(name));
	mu_buf_puts(b, name);
	mu_buf_putc(b, (char)strlen(value));
	mu_buf_puts(b, value);
}

static void ask(struct conn *c, const char *method, struct mu_span message)
{
	MU_AUTO_BUF fields = {0}, body = {0}, all = {0};
	char prefix[5] = {0};

	if (message.len > LONGEST)
		die("a request does not fit one frame");
	c->stream += 2;
	mu_buf_put(&fields, "\x83\x86", 2);
	literal(&fields, ":path", method);
	literal(&fields, ":authority", "localhost");
	literal(&fields, "te", "trailers");
	literal(&fields, "content-type", "application/grpc");
	h2_put32(prefix + 1, (uint32_t)message.len);
	mu_buf_put(&body, prefix, 5);
	mu_buf_put(&body, message.data, message.len);
	frame(&all, H2_HEADERS, H2_END_HEADERS, c->stream, fields.data, fields.len);
	frame(&all, H2_DATA, H2_END_STREAM, c->stream, body.data, body.len);
	mu_buf_clear(&c->message);
	mu_buf_clear(&c->status);
	mu_buf_clear(&c->text);
	c->since = mu_clock();
	put(c, &all);
}

static void on_field(void *arg, struct mu_span name, struct mu_span value)
{
	struct conn *c = arg;
	struct mu_buf *to = mu_span_is(name, "grpc-status")    ? &c->status
			    : mu_span_is(name, "grpc-message") ? &c->text
							       : NULL;

	if (to)
		mu_buf_put(to, value.data, value.len);
}

static void read_headers(struct conn *c, const struct h2_frame *f, const char *p)
{
	struct mu_err err;

	/* neither is sent to a client that asks for nothing unusual */
	if (!(f->flags & H2_END_HEADERS) || f->flags & (H2_PADDED | H2_HAS_PRIORITY))
		die("HEADERS of stream %u with flags %#x", f->stream, f->flags);
	if (hpack_read(&c->hpack, (struct mu_span){p, f->len}, on_field, c, &err))
		die("HEADERS of stream %u: %s", f->stream, err.msg);
}

static bool is_aborted(const struct conn *c)
{
	return c->status.len == 2 && !memcmp(c->status.data, "10", 2);
}

static void must_be_good(const struct conn *c)
{
	if (c->status.len != 1 || *c->status.data != '0')
		die("stream %u was answered with status %.*s: %.*s", c->stream, (int)c->status.len,
		    c->status.len ? c->status.data : "", (int)c->text.len,
		    c->text.len ? c->text.data : "");
	if (c->message.len < 5)
		die("stream %u was answered with %zu bytes and no error", c->stream,
		    c->message.len);
}

/* True when the answer is whole. */
static bool on_frame(struct conn *c, const struct h2_frame *f, const char *p)
{
	MU_AUTO_BUF back = {0};

	if (f->type == H2_RST_STREAM && f->len == 4)
		die("stream %u of %u was reset with code %u", f->stream, c->stream, h2_get32(p));
	if (f->type == H2_GOAWAY && f->len >= 8)
		die("GOAWAY at stream %u, last %u, code %u: %.*s", c->stream, h2_get32(p),
		    h2_get32(p + 4), (int)f->len - 8, p + 8);
	if (f->type == H2_HEADERS)
		read_headers(c, f, p);
	if ((f->type == H2_SETTINGS || f->type == H2_PING) && !(f->flags & H2_ACK))
		frame(&back, f->type, H2_ACK, 0, p, f->type == H2_PING ? f->len : 0);
	if (f->type == H2_DATA) {
		mu_buf_put(&c->message, p, f->len);
		c->consumed += f->len;
	}
	if (c->consumed > ENOUGH) {
		number(&back, H2_WINDOW_UPDATE, c->consumed);
		c->consumed = 0;
	}
	if (back.len)
		put(c, &back);
	if (f->stream != c->stream || f->type > H2_HEADERS || !(f->flags & H2_END_STREAM))
		return false;
	return true;
}

/* Reads what there is; true when it had the end of the answer. */
static bool take(struct conn *c)
{
	bool whole = false;
	size_t at = 0;
	ssize_t n;

	mu_buf_reserve(&c->in, 1 << 16);
	n = recv(c->fd, c->in.data + c->in.len, 1 << 16, 0);
	if (n < 0 && errno == EINTR)
		return false;
	if (n <= 0)
		die("stream %u: %s, with %zu bytes of a frame", c->stream,
		    n == 0            ? "the server closed the connection"
		    : errno == EAGAIN ? "nothing came for a minute"
				      : strerror(errno),
		    c->in.len);
	c->in.len += (size_t)n;
	while (c->in.len - at >= H2_HEADER) {
		struct h2_frame f = h2_frame_get(c->in.data + at);

		if (c->in.len - at < H2_HEADER + f.len)
			break;
		whole |= on_frame(c, &f, c->in.data + at + H2_HEADER);
		at += H2_HEADER + f.len;
	}
	memmove(c->in.data, c->in.data + at, c->in.len - at);
	c->in.len -= at;
	return whole;
}

static void call(struct conn *c, const char *method, struct mu_span message)
{
	ask(c, method, message);
	while (!take(c))
		;
	must_be_good(c);
}

static void create_session(struct conn *c, const char *graph, char *handle, size_t size)
{
	MU_AUTO_BUF def = {0}, request = {0};
	struct mu_pb_field f;
	struct mu_err err;
	struct mu_pb m;

	if (mu_buf_read_file(&def, graph, LONGEST, &err))
		die("%s", err.msg);
	mu_pb_put_bytes(&request, 1, mu_buf_span(&def));
	call(c, "/tensorflow.MasterService/CreateSession", mu_buf_span(&request));
	m = mu_pb_of((struct mu_span){c->message.data + 5, c->message.len - 5});
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

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure(struct conn *c, unsigned n, struct mu_span request, double seconds)
{
	static const char method[] = "/tensorflow.MasterService/RunStep";
	double *times, start, end;
	struct pollfd wait[MOST];
	size_t done = 0, aborted = 0;

	call(&c[0], method, request);
	if (seconds <= 0)
		return;
	for (int i = 0; i < WARM; i++)
		call(&c[0], method, request);
	times = MU_NEW_ARRAY(double, MOST_TIMES);
	start = mu_clock();
	end = start + seconds;
	for (unsigned i = 0; i < n; i++) {
		ask(&c[i], method, request);
		wait[i] = (struct pollfd){.fd = c[i].fd, .events = POLLIN};
	}
	while (mu_clock() < end && done < MOST_TIMES - MOST) {
		if (n > 1)
			poll(wait, n, 1000);
		for (unsigned i = 0; i < n; i++) {
			if ((n > 1 && !wait[i].revents) || !take(&c[i]))
				continue;
			if (is_aborted(&c[i])) {
				aborted++;
			} else {
				must_be_good(&c[i]);
				times[done++] = mu_clock() - c[i].since;
			}
			ask(&c[i], method, request);
		}
	}
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
	struct sockaddr_in to = {.sin_family = AF_INET};
	static struct conn conns[MOST];
	MU_AUTO_BUF request = {0};
	char handle[256];
	unsigned n;

	if (argc != 9)
		die("HOST PORT GRAPH INIT FETCH TARGET CONNECTIONS SECONDS are meant");
	host = argv[1];
	port = argv[2];
	n = (unsigned)atoi(argv[7]);
	to.sin_port = htons((uint16_t)atoi(port));
	if (inet_pton(AF_INET, host, &to.sin_addr) != 1 || n < 1 || n > MOST)
		die("HOST is an IPv4 address, CONNECTIONS at most 64");
	for (unsigned i = 0; i < n; i++)
		open_conn(&conns[i], &to);
	create_session(&conns[0], argv[3], handle, sizeof(handle));
	if (strcmp(argv[4], "-") != 0) {
		run_step(&request, handle, "-", argv[4]);
		call(&conns[0], "/tensorflow.MasterService/RunStep", mu_buf_span(&request));
	}
	run_step(&request, handle, argv[5], argv[6]);
	measure(conns, n, mu_buf_span(&request), atof(argv[8]));
	return 0;
}
