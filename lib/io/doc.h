/* SPDX-License-Identifier: Apache-2.0 */
/* A document: the common data model of JSON and YAML, as a tree with the line of each value.
 *
 * Errors name source, line and path: "job.yaml:12: spec.tasks.ps.replicas: must be a number".  The
 * parsers limit depth, nodes and bytes, so recursion over a tree is safe.  All memory is in the
 * document's arena.
 *
 * If the key is absent or null, the getters mu_doc_opt_* leave *out, which has the caller's
 * default, unchanged.  A value of another kind is INVALID_ARGUMENT.
 */
#ifndef MU_LIB_IO_DOC_H
#define MU_LIB_IO_DOC_H

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
	unsigned line; /* from 1; 0: unknown */
	unsigned n;    /* children */
	bool b;
	int64_t i;        /* INT; a FLOAT is truncated */
	double f;         /* INT and FLOAT */
	const char *text; /* STRING; NUL-terminated */
	size_t len;
	const char *key; /* of a child of a map */
	struct mu_doc_node *parent, *first, *last, *next;
	struct mu_doc *doc;
};

struct mu_doc {
	struct mu_arena arena;
	const char *source; /* file name or other name of the source, for errors */
	struct mu_doc_node *root;
	unsigned n_nodes;
};

struct mu_doc *mu_doc_new(const char *source);
void mu_doc_free(struct mu_doc *d);
MU_AUTO_DEFINE(mu_doc_free, struct mu_doc)

#define mu_doc_each(node, child)                                                                   \
	for (struct mu_doc_node *child = (node) ? (node)->first : NULL; child; child = child->next)

/* Find a child by key, or by the path "a.b.c".  NULL if it is absent or a part of the path is not a
 * map.  Only mu_doc_key finds keys with a dot. */
struct mu_doc_node *mu_doc_key(const struct mu_doc_node *map, const char *key);
struct mu_doc_node *mu_doc_get(const struct mu_doc_node *map, const char *path);
/* As mu_doc_get, but returns NULL for a null too. */
const struct mu_doc_node *mu_doc_section(const struct mu_doc_node *map, const char *path);
const char *mu_doc_text(const struct mu_doc_node *map, const char *path, const char *default_value);
int64_t mu_doc_int(const struct mu_doc_node *map, const char *path, int64_t default_value);
bool mu_doc_bool(const struct mu_doc_node *map, const char *path, bool default_value);

/* Appends the path, such as "spec.tasks.ps.replicas" or "spec.command[2]". */
void mu_doc_path(const struct mu_doc_node *n, struct mu_buf *out);
const char *mu_doc_kind_name(enum mu_doc_kind k); /* "a number", "a list", … */
/* Fails with "source:line: path: <fmt>". */
int mu_doc_fail(const struct mu_doc_node *n, struct mu_err *err, enum mu_code code, const char *fmt,
		...) __attribute__((format(printf, 4, 5)));
#define mu_doc_invalid(node, err, ...) mu_doc_fail(node, err, MU_INVALID_ARGUMENT, __VA_ARGS__)

/* Typed, strict getters.  `map` may be NULL: every key is absent. */
int mu_doc_opt_text(const struct mu_doc_node *map, const char *key, const char **out,
		    struct mu_err *err);
int mu_doc_opt_int(const struct mu_doc_node *map, const char *key, int64_t min, int64_t max,
		   int64_t *out, struct mu_err *err);
int mu_doc_opt_float(const struct mu_doc_node *map, const char *key, double min, double max,
		     double *out, struct mu_err *err);
int mu_doc_opt_bool(const struct mu_doc_node *map, const char *key, bool *out, struct mu_err *err);
/* Gets one of `names` (NULL-terminated) as its index. */
int mu_doc_opt_choice(const struct mu_doc_node *map, const char *key, const char *const *names,
		      int *out, struct mu_err *err);
/* Get a child map or list; *out is NULL if absent. */
int mu_doc_opt_map(const struct mu_doc_node *map, const char *key, struct mu_doc_node **out,
		   struct mu_err *err);
int mu_doc_opt_list(const struct mu_doc_node *map, const char *key, struct mu_doc_node **out,
		    struct mu_err *err);
/* Fails on keys that are not in `known` (NULL-terminated); the error suggests the nearest. */
int mu_doc_known_keys(const struct mu_doc_node *map, const char *const *known, struct mu_err *err);

/* Returns the second of two children with the same key, or NULL. */
struct mu_doc_node *mu_doc_duplicate(const struct mu_doc_node *map);

/* Add nodes.  `parent` NULL: the root.  `key`: for children of maps.  Strings are copied. */
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
/* Adds a deep copy of `from`, which may be in another document. */
struct mu_doc_node *mu_doc_add_copy(struct mu_doc *d, struct mu_doc_node *parent, const char *key,
				    const struct mu_doc_node *from);

#endif
