/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of HTTP/2 (RFC 9113): nine bytes, then the payload. */
#ifndef MU_TASK_RPC_H2_FRAME_H
#define MU_TASK_RPC_H2_FRAME_H

#include <stdint.h>

#define H2_PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

enum {
	H2_HEADER = 9,
	H2_PREFACE_LEN = sizeof(H2_PREFACE) - 1,
	H2_DEFAULT_WINDOW = 65535,
	H2_DEFAULT_FRAME = 16384,
	H2_LARGEST_FRAME = (1 << 24) - 1,
	/* what we offer: large messages in few frames, and no waiting for windows */
	H2_MAX_FRAME =
	    1 << 20, /* of a client; of a server, which asked for what it gets, the largest */
	H2_STREAM_WINDOW = 16 << 20,
	H2_CONN_WINDOW = 64 << 20,
	H2_MAX_STREAMS = 1 << 16,
	/* what we refuse: header blocks and other frames than DATA that are longer */
	H2_MAX_BLOCK = 32 << 10,
	/* a client that does not fetch its answers is not listened to */
	H2_MAX_QUEUE = 8 << 20,
};

enum h2_type {
	H2_DATA,
	H2_HEADERS,
	H2_PRIORITY,
	H2_RST_STREAM,
	H2_SETTINGS,
	H2_PUSH_PROMISE,
	H2_PING,
	H2_GOAWAY,
	H2_WINDOW_UPDATE,
	H2_CONTINUATION,
};
enum h2_flag {
	H2_END_STREAM = 1,
	H2_ACK = 1,
	H2_END_HEADERS = 4,
	H2_PADDED = 8,
	H2_HAS_PRIORITY = 32,
};
enum h2_setting {
	H2_HEADER_TABLE_SIZE = 1,
	H2_ENABLE_PUSH,
	H2_MAX_CONCURRENT_STREAMS,
	H2_INITIAL_WINDOW_SIZE,
	H2_MAX_FRAME_SIZE,
};
enum h2_code {
	H2_NO_ERROR,
	H2_PROTOCOL_ERROR,
	H2_INTERNAL_ERROR,
	H2_FLOW_CONTROL_ERROR,
	H2_SETTINGS_TIMEOUT,
	H2_STREAM_CLOSED,
	H2_FRAME_SIZE_ERROR,
	H2_REFUSED_STREAM,
	H2_CANCEL,
	H2_COMPRESSION_ERROR,
	H2_CONNECT_ERROR,
	H2_ENHANCE_YOUR_CALM,
	H2_INADEQUATE_SECURITY,
};

struct h2_frame {
	uint32_t len, stream;
	uint8_t type, flags;
};

static inline uint32_t h2_get32(const void *p)
{
	const uint8_t *b = p;

	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}
static inline void h2_put32(void *p, uint32_t v)
{
	uint8_t *b = p;

	b[0] = (uint8_t)(v >> 24);
	b[1] = (uint8_t)(v >> 16);
	b[2] = (uint8_t)(v >> 8);
	b[3] = (uint8_t)v;
}
static inline struct h2_frame h2_frame_get(const void *p)
{
	const uint8_t *b = p;

	return (struct h2_frame){.len = h2_get32(b) >> 8,
				 .type = b[3],
				 .flags = b[4],
				 .stream = h2_get32(b + 5) & 0x7fffffff};
}
/* Returns what follows the header. */
static inline char *h2_frame_put(char *p, uint32_t len, uint8_t type, uint8_t flags,
				 uint32_t stream)
{
	h2_put32(p, len << 8);
	p[3] = (char)type;
	p[4] = (char)flags;
	h2_put32(p + 5, stream);
	return p + H2_HEADER;
}

#endif
