/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding of the frames of streams between tasks (docs/peer-stream.md), without I/O.  All numbers
 * are little-endian.  Parsed structs borrow the bytes. */
#ifndef MU_TASK_PEER_STREAM_WIRE_H
#define MU_TASK_PEER_STREAM_WIRE_H

#include "lib/base/buf.h"
#include "lib/tensor/tensor.h"

enum {
	STREAM_VERSION = 2,
	STREAM_HEADER = 24,
	STREAM_MAX_HEAD = 32 << 10,
	STREAM_KEY = 16,
	STREAM_MAX_TASK = 200,
	STREAM_OFFER_FIELD = 1000, /* field of GetStatusResponse; TensorFlow skips it */
};
enum stream_type {
	STREAM_HELLO = 1,   /* the first frame, from the side that connects */
	STREAM_WELCOME = 2, /* the reply */
	STREAM_RUN = 3,
	STREAM_RUN_DONE = 4,
	STREAM_CANCEL = 5,
	STREAM_CLEANUP = 6,
	STREAM_TENSOR = 7,
	STREAM_RETURN = 8, /* ids of unused exported tensors */
};
enum stream_flag {
	STREAM_DEAD = 1,   /* TENSOR: a dead value */
	STREAM_PROTO = 2,  /* TENSOR: the payload is a TensorProto */
	STREAM_SHARED = 4, /* TENSOR: in shared memory (stream_share.h) */
	STREAM_SHARES = 1, /* HELLO, WELCOME: descriptors are attached */
};

struct stream_header {
	enum stream_type type;
	unsigned flags;
	uint32_t head_len;
	uint64_t payload_len;
	int64_t step_id;
};
int stream_header_parse(struct stream_header *out, const char bytes[STREAM_HEADER],
			struct mu_err *err);
/* Opens a frame at the end of b; stream_frame_end fills in the lengths. */
size_t stream_frame_begin(struct mu_buf *b, enum stream_type type, unsigned flags, int64_t step_id);
int stream_frame_end(struct mu_buf *b, size_t at, uint64_t payload_len, struct mu_err *err);

struct stream_hello { /* WELCOME too, without the key */
	char key[STREAM_KEY];
	uint64_t sender_incarnation, receiver_incarnation;
	char task[STREAM_MAX_TASK + 1];
};
int stream_hello_parse(struct stream_hello *out, struct mu_span head, struct mu_err *err);
void stream_hello_write(struct mu_buf *b, enum stream_type type, unsigned flags,
			const struct stream_hello *h);

struct stream_run {
	int64_t request_id;
	const char *session, *graph; /* NUL-terminated, in the bytes */
};
int stream_run_parse(struct stream_run *out, struct mu_span head, struct mu_err *err);
int stream_run_write(struct mu_buf *b, int64_t step_id, const struct stream_run *m,
		     struct mu_err *err);

/* Returns 0 with the status of the run in *result. */
int stream_run_done_parse(struct mu_err *result, struct mu_span head, struct mu_err *err);
void stream_run_done_write(struct mu_buf *b, int64_t step_id, const struct mu_err *result);

struct shm_handle {
	uint64_t id, offset; /* in the file of the exporting task */
};
struct stream_tensor {
	const char *key; /* NUL-terminated, in the bytes */
	enum mu_dtype dtype;
	struct mu_shape shape;
	bool raw;    /* the payload is the tensor's memory */
	bool shared; /* no payload: the tensor is in shared memory */
	struct shm_handle handle;
};
/* Checks that the payload's length matches the header. */
int stream_tensor_parse(struct stream_tensor *out, const struct stream_header *h,
			struct mu_span head, struct mu_err *err);
/* Writes header and head, and the payload if it is small or not plain memory.  *payload gets the
 * number of bytes of t->data that must follow. */
int stream_tensor_write(struct mu_buf *b, int64_t step_id, const char *key,
			const struct mu_tensor *t, bool dead, size_t *payload, struct mu_err *err);

int stream_shared_write(struct mu_buf *b, int64_t step_id, const char *key,
			const struct mu_tensor *t, const struct shm_handle *handle,
			struct mu_err *err);
/* ids: 8 bytes each, little-endian. */
void stream_return_write(struct mu_buf *b, struct mu_span ids);

struct stream_offer {
	unsigned version;
	int port;       /* TCP; 0: none */
	char local[64]; /* name of the abstract Unix socket; "": none */
	char key[STREAM_KEY];
	uint64_t incarnation;
};
/* Parses the offer in a GetStatusResponse; false: none, or an unsupported version. */
bool stream_offer_parse(struct stream_offer *out, struct mu_span status);
void stream_offer_write(struct mu_buf *status, const struct stream_offer *o);

#endif
