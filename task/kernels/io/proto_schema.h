/* SPDX-License-Identifier: Apache-2.0 */
/* The message type and the requested fields of DecodeProto and EncodeProto, from a
 * FileDescriptorSet.  Both the descriptors and the messages are untrusted. */
#ifndef MU_TASK_KERNELS_IO_PROTO_SCHEMA_H
#define MU_TASK_KERNELS_IO_PROTO_SCHEMA_H

#include "lib/base/mem.h"
#include "lib/base/pb.h"
#include "lib/graph/graph.h"

/* Wire types that mu_pb does not read. */
enum { PROTO_GROUP = 3, PROTO_GROUP_END = 4 };

struct proto_type {
	const char *name;
	unsigned wire; /* enum mu_pb_type or PROTO_GROUP */
	enum mu_dtype dtype;
	enum mu_dtype wide; /* a wider tensor type that is accepted too; 0: none */
	bool zigzag;
	unsigned cpp_type; /* FieldDescriptor::CppType, for errors */
};

struct proto_field {
	struct mu_span name;
	uint32_t number;
	const struct proto_type *type;
	bool repeated, packed;
	struct mu_span type_name; /* of messages and enums */
	uint64_t value;           /* the default value, in the form of proto_value */
	struct mu_span bytes;     /* the default value of strings */
};

struct proto_schema {
	struct mu_buf set; /* the FileDescriptorSet; the spans borrow from it */
	struct mu_arena arena;
	struct mu_span message; /* the DescriptorProto */
	unsigned n;
	struct proto_field *field; /* the requested fields, in the order of field_names */
};

/* Reads the attributes descriptor_source, message_type and field_names of a node. */
int proto_schema_read(struct proto_schema *s, const struct mu_node *n, struct mu_err *err);
void proto_schema_fini(struct proto_schema *s);
bool proto_type_fits(const struct proto_type *t, enum mu_dtype dtype);
/* Converts the bits on the wire to the value of a field: a sign-extended integer, or the bits of a
 * float or double. */
uint64_t proto_value(const struct proto_type *t, uint64_t raw);

/* Calls fn with each value of a requested field, k.  v is NULL for the packed values of a field
 * that is not repeated.  DATA_LOSS: the message is malformed. */
struct proto_value {
	uint64_t number;
	struct mu_span bytes;
};
typedef void proto_value_fn(void *arg, unsigned k, const struct proto_value *v);
int proto_read(const struct proto_schema *s, struct mu_span message, proto_value_fn *fn, void *arg,
	       struct mu_err *err);
/* True if the message and its nested messages are well formed; proto_read does not parse the nested
 * ones. */
bool proto_is_valid(const struct proto_schema *s, struct mu_span message);

#endif
