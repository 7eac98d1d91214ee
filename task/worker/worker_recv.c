/* SPDX-License-Identifier: Apache-2.0 */
/* RecvTensor waits in the step's rendezvous until the tensor is sent.  It may arrive before the
 * step's RunGraph.  If the caller cancels it or disconnects, its part of the step has failed.  A
 * step that runs on this task continues: its master cancels it with the error.  Otherwise the step
 * is dropped, because no CleanupGraph may follow. */
#include "task/worker/worker_recv.h"

#include "lib/base/clock.h"
#include "lib/base/pb.h"
#include "lib/base/request_ids.h"
#include "lib/tensor/tensor_proto.h"
#include "task/messages/step_messages.h"
#include "task/messages/tensor_writer.h"
#include "task/peer/peer_collective.h"

struct pending_recv {
	struct rpc_call *call;
	struct worker *worker;
	int64_t step_id;
};

static void reply_tensor(struct rpc_call *call, const struct mu_tensor *tensor, bool dead)
{
	struct tensor_writer w = {0};

	mu_pb_put_int(&w.buf, 3, mu_wall_ns() / 1000);
	if (dead) {
		mu_pb_put_int(&w.buf, 2, 1);
		mu_pb_put_bytes(&w.buf, 1, MU_SPAN(EMPTY_FLOAT_PROTO));
	} else {
		tensor_writer_put(&w, 1, tensor);
	}
	rpc_reply(call, tensor_writer_message(&w));
	tensor_writer_fini(&w);
}

static void on_sent(void *arg, const struct mu_err *err, struct mu_tensor *tensor, bool dead)
{
	struct pending_recv *p = arg;

	if (err) {
		rpc_reply_error(p->call, err);
	} else {
		reply_tensor(p->call, tensor, dead);
		mu_tensor_unref(tensor);
	}
	free(p);
}

static void on_caller_cancelled(void *arg)
{
	struct pending_recv *p = arg;
	struct worker *w = p->worker;
	int64_t step_id = p->step_id;
	struct mu_err why;

	if (worker_runs_step(w, step_id))
		return;
	mu_fail(&why, MU_CANCELLED, "The receiver of a tensor cancelled step %lld",
		(long long)step_id);
	worker_drop_step(w, step_id, &why);
}

static int recv_check_key(struct worker *w, const char *key, struct mu_err *err)
{
	size_t n = strlen(w->rt->task_prefix);
	struct rendezvous_key k;
	int rc = rendezvous_key_parse(&k, key, err);

	if (rc || k.src_incarnation == w->rt->incarnation) /* a session may have renamed the task */
		return rc;
	if (k.src_device.len <= n || memcmp(k.src_device.data, w->rt->task_prefix, n) ||
	    k.src_device.data[n] != '/')
		return mu_fail(err, MU_INVALID_ARGUMENT, "%.*s does not belong to %s",
			       (int)(k.src_device.len > 200 ? 200 : k.src_device.len),
			       k.src_device.data, w->rt->task_prefix);
	return mu_fail(err, MU_ABORTED,
		       "RecvTensor expects a different device incarnation: %llu vs. %llu. "
		       "Your worker job (\"%s\") was probably restarted. Check your worker "
		       "job for the reason why it was restarted.",
		       (unsigned long long)k.src_incarnation,
		       (unsigned long long)w->rt->incarnation, w->rt->task_prefix);
}

void worker_recv(struct worker *w, struct rpc_call *call)
{
	struct recv_tensor_request m;
	struct rendezvous *r;
	struct pending_recv *p;
	MU_AUTO_ARENA a = {0};
	struct mu_err err;

	if (recv_tensor_request_parse(&m, rpc_bytes_flat(rpc_request(call)), &a, &err) ||
	    (!mu_request_ids_add(w->recv_ids, m.request_id) &&
	     mu_fail(&err, MU_ABORTED,
		     "The same RecvTensor (GrpcWorker) request was received twice. request_id: "
		     "%lld",
		     (long long)m.request_id)) ||
	    recv_check_key(w, m.key, &err)) {
		rpc_reply_error(call, &err);
	} else {
		p = MU_NEW(struct pending_recv);
		*p = (struct pending_recv){call, w, m.step_id};
		r = rendezvous_table_get(w->rt->steps, m.step_id);
		rpc_on_cancel(call, on_caller_cancelled, p);
		rendezvous_recv_local(r, m.key, on_sent, p);
		rendezvous_unref(r);
	}
}

/* ---- collective ops, on the leader ---- */

struct collective_recv {
	struct rpc_call *rpc;
	struct collective_call *call;
};

static void on_collective_done(void *arg, const struct mu_err *err, struct mu_tensor *tensor,
			       bool dead)
{
	struct collective_recv *j = arg;

	if (err) {
		rpc_reply_error(j->rpc, err);
	} else {
		reply_tensor(j->rpc, tensor, false);
		mu_tensor_unref(tensor);
	}
	collective_call_unref(j->call);
	free(j);
}

static void on_collective_cancelled(void *arg)
{
	collective_cancel(((struct collective_recv *)arg)->call);
}

void worker_join_collective(struct worker *w, struct rpc_call *call)
{
	struct collective_part part;
	struct collective_recv *j;
	MU_AUTO_ARENA a = {0};
	struct mu_err err;

	if (peer_collective_parse(&part, rpc_bytes_flat(rpc_request(call)), &a, &err)) {
		rpc_reply_error(call, &err);
	} else {
		j = MU_NEW(struct collective_recv);
		j->rpc = call;
		j->call = collective_call_new(w->rt->collectives, &part, on_collective_done, j);
		mu_tensor_unref(&part.tensor);
		struct collective_call *joining_call = collective_call_ref(j->call);
		rpc_on_cancel(call, on_collective_cancelled, j);
		collective_join(joining_call); /* which may free j */
		collective_call_unref(joining_call);
	}
}
