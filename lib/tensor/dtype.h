/* SPDX-License-Identifier: Apache-2.0 */
/* Element types, with TensorFlow's numbers. */
#ifndef MU_LIB_TENSOR_DTYPE_H
#define MU_LIB_TENSOR_DTYPE_H

#include <stdbool.h>
#include <stddef.h>

enum mu_dtype {
	MU_DT_INVALID = 0,
	MU_FLOAT = 1,
	MU_DOUBLE = 2,
	MU_INT32 = 3,
	MU_UINT8 = 4,
	MU_INT16 = 5,
	MU_INT8 = 6,
	MU_STRING = 7,
	MU_COMPLEX64 = 8,
	MU_INT64 = 9,
	MU_BOOL = 10,
	MU_QINT8 = 11,
	MU_QUINT8 = 12,
	MU_QINT32 = 13,
	MU_BFLOAT16 = 14,
	MU_QINT16 = 15,
	MU_QUINT16 = 16,
	MU_UINT16 = 17,
	MU_COMPLEX128 = 18,
	MU_HALF = 19,
	MU_RESOURCE = 20,
	MU_VARIANT = 21,
	MU_UINT32 = 22,
	MU_UINT64 = 23,
	MU_DT_COUNT = 24,
	MU_DT_REF = 100, /* float_ref is MU_FLOAT + MU_DT_REF */
};

size_t mu_dtype_size(enum mu_dtype t);      /* bytes per element; 0 for string, resource, variant */
const char *mu_dtype_name(enum mu_dtype t); /* TensorFlow's names: "float", "int32", … */
enum mu_dtype mu_dtype_from_name(const char *name); /* MU_DT_INVALID: unknown */
bool mu_dtype_valid(long number);                   /* a base type or its reference type */
bool mu_dtype_is_ref(enum mu_dtype t);
/* Returns the type of the real and imaginary part; t itself if it is not complex. */
enum mu_dtype mu_dtype_part(enum mu_dtype t);
bool mu_dtype_is_complex(enum mu_dtype t);
bool mu_dtype_is_16_bit_float(enum mu_dtype t);
enum mu_dtype mu_dtype_base(enum mu_dtype t);

#endif
