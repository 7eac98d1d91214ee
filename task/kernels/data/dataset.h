/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets: what an input pipeline is made of.
 *
 * A dataset is an object that never changes (but for what it keeps between iterations: seeds, a
 * cache): its kind, the datasets it draws from, its parameters.  Iterating one opens a cursor,
 * which opens cursors of the datasets below as it needs them.  One struct of functions a kind; a
 * cursor is used by one thread at a time.
 */
#ifndef MU_TASK_KERNELS_DATA_DATASET_H
#define MU_TASK_KERNELS_DATA_DATASET_H

#include "lib/tensor/object.h"
#include "task/runtime/function.h"

struct dataset;
struct cursor;
struct archive;
enum { ANY_NUMBER = 1000, MAX_COMPONENTS = 256, MAX_CHAIN = 1000, MAX_FUNCTIONS = 4 };
enum { INFINITE_CARDINALITY = -1, UNKNOWN_CARDINALITY = -2 }; /* instead of a number of elements */
struct dataset_kind {
	const char *op;
	size_t shared_size, cursor_size; /* bytes of `shared` and of `own` */
	unsigned n_in;      /* datasets it draws from; ANY_NUMBER: as many as come first */
	unsigned n_scalars; /* parameters that are numbers: the last ones */
	/* The dataset's functions. Each has two attributes: the function's name and the types of
	 * its captured inputs. The captured inputs are parameters, in the order of the functions,
	 * before the numeric ones. */
	struct {
		const char *name, *captured;
	} function[MAX_FUNCTIONS];
	bool reshapes; /* its elements have other components than those it draws */
	/* (optional) how many elements it has when the first it draws from has n; NULL: as many, or
	 * UNKNOWN_CARDINALITY where it draws from none or has a function. */
	int64_t (*count)(const struct dataset *d, int64_t n);
	unsigned n_behind; /* inputs behind all others, which say nothing here */
	/* (optional) takes from the node what `check` and `next` need of its attributes */
	void (*read)(struct dataset *d, const struct mu_node *n);
	int (*check)(struct dataset *d, struct mu_err *err); /* (optional) fills shared */
	void (*finish)(struct dataset *d);                   /* (optional) undoes check */
	int (*open)(struct cursor *c, struct mu_err *err);   /* (optional) */
	/* 1 with n_out new tensors in out, 0 at the end. */
	int (*next)(struct cursor *c, struct mu_tensor *out, struct mu_err *err);
	void (*close)(struct cursor *c); /* (optional) */
	/* (optional) what `own` says, written to an archive or read from it; what is below follows.
	 * NULL where there is an `own`: its iterators cannot be saved. */
	int (*state)(struct cursor *c, struct archive *a, struct mu_err *err);
	bool sheds; /* may release the input cursor that `open` has opened */
};

struct dataset {
	struct mu_object object;
	const struct dataset_kind *kind;
	unsigned n_in, n_params, n_out;
	unsigned depth; /* of the deepest chain below */
	struct dataset **in;
	struct mu_tensor *params; /* the op's other inputs, in order */
	unsigned n_first;         /* parameters before what functions captured */
	struct {
		struct function *f;
		unsigned from, n; /* the parameters that it captured */
	} f[MAX_FUNCTIONS];
	bool flag;        /* reshuffle_each_iteration, rerandomize_each_iteration,
			     stop_on_empty_dataset: what the op has of them */
	bool keeps_count; /* preserve_cardinality */
	void *shared;
};
extern const struct mu_object_type dataset_type;

struct cursor {
	const struct dataset *d;
	struct caller *who; /* of functions; the same for all cursors of an iterator */
	struct cursor *up;  /* of in[0], when the kind has opened it */
	void *own;
};

int cursor_open(const struct dataset *d, struct caller *who, struct cursor **out,
		struct mu_err *err);
void cursor_close(struct cursor *c); /* NULL is fine */
static inline int cursor_next(struct cursor *c, struct mu_tensor *out, struct mu_err *err)
{
	if (caller_stopped(c->who)) /* or what filters out everything would go on for ever */
		return mu_fail(err, MU_CANCELLED, "the iterator is gone");
	return c->d->kind->next(c, out, err);
}
/* The element is given back. */
void element_drop(struct mu_tensor *t, unsigned n);
/* Row `row` of each of n tensors of at least one dimension. */
int element_row(const struct mu_tensor *t, unsigned n, int64_t row, struct mu_tensor *out,
		struct mu_err *err);
/* Number k of the scalars. */
int64_t dataset_number(const struct dataset *d, unsigned k);
/* Opens in[0] as c->up. */
int cursor_open_up(struct cursor *c, struct mu_err *err);
/* Calls function `which` of the cursor's dataset on an element and the captured parameters; the
 * element is taken. */
int dataset_apply(const struct cursor *c, unsigned which, struct mu_tensor *element, unsigned n,
		  struct mu_tensor *out, unsigned n_out, struct mu_err *err);
/* The dataset that a function or an input gave; borrowed.  NULL: it is none. */
struct dataset *dataset_in(const struct mu_tensor *t);
/* How many elements it has, as far as that shows without drawing any. */
int64_t dataset_count(const struct dataset *d);
/* An element of in[0] passed through function `which`; kept: (optional) gets the element as well.
 */
int dataset_draw(struct cursor *c, unsigned which, struct mu_tensor *out, unsigned n_out,
		 struct mu_tensor *kept, struct mu_err *err);

/* A dataset without inputs and without `shared`. */
struct dataset *dataset_new(const struct dataset_kind *k);

/* The kinds' tables. */
extern const struct dataset_kind source_kinds[], pass_kinds[], batch_kinds[], function_kinds[],
    shuffle_kinds[], file_kinds[], group_kinds[], mix_kinds[], csv_kinds[], parse_kinds[],
    sparse_kinds[], generator_kinds[];

#endif
