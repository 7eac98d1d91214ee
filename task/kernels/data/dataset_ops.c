/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that read a dataset without an iterator, or that call a function.
 *
 * The functions may wait, which is forbidden on a thread of the compute pool, so each
 * call has a thread. Cancelling a step cancels everything that the thread waits for, and the
 * thread always completes the call. It releases all objects of the runtime before that, because the
 * step and the runtime may be freed right after. */
#include <errno.h>
#include <string.h>

#include "lib/io/compress.h"
#include "lib/io/tfrecord.h"
#include "task/kernels/data/dataset.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/variant.h"
#include "task/kernels/state/table.h"

enum { MAX_RUNS = 1024 }; /* concurrent runs, each with a thread */
static _Atomic int runs;

struct run {
	struct kernel_call *c;
	struct caller caller;
	const struct dataset *d; /* borrowed from the call's input; NULL: none */
	struct function *f;
	unsigned n_state;
	_Atomic int refs; /* of the thread and of the step's cancellation */
	int (*body)(struct run *r, struct dataset_iterator *dataset_iterator,
		    struct mu_tensor *state, struct mu_err *err);
};

static void run_drop(struct run *r)
{
	if (atomic_fetch_sub(&r->refs, 1) != 1)
		return;
	caller_fini(&r->caller);
	free(r);
}

static void dataset_run_cancelled(void *arg)
{
	struct run *r = arg;

	caller_stop(&r->caller);
	run_drop(r);
}

/* ---- op bodies ---- */

static int single_element(struct run *r, struct dataset_iterator *dataset_iterator,
			  struct mu_tensor *state, struct mu_err *err)
{
	struct mu_tensor extra[MAX_COMPONENTS] = {0};
	unsigned n = r->d->n_out;
	int rc = dataset_iterator_next(dataset_iterator, state, err);

	if (rc == 0)
		return mu_invalid(err, "Dataset was empty.");
	if (rc < 0)
		return rc;
	rc = dataset_iterator_next(dataset_iterator, extra, err);
	if (rc > 0) {
		element_drop(extra, n);
		rc = mu_invalid(err, "Dataset had more than one element.");
	}
	if (rc)
		element_drop(state, n);
	return rc;
}

static int dataset_run_reduce(struct run *r, struct dataset_iterator *dataset_iterator,
			      struct mu_tensor *state, struct mu_err *err)
{
	struct mu_tensor in[MAX_COMPONENTS] = {0}, results[MAX_COMPONENTS];
	unsigned n = r->n_state, first_captured = 1 + n, n_captured = r->c->n_in - first_captured,
		 captured_at = n + r->d->n_out;
	int rc;

	for (unsigned i = 0; i < n; i++)
		state[i] = mu_tensor_ref(kernel_in(r->c, 1 + i));
	for (unsigned i = 0; i < n_captured; i++)
		in[captured_at + i] = *kernel_in(r->c, first_captured + i);
	while ((rc = dataset_iterator_next(dataset_iterator, in + n, err)) > 0) {
		memcpy(in, state, n * sizeof *in);
		rc = function_call(r->f, &r->caller, in, captured_at + n_captured, results, n, err);
		element_drop(in + n, r->d->n_out);
		if (rc)
			break;
		element_drop(state, n);
		memcpy(state, results, n * sizeof *results);
	}
	if (rc)
		element_drop(state, n);
	return rc;
}

static int write_record(FILE *file, const struct mu_tensor *t, struct mu_err *err)
{
	MU_AUTO_BUF frame = {0};

	if (t->dtype != MU_STRING || t->shape.count != 1)
		return mu_invalid(err, "a record must be one string, not %s of shape %s",
				  mu_dtype_name(t->dtype), mu_shape_str(&t->shape));
	mu_tfrecord_frame(&frame, elems_span(t, 0));
	return fwrite(frame.data, 1, frame.len, file) == frame.len
		   ? 0
		   : mu_fail_errno(err, errno, "cannot write a record");
}

static int write_records(struct run *r, struct dataset_iterator *dataset_iterator,
			 struct mu_tensor *state, struct mu_err *err)
{
	struct mu_span name = elems_span(kernel_in(r->c, 1), 0);
	MU_AUTO_FREE char *path = mu_xstrndup(name.data, name.len);
	FILE *file;
	int rc;

