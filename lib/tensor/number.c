/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/tensor/number.h"

#include <inttypes.h>

#include "lib/tensor/half.h"

bool mu_dtype_is_number(enum mu_dtype t)
{
	static const bool numbers[MU_DT_COUNT] = {
	    [MU_FLOAT] = true, [MU_DOUBLE] = true, [MU_HALF] = true,   [MU_BFLOAT16] = true,
	    [MU_INT8] = true,  [MU_INT16] = true,  [MU_INT32] = true,  [MU_INT64] = true,
	    [MU_UINT8] = true, [MU_UINT16] = true, [MU_UINT32] = true, [MU_UINT64] = true,
	    [MU_BOOL] = true,
	};

	return t < MU_DT_COUNT && numbers[t];
}

double mu_tensor_number(const struct mu_tensor *t, int64_t i)
{
	switch (t->dtype) {
	case MU_FLOAT:
		return (double)MU_DATA(float, t)[i];
	case MU_DOUBLE:
		return MU_DATA(double, t)[i];
	case MU_HALF:
		return (double)half_to_float(MU_DATA(uint16_t, t)[i]);
	case MU_BFLOAT16:
		return (double)bfloat_to_float(MU_DATA(uint16_t, t)[i]);
	case MU_INT8:
		return MU_DATA(int8_t, t)[i];
	case MU_INT16:
		return MU_DATA(int16_t, t)[i];
	case MU_INT32:
		return MU_DATA(int32_t, t)[i];
	case MU_INT64:
		return (double)MU_DATA(int64_t, t)[i];
	case MU_BOOL:
	case MU_UINT8:
		return MU_DATA(uint8_t, t)[i];
	case MU_UINT16:
		return MU_DATA(uint16_t, t)[i];
	case MU_UINT32:
		return MU_DATA(uint32_t, t)[i];
	case MU_UINT64:
		return (double)MU_DATA(uint64_t, t)[i];
	default:
		return 0;
	}
}

void mu_tensor_put_number(struct mu_buf *b, const struct mu_tensor *t, int64_t i)
{
	switch (t->dtype) {
	case MU_INT64:
		mu_buf_printf(b, "%" PRId64, MU_DATA(int64_t, t)[i]);
		break;
	case MU_UINT64:
		mu_buf_printf(b, "%" PRIu64, MU_DATA(uint64_t, t)[i]);
		break;
	case MU_FLOAT:
	case MU_DOUBLE:
	case MU_HALF:
	case MU_BFLOAT16:
		mu_buf_printf(b, "%.6g", mu_tensor_number(t, i));
		break;
	default: /* a double holds the smaller integers exactly */
		mu_buf_printf(b, "%.0f", mu_tensor_number(t, i));
	}
}
