/* SPDX-License-Identifier: Apache-2.0 */
/* The NodeExecStats of a node is appended to the DeviceStepStats of its device. */
#include "task/runtime/trace.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/pb.h"
#include "task/runtime/resources.h"

/* Limit of a trace, because a loop may have many iterations. */
enum { MAX_BYTES = 256 << 20 };

struct device_trace {
	struct device_trace *next;
	char *name;
	struct mu_buf nodes; /* field 2 of a DeviceStepStats, repeated */
};
struct node_cost {
	bool has_run;
	int64_t ns;
	struct mu_buf outputs; /* fields 5 and 12 of a CostGraphDef.Node */
};
struct step_trace {
	pthread_mutex_t lock;
	const struct mu_graph *graph; /* the costs of its nodes are recorded; NULL: no costs */
	struct node_cost *costs;      /* by node id */
	struct device_trace *devices;
	size_t bytes;
};

struct step_trace *step_trace_new(const struct mu_graph *cost_graph)
{
	struct step_trace *t = MU_NEW(struct step_trace);

	t->graph = cost_graph;
	t->costs = cost_graph ? MU_NEW_ARRAY(struct node_cost, cost_graph->n_nodes + 1) : NULL;
	pthread_mutex_init(&t->lock, NULL);
	return t;
}

