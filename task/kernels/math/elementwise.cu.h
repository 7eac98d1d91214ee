/* SPDX-License-Identifier: Apache-2.0 */
/* One kernel for each row of engine/loops/loops.def and type: <op>_<type>.  Also Select, Fill, Cast
 * and AddN. */
#include "task/kernels/engine/cuda/index.h"
#include "task/kernels/engine/cuda/math.h"

#define UNARY_KERNEL(t, op, expr)                                                                  \
	KERNEL(op##_##t, unary_args)                                                               \
	{                                                                                          \
		typedef C(t) T;                                                                    \
		EACH(i, a.n)                                                                       \
		{                                                                                  \
			const T x = GET(t, a.in, i);                                               \
			PUT(t, a.out, i, (T)(expr));                                               \
		}                                                                                  \
	}
#define PREDICATE_KERNEL(t, op, expr)                                                              \
	KERNEL(op##_##t, unary_args)                                                               \
	{                                                                                          \
		typedef C(t) T;                                                                    \
		EACH(i, a.n)                                                                       \
		{                                                                                  \
			const T x = GET(t, a.in, i);                                               \
			PUT(u8, a.out, i, (expr) ? 1 : 0);                                         \
		}                                                                                  \
	}

#define BINARY_KERNEL_TO(t, to, op, expr)                                                          \
	KERNEL(op##_##t, binary_args)                                                              \
	{                                                                                          \
		typedef C(t) T;                                                                    \
		EACH(i, a.n)                                                                       \
		{                                                                                  \
			const T x = GET(t, a.a, operand_offset(&a.by, i, 0));                      \
			const T y = GET(t, a.b, operand_offset(&a.by, i, 1));                      \
			PUT(to, a.out, i, (expr));                                                 \
		}                                                                                  \
	}
#define BINARY_KERNEL(t, op, expr)  BINARY_KERNEL_TO(t, t, op, (T)(expr))
#define COMPARE_KERNEL(t, op, expr) BINARY_KERNEL_TO(t, u8, op, (expr) ? 1 : 0)

#define UNARY(op, types, expr)     EACH_##types(UNARY_KERNEL, op, expr)
#define PREDICATE(op, types, expr) EACH_##types(PREDICATE_KERNEL, op, expr)
#define BINARY(op, types, expr)    EACH_##types(BINARY_KERNEL, op, expr)
#define COMPARE(op, types, expr)   EACH_##types(COMPARE_KERNEL, op, expr)
#include "task/kernels/engine/loops/loops.def"
#undef UNARY
#undef PREDICATE
#undef BINARY
#undef COMPARE
UNARY_KERNEL(u8, LogicalNot, !x)
BINARY_KERNEL(u8, LogicalAnd, x &&y)
BINARY_KERNEL(u8, LogicalOr, x || y)

#define LEAKY_KERNEL(t)                                                                            \
	KERNEL(leaky_##t, pair_args)                                                               \
	{                                                                                          \
		typedef C(t) T;                                                                    \
		EACH(i, a.n)                                                                       \
		{                                                                                  \
			const T g = GET(t, a.g, i);                                                \
			PUT(t, a.out, i, GET(t, a.x, i) > 0 ? g : g * (T)a.number);                \
		}                                                                                  \
	}
LEAKY_KERNEL(f32)
LEAKY_KERNEL(f64)

/* For vectors of three elements. */
#define CROSS_KERNEL(t)                                                                            \
	KERNEL(cross_##t, pair_args)                                                               \
	{                                                                                          \
		EACH(i, a.n)                                                                       \
		{                                                                                  \
			const int64_t first = index_div(i, 3) * 3, at = i - first;                 \
			const int64_t y = first + (at + 1) % 3, z = first + (at + 2) % 3;          \
			PUT(t, a.out, i,                                                           \
			    GET(t, a.g, y) * GET(t, a.x, z) - GET(t, a.g, z) * GET(t, a.x, y));    \
		}                                                                                  \
	}
EACH_NUM(CROSS_KERNEL)

/* ---- one kernel for each element size ---- */

#define SELECT_KERNEL(bits)                                                                        \
	KERNEL(select_##bits, select_args)                                                         \
	{                                                                                          \
		EACH(i, a.n)                                                                       \
		{                                                                                  \
			const bool c = PTR(const uint8_t, a.c)[operand_offset(&a.by, i, 0)] != 0;  \
			MOVE(bits, a.out, i, c ? a.a : a.b, operand_offset(&a.by, i, c ? 1 : 2));  \
		}                                                                                  \
	}
#define FILL_KERNEL(bits)                                                                          \
	KERNEL(fill_##bits, fill_args)                                                             \
	{                                                                                          \
		EACH(i, a.n)                                                                       \
		PTR(uint##bits##_t, a.out)[i] = (uint##bits##_t)a.value;                           \
	}
EACH_WIDTH(SELECT_KERNEL)
EACH_WIDTH(FILL_KERNEL)

#define NEAR_KERNEL(t)                                                                             \
	KERNEL(near_##t, pair_args)                                                                \
	{                                                                                          \
		EACH(i, a.n)                                                                       \
		PUT(u8, a.out, i, fabs((double)(GET(t, a.x, i) - GET(t, a.g, i))) < a.number);     \
	}
NEAR_KERNEL(f32)
NEAR_KERNEL(f64)

/* ---- Cast ---- */

#define CAST_KERNEL(from, to)                                                                      \
	KERNEL(Cast_##from##_##to, unary_args)                                                     \
	{                                                                                          \
		EACH(i, a.n)                                                                       \
		PUT(to, a.out, i, (C(to))GET(from, a.in, i));                                      \
	}
#define CAST_BOOL_KERNEL(from)                                                                     \
	KERNEL(Cast_##from##_bool, unary_args)                                                     \
	{                                                                                          \
		EACH(i, a.n)                                                                       \
		PUT(u8, a.out, i, GET(from, a.in, i) != 0);                                        \
	}
#define CASTS_FROM(t)                                                                              \
	CAST_KERNEL(t, f32)                                                                        \
	CAST_KERNEL(t, f64)                                                                        \
	CAST_KERNEL(t, f16)                                                                        \
	CAST_KERNEL(t, bf16)                                                                       \
	CAST_KERNEL(t, i64)                                                                        \
	CAST_KERNEL(t, i32)                                                                        \
	CAST_KERNEL(t, u8)                                                                         \
	CAST_BOOL_KERNEL(t)
EACH_EQ(CASTS_FROM)
CASTS_FROM(i32)

/* ---- AddN ---- */

#define SUM_LIST_KERNEL(t)                                                                         \
	KERNEL(sum_list_##t, list_args)                                                            \
	{                                                                                          \
		EACH(i, a.n)                                                                       \
		{                                                                                  \
			C(t) sum = GET(t, a.in[0], i);                                             \
			for (int k = 1; k < a.count; k++)                                          \
				sum += GET(t, a.in[k], i);                                         \
			PUT(t, a.out, i, sum);                                                     \
		}                                                                                  \
	}
EACH_NUM(SUM_LIST_KERNEL)
