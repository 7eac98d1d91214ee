/* SPDX-License-Identifier: Apache-2.0 */
/* The message of a member to the leader has these fields: 1 kind, 2 divide, 3 group size, 4 group
 * key, 5 instance key, 6 timeout in ms, 7 device, 8 data type, 9 TensorShapeProto, 10 TensorProto
 * (absent for a receiver), 11 error of a failed step. */
#include "task/peer/peer_collective.h"

#include "lib/tensor/tensor_proto.h"
#include "task/messages/tensor_writer.h"

enum { PROBE_TIMEOUT_MS = 5000 };

static struct peer *find_leader(struct peers *ps)
{
	static const char *const leaders[] = {"/job:chief/replica:0/task:0",
					      "/job:worker/replica:0/task:0"};
	struct peer *first = peers_at(ps, 0);

	for (unsigned i = 0; i < MU_COUNT(leaders); i++) {
		struct peer *p = peers_find(ps, leaders[i]);

		if (p)
			return p;
	}
	for (unsigned i = 1; i < peers_count(ps); i++) {
		struct peer *p = peers_at(ps, i);
		int order = strcmp(p->job, first->job);

		if (order < 0 || (order == 0 && p->index < first->index))
			first = p;
	}
	return first;
}

static void write_part(struct tensor_writer *w, const struct collective_part *p)
{
	size_t at;

	mu_pb_put_int(&w->buf, 1, p->kind);
	mu_pb_put_int(&w->buf, 2, p->divide);
	mu_pb_put_int(&w->buf, 3, p->group_size);
	mu_pb_put_int(&w->buf, 4, p->group_key);
	mu_pb_put_int(&w->buf, 5, p->instance_key);
	mu_pb_put_int(&w->buf, 6, p->timeout_ms);
	mu_pb_put_str(&w->buf, 7, p->device);
	mu_pb_put_int(&w->buf, 8, p->dtype);
	at = mu_pb_begin(&w->buf, 9);
	mu_shape_write(&w->buf, &p->shape);
	mu_pb_end(&w->buf, at);
	if (p->why)
		mu_pb_put_str(&w->buf, 11, p->why);
	if (p->sends)
		tensor_writer_put(w, 10, &p->tensor);
}

static int read_tensors(struct collective_part *out, struct mu_span shape, struct mu_span tensor,
			struct mu_err *err)
{
	int rc = mu_shape_parse(&out->shape, shape, err);

	if (rc || !out->sends)
		return rc;
	rc = mu_tensor_parse(&out->tensor, tensor, err);
	if (!rc &&
	    (out->tensor.dtype != out->dtype || !mu_shape_eq(&out->tensor.shape, &out->shape))) {
		mu_tensor_unref(&out->tensor);
		rc = mu_fail(err, MU_INVALID_ARGUMENT,
			     "the tensor of a collective op does not have the type and shape that "
			     "its message names");
	}
	return rc;
}

int peer_collective_parse(struct collective_part *out, struct mu_span bytes, struct mu_arena *a,
			  struct mu_err *err)
{
	struct collective_part p = {.device = ""};
	struct mu_span shape = MU_SPAN(""), tensor = MU_SPAN("");
	int64_t number[9] = {0};
	struct mu_pb m = mu_pb_of(bytes);
	struct mu_pb_field f;
	int rc;

	while (mu_pb_next(&m, &f)) {
		if (f.number < MU_COUNT(number))
			number[f.number] = (int64_t)f.value;
		if (f.number == 7)
			p.device = mu_arena_strndup(a, f.bytes.data, f.bytes.len);
		else if (f.number == 11)
			p.why = mu_arena_strndup(a, f.bytes.data, f.bytes.len);
		else if (f.number == 9)
			shape = f.bytes;
		else if (f.number == 10)
			tensor = f.bytes, p.sends = true;
	}
	if (m.bad || number[1] < 0 || number[1] >= COLLECTIVE_KINDS || !*p.device ||
	    number[8] <= 0 || number[8] >= MU_DT_COUNT ||
	    (!p.sends && number[1] != COLLECTIVE_BROADCAST && number[1] != COLLECTIVE_STEP_FAILED))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "the part of a collective op is malformed");
	p.kind = (enum collective_kind)number[1];
	p.divide = number[2] != 0;
	p.group_size = number[3];
	p.group_key = number[4];
	p.instance_key = number[5];
	p.timeout_ms = number[6];
	p.dtype = (enum mu_dtype)number[8];
	if ((rc = read_tensors(&p, shape, tensor, err)))
		return rc;
	*out = p;
	return 0;
}

static bool send_part(void *ctx, int64_t id, const struct collective_part *part,
		      rendezvous_done done, void *arg)
{
	struct peer *leader = find_leader(ctx);
	struct tensor_writer w = {0};

	if (leader->local)
		return false;
	write_part(&w, part);
	peer_grpc_request_tensor(leader, COLLECTIVE_PATH, tensor_writer_message(&w), id, done, arg);
	tensor_writer_fini(&w);
	return true;
}

static void cancel_part(void *ctx, int64_t id)
{
	/* The leader may have changed since the part was sent. */
	for (unsigned i = 0; i < peers_count(ctx); i++)
		if (!peers_at(ctx, i)->local)
			peer_grpc_drop_step(peers_at(ctx, i), id);
}

struct probe {
	void (*failed)(void *arg, const char *device, const struct mu_err *err);
	void *arg;
	char device[];
};

static void probe_done(void *arg, const struct mu_err *err, struct mu_span reply)
{
	struct probe *p = arg;

	if (err)
		p->failed(p->arg, p->device, err);
	free(p);
}

static void probe_task(void *ctx, const char *device,
		       void (*failed)(void *arg, const char *device, const struct mu_err *err),
		       void *arg)
{
	struct peer *to = peers_find(ctx, device);
	size_t len = strlen(device) + 1;
	struct probe *p;

	if (!to || to->local) /* absent: a session has renamed the task */
		return;
	p = mu_xmalloc(sizeof(*p) + len);
	p->failed = failed;
	p->arg = arg;
	memcpy(p->device, device, len);
	to->ops->call(to, PEER_GET_STATUS, MU_SPAN(""), PROBE_TIMEOUT_MS, false, probe_done, p);
}

struct collective_hooks peers_collective_hooks(struct peers *ps)
{
	return (struct collective_hooks){
	    .send = send_part, .cancel_send = cancel_part, .probe = probe_task, .ctx = ps};
}