	MU_RETURN_IF_ERROR(mu_compress_create(&file, path, elems_span(kernel_in(r->c, 2), 0), err));
	while ((rc = dataset_iterator_next(dataset_iterator, state, err)) > 0) {
		rc = write_record(file, state, err);
		element_drop(state, 1);
		if (rc)
			break;
	}
	if (fclose(file) && !rc)
		rc = mu_fail_errno(err, errno, "cannot write %s", path);
	return rc;
}

/* An element has a tensor of keys and a tensor of as many values. */
static int fill_table(struct run *r, struct dataset_iterator *dataset_iterator,
		      struct mu_tensor *state, struct mu_err *err)
{
	bool is_filled, is_empty = true;
	int rc;

	MU_RETURN_IF_ERROR(table_is_filled(r->c, &is_filled, err));
	if (is_filled)
		return 0;
	while ((rc = dataset_iterator_next(dataset_iterator, state, err)) > 0) {
		rc = table_add_pairs(r->c, &state[0], &state[1], err);
		element_drop(state, 2);
		is_empty = false;
		if (rc)
			break;
	}
	if (!rc && is_empty)
		return mu_fail(err, MU_OUT_OF_RANGE, "end of iterator");
	return rc ? rc : table_set_filled(r->c, err);
}

static int dataset_of_graph(struct run *r, struct dataset_iterator *dataset_iterator,
			    struct mu_tensor *state, struct mu_err *err)
{
	return function_call(r->f, &r->caller, NULL, 0, state, 1, err);
}

/* Outputs the element at the index of input 1. */
static int element_at(struct run *r, struct dataset_iterator *dataset_iterator,
		      struct mu_tensor *state, struct mu_err *err)
{
	int64_t index = *MU_DATA(int64_t, kernel_in(r->c, 1)), n = 0;
	int rc;

	for (; (rc = dataset_iterator_next(dataset_iterator, state, err)) > 0 && n != index; n++)
		element_drop(state, r->d->n_out);
	if (rc == 0)
		return mu_fail(err, MU_OUT_OF_RANGE, "Index out of range [0, %lld):%lld",
			       (long long)n, (long long)index);
	if (rc < 0)
		return rc;
	const struct mu_attr *shapes = mu_node_attr(r->c->node, "output_shapes");
	for (unsigned i = 0; i < r->d->n_out && i < shapes->n; i++)
		if (!mu_shape_matches(&state[i].shape, &shapes->shapes[i])) {
			rc = mu_invalid(err,
					"Incompatible shapes at component %u between expected "
					"shape %s and actual shape %s",
					i, mu_pshape_str(&shapes->shapes[i]),
					mu_shape_str(&state[i].shape));
			element_drop(state, r->d->n_out);
			break;
		}
	return rc < 0 ? rc : 0;
}

/* out[row] = value.  The first row allocates the output. */
static int put_row(const struct mu_tensor *value, const struct mu_pshape *want, int64_t row,
		   int64_t n_rows, struct mu_tensor *out, struct mu_err *err)
{
	const struct mu_shape *s = &value->shape;
	struct mu_shape all = mu_shape_vec(n_rows);
	bool fits = mu_shape_matches(s, want);

	MU_RETURN_IF_ERROR(mu_shape_append(&all, s->rank, s->dim, err));
	if (mu_tensor_is_set(out))
		fits = value->dtype == out->dtype && mu_shape_eq(&all, &out->shape);
	else if (fits)
		MU_RETURN_IF_ERROR(mu_tensor_new(out, value->dtype, &all, err));
	if (!fits)
		return mu_invalid(err,
				  "Mismatch in function retval shape, %s, and expected output "
				  "shape, %s.",
				  mu_shape_str(s), mu_pshape_str(want));
	elems_copy(value->dtype, out->data, row * s->count, value->data, 0, s->count);
	return 0;
}

static int put_no_rows(enum mu_dtype t, const struct mu_pshape *want, unsigned k,
		       struct mu_tensor *out, struct mu_err *err)
{
	struct mu_shape none = mu_shape_vec(0);

