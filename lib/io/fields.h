/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that map the members of a JSON or YAML object to the members of a struct.
 *
 * A manifest is read strictly: an unknown key, a value of another kind, and a value out of range
 * are errors of fields_read with line and path.  A status is read leniently, because other programs
 * may have written it: fields_decode skips invalid values.  If a key is absent, both leave the
 * member of the struct, which has the caller's default, unchanged.
 */
#ifndef MU_LIB_IO_FIELDS_H
#define MU_LIB_IO_FIELDS_H

#include "lib/io/doc.h"

struct cJSON;

enum field_kind {
	FIELD_CUSTOM,  /* a known key that the caller reads */
	FIELD_INT,     /* int */
	FIELD_INT64,   /* int64_t */
	FIELD_BOOL,    /* bool; written only when true */
	FIELD_DOUBLE,  /* double; written only when finite */
	FIELD_TIME,    /* double, seconds; RFC 3339 in JSON, written only when positive */
	FIELD_ENUM,    /* int or enum: the index in `names`; an empty name is not written */
	FIELD_NAME,    /* const char *: one of `names` */
	FIELD_TEXT,    /* const char * into the document; NULL is not written */
	FIELD_CHARS,   /* char[size]; a text that is too long is skipped */
	FIELD_COPY,    /* char *, allocated; NULL is not written */
	FIELD_LIST,    /* const struct mu_doc_node *; not in JSON */
	FIELD_MAP,     /* const struct mu_doc_node *; not in JSON */
	FIELD_INTS,    /* int[]; not written when empty, and not decoded */
	FIELD_SECTION, /* an object with the table `section`; not written when empty */
};

struct field {
	const char *key; /* NULL ends a table */
	enum field_kind kind;
	size_t offset, size;
	bool optional; /* 0 and "" are not written */
	size_t count;  /* INTS: offset of their number, an unsigned */
	union {
		struct {
			int64_t min, max;
		};
		struct {
			double min_value, max_value;
		};
		const char *const *names; /* NULL-terminated */
		const struct field *section;
	};
};
/* Offset and size of a member. */
#define AT(type, member)                                                                           \
	.offset = offsetof(struct type, member), .size = sizeof(((struct type *)0)->member)

/* Strict.  `map` may be NULL: all keys are absent. */
int fields_read(const struct mu_doc_node *map, const struct field *fields, void *out,
		struct mu_err *err);
/* Lenient. */
void fields_decode(const struct cJSON *json, const struct field *fields, void *out);
void fields_encode(struct cJSON *json, const struct field *fields, const void *from);

#endif
