/* SPDX-License-Identifier: Apache-2.0 */
/* An answer is a status line, header lines, an empty line, and a body that is so many bytes long,
 * comes in chunks that say how long they are, or ends with the connection.  Answers 1xx go ahead of
 * the real one.  Of the headers five are looked at. */
#include "lib/kube/kube_http.h"

#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

enum { HEAD_MAX = 64 << 10, LINE_MAX_BYTES = 16 << 10, LINE_USUAL = 500 };
static const uint64_t body_max = 1ull << 40;
static const char protobuf[] = KUBE_PROTOBUF; /* parameters may follow */

int kube_http_write(struct mu_buf *out, const struct kube_http_request *rq, struct mu_err *err)
{
	if (!*rq->path || strpbrk(rq->path, " \r\n") || strpbrk(rq->host, " \r\n"))
		return mu_fail(err, MU_INVALID_ARGUMENT, "'%.200s' is no path of a request",
			       rq->path);
	mu_buf_reserve(out, strlen(rq->path) + rq->body.len + 512);
	mu_buf_puts(out, rq->method);
	mu_buf_putc(out, ' ');
	mu_buf_puts(out, rq->path);
	mu_buf_puts(out, " HTTP/1.1\r\nHost: ");
	mu_buf_puts(out, rq->host);
	mu_buf_puts(out, "\r\n");
	if (rq->headers)
		mu_buf_puts(out, rq->headers);
	if (rq->has_body)
		mu_buf_printf(out, "Content-Length: %zu\r\n", rq->body.len);
	mu_buf_puts(out, "\r\n");
	if (rq->body.len)
		mu_buf_put(out, rq->body.data, rq->body.len);
	return 0;
}

static int bad(struct mu_err *err, const char *what)
{
	return mu_fail(err, MU_UNAVAILABLE, "the answer is no HTTP: %s", what);
}

/* "HTTP/1.1 200 OK" */
static int read_status(struct kube_http *h, const char *line, struct mu_err *err)
{
	if (strncmp(line, "HTTP/1.", 7) != 0 || !isdigit((unsigned char)line[7]) || line[8] != ' ')
		return bad(err, "no status line");
	for (int i = 9; i < 12; i++)
		if (!isdigit((unsigned char)line[i]))
			return bad(err, "no status");
	h->keep = line[7] != '0';
	h->status = strtol(line + 9, NULL, 10);
	h->chunked = h->sized = h->protobuf = false;
	h->left = 0;
	h->state = HTTP_HEADER;
	return h->status < 100 ? bad(err, "no status") : 0;
}

static int read_length(struct kube_http *h, const char *value, struct mu_err *err)
{
	uint64_t n;
	char *end;

	if (!isdigit((unsigned char)*value))
		return bad(err, "a length that is no number");
	n = strtoull(value, &end, 10);
	if (*end || n > body_max || (h->sized && n != h->left))
		return bad(err, "a length that is none");
	h->sized = true;
	h->left = n;
	return 0;
}

/* The value of header `name`, or NULL. */
static const char *value_of(const char *line, const char *name)
{
	size_t n = strlen(name);

	if (strncasecmp(line, name, n) != 0 || line[n] != ':')
		return NULL;
	return line + n + 1 + strspn(line + n + 1, " \t");
}

static int read_header(struct kube_http *h, const char *line, struct mu_err *err)
{
	const char *v;

	if ((v = value_of(line, "content-length")))
		return read_length(h, v, err);
	if ((v = value_of(line, "transfer-encoding"))) {
		h->chunked = strcasecmp(v, "chunked") == 0;
		if (!h->chunked)
			return bad(err, "an encoding that nobody asked for");
	} else if ((v = value_of(line, "connection"))) {
		h->keep = h->keep && !strcasestr(v, "close");
	} else if ((v = value_of(line, "content-type"))) {
		h->protobuf = strncasecmp(v, protobuf, sizeof(protobuf) - 1) == 0;
	} else if ((v = value_of(line, "retry-after"))) {
		h->retry_after = strtol(v, NULL, 10);
	}
	return 0;
}

static void headers_end(struct kube_http *h)
{
	if (h->status < 200) { /* the real one follows */
		h->state = HTTP_STATUS;
		h->head = 0;
	} else if (h->status == 204 || h->status == 304) {
		h->state = HTTP_DONE;
	} else if (h->chunked) {
		h->state = HTTP_CHUNK_SIZE;
	} else if (h->sized) {
		h->state = h->left ? HTTP_BODY : HTTP_DONE;
	} else {
		h->keep = false;
		h->state = HTTP_UNTIL_END;
	}
}

