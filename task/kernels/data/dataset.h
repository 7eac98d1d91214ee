/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets: the elements of an input pipeline.
 *
 * A dataset has a kind, input datasets and parameters, and does not change, except for data that
 * it keeps between iterations (seeds, a cache).  A dataset iterator opens the iterators of the
 * input datasets when it needs them.  Each kind has one struct of functions.  One thread at a time
 * uses an iterator.
 */
#ifndef MU_TASK_KERNELS_DATA_DATASET_H
#define MU_TASK_KERNELS_DATA_DATASET_H

#include "lib/tensor/object.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/runtime/function.h"

struct dataset;
struct dataset_iterator;
struct serializer;
enum { ANY_NUMBER = 1000, MAX_COMPONENTS = 1024, MAX_CHAIN = 1000, MAX_FUNCTIONS = 4 };
enum { MAX_NESTED_READS = 2 * MAX_CHAIN }; /* of dataset iterators that read each other */
enum { INFINITE_CARDINALITY = -1, UNKNOWN_CARDINALITY = -2 }; /* instead of a number of elements */
struct dataset_kind {
	struct kernel k;
	size_t shared_size, state_size; /* bytes of `shared` and of the iterator's `state` */
	unsigned n_in;                  /* input datasets; ANY_NUMBER: all leading ones */
	unsigned n_scalars;             /* parameters that are numbers: the last ones */
	/* The dataset's functions. Each has two attributes: the function's name and the types of
	 * its captured inputs. The captured inputs are parameters, in the order of the functions,
	 * before the numeric ones. */
	struct {
		const char *name, *captured;
	} function[MAX_FUNCTIONS];
	bool reshapes; /* the elements have other components than the input's elements */
	/* (optional) Returns the cardinality; n is that of in[0].  NULL: n, or UNKNOWN_CARDINALITY
	 * for a kind without input datasets or with a function. */
	int64_t (*cardinality)(const struct dataset *d, int64_t n);
	unsigned n_ignored_inputs; /* the op's last inputs, which are not used */
	/* (optional) Reads the attributes that `check` and `next` need. */
	void (*read)(struct dataset *d, const struct mu_node *n);
	int (*check)(struct dataset *d, struct mu_err *err);          /* (optional) fills shared */
	void (*finish)(struct dataset *d);                            /* (optional) undoes check */
	int (*open)(struct dataset_iterator *it, struct mu_err *err); /* (optional) */
	/* Returns 1 with n_out new tensors in `out`, or 0 at the end. */
	int (*next)(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err);
	void (*close)(struct dataset_iterator *it); /* (optional) */
	/* (optional) Serializes or restores `state`; the caller serializes the input iterator. The
	 * iterators of a kind with a `state` but without this function cannot be saved. */
	int (*serialize)(struct dataset_iterator *it, struct serializer *ser, struct mu_err *err);
	bool releases_input; /* may close the input iterator that `open` has opened */
	bool is_copied;      /* a copy of the dataset (dataset_copy) has a separate `shared` */
};

struct dataset {
	struct mu_object object;
	const struct dataset_kind *kind;
	const char *op;      /* from the table of ops */
	struct mu_buf attrs; /* of the node that created it, as NodeDef fields; empty: no node */
	unsigned n_in, n_params, n_out;
	unsigned depth; /* length of the longest chain of input datasets */
	/* These are computed once, without reading elements: in a chain of datasets, 2^depth paths
	 * may lead to the same dataset. */
	int64_t cardinality;
	int64_t batch_size; /* of the batches, if the elements are batches; -1: unknown */
	struct dataset **in;
	struct mu_tensor *params; /* the op's other inputs, in order */
	unsigned n_params_before_captured;
	struct {
		struct function *f;
		unsigned from, n; /* its captured inputs: params[from] to params[from + n - 1] */
	} f[MAX_FUNCTIONS];
	/* The op's reshuffle_each_iteration, rerandomize_each_iteration or stop_on_empty_dataset:
	 * it has at most one of them.  AutoShardDataset: true if it shards. */
	bool op_flag;
	bool preserve_cardinality;
	bool is_copied; /* is_copied of its kind or of an input dataset */
	void *shared;
	/* Set in a copy. The original owns all members but `in` and, if kind->is_copied is set,
	 * `shared`. */
	struct dataset *original;
};
extern const struct mu_object_type dataset_type;
extern const struct dataset_kind file_cache_kind; /* CacheDataset with a file name */