	if (want->rank < 0 || mu_shape_append(&none, want->rank, want->dim, err))
		return mu_fail(err, MU_INTERNAL, "Missing %u-th output", k);
	return mu_tensor_new(out, t, &none, err);
}

/* Calls the function for each row of the first n_state inputs, one after the other. */
static int map_rows(struct run *r, struct dataset_iterator *dataset_iterator,
		    struct mu_tensor *state, struct mu_err *err)
{
	const struct mu_attr *shapes = mu_node_attr(r->c->node, "output_shapes");
	const struct mu_attr *types = mu_node_attr(r->c->node, "output_types");
	struct mu_tensor args[MAX_COMPONENTS], in[MAX_COMPONENTS], results[MAX_COMPONENTS];
	unsigned n = r->n_state, n_in = r->c->n_in, n_out = r->c->n_out;
	int64_t n_rows = kernel_in(r->c, 0)->shape.dim[0];
	int rc = 0;

	for (unsigned i = 0; i < n_in; i++)
		args[i] = in[i] = *kernel_in(r->c, i);
	for (int64_t row = 0; row < n_rows && !rc; row++) {
		if ((rc = element_row(args, n, row, in, err)))
			break;
		rc = function_call(r->f, &r->caller, in, n_in, results, n_out, err);
		element_drop(in, n);
		if (rc)
			break;
		for (unsigned k = 0; k < n_out && !rc; k++)
			rc = put_row(&results[k], &shapes->shapes[k], row, n_rows, &state[k], err);
		element_drop(results, n_out);
	}
	for (unsigned k = 0; k < n_out && !n_rows && !rc; k++)
		rc = put_no_rows(types->types[k], &shapes->shapes[k], k, &state[k], err);
	if (rc)
		element_drop(state, n_out);
	return rc;
}

/* ---- threads ---- */

static int dataset_run_output(struct kernel_call *c, struct mu_tensor *t, struct mu_err *err)
{
	const struct mu_attr *types = mu_node_attr(c->node, "output_types");

	for (unsigned i = 0; i < c->n_out; i++)
		if (types && (types->n != c->n_out || t[i].dtype != types->types[i])) {
			element_drop(t, c->n_out);
			return mu_invalid(
			    err, "component %u is a %s, which is not what output_types says", i,
			    mu_dtype_name(t[i].dtype));
		}
	for (unsigned i = 0; i < c->n_out; i++)
		kernel_out_take(c, i, t[i]);
	return 0;
}

static void dataset_run_thread(void *arg)
{
	struct run *r = arg;
	struct kernel_call *c = r->c;
	struct mu_tensor state[MAX_COMPONENTS] = {0};
	struct dataset_iterator *dataset_iterator = NULL;
	struct mu_err err = {0};
	int rc = r->d ? dataset_iterator_open(r->d, &r->caller, &dataset_iterator, &err) : 0;

	if (!rc)
		rc = r->body(r, dataset_iterator, state, &err);
	if (!rc)
		rc = dataset_run_output(c, state, &err);
	dataset_iterator_close(dataset_iterator);
	function_free(r->f);
	if (kernel_uncancel(c))
		run_drop(r);
	run_drop(r);
	atomic_fetch_sub(&runs, 1);
	kernel_finish(c, rc ? &err : NULL);
}

static void dataset_run_start(struct kernel_call *c, struct run *r)
{
	struct mu_err err;
	int rc;

	if (kernel_on_cancel(c, dataset_run_cancelled, r)) {
		rc = atomic_fetch_add(&runs, 1) < MAX_RUNS
			 ? runtime_start_thread(c->runtime, dataset_run_thread, r, &err)
			 : mu_fail(&err, MU_RESOURCE_EXHAUSTED,
				   "%d kernels draw from a dataset already", MAX_RUNS);
		if (!rc)
			return;
		atomic_fetch_sub(&runs, 1);
		if (kernel_uncancel(c))
			run_drop(r);
	} else {
		mu_fail(&err, MU_CANCELLED, "the step has ended");
	}
	function_free(r->f);
	run_drop(r);
	kernel_finish(c, &err);
}

