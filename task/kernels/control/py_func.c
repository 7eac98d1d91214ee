/* SPDX-License-Identifier: Apache-2.0 */
/* Python functions in a graph: the program that started the task runs them.
 *
 * A request is the message AttrValue.ListValue of TensorFlow, after its length in eight bytes,
 * little-endian.  It has the token of the function (s), whether the function takes eager tensors
 * (b), and its arguments (tensor).  These tensors have no contents, unless they are strings; the
 * bytes of all contents follow the message.  A reply has the same form, with the results (tensor),
 * or with the text (s) and code (i) of an error.  client/python/muster/functions.py is the other
 * side. */
#include <endian.h>
#include <string.h>

#include "lib/tensor/tensor_proto.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/runtime/python_process.h"
#include "task/runtime/runtime.h"

/* Field numbers of AttrValue.ListValue and TensorProto. */
enum { LIST_S = 2, LIST_I = 3, LIST_B = 5, LIST_TENSOR = 8 };
enum { TENSOR_DTYPE = 1, TENSOR_SHAPE = 2 };

enum { MAX_REPLY_BYTES = INT32_MAX }; /* without contents */

struct py_func {
	struct kernel_call *c;
	struct python_call call;
	_Atomic int refs; /* of the thread and of the step's cancellation */
};

static void py_func_unref(struct py_func *f)
{
	if (atomic_fetch_sub(&f->refs, 1) == 1)
		free(f);
}

static void py_func_cancelled(void *arg)
{
	struct py_func *f = arg;

	python_call_cancel(&f->call);
	py_func_unref(f);
}

static const char *token_of(const struct kernel_call *c)
{
	return args_attr_string(c->node, "token", "");
}

static size_t content_bytes(const struct mu_tensor *t)
{
	return t->dtype == MU_STRING ? 0 : mu_tensor_bytes(t);
}

static void write_argument(struct mu_buf *b, const struct mu_tensor *t)
{
	size_t tensor = mu_pb_begin(b, LIST_TENSOR), shape;

	if (t->dtype == MU_STRING) {
		mu_tensor_write(b, t);
	} else {
		mu_pb_put_int(b, TENSOR_DTYPE, t->dtype);
		shape = mu_pb_begin(b, TENSOR_SHAPE);
		mu_shape_write(b, &t->shape);
		mu_pb_end(b, shape);
	}
	mu_pb_end(b, tensor);
}

static int send_request(struct py_func *f, struct mu_err *err)
{
	const struct kernel_call *c = f->c;
	MU_AUTO_BUF b = {0};
	uint64_t length = 0;

	mu_buf_put(&b, &length, sizeof length);
	mu_pb_put_str(&b, LIST_S, token_of(c));
	mu_pb_put_int(&b, LIST_B, strcmp(c->node->op, "EagerPyFunc") == 0);
	for (unsigned i = 0; i < c->n_in; i++)
		write_argument(&b, kernel_in(c, i));
	length = htole64(b.len - sizeof length);
	memcpy(b.data, &length, sizeof length);
	MU_RETURN_IF_ERROR(python_call_send(&f->call, b.data, b.len, err));
	for (unsigned i = 0; i < c->n_in; i++)
		MU_RETURN_IF_ERROR(python_call_send(&f->call, kernel_in(c, i)->data,
						    content_bytes(kernel_in(c, i)), err));
	return 0;
}

static int receive_message(struct py_func *f, struct mu_buf *reply, struct mu_err *err)
{
	uint64_t length;

	MU_RETURN_IF_ERROR(python_call_receive(&f->call, &length, sizeof length, err));
	length = le64toh(length);
	if (length > MAX_REPLY_BYTES)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "%.64s returns strings of over 2 GiB",
			       token_of(f->c));
	mu_buf_reserve(reply, length);
	MU_RETURN_IF_ERROR(python_call_receive(&f->call, reply->data, length, err));
	reply->len = length;
	return 0;
}

/* Returns the error of a reply without results. */
static int reply_error(struct mu_span reply, struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(reply);
	struct mu_pb_field f;
	struct mu_span text = MU_SPAN("");
	uint64_t code = 0;

	while (mu_pb_next(&m, &f)) {
		if (f.number == LIST_S)
			text = f.bytes;
		if (f.number == LIST_I) {
			struct mu_pb packed = mu_pb_of(f.bytes);
			mu_pb_varint(&packed, &code);
		}
	}
	if (m.bad)
		return mu_fail(err, MU_INTERNAL, "the reply of the Python program is truncated");
	return code ? mu_fail(err, mu_code_from((long)code), "%.*s", (int)text.len, text.data) : 0;
}

