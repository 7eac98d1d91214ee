/* SPDX-License-Identifier: Apache-2.0 */
/* _Send and _Recv: the ends of an edge that was cut between two tasks, or between a task and its
 * client.  The rendezvous key is built once; inside loops, each iteration has a key. */
#include <stdatomic.h>
#include <stdio.h>

#include "lib/graph/device_name.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/runtime/runtime.h"
#include "task/runtime/traffic.h"

struct edge {
	size_t prefix;                /* length of the key without "frame:iteration" */
	struct traffic_line *traffic; /* with the task at the other end; NULL: this task */
	char key[];                   /* for 0:0 */
};

static int edge_prepare(const struct mu_node *n, struct runtime *rt, void **state,
			struct mu_err *err)
{
	const char *name, *from, *to;
	int64_t incarnation;

	MU_RETURN_IF_ERROR(mu_node_attr_string(n, "tensor_name", &name, err));
	MU_RETURN_IF_ERROR(mu_node_attr_string(n, "send_device", &from, err));
	MU_RETURN_IF_ERROR(mu_node_attr_string(n, "recv_device", &to, err));
	MU_RETURN_IF_ERROR(mu_node_attr_int(n, "send_device_incarnation", &incarnation, err));
	MU_AUTO_BUF key = {0};
	mu_buf_printf(&key, "%s;%016llx;%s;%s;", from, (unsigned long long)incarnation, to, name);
	struct edge *e = mu_xmalloc(sizeof *e + key.len + sizeof "0:0");
	e->prefix = key.len;
	e->traffic = NULL;
	if (rt && !mu_device_same_task(from, to))
		e->traffic =
		    traffic_line(rt->traffic, mu_span_of(strcmp(n->device, to) == 0 ? from : to));
	memcpy(e->key, key.data, key.len);
	memcpy(e->key + key.len, "0:0", sizeof "0:0");
	*state = e;
	return 0;
}

/* Returns the key of this call: the key of the edge or, inside a loop, a key built in b. */
static const char *sendrecv_key_of(const struct kernel_call *c, struct mu_buf *b)
{
	const struct edge *e = c->state;

	if (!c->frame && !c->iter)
		return e->key;
	mu_buf_put(b, e->key, e->prefix);
	mu_buf_printf(b, "%llu:%llu", c->frame, c->iter);
	return b->data;
}

static void sendrecv_count(const struct kernel_call *c, uint64_t in, uint64_t out)
{
	const struct edge *e = c->state;

	if (!e->traffic)
		return;
	if (in)
		atomic_fetch_add_explicit(&e->traffic->in, in, memory_order_relaxed);
	if (out)
		atomic_fetch_add_explicit(&e->traffic->out, out, memory_order_relaxed);
}

static int send_run(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_BUF b = {0};
	struct mu_tensor t = {0};

	if (!c->dead_input) {
		t = mu_tensor_ref(kernel_in(c, 0));
		sendrecv_count(c, 0, mu_tensor_bytes(&t));
	}
	return rendezvous_send(step_rendezvous(c->step), sendrecv_key_of(c, &b), t, c->dead_input,
			       err);
}

static void recv_done(void *arg, const struct mu_err *err, struct mu_tensor *tensor, bool dead)
{
	struct kernel_call *c = arg;

	if (err) {
		kernel_finish(c, err);
		return;
	}
	if (dead) { /* the declared type does not matter */
		mu_tensor_unref(tensor);
		kernel_out_dead(c, 0);
	} else { /* the executor checks the type */
		sendrecv_count(c, mu_tensor_bytes(tensor), 0);
		kernel_out_take(c, 0, *tensor);
	}
	kernel_finish(c, NULL);
}

static void recv_start(struct kernel_call *c)
{
	MU_AUTO_BUF b = {0};

	rendezvous_recv(step_rendezvous(c->step), sendrecv_key_of(c, &b), recv_done, c);
}

static const struct kernel rows[] = {
    {"_Send _HostSend", KERNEL_SEES_DEAD, .run = send_run, .prepare = edge_prepare},
    {"_Recv _HostRecv", .start = recv_start, .prepare = edge_prepare},
};
KERNEL_TABLE(control_sendrecv, rows)
