/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions between element types: every pair of the list below, by macro.  The 16-bit floats
 * go through float. */
#include "task/kernels/engine/convert.h"

#include <stddef.h>

#include "lib/tensor/half.h"

struct half {
	uint16_t bits;
};
struct bfloat {
	uint16_t bits;
};

/* In C the conversion of a real outside of the integer's range is undefined.  Here it gives the
 * smallest 64-bit integer, as the x86 instruction does. */
static inline int64_t real_to_int(double v)
{
	return v > -0x1p63 && v < 0x1p63 ? (int64_t)v : INT64_MIN;
}
static inline uint64_t real_to_uint64(double v)
{
	return v >= 0x1p63 && v < 0x1p64 ? (uint64_t)v : (uint64_t)real_to_int(v);
}
static inline int32_t real_to_int32(double v)
{
	return v > -2147483649.0 && v < 2147483648.0 ? (int32_t)v : INT32_MIN;
}

#define LOAD_NUM(v)    (v)
#define LOAD_HALF(v)   half_to_float((v).bits)
#define LOAD_BFLOAT(v) bfloat_to_float((v).bits)

#define TO_REAL(T, v)   ((T)(v))
#define TO_BOOL(T, v)   ((v) != 0)
#define TO_HALF(T, v)   ((struct half){float_to_half((float)(v))})
#define TO_BFLOAT(T, v) ((struct bfloat){float_to_bfloat((float)(v))})
#define TO_INT(T, v)                                                                               \
	_Generic((v), float                                                                        \
		 : (T)real_to_int((double)(v)), double                                             \
		 : (T)real_to_int((double)(v)), default                                            \
		 : (T)(v))
#define TO_INT32(T, v)                                                                             \
	_Generic((v), float                                                                        \
		 : real_to_int32((double)(v)), double                                              \
		 : real_to_int32((double)(v)), default                                             \
		 : (T)(v))
#define TO_UINT64(T, v)                                                                            \
	_Generic((v), float                                                                        \
		 : real_to_uint64((double)(v)), double                                             \
		 : real_to_uint64((double)(v)), default                                            \
		 : (T)(v))

/* X(name, C type, dtype, load, make): load reads an element, make converts to the type */
#define TYPES(X, A)                                                                                \
	X(A, f32, float, MU_FLOAT, LOAD_NUM, TO_REAL)                                              \
	X(A, f64, double, MU_DOUBLE, LOAD_NUM, TO_REAL)                                            \
	X(A, i8, int8_t, MU_INT8, LOAD_NUM, TO_INT)                                                \
	X(A, i16, int16_t, MU_INT16, LOAD_NUM, TO_INT)                                             \
	X(A, i32, int32_t, MU_INT32, LOAD_NUM, TO_INT32)                                           \
	X(A, i64, int64_t, MU_INT64, LOAD_NUM, TO_INT)                                             \
	X(A, u8, uint8_t, MU_UINT8, LOAD_NUM, TO_INT)                                              \
	X(A, u16, uint16_t, MU_UINT16, LOAD_NUM, TO_INT)                                           \
	X(A, u32, uint32_t, MU_UINT32, LOAD_NUM, TO_INT)                                           \
	X(A, u64, uint64_t, MU_UINT64, LOAD_NUM, TO_UINT64)                                        \
	X(A, b, bool, MU_BOOL, LOAD_NUM, TO_BOOL)                                                  \
	X(A, h, struct half, MU_HALF, LOAD_HALF, TO_HALF)                                          \
	X(A, bf, struct bfloat, MU_BFLOAT16, LOAD_BFLOAT, TO_BFLOAT)
/* The same list: a macro cannot expand inside itself. */
#define TYPES2(X, A)                                                                               \
	X(A, f32, float, MU_FLOAT, LOAD_NUM, TO_REAL)                                              \
	X(A, f64, double, MU_DOUBLE, LOAD_NUM, TO_REAL)                                            \
	X(A, i8, int8_t, MU_INT8, LOAD_NUM, TO_INT)                                                \
	X(A, i16, int16_t, MU_INT16, LOAD_NUM, TO_INT)                                             \
	X(A, i32, int32_t, MU_INT32, LOAD_NUM, TO_INT32)                                           \
	X(A, i64, int64_t, MU_INT64, LOAD_NUM, TO_INT)                                             \
	X(A, u8, uint8_t, MU_UINT8, LOAD_NUM, TO_INT)                                              \
	X(A, u16, uint16_t, MU_UINT16, LOAD_NUM, TO_INT)                                           \
	X(A, u32, uint32_t, MU_UINT32, LOAD_NUM, TO_INT)                                           \
	X(A, u64, uint64_t, MU_UINT64, LOAD_NUM, TO_UINT64)                                        \
	X(A, b, bool, MU_BOOL, LOAD_NUM, TO_BOOL)                                                  \
	X(A, h, struct half, MU_HALF, LOAD_HALF, TO_HALF)                                          \
	X(A, bf, struct bfloat, MU_BFLOAT16, LOAD_BFLOAT, TO_BFLOAT)

