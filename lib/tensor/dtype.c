/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/tensor/dtype.h"

#include <string.h>

static const struct {
	const char *name;
	unsigned char size;
} types[MU_DT_COUNT] = {
    [MU_DT_INVALID] = {"invalid", 0},
    [MU_FLOAT] = {"float", 4},
    [MU_DOUBLE] = {"double", 8},
    [MU_INT32] = {"int32", 4},
    [MU_UINT8] = {"uint8", 1},
    [MU_INT16] = {"int16", 2},
    [MU_INT8] = {"int8", 1},
    [MU_STRING] = {"string", 0},
    [MU_COMPLEX64] = {"complex64", 8},
    [MU_INT64] = {"int64", 8},
    [MU_BOOL] = {"bool", 1},
    [MU_QINT8] = {"qint8", 1},
    [MU_QUINT8] = {"quint8", 1},
    [MU_QINT32] = {"qint32", 4},
    [MU_BFLOAT16] = {"bfloat16", 2},
    [MU_QINT16] = {"qint16", 2},
    [MU_QUINT16] = {"quint16", 2},
    [MU_UINT16] = {"uint16", 2},
    [MU_COMPLEX128] = {"complex128", 16},
    [MU_HALF] = {"half", 2},
    [MU_RESOURCE] = {"resource", 0},
    [MU_VARIANT] = {"variant", 0},
    [MU_UINT32] = {"uint32", 4},
    [MU_UINT64] = {"uint64", 8},
};

static bool base_valid(long n)
{
	return n > 0 && n < MU_DT_COUNT;
}

bool mu_dtype_valid(long number)
{
	return base_valid(number) || base_valid(number - MU_DT_REF);
}

size_t mu_dtype_size(enum mu_dtype t)
{
	return base_valid(t) ? types[t].size : 0;
}

const char *mu_dtype_name(enum mu_dtype t)
{
	static const char *const refs[MU_DT_COUNT] = {
	    [MU_FLOAT] = "float_ref", [MU_DOUBLE] = "double_ref", [MU_INT32] = "int32_ref",
	    [MU_INT64] = "int64_ref", [MU_BOOL] = "bool_ref",     [MU_STRING] = "string_ref",
	};
	if (mu_dtype_is_ref(t)) {
		enum mu_dtype b = mu_dtype_base(t);
		return base_valid(b) && refs[b] ? refs[b] : "ref";
	}
	return base_valid(t) ? types[t].name : "invalid";
}

enum mu_dtype mu_dtype_from_name(const char *name)
{
	for (int t = 1; t < MU_DT_COUNT; t++)
		if (strcmp(types[t].name, name) == 0)
			return (enum mu_dtype)t;
	return MU_DT_INVALID;
}

bool mu_dtype_is_ref(enum mu_dtype t)
{
	return (int)t > MU_DT_REF;
}

enum mu_dtype mu_dtype_part(enum mu_dtype t)
{
	return t == MU_COMPLEX64 ? MU_FLOAT : t == MU_COMPLEX128 ? MU_DOUBLE : t;
}

bool mu_dtype_is_complex(enum mu_dtype t)
{
	return mu_dtype_part(t) != t;
}

bool mu_dtype_is_16_bit_float(enum mu_dtype t)
{
	return t == MU_HALF || t == MU_BFLOAT16;
}

enum mu_dtype mu_dtype_base(enum mu_dtype t)
{
	return (int)t > MU_DT_REF ? (enum mu_dtype)((int)t - MU_DT_REF) : t;
}