static int dataset_run_input(struct kernel_call *c, struct run *r, unsigned i, struct mu_err *err)
{
	struct mu_object *o;

	MU_RETURN_IF_ERROR(variant_in(c, i, &dataset_type, &o, err));
	r->d = MU_CONTAINER(o, const struct dataset, object);
	return 0;
}

static int dataset_run_prepare(struct kernel_call *c, struct run *r, struct mu_err *err)
{
	return dataset_run_input(c, r, 0, err);
}

static int prepare_table(struct kernel_call *c, struct run *r, struct mu_err *err)
{
	MU_RETURN_IF_ERROR(dataset_run_input(c, r, 1, err));
	return r->d->n_out == 2
		   ? 0
		   : mu_invalid(err, "a table is filled from keys and values, not %u components",
				r->d->n_out);
}

static int prepare_single(struct kernel_call *c, struct run *r, struct mu_err *err)
{
	int rc = dataset_run_prepare(c, r, err);

	return rc || r->d->n_out == c->n_out
		   ? rc
		   : mu_invalid(err, "the dataset has %u components, not %u", r->d->n_out,
				c->n_out);
}

static int prepare_records(struct kernel_call *c, struct run *r, struct mu_err *err)
{
	int rc = dataset_run_prepare(c, r, err);

	if (rc || (rc = args_rank(c, 1, 0, err)) || (rc = args_rank(c, 2, 0, err)))
		return rc;
	return r->d->n_out == 1
		   ? 0
		   : mu_invalid(err, "records have one component, not %u", r->d->n_out);
}

static int prepare_reduce(struct kernel_call *c, struct run *r, struct mu_err *err)
{
	const struct mu_attr *f = mu_node_attr(c->node, "f"), *s = mu_node_attr(c->node, "Tstate");

	MU_RETURN_IF_ERROR(dataset_run_prepare(c, r, err));
	r->n_state = s ? s->n : 0;
	if (!f || f->kind != MU_ATTR_FUNC || r->n_state != c->n_out || c->n_in < 1 + r->n_state ||
	    c->n_in - 1 + r->d->n_out > MAX_COMPONENTS)
		return mu_invalid(err, "%u states of %u outputs and %u inputs, or no function",
				  r->n_state, c->n_out, c->n_in);
	return function_new(c->runtime, c->step, f->func, &r->f, err);
}

static int prepare_element(struct kernel_call *c, struct run *r, struct mu_err *err)
{
	MU_RETURN_IF_ERROR(args_rank(c, 1, 0, err));
	MU_RETURN_IF_ERROR(prepare_single(c, r, err));
	int64_t n = r->d->cardinality, index = *MU_DATA(int64_t, kernel_in(c, 1));
	if (n < 0)
		return mu_fail(err, MU_FAILED_PRECONDITION,
			       "Dataset of type %s has %s cardinality, which does not support "
			       "random access.",
			       r->d->op, n == INFINITE_CARDINALITY ? "infinite" : "unknown");
	return index >= 0 && index < n
		   ? 0
		   : mu_fail(err, MU_OUT_OF_RANGE, "Index out of range [0, %lld):%lld",
			     (long long)n, (long long)index);
}

static int prepare_map(struct kernel_call *c, struct run *r, struct mu_err *err)
{
	const struct mu_attr *f = mu_node_attr(c->node, "f");
	const struct mu_attr *shapes = mu_node_attr(c->node, "output_shapes");
	const struct mu_attr *args = mu_node_attr(c->node, "Targuments");

	r->n_state = args->n;
	if (f->kind != MU_ATTR_FUNC || c->n_in > MAX_COMPONENTS || c->n_out > MAX_COMPONENTS)
		return mu_invalid(err, "%u inputs and %u outputs, or no function", c->n_in,
				  c->n_out);
	if (shapes->n != c->n_out)
		return mu_invalid(err, "Length of output_shapes and output_types must match.");
	for (unsigned i = 0; i < r->n_state; i++) {
		const struct mu_shape *s = &kernel_in(c, i)->shape;
		if (s->rank == 0)
			return mu_invalid(err,
					  "All inputs must have rank at least 1. Input %u has a "
					  "rank of 0.",
					  i);
		if (s->dim[0] != kernel_in(c, 0)->shape.dim[0])
			return mu_invalid(err,
					  "All inputs must have the same dimension 0. Input %u has "
					  "leading dimension %lld, while all previous inputs have "
					  "leading dimension %lld",
					  i, (long long)s->dim[0],
					  (long long)kernel_in(c, 0)->shape.dim[0]);
	}
	return function_new(c->runtime, c->step, f->func, &r->f, err);
}

