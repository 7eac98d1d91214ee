/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the input as a TensorProto.  A parsed tensor must have the size of its shape, and must not
 * change when it is written and parsed again. */
#include <stdint.h>
#include <stdlib.h>

#include "lib/tensor/tensor_proto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	MU_AUTO_TENSOR t = {0};
	MU_AUTO_TENSOR again = {0};
	MU_AUTO_BUF b = {0};
	struct mu_err err;

	mu_tensor_limit = 1 << 20;
	if (mu_tensor_parse(&t, (struct mu_span){(const char *)data, size}, &err))
		return 0;
	mu_tensor_write(&b, &t);
	if (mu_tensor_parse(&again, mu_buf_span(&b), &err))
		abort();
	if (t.dtype != again.dtype || !mu_shape_eq(&t.shape, &again.shape) ||
	    mu_tensor_bytes(&t) != mu_tensor_bytes(&again))
		abort();
	return 0;
}
