/* SPDX-License-Identifier: Apache-2.0 */
/* Attribute values of nodes (TensorFlow's AttrValue). */
#ifndef MU_LIB_GRAPH_ATTR_H
#define MU_LIB_GRAPH_ATTR_H

#include "lib/base/buf.h"
#include "lib/tensor/tensor.h"

enum mu_attr_kind {
	MU_ATTR_NONE,
	MU_ATTR_STRING,
	MU_ATTR_INT,
	MU_ATTR_FLOAT,
	MU_ATTR_BOOL,
	MU_ATTR_TYPE,
	MU_ATTR_SHAPE,
	MU_ATTR_TENSOR,
	MU_ATTR_FUNC,
	MU_ATTR_PLACEHOLDER,
	MU_ATTR_LIST = 16, /* MU_ATTR_LIST + element kind; an empty list is MU_ATTR_LIST itself */
};

struct mu_node_attr;
struct mu_func { /* NameAttrList */
	const char *name;
	unsigned n_attrs;
	struct mu_node_attr *attrs;
};

/* Strings, lists and functions are in the arena of the owner (the graph).  Tensors are references
 * that the owner releases. */
struct mu_attr {
	enum mu_attr_kind kind;
	unsigned n; /* elements of a list */
	union {
		struct mu_span s; /* STRING, PLACEHOLDER; NUL-terminated too */
		int64_t i;
		float f;
		bool b;
		enum mu_dtype type;
		struct mu_pshape *shape;
		struct mu_tensor *tensor;
		struct mu_func *func;
		struct mu_span *ss;
		int64_t *is;
		float *fs;
		bool *bs;
		enum mu_dtype *types;
		struct mu_pshape *shapes;
		struct mu_tensor *tensors;
		struct mu_func *funcs;
	};
};

struct mu_node_attr {
	const char *name;
	struct mu_attr value;
};

/* Makes a deep copy in arena a, with new references to the tensors. */
void mu_attr_copy(struct mu_attr *to, const struct mu_attr *from, struct mu_arena *a);
/* Releases the tensors; all else belongs to the arena. */
void mu_attr_fini(struct mu_attr *v);
/* Parses an AttrValue message.  *budget is the number of tensor bytes still allowed; the call
 * decreases it. */
int mu_attr_parse(struct mu_attr *out, struct mu_span proto, struct mu_arena *a, size_t *budget,
		  struct mu_err *err);
void mu_attr_write(struct mu_buf *b, const struct mu_attr *v); /* body of an AttrValue */
/* Parses an entry of a map from names to AttrValues.  The results are borrowed from the message; a
 * missing field is empty.  Returns false if the entry is malformed. */
bool mu_attr_entry_parse(struct mu_span proto, struct mu_span *name, struct mu_span *value);
void mu_attr_entry_write(struct mu_buf *b, uint32_t number, const struct mu_node_attr *a);

#endif