static int prepare_graph(struct kernel_call *c, struct run *r, struct mu_err *err)
{
	MU_RETURN_IF_ERROR(args_rank(c, 0, 0, err));
	MU_RETURN_IF_ERROR(
	    function_from_graph(c->runtime, c->step, elems_span(kernel_in(c, 0), 0), &r->f, err));
	return function_outputs(r->f) == 1
		   ? 0
		   : mu_fail(err, MU_NOT_FOUND,
			     "Failed to find a _Retval op in the given dataset.");
}

static void dataset_run_begin(struct kernel_call *c,
			      int (*prepare)(struct kernel_call *c, struct run *r,
					     struct mu_err *err),
			      int (*body)(struct run *r, struct dataset_iterator *dataset_iterator,
					  struct mu_tensor *state, struct mu_err *err))
{
	struct run *r = MU_NEW(struct run);
	struct mu_err err;

	caller_init(&r->caller);
	atomic_init(&r->refs, 2);
	r->c = c;
	r->body = body;
	if (!prepare(c, r, &err)) {
		dataset_run_start(c, r);
		return;
	}
	function_free(r->f);
	caller_fini(&r->caller);
	free(r);
	kernel_finish(c, &err);
}

static void start_single(struct kernel_call *c)
{
	dataset_run_begin(c, prepare_single, single_element);
}

static void start_reduce(struct kernel_call *c)
{
	dataset_run_begin(c, prepare_reduce, dataset_run_reduce);
}

static void start_table(struct kernel_call *c)
{
	dataset_run_begin(c, prepare_table, fill_table);
}

static void start_records(struct kernel_call *c)
{
	dataset_run_begin(c, prepare_records, write_records);
}

static void start_element(struct kernel_call *c)
{
	dataset_run_begin(c, prepare_element, element_at);
}

static void start_map(struct kernel_call *c)
{
	dataset_run_begin(c, prepare_map, map_rows);
}

static void start_graph(struct kernel_call *c)
{
	dataset_run_begin(c, prepare_graph, dataset_of_graph);
}

static int cardinality(struct kernel_call *c, struct mu_err *err)
{
	struct mu_object *o;

	MU_RETURN_IF_ERROR(variant_in(c, 0, &dataset_type, &o, err));
	int64_t n = MU_CONTAINER(o, const struct dataset, object)->cardinality;
	return kernel_out_value(c, 0, MU_INT64, &n, err);
}

static int batch_size(struct kernel_call *c, struct mu_err *err)
{
	struct mu_object *o;

	MU_RETURN_IF_ERROR(variant_in(c, 0, &dataset_type, &o, err));
	int64_t n = MU_CONTAINER(o, const struct dataset, object)->batch_size;
	return kernel_out_value(c, 0, MU_INT64, &n, err);
}

static const struct kernel rows[] = {
    {"ComputeBatchSize", .flags = KERNEL_NO_FOLD, .run = batch_size},
    {"ReduceDataset", .flags = KERNEL_NO_FOLD, .start = start_reduce},
    {"DatasetFromGraph", .flags = KERNEL_NO_FOLD, .start = start_graph},
    {"DatasetToSingleElement", .flags = KERNEL_NO_FOLD, .start = start_single},
    {"DatasetToTFRecord ExperimentalDatasetToTFRecord", .flags = KERNEL_NO_FOLD,
     .start = start_records},
    {"GetElementAtIndex", .flags = KERNEL_NO_FOLD, .start = start_element},
    {"MapDefun", .flags = KERNEL_NO_FOLD, .start = start_map},
    {"InitializeTableFromDataset", .flags = KERNEL_NO_FOLD, .start = start_table},
    {"DatasetCardinality ExperimentalDatasetCardinality", .flags = KERNEL_NO_FOLD,
     .run = cardinality},
};
KERNEL_TABLE(data_dataset_ops, rows)
