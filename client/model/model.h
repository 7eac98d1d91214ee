/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in models: a table from a name to a function that builds the logits. */
#ifndef MU_CLIENT_MODEL_MODEL_H
#define MU_CLIENT_MODEL_MODEL_H

#include "muster/data.h"
#include "muster/train.h"

enum { MU_MAX_COLUMNS = 256 }; /* columns of the table of a wide-deep model */

/* A column of the training data. */
struct model_column {
	double mean, deviation;
	int64_t n_categories; /* of a categorical column with the values 0 … n_categories - 1 */
};
struct model_sizes {
	int64_t features, classes;
	struct model_column *columns; /* wide-deep; else NULL */
};
/* Measures the data (train, and the classes of test) for the model. INVALID_ARGUMENT if the data
 * does not suit the model. */
int model_measure(struct model_sizes *out, const struct mu_train_options *o,
		  const struct mu_dataset *train, const struct mu_dataset *test,
		  struct mu_err *err);
void model_sizes_fini(struct model_sizes *s);

/* Labels are class numbers. */
struct model {
	struct mu_out x, y;      /* placeholders: float [?, features], int32 [?] */
	struct mu_out loss;      /* mean cross-entropy */
	struct mu_out objective; /* minimised value: the loss, unless the model sets another */
	struct mu_out accuracy;  /* of the batch */
	struct mu_out correct;   /* number of correct predictions in the batch, as a float */
};
int model_build(struct mu_builder *b, const struct mu_train_options *o,
		const struct model_sizes *sizes, struct model *out, struct mu_err *err);

/* Each builds the logits of one model from m->x. */
struct mu_out model_cnn(struct mu_builder *b, const struct mu_train_options *o,
			const struct model_sizes *s, struct mu_out x);
struct mu_out model_wide_deep(struct mu_builder *b, const struct mu_train_options *o,
			      const struct model_sizes *s, struct mu_out x);
/* Sets m->objective. */
struct mu_out model_evolution_strategy(struct mu_builder *b, const struct mu_train_options *o,
				       const struct model_sizes *s, struct model *m);

/* ---- layers.c ---- */
struct mu_init layer_weights(int64_t in, int64_t seed, bool zeros);
/* x W + b */
struct mu_out layer_dense(struct mu_builder *b, struct mu_out x, int64_t in, int64_t out,
			  const char *name, int64_t seed, bool zeros);
/* The hidden ReLU layers of the options. *width is the input width and becomes the output width. */
struct mu_out layer_hidden(struct mu_builder *b, const struct mu_train_options *o, struct mu_out x,
			   int64_t *width);
/* Convolution with a kernel x kernel window, ReLU, and 2x2 max pooling. */
struct mu_out layer_conv_pool(struct mu_builder *b, struct mu_out x, int64_t kernel, int64_t in,
			      int64_t out, const char *name, int64_t seed);

#endif
