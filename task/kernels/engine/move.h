/* SPDX-License-Identifier: Apache-2.0 */
/* Moves of elements in host or GPU memory. A kernel that computes shapes itself and moves elements
 * with these functions serves the CPU and GPUs. The inputs and the output of a call are in the same
 * memory, except where a parameter is documented to be on the host. */
#ifndef MU_TASK_KERNELS_ENGINE_MOVE_H
#define MU_TASK_KERNELS_ENGINE_MOVE_H

#include "task/kernels/engine/elems.h"
#include "task/runtime/kernel.h"

/* Output i as new memory of the node's device; of the host when no GPU can hold such elements. */
int kernel_out_on_device(struct kernel_call *c, unsigned i, enum mu_dtype dtype,
			 const struct mu_shape *shape, struct mu_tensor **out, struct mu_err *err);
/* The same in the memory of input `from` when that is its last use and it fits. */
int move_out_reuse(struct kernel_call *c, unsigned i, unsigned from, enum mu_dtype dtype,
		   const struct mu_shape *shape, struct mu_tensor **out, struct mu_err *err);
/* Memory for the call alone, where its outputs lie. */
int move_scratch(struct kernel_call *c, enum mu_dtype dtype, const struct mu_shape *shape,
		 struct mu_tensor *out, struct mu_err *err);
/* Numbers that the host has computed, in the memory of `out`: themselves, or a copy. */
int move_numbers(struct kernel_call *c, const struct mu_tensor *out,
		 const struct mu_tensor *numbers, struct mu_tensor *there, struct mu_err *err);
/* out (dense) = in seen through v. */
int move_read(const struct mu_tensor *out, const struct mu_tensor *in, const struct view *v,
	      struct mu_err *err);
/* out seen through v = in (dense). */
int move_write(const struct mu_tensor *out, const struct view *v, const struct mu_tensor *in,
	       struct mu_err *err);
/* A stored tensor, in the memory of the node's outputs: the tensor itself, or a copy from the host.
 * A tensor on a GPU cannot be copied elsewhere by this function; that is an error. */
int move_to_device(struct kernel_call *c, const struct mu_tensor *stored, struct mu_tensor *out,
		   struct mu_err *err);
/* out = in, of as many elements, unless they are the same memory. */
int move_all(const struct mu_tensor *out, const struct mu_tensor *in, struct mu_err *err);
/* All of out = the one element of `one`; NULL: zero. */
int move_fill(const struct mu_tensor *out, const struct mu_tensor *one, struct mu_err *err);

/* `rows` runs of elements; each begins `step` after the one before it. */
struct runs {
	int64_t rows, run;
	struct run_place {
		int64_t at, step;
	} to, from;
};
int move_runs(const struct mu_tensor *out, const struct mu_tensor *in, const struct runs *r,
	      struct mu_err *err);
/* Rows [at, at + n) of t as new memory where the outputs lie; `row`: one row, without its first
 * dimension. */
int move_rows_out(struct kernel_call *c, const struct mu_tensor *t, int64_t at, int64_t n, bool row,
		  struct mu_tensor *out, struct mu_err *err);
/* n tensors of `each` elements, one behind the other in `whole`: put together, one that is not set
 * as zeros; or cut apart. */
int move_join(const struct mu_tensor *whole, const struct mu_tensor *parts, int64_t n, int64_t each,
	      struct mu_err *err);
int move_cut(const struct mu_tensor *parts, int64_t n, int64_t each, const struct mu_tensor *whole,
	     struct mu_err *err);

/* Rows by number: out is [batches, outer, count, inner], in is [batches, outer, limit, inner],
 * indices are [batches, count].  An index out of range is an error on the host and gives zeros on a
 * GPU, as TensorFlow has it. */
struct picks {
	int64_t batches, outer, count, inner, limit;
};
int move_picks(const struct mu_tensor *out, const struct mu_tensor *in,
	       const struct mu_tensor *indices, const struct picks *p, struct mu_err *err);
/* The same by position: out is n slices of in, each named by `depth` numbers. */
int move_positions(struct kernel_call *c, const struct mu_tensor *out, const struct mu_tensor *in,
		   const struct mu_tensor *indices, int64_t n, int depth, struct mu_err *err);

/* out is [indices before, depth, inner]: `on` where the index is, `off` elsewhere; both are one
 * element on the host. */
int move_one_hot(const struct mu_tensor *out, const struct mu_tensor *indices, int64_t depth,
		 int64_t inner, const struct mu_tensor *on, const struct mu_tensor *off,
		 struct mu_err *err);

#endif