/* A is the target's (name, type, maker). */
#define UNPACK(...)                             __VA_ARGS__
#define CONVERT_ONE(A, name, T, dt, load, make) CONVERT_TWO(A, name, T, load)
#define CONVERT_TWO(A, name, T, load)           CONVERT_THREE(UNPACK A, name, T, load)
#define CONVERT_THREE(...)                      CONVERT_FOUR(__VA_ARGS__)
#define CONVERT_FOUR(to_name, To, to_make, name, From, load)                                       \
	static void name##_to_##to_name(void *out, const void *in, int64_t n)                      \
	{                                                                                          \
		To *o = out;                                                                       \
		const From *a = in;                                                                \
		for (int64_t i = 0; i < n; i++)                                                    \
			o[i] = to_make(To, load(a[i]));                                            \
	}
#define CONVERT_TO(A, name, T, dt, load, make) TYPES2(CONVERT_ONE, (name, T, make))
TYPES(CONVERT_TO, )

typedef void convert_loop(void *out, const void *in, int64_t n);

#define ENTRY_ONE(A, name, T, dt, load, make) ENTRY_TWO(A, name, dt)
#define ENTRY_TWO(to_name, name, dt)          [dt] = name##_to_##to_name,
#define ENTRIES(A, name, T, dt, load, make)   [dt] = {TYPES2(ENTRY_ONE, name)},
static convert_loop *const table[MU_DT_COUNT][MU_DT_COUNT] = {TYPES(ENTRIES, )};

bool convert_supports(enum mu_dtype to, enum mu_dtype from)
{
	return table[to][from] != NULL;
}

bool convert(enum mu_dtype to, void *out, enum mu_dtype from, const void *in, int64_t n)
{
	if (!table[to][from])
		return false;
	table[to][from](out, in, n);
	return true;
}

double convert_element(const struct mu_tensor *t, int64_t i)
{
	double x;

	convert(MU_DOUBLE, &x, t->dtype,
		(const char *)t->data + (size_t)i * mu_dtype_size(t->dtype), 1);
	return x;
}

int convert_tensor(struct mu_tensor *out, enum mu_dtype to, const struct mu_tensor *in,
		   struct mu_err *err)
{
	if (in->dtype == to) {
		*out = mu_tensor_ref(in);
		return 0;
	}
	if (!convert_supports(to, in->dtype))
		return mu_fail(err, MU_UNIMPLEMENTED, "%s cannot be turned into %s",
			       mu_dtype_name(in->dtype), mu_dtype_name(to));
	MU_RETURN_IF_ERROR(mu_tensor_new(out, to, &in->shape, err));
	convert(to, out->data, in->dtype, in->data, in->shape.count);
	return 0;
}

bool convert_is_zero(const struct mu_tensor *t, int64_t i)
{
	const char *at = (const char *)t->data + (size_t)i * mu_dtype_size(t->dtype);
	double d;

	if (t->dtype == MU_COMPLEX64)
		return MU_DATA(float, t)[2 * i] == 0 && MU_DATA(float, t)[2 * i + 1] == 0;
	if (t->dtype == MU_COMPLEX128)
		return MU_DATA(double, t)[2 * i] == 0 && MU_DATA(double, t)[2 * i + 1] == 0;
	if (!convert_supports(MU_DOUBLE, t->dtype))
		return false;
	convert(MU_DOUBLE, &d, t->dtype, at, 1);
	return d == 0;
}

bool convert_any_zero(const struct mu_tensor *t)
{
	for (int64_t i = 0; i < t->shape.count; i++)
		if (convert_is_zero(t, i))
			return true;
	return false;
}
