/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the input as an ensemble of trees.  A parsed ensemble can be pruned, and does not change
 * when it is written and parsed again. */
#include <stdint.h>
#include <stdlib.h>

#include "task/kernels/boosted_trees/ensemble.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_written(const struct trees *t)
{
	struct trees again = {0};
	MU_AUTO_BUF once = {0};
	MU_AUTO_BUF twice = {0};

	trees_serialize(t, &once);
	if (trees_parse(&again, mu_buf_span(&once), NULL) < 0)
		abort();
	trees_serialize(&again, &twice);
	if (!mu_span_eq(mu_buf_span(&once), mu_buf_span(&twice)))
		abort();
	trees_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct trees t = {0};

	if (trees_parse(&t, (struct mu_span){(const char *)data, size}, NULL) == 0) {
		check_written(&t);
		for (unsigned i = 0; i < t.n; i++)
			tree_prune(&t.trees[i]);
		check_written(&t);
	}
	trees_fini(&t);
	return 0;
}
