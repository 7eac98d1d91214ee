/* SPDX-License-Identifier: Apache-2.0 */
/* A document: what JSON and YAML have in common, as a tree that knows where each value stood.
 *
 * Every error made here names source, line and path: "job.yaml:12: spec.tasks.ps.replicas: must be
 * a number".  Trees are bounded when they are read (depth, nodes, bytes), so walking one by
 * recursion is safe.  Everything lives in the document's arena.
 *
 * The getters mu_doc_opt_* leave *out alone when the key is absent or null, so the caller's default
 * stands; a value of another kind is INVALID_ARGUMENT.
 */
#ifndef MU_IO_DOC_H
#define MU_IO_DOC_H

#include "lib/base/buf.h"

enum { MU_DOC_MAX_DEPTH = 64, MU_DOC_MAX_NODES = 1000000, MU_DOC_MAX_BYTES = 32 << 20 };

enum mu_doc_kind {
	MU_DOC_NULL,
	MU_DOC_BOOL,
	MU_DOC_INT,
	MU_DOC_FLOAT,
	MU_DOC_STRING,
	MU_DOC_LIST,
	MU_DOC_MAP,
};

struct mu_doc;
struct mu_doc_node {
	enum mu_doc_kind kind;
	unsigned line; /* from 1; 0 when unknown */
	unsigned n;    /* children */
	bool b;
	int64_t i;        /* INT; FLOAT cut to a whole number */
	double f;         /* INT and FLOAT */
	const char *text; /* STRING; NUL-terminated */
	size_t len;
	const char *key; /* within a map */
	struct mu_doc_node *parent, *first, *last, *next;
	struct mu_doc *doc;
};

struct mu_doc {
	struct mu_arena arena;
	const char *source; /* file name, or what else the text came from */
	struct mu_doc_node *root;
	unsigned n_nodes;
};

struct mu_doc *mu_doc_new(const char *source);
void mu_doc_free(struct mu_doc *d);
MU_AUTO_DEFINE(mu_doc_free, struct mu_doc)

#define mu_doc_each(node, child)                                                                   \
	for (struct mu_doc_node *child = (node) ? (node)->first : NULL; child; child = child->next)

/* A child of a map by key, or by "a.b.c"; NULL when absent or when something on the way is no map.
 * A key that holds a dot is found by mu_doc_key only. */
struct mu_doc_node *mu_doc_key(const struct mu_doc_node *map, const char *key);
struct mu_doc_node *mu_doc_get(const struct mu_doc_node *map, const char *path);
const char *mu_doc_text(const struct mu_doc_node *map, const char *path, const char *otherwise);
int64_t mu_doc_int(const struct mu_doc_node *map, const char *path, int64_t otherwise);
bool mu_doc_bool(const struct mu_doc_node *map, const char *path, bool otherwise);

/* "spec.tasks.ps.replicas", "spec.command[2]"; appends. */
void mu_doc_path(const struct mu_doc_node *n, struct mu_buf *out);
const char *mu_doc_kind_name(enum mu_doc_kind k); /* "a number", "a list", … */
/* "source:line: path: <fmt>" */
int mu_doc_fail(const struct mu_doc_node *n, struct mu_err *err, enum mu_code code, const char *fmt,
		...) __attribute__((format(printf, 4, 5)));

/* Typed and strict.  `map` may be NULL (everything absent). */
int mu_doc_opt_text(const struct mu_doc_node *map, const char *key, const char **out,
		    struct mu_err *err);
int mu_doc_opt_int(const struct mu_doc_node *map, const char *key, int64_t min, int64_t max,
		   int64_t *out, struct mu_err *err);
int mu_doc_opt_float(const struct mu_doc_node *map, const char *key, double min, double max,
		     double *out, struct mu_err *err);
int mu_doc_opt_bool(const struct mu_doc_node *map, const char *key, bool *out, struct mu_err *err);
/* One of `names` (NULL-terminated) -> its position. */
int mu_doc_opt_choice(const struct mu_doc_node *map, const char *key, const char *const *names,
		      int *out, struct mu_err *err);
/* A child map or list; *out is NULL when absent. */
int mu_doc_opt_map(const struct mu_doc_node *map, const char *key, struct mu_doc_node **out,
		   struct mu_err *err);
int mu_doc_opt_list(const struct mu_doc_node *map, const char *key, struct mu_doc_node **out,
		    struct mu_err *err);
/* Refuses keys that are not in `known` (NULL-terminated), suggesting the nearest. */
int mu_doc_known_keys(const struct mu_doc_node *map, const char *const *known, struct mu_err *err);

/* The second of two children with the same key, or NULL. */
struct mu_doc_node *mu_doc_duplicate(const struct mu_doc_node *map);

/* Building.  `parent` NULL makes the root; `key` is used within maps.  Strings are copied. */
struct mu_doc_node *mu_doc_add(struct mu_doc *d, struct mu_doc_node *parent, const char *key,
			       enum mu_doc_kind kind);
struct mu_doc_node *mu_doc_add_text(struct mu_doc *d, struct mu_doc_node *parent, const char *key,
				    const char *text, size_t len);
struct mu_doc_node *mu_doc_add_str(struct mu_doc *d, struct mu_doc_node *parent, const char *key,
				   const char *text);
struct mu_doc_node *mu_doc_add_int(struct mu_doc *d, struct mu_doc_node *parent, const char *key,
				   int64_t v);
struct mu_doc_node *mu_doc_add_float(struct mu_doc *d, struct mu_doc_node *parent, const char *key,
				     double v);
struct mu_doc_node *mu_doc_add_bool(struct mu_doc *d, struct mu_doc_node *parent, const char *key,
				    bool v);
/* A deep copy of `from` (of any document) under parent. */
struct mu_doc_node *mu_doc_add_copy(struct mu_doc *d, struct mu_doc_node *parent, const char *key,
				    const struct mu_doc_node *from);

#endif
