/* SPDX-License-Identifier: Apache-2.0 */
/* Restores the input as the saved state of an iterator over most kinds of stateful datasets.  A
 * restored iterator must return elements and be saved again. */
#include <stdint.h>

#include "tests/task/pipeline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_elements(struct dataset_iterator *it, unsigned n)
{
	struct mu_tensor t[PIPELINE_COMPONENTS];
	struct mu_err err;

	while (n-- && dataset_iterator_next(it, t, &err) > 0)
		element_drop(t, PIPELINE_COMPONENTS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct serializer ser = {.from = mu_pb_of((struct mu_span){(const char *)data, size})};
	MU_AUTO_TENSOR p = pipeline_new();
	MU_AUTO_BUF again = {0};
	struct serializer to = {.to = &again};
	struct caller caller;
	struct dataset_iterator *it;
	struct mu_err err;

	mu_tensor_limit = 1 << 20;
	caller_init(&caller);
	if (dataset_iterator_open(dataset_in(&p), &caller, &it, &err))
		abort();
	if (!serialize_dataset_iterator(&ser, it, &err)) {
		read_elements(it, 50);
		serialize_dataset_iterator(&to, it, &err);
	}
	dataset_iterator_close(it);
	caller_fini(&caller);
	return 0;
}
