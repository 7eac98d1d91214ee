/* SPDX-License-Identifier: Apache-2.0 */
/* The ready-made models: a table from a name to a function that builds the logits. */
#ifndef CLIENT_MODEL_MODEL_H
#define CLIENT_MODEL_MODEL_H

#include "muster/data.h"
#include "muster/train.h"

enum { MU_MAX_COLUMNS = 256 }; /* of a table with names */

/* A column of the training data. */
struct model_column {
	double mean, deviation;
	int64_t names; /* whole numbers from 0 to names - 1, when it is one of names */
};
struct model_sizes {
	int64_t features, classes;
	struct model_column *columns; /* wide-deep; else NULL */
};
/* What a model needs to know of the data (train, and the classes of test).  INVALID_ARGUMENT when
 * the data does not suit the model. */
int model_measure(struct model_sizes *out, const struct mu_train_options *o,
		  const struct mu_dataset *train, const struct mu_dataset *test,
		  struct mu_err *err);
void model_sizes_fini(struct model_sizes *s);

/* Labels are class numbers. */
struct model {
	struct mu_out x, y;      /* fed: float [?, features], int32 [?] */
	struct mu_out loss;      /* mean cross-entropy */
	struct mu_out objective; /* what is minimised: the loss, unless the model says otherwise */
	struct mu_out accuracy;  /* of the batch */
	struct mu_out correct;   /* how many of the batch were right, as a float */
};
int model_build(struct mu_builder *b, const struct mu_train_options *o,
		const struct model_sizes *sizes, struct model *out, struct mu_err *err);

/* The logits of one model each, from x. */
struct mu_out model_cnn(struct mu_builder *b, const struct mu_train_options *o,
			const struct model_sizes *s, struct mu_out x);
struct mu_out model_wide_deep(struct mu_builder *b, const struct mu_train_options *o,
			      const struct model_sizes *s, struct mu_out x);
/* Sets m->objective. */
struct mu_out model_es(struct mu_builder *b, const struct mu_train_options *o,
		       const struct model_sizes *s, struct model *m);

/* ---- layers.c ---- */
struct mu_init layer_weights(int64_t in, int64_t seed, bool zeros);
/* x W + b */
struct mu_out layer_dense(struct mu_builder *b, struct mu_out x, int64_t in, int64_t out,
			  const char *name, int64_t seed, bool zeros);
/* The hidden layers that the options ask for, rectified; *width goes from in to out. */
struct mu_out layer_hidden(struct mu_builder *b, const struct mu_train_options *o, struct mu_out x,
			   int64_t *width);
/* Convolution of kernel by kernel, rectified, then the greatest of each 2 by 2. */
struct mu_out layer_conv_pool(struct mu_builder *b, struct mu_out x, int64_t kernel, int64_t in,
			      int64_t out, const char *name, int64_t seed);

#endif
