/* SPDX-License-Identifier: Apache-2.0 */
/* Header compression of HTTP/2 (RFC 7541): the reading half, with its table of recent fields, and
 * for a client's requests a writing one.  A server's answers are a handful of fixed fields
 * (reply.c). */
#ifndef MU_TASK_RPC_H2_HPACK_H
#define MU_TASK_RPC_H2_HPACK_H

#include "lib/base/buf.h"

enum {
	HPACK_TABLE = 4096,     /* bytes, the default that we do not change */
	HPACK_ENTRIES = 128,    /* each counts 32 bytes more than it holds */
	HPACK_LIST = 256 << 10, /* what one block may come to when it is spelt out */
};

struct hpack_entry {
	char *bytes; /* name and value, one after the other */
	uint32_t name_len, value_len;
};
struct hpack {
	struct hpack_entry ring[HPACK_ENTRIES];
	unsigned newest, n;
	size_t size, limit;
	struct mu_buf name, value; /* spelt out */
};
void hpack_init(struct hpack *h);
void hpack_fini(struct hpack *h);

/* Both spans are borrowed for the call. */
typedef void (*hpack_field)(void *arg, struct mu_span name, struct mu_span value);
/* Fields until an error, which ends the connection: the table is out of step then. */
int hpack_read(struct hpack *h, struct mu_span block, hpack_field field, void *arg,
	       struct mu_err *err);

/* ---- writing (hpack_write.c) ---- */

/* What is put into the other side's table stays there: when it is full, nothing more is put in. */
struct hpack_writer {
	struct {
		char *name, *value;
	} kept[HPACK_ENTRIES];
	unsigned n;
	size_t size, limit;
	bool shrunk,
	    tell; /* the other side wants less of it than the default, and hears that we know */
};
void hpack_write_limit(struct hpack_writer *w, uint32_t limit); /* what the other side allows */
void hpack_write_fini(struct hpack_writer *w);
void hpack_write_start(struct hpack_writer *w, struct mu_buf *block); /* before its first field */
/* Appends; keep: the field will come again. */
void hpack_write(struct hpack_writer *w, struct mu_buf *block, const char *name, const char *value,
		 bool keep);
/* A number in the low `bits` of a byte whose others are `first`, and in more bytes when it is large
 * (6 at most); returns what follows. */
char *hpack_put_number(char *p, size_t n, unsigned bits, uint8_t first);

/* Appends what the code spells; negative when it is no such code. */
int huffman_read(struct mu_buf *out, struct mu_span coded);

#endif