void step_trace_free(struct step_trace *t)
{
	if (!t)
		return;
	for (struct device_trace *d = t->devices, *next; d; d = next) {
		next = d->next;
		mu_buf_fini(&d->nodes);
		free(d->name);
		free(d);
	}
	for (unsigned i = 0; t->graph && i < t->graph->n_nodes; i++)
		mu_buf_fini(&t->costs[i].outputs);
	free(t->costs);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

static struct mu_buf *trace_device_of(struct step_trace *t, const char *name)
{
	struct device_trace *d = t->devices;

	while (d && strcmp(d->name, name) != 0)
		d = d->next;
	if (!d) {
		d = MU_NEW(struct device_trace);
		d->name = mu_xstrdup(name);
		d->next = t->devices;
		t->devices = d;
	}
	return &d->nodes;
}

/* Writes start and duration in microseconds, and in the newer fields in nanoseconds. */
static void put_times(struct mu_buf *b, int64_t start_ns, int64_t end_ns)
{
	mu_pb_put_int(b, 2, start_ns / 1000);
	mu_pb_put_int(b, 4, (end_ns - start_ns) / 1000);
	mu_pb_put_int(b, 5, (end_ns - start_ns) / 1000);
	mu_pb_put_int(b, 9, start_ns / 1000);
	mu_pb_put_int(b, 13, start_ns);
	mu_pb_put_int(b, 15, end_ns - start_ns);
	mu_pb_put_int(b, 16, end_ns - start_ns);
	mu_pb_put_int(b, 17, start_ns);
}

static void put_shape(struct mu_buf *b, uint32_t field, const struct mu_tensor *t)
{
	size_t shape = mu_pb_begin(b, field);

	for (int i = 0; i < t->shape.rank; i++) {
		size_t dim = mu_pb_begin(b, 2);
		mu_pb_put_int(b, 1, t->shape.dim[i]);
		mu_pb_end(b, dim);
	}
	mu_pb_end(b, shape);
}

static void put_output(struct mu_buf *b, unsigned slot, const struct mu_tensor *t)
{
	size_t output = mu_pb_begin(b, 7), tensor, memory;

	mu_pb_put_int(b, 1, slot);
	tensor = mu_pb_begin(b, 3);
	mu_pb_put_int(b, 1, t->dtype);
	put_shape(b, 2, t);
	memory = mu_pb_begin(b, 4);
	mu_pb_put_int(b, 1, (int64_t)mu_tensor_bytes(t));
	mu_pb_put_str(b, 3, "cpu");
	mu_pb_end(b, memory);
	mu_pb_end(b, tensor);
	mu_pb_end(b, output);
}

/* Writes the memory that the node allocated, for TensorFlow's profiler: the bytes of the outputs
 * that are the only users of their buffers. */
static void put_memory(struct mu_buf *b, const struct value *out, unsigned n_out)
{
	size_t memory;
	int64_t bytes = 0;

	for (unsigned i = 0; i < n_out; i++)
		if (mu_tensor_is_sole(&out[i].tensor))
			bytes += (int64_t)mu_tensor_bytes(&out[i].tensor);
	if (!bytes)
		return;
	memory = mu_pb_begin(b, 6);
	mu_pb_put_str(b, 1, "cpu");
	for (uint32_t field = 2; field <= 4; field++) /* total, peak and live bytes */
		mu_pb_put_int(b, field, bytes);
	mu_pb_end(b, memory);
}

/* Writes a label such as "sum = Add(a, b:1, ^c)". */
static void put_label(struct mu_buf *b, const struct mu_node *n)
{
	MU_AUTO_BUF text = {0};

	mu_buf_printf(&text, "%s = %s(", n->name, n->op);
	for (unsigned k = 0; k < n->n_inputs + n->n_controls; k++) {
		const struct mu_input *in = &n->inputs[k];
		mu_buf_printf(&text, "%s%s%s", k ? ", " : "", in->port == MU_CONTROL ? "^" : "",
			      in->node->name);
		if (in->port > 0)
			mu_buf_printf(&text, ":%d", in->port);
	}
	mu_buf_putc(&text, ')');
	mu_pb_put_str(b, 8, text.data);
}

static void put_node(struct mu_buf *b, const struct mu_node *n, int64_t start_ns, int64_t end_ns,
		     const struct value *out, unsigned n_out)
{
	mu_pb_put_str(b, 1, n->name);
	put_times(b, start_ns, end_ns);
	put_memory(b, out, n_out);
	for (unsigned i = 0; i < n_out; i++) {
		MU_AUTO_TENSOR current_value = {0};
		if (mu_tensor_is_set(&out[i].tensor))
			put_output(b, i, &out[i].tensor);
		else if (out[i].ref && !variable_read(out[i].ref, &current_value, NULL))
			put_output(b, i, &current_value);
	}
	put_label(b, n);
	mu_pb_put_int(b, 10, gettid());
}

/* Writes a label such as "[4B] [0.4Mb/s] edge_3_a from <device> to <device>". */
static void put_transfer(struct mu_buf *b, const struct mu_node *n, int64_t start_ns,
			 int64_t end_ns, const struct value *out)
{
	const char *name = "", *from = "", *to = "";
	size_t bytes = mu_tensor_is_set(&out->tensor) ? mu_tensor_bytes(&out->tensor) : 0;
	double mib = (double)bytes / (1 << 20);
	double rate = 8000.0 * (double)bytes / (double)(end_ns > start_ns ? end_ns - start_ns : 1);
	MU_AUTO_BUF text = {0};
	size_t output, tensor, memory;

	mu_node_attr_string(n, "tensor_name", &name, NULL);
	mu_node_attr_string(n, "send_device", &from, NULL);
	mu_node_attr_string(n, "recv_device", &to, NULL);
	mu_pb_put_str(b, 1, "RecvTensor");
	put_times(b, start_ns, end_ns);
	output = mu_pb_begin(b, 7);
	tensor = mu_pb_begin(b, 3);
	memory = mu_pb_begin(b, 4);
	mu_pb_put_int(b, 1, (int64_t)bytes);
	mu_pb_end(b, memory);
	mu_pb_end(b, tensor);
	mu_pb_end(b, output);
	if (mib >= 0.1)
		mu_buf_printf(&text, "[%.1fMB] ", mib);
	else
		mu_buf_printf(&text, "[%zuB] ", bytes);
	if (rate >= 1000)
		mu_buf_printf(&text, "[%.1fGb/s] ", rate / 1000);
	else
		mu_buf_printf(&text, "[%fMb/s] ", rate);
	mu_buf_printf(&text, "%s from %s to %s", name, from, to);
	mu_pb_put_str(b, 8, text.data);
}

/* True for transfers between tasks, not for feeds and fetches. */
static bool crosses_devices(const struct mu_node *n)
{
	const char *from = "", *to = "";

	mu_node_attr_string(n, "send_device", &from, NULL);
	mu_node_attr_string(n, "recv_device", &to, NULL);
	return strcmp(from, to) != 0;
}

static bool is_transfer(const struct mu_node *n, const char *op)
{
	return strcmp(n->op + (strncmp(n->op, "_Host", 5) ? 1 : 5), op) == 0;
}

/* ---- costs ---- */

/* Writes an output.  t is NULL if the node did not run. */
static void put_cost_output(struct mu_buf *b, const struct mu_tensor *t, int type, int64_t size)
{
	size_t output = mu_pb_begin(b, 5);

	mu_pb_put_int(b, 1, size);
	mu_pb_put_int(b, 2, -1); /* shares the buffer of no input */
	if (t) {
		put_shape(b, 3, t);
		mu_pb_put_int(b, 4, type);
	} else {
		size_t shape = mu_pb_begin(b, 3);
		mu_pb_put_int(b, 3, 1); /* unknown rank */
		mu_pb_end(b, shape);
	}
	mu_pb_end(b, output);
}

/* Called with the lock held.  In a loop each iteration replaces the outputs and adds its time. */
static void record_cost(struct step_trace *t, const struct mu_node *n, int64_t ns,
			const struct value *out, unsigned n_out)
{
	const struct mu_attr *constant = strcmp(n->op, "Const") ? NULL : mu_node_attr(n, "value");
	struct node_cost *c;

	if (!t->graph || n->id >= t->graph->n_nodes || t->graph->nodes[n->id] != n)
		return; /* a node of a function body */
	c = &t->costs[n->id];
	c->has_run = true;
	c->ns += ns;
	mu_buf_clear(&c->outputs);
	if (constant && constant->kind == MU_ATTR_TENSOR) { /* persistent memory */
		put_cost_output(&c->outputs, constant->tensor, constant->tensor->dtype, 0);
		mu_pb_put_int(&c->outputs, 12, (int64_t)mu_tensor_bytes(constant->tensor));
		return;
	}
	for (unsigned i = 0; i < n_out; i++) {
		MU_AUTO_TENSOR current_value = {0};
		if (mu_tensor_is_set(&out[i].tensor))
			put_cost_output(&c->outputs, &out[i].tensor, out[i].tensor.dtype,
					(int64_t)mu_tensor_bytes(&out[i].tensor));
		else if (out[i].ref && !variable_read(out[i].ref, &current_value, NULL))
			put_cost_output(&c->outputs, &current_value,
					current_value.dtype + MU_DT_REF,
					(int64_t)mu_tensor_bytes(&current_value));
		else
			put_cost_output(&c->outputs, NULL, 0, -1);
	}
}

/* The ids 0 and 1 are those of TensorFlow's source and sink. */
enum { SOURCE_ID, SINK_ID, FIRST_ID };

static void put_cost_node(struct mu_buf *b, const struct mu_node *n, const struct node_cost *c)
{
	size_t at = mu_pb_begin(b, 1), input;

	mu_pb_put_str(b, 1, n->name);
	mu_pb_put_str(b, 2, n->device);
	mu_pb_put_int(b, 3, n->id + FIRST_ID);
	for (unsigned k = 0; k < n->n_inputs; k++) {
		input = mu_pb_begin(b, 4);
		mu_pb_put_int(b, 1, n->inputs[k].node->id + FIRST_ID);
		mu_pb_put_int(b, 2, n->inputs[k].port);
		mu_pb_end(b, input);
	}
	if (c->has_run)
		mu_buf_put(b, c->outputs.data, c->outputs.len);
	for (unsigned i = 0; !c->has_run && n->def && i < n->def->n_outputs; i++)
		put_cost_output(b, NULL, 0, -1);
	if (is_transfer(n, "Send"))
		mu_pb_put_int(b, 7, 1); /* final */
	for (unsigned k = 0; k < n->n_controls; k++)
		mu_pb_put_int(b, 8, n->inputs[n->n_inputs + k].node->id + FIRST_ID);
	if (!n->n_inputs && !n->n_controls)
		mu_pb_put_int(b, 8, SOURCE_ID);
	mu_pb_put_int(b, 9, c->ns / 1000);
	mu_pb_end(b, at);
}

void step_trace_write_costs(struct step_trace *t, struct mu_buf *b)
{
	size_t at = mu_pb_begin(b, 1);

	mu_pb_put_str(b, 1, "_SOURCE");
	mu_pb_put_int(b, 9, 1);
	mu_pb_end(b, at);
	at = mu_pb_begin(b, 1);
	mu_pb_put_str(b, 1, "_SINK");
	mu_pb_put_int(b, 3, SINK_ID);
	mu_pb_end(b, at);
	pthread_mutex_lock(&t->lock);
	for (unsigned i = 0; i < t->graph->n_nodes; i++)
		put_cost_node(b, t->graph->nodes[i], &t->costs[i]);
	pthread_mutex_unlock(&t->lock);
}

void step_trace_node(struct step_trace *t, const struct mu_node *n, int64_t start_ns,
		     const struct value *out, unsigned n_out)
{
	int64_t end_ns = mu_wall_ns();
	bool recv = n->op[0] == '_' && is_transfer(n, "Recv");
	struct mu_buf *b;
	size_t at, before;

	pthread_mutex_lock(&t->lock);
	record_cost(t, n, end_ns - start_ns, out, n_out);
	if ((n->op[0] == '_' && is_transfer(n, "Send")) || (recv && !crosses_devices(n))) {
		pthread_mutex_unlock(&t->lock);
		return;
	}
	if (t->bytes < MAX_BYTES) {
		b = trace_device_of(t, n->device);
		before = b->len;
		at = mu_pb_begin(b, 2);
		if (recv)
			put_transfer(b, n, start_ns, end_ns, out);
		else
			put_node(b, n, start_ns, end_ns, out, n_out);
		mu_pb_end(b, at);
		t->bytes += b->len - before;
	}
	pthread_mutex_unlock(&t->lock);
}

void step_trace_write(struct step_trace *t, struct mu_buf *b)
{
	pthread_mutex_lock(&t->lock);
	for (struct device_trace *d = t->devices; d; d = d->next) {
		size_t at = mu_pb_begin(b, 1);
		mu_pb_put_str(b, 1, d->name);
		mu_buf_put(b, d->nodes.data, d->nodes.len);
		mu_pb_end(b, at);
	}
	pthread_mutex_unlock(&t->lock);
}