/* Fills out, also on failure, with new tensors. */
static int receive_results(struct py_func *f, struct mu_span reply, struct mu_tensor *out,
			   struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(reply);
	struct mu_pb_field field;
	unsigned i = 0;

	while (mu_pb_next(&m, &field)) {
		if (field.number != LIST_TENSOR)
			continue;
		MU_RETURN_IF_ERROR(mu_tensor_parse(&out[i], field.bytes, err));
		if (!mu_dtype_size(out[i].dtype) && out[i].dtype != MU_STRING)
			return mu_fail(err, MU_UNIMPLEMENTED,
				       "a Python function cannot return values of type %s",
				       mu_dtype_name(out[i].dtype));
		MU_RETURN_IF_ERROR(
		    python_call_receive(&f->call, out[i].data, content_bytes(&out[i]), err));
		i++;
	}
	return 0;
}

static int check_results(const struct kernel_call *c, const struct mu_tensor *results, unsigned n,
			 struct mu_err *err)
{
	const struct mu_attr *types = mu_node_attr(c->node, "Tout");

	if (n != c->n_out)
		return mu_invalid(err, "%.64s returns %u values, but expects to see %u values.",
				  token_of(c), n, c->n_out);
	for (unsigned i = 0; i < n; i++)
		if (results[i].dtype != types->types[i])
			return mu_invalid(err,
					  "%u-th value returned by %.64s is %s, but expects %s", i,
					  token_of(c), mu_dtype_name(results[i].dtype),
					  mu_dtype_name(types->types[i]));
	return 0;
}

static int exchange(struct py_func *f, struct mu_buf *reply, struct mu_tensor **results,
		    unsigned *n, struct mu_err *err)
{
	MU_RETURN_IF_ERROR(send_request(f, err));
	MU_RETURN_IF_ERROR(receive_message(f, reply, err));
	*n = mu_pb_count(mu_buf_span(reply), LIST_TENSOR);
	*results = MU_NEW_ARRAY(struct mu_tensor, *n);
	return receive_results(f, mu_buf_span(reply), *results, err);
}

static int py_func_call(struct py_func *f, struct mu_err *err)
{
	struct mu_tensor *results = NULL;
	MU_AUTO_BUF reply = {0};
	unsigned n = 0;
	int rc;

	MU_RETURN_IF_ERROR(python_call_open(&f->call, err));
	rc = exchange(f, &reply, &results, &n, err);
	python_call_close(&f->call, !rc);
	if (!rc)
		rc = reply_error(mu_buf_span(&reply), err);
	if (!rc)
		rc = check_results(f->c, results, n, err);
	for (unsigned i = 0; i < n; i++) {
		if (rc)
			mu_tensor_unref(&results[i]);
		else
			kernel_out_take(f->c, i, results[i]);
	}
	free(results);
	return rc;
}

static void py_func_run(void *arg)
{
	struct py_func *f = arg;
	struct kernel_call *c = f->c;
	struct mu_err err;
	int rc = py_func_call(f, &err);

	if (kernel_uncancel(c))
		py_func_unref(f);
	py_func_unref(f);
	kernel_finish(c, rc ? &err : NULL);
}

static void py_func_start(struct kernel_call *c)
{
	struct python_process *process = c->runtime->python_process;
	struct mu_err err;
	struct py_func *f;

	if (!process) {
		mu_fail(
		    &err, MU_INVALID_ARGUMENT,
		    "ValueError: Could not find callback with key=%.64s in the registry. A Python "
		    "function runs only in a task whose server was started by the program that "
		    "defines it",
		    args_attr_string(c->node, "token", ""));
		kernel_finish(c, &err);
		return;
	}
	f = MU_NEW(struct py_func);
	f->c = c;
	f->call = (struct python_call){.process = process, .connection = -1};
	f->refs = 2;
	if (kernel_on_cancel(c, py_func_cancelled, f)) {
		python_process_run(process, py_func_run, f);
	} else {
		py_func_unref(f);
		mu_fail(&err, MU_CANCELLED, "the step has ended");
		kernel_finish(c, &err);
	}
}

/* Rejects arguments that cannot leave this process, such as resource handles. */
static int py_func_prepare(const struct mu_node *n, struct runtime *rt, void **state,
			   struct mu_err *err)
{
	const struct mu_attr *types = mu_node_attr(n, "Tin");

	for (unsigned i = 0; types && i < types->n; i++)
		if (types->types[i] != MU_STRING && !mu_dtype_size(types->types[i]))
			return mu_fail(err, MU_UNIMPLEMENTED,
				       "argument %u of a Python function is a %s", i,
				       mu_dtype_name(types->types[i]));
	return 0;
}

static const struct kernel rows[] = {
    {"PyFunc PyFuncStateless EagerPyFunc", KERNEL_NO_FOLD, .start = py_func_start,
     .prepare = py_func_prepare},
};
KERNEL_TABLE(control_py_func, rows)
