/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of the members that a JSON or YAML object and a struct have in common.
 *
 * A manifest is read strictly: fields_read fails with the line and path of an unknown key and of a
 * value of another kind or out of range.  A status is read leniently, since others may have written
 * to it: fields_decode skips what does not fit.  Both leave a member of the struct alone when its
 * key is absent, so the caller's default stands.
 */
#ifndef MU_LIB_IO_FIELDS_H
#define MU_LIB_IO_FIELDS_H

#include "lib/io/doc.h"

struct cJSON;

enum field_kind {
	FIELD_ELSEWHERE, /* a known key, which the caller reads */
	FIELD_INT,       /* int */
	FIELD_INT64,     /* int64_t */
	FIELD_BOOL,      /* bool; written only when true */
	FIELD_DOUBLE,    /* double; written only when finite */
	FIELD_TIME,      /* double, seconds; RFC 3339 in JSON, written only when positive */
	FIELD_ENUM,      /* int or enum: the position in `names`; an empty name is not written */
	FIELD_NAME,      /* const char *: one of `names` */
	FIELD_TEXT,      /* const char * into the document; NULL is not written */
	FIELD_CHARS,     /* char[size]; a text that is too long is skipped */
	FIELD_COPY,      /* char *, allocated; NULL is not written */
	FIELD_LIST,      /* const struct mu_doc_node *; not in JSON */
	FIELD_MAP,       /* likewise */
	FIELD_INTS,      /* int[]; not written when empty, and not decoded */
	FIELD_SECTION,   /* the object's own table, `section`; not written when empty */
};

struct field {
	const char *key; /* NULL ends a table */
	enum field_kind kind;
	size_t offset, size;
	bool optional; /* 0 and "" are not written */
	size_t count;  /* INTS: the place of their number, an unsigned */
	union {
		struct {
			int64_t min, max;
		};
		struct {
			double least, most;
		};
		const char *const *names; /* NULL-terminated */
		const struct field *section;
	};
};
/* The place of a member. */
#define AT(type, member)                                                                           \
	.offset = offsetof(struct type, member), .size = sizeof(((struct type *)0)->member)

/* Strict.  `map` may be NULL: everything is absent. */
int fields_read(const struct mu_doc_node *map, const struct field *fields, void *out,
		struct mu_err *err);
/* Lenient. */
void fields_decode(const struct cJSON *json, const struct field *fields, void *out);
void fields_encode(struct cJSON *json, const struct field *fields, const void *from);

#endif