static int read_chunk_size(struct kube_http *h, const char *line, struct mu_err *err)
{
	uint64_t n;
	char *end;

	if (!isxdigit((unsigned char)*line))
		return bad(err, "a chunk without its size");
	n = strtoull(line, &end, 16);
	if ((*end && *end != ';' && *end != ' ') || n > body_max)
		return bad(err, "a chunk's size that is none");
	h->left = n;
	h->state = n ? HTTP_CHUNK : HTTP_TRAILER;
	return 0;
}

/* A whole line, without its end. */
static int read_line(struct kube_http *h, const char *line, struct mu_err *err)
{
	switch (h->state) {
	case HTTP_STATUS:
		return read_status(h, line, err);
	case HTTP_HEADER:
		if (*line)
			return read_header(h, line, err);
		headers_end(h);
		return 0;
	case HTTP_CHUNK_SIZE:
		return read_chunk_size(h, line, err);
	case HTTP_CHUNK_END:
		h->state = HTTP_CHUNK_SIZE;
		return *line ? bad(err, "a chunk longer than its size") : 0;
	case HTTP_TRAILER:
		if (!*line)
			h->state = HTTP_DONE;
		return 0;
	case HTTP_BODY:
	case HTTP_UNTIL_END:
	case HTTP_CHUNK:
	case HTTP_DONE:
		break;
	}
	return bad(err, "a line out of place");
}

/* Takes the rest of a line from data; *used says how much. */
static int feed_line(struct kube_http *h, const char *data, size_t len, size_t *used,
		     struct mu_err *err)
{
	const char *newline = memchr(data, '\n', len);
	size_t n = newline ? (size_t)(newline - data) : len;
	int rc;

	h->head += h->state <= HTTP_HEADER || h->state == HTTP_TRAILER ? n : 0;
	if (h->line.len + n > LINE_MAX_BYTES || h->head > HEAD_MAX)
		return bad(err, "a head that is too long");
	if (!h->line.cap)
		mu_buf_reserve(&h->line, LINE_USUAL);
	mu_buf_put(&h->line, data, n);
	*used = n + (newline != NULL);
	if (!newline)
		return 0;
	if (h->line.len && h->line.data[h->line.len - 1] == '\r')
		h->line.data[--h->line.len] = 0;
	rc = memchr(h->line.len ? h->line.data : "", 0, h->line.len)
		 ? bad(err, "a zero in its head")
		 : read_line(h, h->line.len ? h->line.data : "", err);
	mu_buf_clear(&h->line);
	return rc;
}

static int feed_body(struct kube_http *h, const char *data, size_t len, size_t *used,
		     struct mu_err *err)
{
	size_t n = h->state != HTTP_UNTIL_END && h->left < len ? (size_t)h->left : len;
	int rc = h->body(h->arg, data, n, err);

	*used = n;
	if (rc < 0 || h->state == HTTP_UNTIL_END)
		return rc;
	h->left -= n;
	if (!h->left)
		h->state = h->state == HTTP_CHUNK ? HTTP_CHUNK_END : HTTP_DONE;
	return 0;
}

int kube_http_feed(struct kube_http *h, const char *data, size_t len, struct mu_err *err)
{
	while (len) {
		bool body =
		    h->state == HTTP_BODY || h->state == HTTP_UNTIL_END || h->state == HTTP_CHUNK;
		size_t used = 0;
		int rc = h->state == HTTP_DONE ? bad(err, "more than was asked for")
			 : body                ? feed_body(h, data, len, &used, err)
					       : feed_line(h, data, len, &used, err);

		if (rc < 0)
			return rc;
		data += used;
		len -= used;
	}
	return 0;
}

int kube_http_end(struct kube_http *h, struct mu_err *err)
{
	if (h->state == HTTP_UNTIL_END)
		h->state = HTTP_DONE;
	if (h->state == HTTP_DONE)
		return 0;
	return mu_fail(err, MU_UNAVAILABLE, "the server hung up in the middle of its answer");
}

void kube_http_fini(struct kube_http *h)
{
	mu_buf_fini(&h->line);
}
