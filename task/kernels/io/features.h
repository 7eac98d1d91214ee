/* SPDX-License-Identifier: Apache-2.0 */
/* Features of examples as tensors: shared by ParseExample, its variants, and their datasets.
 *
 * A slot is one requested feature.  Each serialized example is parsed once; every feature found is
 * recorded in its slots as a list (type, count, bytes).  Then each slot's tensors are allocated at
 * their final size and filled. */
#ifndef MU_TASK_KERNELS_IO_FEATURES_H
#define MU_TASK_KERNELS_IO_FEATURES_H

#include "lib/base/map.h"
#include "lib/graph/graph.h"
#include "task/kernels/io/example.h"
#include "task/runtime/kernel.h"

enum feature_kind { FEATURE_SPARSE, FEATURE_DENSE, FEATURE_RAGGED, FEATURE_KINDS };

struct feature_slot {
	struct mu_span key;
	enum feature_kind kind;
	enum mu_dtype type;
	unsigned at;                /* index among the slots of this kind */
	struct feature_slot *next;  /* another one with the same key */
	struct example_list *lists; /* one for each example */
};

struct features {
	struct mu_arena arena;
	struct mu_map by_key;
	struct feature_slot *slots;
	struct example_list *lists;
	unsigned n[FEATURE_KINDS], n_slots;
	const struct mu_attr *shapes, *splits; /* borrowed: dense shapes, ragged split types */
	const struct mu_tensor **defaults;     /* borrowed: default value of each dense feature */
	int64_t examples, current;
	bool single;                   /* one example without a batch dimension */
	const struct mu_tensor *names; /* of the examples, for errors; or NULL */
	/* With `single`: row splits of ragged features are the scalar 0, not an empty vector. */
	bool one_split;
};
/* Appends "Name: NAME, " of example i: the prefix of error messages. */
void features_put_name(struct mu_buf *b, const struct features *f, int64_t i);
void features_init(struct features *f);
void features_fini(struct features *f);
#define FEATURES_AUTO __attribute__((cleanup(features_fini))) struct features

/* Allocates `slots` slots, before any is added. */
void features_alloc(struct features *f, unsigned slots);
/* Reads the keys of `inputs` inputs from input `from` on: all their elements, in order. */
int features_read_keys(struct features *f, const struct kernel_call *c, unsigned from,
		       unsigned inputs, const struct mu_span **out, unsigned *n,
		       struct mu_err *err);
/* Adds one slot for each of n keys, borrowed, with the types of the attribute. */
int features_add_slots(struct features *f, enum feature_kind kind, const struct mu_span *keys,
		       unsigned n, const char *attr, const struct mu_attr *types,
		       struct mu_err *err);
/* The number of output tensors: indices, values and shapes of sparse features, then dense ones,
 * then values and splits of ragged ones, each group in the order of its slots. */
unsigned features_count_outputs(const struct features *f);
/* Allocates the lists of `examples` examples, after all slots are added. */
int features_begin(struct features *f, int64_t examples, struct mu_err *err);
/* Adds a feature of example `current`; called by example_read. */
void features_add_value(void *arg, struct mu_span key, const struct example_list *list);
/* Checks that the values recorded for example `current` have the requested types. */
int features_check(const struct features *f, struct mu_err *err);
/* Creates all output tensors. On failure the caller releases those that are set. */
int features_make_outputs(const struct features *f, struct mu_tensor *out, struct mu_err *err);

/* Allocates the row splits of n rows: n + 1 zeros of int32 or int64; n < 0: a scalar 0. */
int features_splits(struct mu_tensor *out, enum mu_dtype t, int64_t n, int64_t values,
		    struct mu_err *err);

#endif
