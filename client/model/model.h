/* SPDX-License-Identifier: Apache-2.0 */
/* The ready-made models: a table from a name to a function that builds the logits. */
#ifndef CLIENT_MODEL_MODEL_H
#define CLIENT_MODEL_MODEL_H

#include "muster/train.h"

struct model_sizes {
	int64_t features, classes;
};
/* Labels are class numbers. */
struct model {
	struct mu_out x, y;     /* fed: float [?, features], int32 [?] */
	struct mu_out loss;     /* mean cross-entropy */
	struct mu_out accuracy; /* of the batch */
	struct mu_out correct;  /* how many of the batch were right, as a float */
};
int model_build(struct mu_builder *b, const struct mu_train_options *o, struct model_sizes sizes,
		struct model *out, struct mu_err *err);

#endif