struct dataset_iterator {
	const struct dataset *d;
	struct caller *caller; /* of functions; shared by all dataset iterators of an iterator */
	struct dataset_iterator *input; /* over in[0]; NULL: not open */
	void *state;
};

int dataset_iterator_open(const struct dataset *d, struct caller *caller,
			  struct dataset_iterator **out, struct mu_err *err);
void dataset_iterator_close(struct dataset_iterator *it); /* NULL is fine */
/* Replaces an OUT_OF_RANGE error by another code, because readers take OUT_OF_RANGE for the end of
 * the dataset. */
int dataset_out_of_range(const struct dataset *d, struct mu_err *err);
static inline int dataset_iterator_next(struct dataset_iterator *it, struct mu_tensor *out,
					struct mu_err *err)
{
	if (caller_stopped(it->caller)) /* a filter that rejects everything would never end */
		return mu_fail(err, MU_CANCELLED, "the iterator is gone");
	if (it->caller->depth == MAX_NESTED_READS) /* each function may return another chain */
		return mu_invalid(err, "over %d datasets read each other", MAX_NESTED_READS);
	it->caller->depth++;
	int rc = it->d->kind->next(it, out, err);
	it->caller->depth--;
	return rc == -MU_OUT_OF_RANGE ? dataset_out_of_range(it->d, err) : rc;
}
int64_t dataset_unknown_cardinality(const struct dataset *d, int64_t n); /* for dataset_kind */
/* Sets `to` to new references to the tensors of an element. */
void element_ref(struct mu_tensor *to, const struct mu_tensor *from, unsigned n);
/* Releases the tensors of an element. */
void element_drop(struct mu_tensor *t, unsigned n);
/* Copies row `row` of each of n tensors, which have at least one dimension. */
int element_row(const struct mu_tensor *t, unsigned n, int64_t row, struct mu_tensor *out,
		struct mu_err *err);
/* Returns scalar parameter k as an integer. */
int64_t dataset_number(const struct dataset *d, unsigned k);
/* Opens in[0] as it->input. */
int dataset_iterator_open_input(struct dataset_iterator *it, struct mu_err *err);
void dataset_iterator_close_input(struct dataset_iterator *it);
/* Calls function `which` of the iterator's dataset on an element and the captured inputs.  Takes
 * the element. */
int dataset_apply(const struct dataset_iterator *it, unsigned which, struct mu_tensor *element,
		  unsigned n, struct mu_tensor *out, unsigned n_out, struct mu_err *err);
/* Handles OUT_OF_RANGE of a function: returns 0, the end of the elements, or with
 * preserve_cardinality an error. */
int dataset_function_ended(struct dataset_iterator *it, struct mu_err *err);
/* True if the elements are those of in[0], as for OptionsDataset and PrefetchDataset. */
bool dataset_has_same_elements(const struct dataset *d);
/* Applies function 0, which may end the elements, to the next element of in[0]. */
int dataset_map_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err);
/* True if each element is the result of a function of an element of in[0]. */
bool dataset_is_map(const struct dataset *d);
/* Returns the dataset in a variant tensor, borrowed, or NULL if `t` is not a dataset. */
struct dataset *dataset_in(const struct mu_tensor *t);
/* Applies function `which` to the next element of in[0].  element: (optional) gets that element. */
int dataset_next_mapped(struct dataset_iterator *it, unsigned which, struct mu_tensor *out,
			unsigned n_out, struct mu_tensor *element, struct mu_err *err);

/* Creates a dataset without inputs and without `shared`. */
struct dataset *dataset_new(const struct dataset_kind *k, const char *op);

/* Copies the datasets that have is_copied, once for each use in the pipeline, so that each use has
 * separate seeds.  TensorFlow does so when it rewrites the pipeline of an iterator as a graph. */
int dataset_copy(struct dataset *d, struct dataset **out, struct mu_err *err);

/* The kernel of all dataset kinds: creates a dataset. */
int dataset_make(struct kernel_call *c, struct mu_err *err);
#define DATASET(ops) .k = {ops, .flags = KERNEL_NO_FOLD, .run = dataset_make}

#endif
