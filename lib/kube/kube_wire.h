/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to an http:// or https:// server: opened, written, read and cut within time. */
#ifndef KUBE_WIRE_H
#define KUBE_WIRE_H

#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "lib/base/err.h"

/* Where a server is. */
struct kube_address {
	bool tls;
	char *host, *port; /* host without the brackets of an IPv6 address */
	char *prefix;      /* of every path; "" mostly */
	char *name;        /* in the server's certificate */
	char *in_header;   /* what requests name in "Host:" */
};
/* "https://host:port/prefix"; name: NULL for the host. */
int kube_address_parse(struct kube_address *out, const char *server, const char *name,
		       struct mu_err *err);
void kube_address_fini(struct kube_address *a);

struct kube_wire {
	pthread_mutex_t lock; /* fd, so that nobody cuts another's */
	int fd;               /* -1: not open */
	SSL *ssl;
	double patience; /* seconds that a read or write may take now */
	bool full;       /* the last read of the socket got all that it had room for */
};
void kube_wire_init(struct kube_wire *w);
/* Closes it too. */
void kube_wire_fini(struct kube_wire *w);

/* Gives up after `patience` seconds, or when *stopped becomes true. */
int kube_wire_open(struct kube_wire *w, const struct kube_address *to, double patience,
		   const _Atomic bool *stopped, struct mu_err *err);
/* TLS from here on, with a server that has to have that name; takes ssl.  After an error the wire
 * is good for nothing but to be closed. */
int kube_wire_secure(struct kube_wire *w, const char *name, SSL *ssl, struct mu_err *err);
bool kube_wire_is_open(const struct kube_wire *w);
void kube_wire_close(struct kube_wire *w);
/* From any thread: whatever waits on it fails at once, until it is opened anew. */
void kube_wire_cut(struct kube_wire *w);

/* How long each read and write from now on may wait. */
void kube_wire_set_patience(struct kube_wire *w, double seconds);
int kube_wire_write(struct kube_wire *w, const void *data, size_t len, struct mu_err *err);
/* Waits for some bytes; 0 at the end, DEADLINE_EXCEEDED after the patience. */
long kube_wire_read(struct kube_wire *w, void *into, size_t room, struct mu_err *err);
/* Whether a read would find something, or the end, at once. */
bool kube_wire_ready(struct kube_wire *w);
/* Whether what has arrived goes on, as far as that is known without a system call. */
bool kube_wire_has_more(struct kube_wire *w);
/* Bytes that arrive together are read together, so many of them (0: as many as a record has), from
 * the next read on that finds nothing left of those before. */
void kube_wire_read_ahead(struct kube_wire *w, size_t bytes);

#endif
