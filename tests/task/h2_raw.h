/* SPDX-License-Identifier: Apache-2.0 */
/* A client of the HTTP/2 server that writes its bytes by hand.  Included by tests, each of which is
 * one program and says which methods its server has. */
#ifndef TESTS_TASK_H2_RAW_H
#define TESTS_TASK_H2_RAW_H

#include "tests/test.h"
#include "tests/wait.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "task/rpc/h2/frame.h"
#include "task/rpc/h2/hpack.h"
#include "task/rpc/server.h"

struct fixture {
	struct rpc_server *server;
	int fd, port;
	struct hpack hpack;
	struct mu_buf out; /* what is to be sent */
	/* the last answer */
	char status[8], text[128], type[32];
	struct mu_buf body;
	unsigned data_frames, resets, went_away; /* the last two: codes and one more */
};

static inline void frame(struct fixture *f, uint8_t type, uint8_t flags, uint32_t stream,
			 const void *p, size_t n)
{
	char head[H2_HEADER];

	h2_frame_put(head, (uint32_t)n, type, flags, stream);
	mu_buf_put(&f->out, head, sizeof(head));
	mu_buf_put(&f->out, p, n);
}

static inline void field(struct mu_buf *b, const char *name, const char *value)
{
	mu_buf_putc(b, 0);
	mu_buf_putc(b, (char)strlen(name));
	mu_buf_puts(b, name);
	mu_buf_putc(b, (char)strlen(value));
	mu_buf_puts(b, value);
}

static inline void request_fields(struct mu_buf *b, const char *path)
{
	mu_buf_put(b, "\x83\x86", 2); /* POST, http */
	field(b, ":path", path);
	field(b, "content-type", "application/grpc");
	field(b, "te", "trailers");
}

static inline void headers(struct fixture *f, uint32_t stream, const char *path)
{
	MU_AUTO_BUF b = {0};

	request_fields(&b, path);
	frame(f, H2_HEADERS, H2_END_HEADERS, stream, b.data, b.len);
}

static inline void message(struct fixture *f, uint32_t stream, const char *text)
{
	MU_AUTO_BUF b = {0};
	char prefix[5] = {0};

	h2_put32(prefix + 1, (uint32_t)strlen(text));
	mu_buf_put(&b, prefix, 5);
	mu_buf_puts(&b, text);
	frame(f, H2_DATA, H2_END_STREAM, stream, b.data, b.len);
}

static inline void call(struct fixture *f, uint32_t stream, const char *path, const char *text)
{
	headers(f, stream, path);
	message(f, stream, text);
}

static inline void flush(struct fixture *f)
{
	assert_int_equal(send(f->fd, f->out.data, f->out.len, MSG_NOSIGNAL), f->out.len);
	mu_buf_clear(&f->out);
}

/* False when the server has closed the connection. */
static inline bool get(struct fixture *f, void *p, size_t n)
{
	for (char *at = p; n > 0;) {
		struct pollfd w = {.fd = f->fd, .events = POLLIN};
		ssize_t k;

		assert_int_equal(poll(&w, 1, PATIENCE_SECONDS * 1000),
				 1); /* a server that says nothing fails */
		k = recv(f->fd, at, n, 0);
		if (k <= 0)
			return false;
		at += k;
		n -= (size_t)k;
	}
	return true;
}

static inline void on_field(void *arg, struct mu_span name, struct mu_span value)
{
	struct fixture *f = arg;
	char *to = mu_span_is(name, "grpc-status")    ? f->status
		   : mu_span_is(name, "grpc-message") ? f->text
		   : mu_span_is(name, "content-type") ? f->type
						      : NULL;

	if (to) {
		memcpy(to, value.data, value.len);
		to[value.len] = 0;
	}
}

/* Frames until one of `type` has come, or the connection's end. */
static inline bool await(struct fixture *f, uint8_t type, uint8_t flags, uint32_t stream)
{
	static char p[H2_LARGEST_FRAME];
	char head[H2_HEADER];

	while (get(f, head, sizeof(head))) {
		struct h2_frame h = h2_frame_get(head);
		struct mu_err err;

		if (!get(f, p, h.len))
			return false;
		if (h.type == H2_HEADERS)
			assert_ok(
			    hpack_read(&f->hpack, (struct mu_span){p, h.len}, on_field, f, &err),
			    &err);
		if (h.type == H2_DATA && h.stream == stream) {
			f->data_frames++;
			mu_buf_put(&f->body, p, h.len);
		}
		if (h.type == H2_RST_STREAM)
			f->resets = h2_get32(p) + 1;
		if (h.type == H2_GOAWAY)
			f->went_away = h2_get32(p + 4) + 1;
		if (h.type == type && (h.flags & flags) == flags && h.stream == stream)
			return true;
	}
	return false;
}

static inline void answer(struct fixture *f, uint32_t stream)
{
	mu_buf_clear(&f->body);
	f->status[0] = f->text[0] = 0;
	assert_true(await(f, H2_HEADERS, H2_END_STREAM, stream));
}

static inline void assert_echoed(struct fixture *f, uint32_t stream, const char *text)
{
	answer(f, stream);
	assert_string_equal(f->status, "0");
	assert_string_equal(f->type, "application/grpc");
	assert_int_equal(f->body.len, 5 + strlen(text));
	assert_memory_equal(f->body.data + 5, text, strlen(text));
}

static inline int connect_to(int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	a.sin_port = htons((uint16_t)port);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

/* A client that has its first words ready to be sent. */
static inline void client_init(struct fixture *f, int port)
{
	f->port = port;
	f->fd = connect_to(port);
	hpack_init(&f->hpack);
	mu_buf_puts(&f->out, H2_PREFACE);
	frame(f, H2_SETTINGS, 0, 0, NULL, 0);
}

static inline void client_fini(struct fixture *f)
{
	close(f->fd);
	hpack_fini(&f->hpack);
	mu_buf_fini(&f->out);
	mu_buf_fini(&f->body);
}

static inline struct fixture *server_with(const struct rpc_method *methods, unsigned n)
{
	static const char *const address = "127.0.0.1:0";
	struct fixture *f = MU_NEW(struct fixture);
	struct rpc_server_options o = {.addresses = &address,
				       .n_addresses = 1,
				       .methods = methods,
				       .n_methods = n,
				       .max_message = 1 << 20};
	struct mu_err err;
	int port;

	assert_ok(rpc_server_start(&o, &f->server, &port, &err), &err);
	client_init(f, port);
	return f;
}

static inline int stop(void **state)
{
	struct fixture *f = *state;

	client_fini(f);
	rpc_server_stop(f->server, 100);
	free(f);
	return 0;
}

#endif
