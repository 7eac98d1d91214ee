/* SPDX-License-Identifier: Apache-2.0 */
/* Moves of elements in host or GPU memory. A kernel that computes shapes itself and moves elements
 * with these functions serves the CPU and GPUs. The inputs and the output of a call are in the same
 * memory, except where a parameter is documented to be on the host. */
#ifndef MU_TASK_KERNELS_ENGINE_MOVE_H
#define MU_TASK_KERNELS_ENGINE_MOVE_H

#include "task/kernels/engine/elems.h"
#include "task/runtime/kernel.h"

/* Creates output i on the node's device, or on the host if a GPU cannot hold its elements. */
int kernel_out_on_device(struct kernel_call *c, unsigned i, enum mu_dtype dtype,
			 const struct mu_shape *shape, struct mu_tensor **out, struct mu_err *err);
/* The same, in the memory of input `from` if this is its last use and it fits. */
int move_out_reuse(struct kernel_call *c, unsigned i, unsigned from, enum mu_dtype dtype,
		   const struct mu_shape *shape, struct mu_tensor **out, struct mu_err *err);
/* Memory of one call, on the device of its outputs. */
int move_scratch(struct kernel_call *c, enum mu_dtype dtype, const struct mu_shape *shape,
		 struct mu_tensor *out, struct mu_err *err);
/* Copies numbers that the host has computed to the device of `out`; for the host a reference. */
int move_numbers(struct kernel_call *c, const struct mu_tensor *out,
		 const struct mu_tensor *numbers, struct mu_tensor *copy, struct mu_err *err);
/* out (dense) = view v of in. */
int move_read(const struct mu_tensor *out, const struct mu_tensor *in, const struct view *v,
	      struct mu_err *err);
/* View v of out = in (dense). */
int move_write(const struct mu_tensor *out, const struct view *v, const struct mu_tensor *in,
	       struct mu_err *err);
/* A stored tensor, in the memory of the node's outputs: the tensor itself, or a copy from the host.
 * A tensor on a GPU cannot be copied elsewhere by this function; that is an error. */
int move_to_device(struct kernel_call *c, const struct mu_tensor *stored, struct mu_tensor *out,
		   struct mu_err *err);
/* out = in, of the same number of elements, unless they are the same memory. */
int move_all(const struct mu_tensor *out, const struct mu_tensor *in, struct mu_err *err);
/* Fills out with the element of `one`; NULL: with zeros. */
int move_fill(const struct mu_tensor *out, const struct mu_tensor *one, struct mu_err *err);

/* Copies `rows` runs of `run` elements; each run begins `step` elements after the previous one. */
struct runs {
	int64_t rows, run;
	struct run_place {
		int64_t at, step;
	} to, from;
};
int move_runs(const struct mu_tensor *out, const struct mu_tensor *in, const struct runs *r,
	      struct mu_err *err);
/* Copies rows [at, at + n) of t to new memory on the device of the outputs.  `row`: n is 1, and the
 * result has no dimension of rows. */
int move_rows_out(struct kernel_call *c, const struct mu_tensor *t, int64_t at, int64_t n, bool row,
		  struct mu_tensor *out, struct mu_err *err);
/* move_join copies n tensors of part_size elements to consecutive parts of `whole`; a tensor that
 * is not set gives zeros.  move_cut copies the parts of `whole` to n tensors. */
int move_join(const struct mu_tensor *whole, const struct mu_tensor *parts, int64_t n,
	      int64_t part_size, struct mu_err *err);
int move_cut(const struct mu_tensor *parts, int64_t n, int64_t part_size,
	     const struct mu_tensor *whole, struct mu_err *err);

/* Gathers rows: out is [batches, outer, count, inner], in is [batches, outer, limit, inner],
 * indices are [batches, count].  As in TensorFlow, an index out of range is an error on the host
 * and gives zeros on a GPU. */
struct picks {
	int64_t batches, outer, count, inner, limit;
};
int move_picks(const struct mu_tensor *out, const struct mu_tensor *in,
	       const struct mu_tensor *indices, const struct picks *p, struct mu_err *err);
/* As GatherNd: out is n slices of in, each at an index of `depth` numbers. */
int move_positions(struct kernel_call *c, const struct mu_tensor *out, const struct mu_tensor *in,
		   const struct mu_tensor *indices, int64_t n, int depth, struct mu_err *err);

/* As OneHot: out is [indices / inner, depth, inner], with `on` at the index and `off` elsewhere;
 * both are one element in host memory. */
int move_one_hot(const struct mu_tensor *out, const struct mu_tensor *indices, int64_t depth,
		 int64_t inner, const struct mu_tensor *on, const struct mu_tensor *off,
		 struct mu_err *err);

#endif
