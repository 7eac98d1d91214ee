/* SPDX-License-Identifier: Apache-2.0 */
/* Restores the input as the saved state of an iterator over most kinds of stateful datasets.  A
 * restored iterator must return elements and be saved again. */
#include <stdint.h>

#include "tests/task/pipeline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void draw_some(struct cursor *c, unsigned n)
{
	struct mu_tensor t[PIPELINE_COMPONENTS];
	struct mu_err err;

	while (n-- && cursor_next(c, t, &err) > 0)
		element_drop(t, PIPELINE_COMPONENTS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct archive a = {.from = mu_pb_of((struct mu_span){(const char *)data, size})};
	MU_AUTO_TENSOR p = pipeline_new();
	MU_AUTO_BUF again = {0};
	struct archive to = {.to = &again};
	struct caller who;
	struct cursor *c;
	struct mu_err err;

	mu_tensor_limit = 1 << 20;
	caller_init(&who);
	if (cursor_open(dataset_in(&p), &who, &c, &err))
		abort();
	if (!archive_cursor(&a, c, &err)) {
		draw_some(c, 50);
		archive_cursor(&to, c, &err);
	}
	cursor_close(c);
	caller_fini(&who);
	return 0;
}
