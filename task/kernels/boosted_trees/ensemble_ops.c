/* SPDX-License-Identifier: Apache-2.0 */
/* Creation, state and checkpoints of tree ensembles. */
#include "task/kernels/boosted_trees/ensemble.h"
#include "task/kernels/engine/kernel_table.h"

static void ensemble_free(struct resource *r)
{
	struct ensemble *e = MU_CONTAINER(r, struct ensemble, base);

	trees_fini(&e->trees);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

const struct resource_type ensemble_type = {.name = "BoostedTreesEnsembleResource",
					    .free = ensemble_free};

int ensemble_get(const struct kernel_call *c, struct ensemble **out, struct mu_err *err)
{
	struct resource *r;

	MU_RETURN_IF_ERROR(handle_find(c, 0, &ensemble_type, &r, err));
	*out = MU_CONTAINER(r, struct ensemble, base);
	pthread_mutex_lock(&(*out)->lock);
	return 0;
}

void ensemble_put(struct ensemble *e)
{
	pthread_mutex_unlock(&e->lock);
	resource_unref(&e->base);
}

static int ensemble_handle(struct kernel_call *c, struct mu_err *err)
{
	return resource_handle_out_named(c, ensemble_type.name, err);
}

static int is_initialized(struct kernel_call *c, struct mu_err *err)
{
	return handle_put_found(c, &ensemble_type, err);
}

static struct mu_span serialized_in(const struct kernel_call *c)
{
	const struct mu_string *s = kernel_in(c, 2)->data;

	return (struct mu_span){s->data ? s->data : "", s->len};
}

static struct resource *ensemble_new(void *arg, struct mu_err *err)
{
	const struct kernel_call *c = arg;
	struct ensemble *e = MU_NEW(struct ensemble);

	resource_init(&e->base, &ensemble_type);
	pthread_mutex_init(&e->lock, NULL);
	e->stamp = MU_DATA(int64_t, kernel_in(c, 1))[0];
	if (trees_parse(&e->trees, serialized_in(c), err)) {
		resource_unref(&e->base);
		return NULL;
	}
	return &e->base;
}

/* Keeps an existing ensemble. */
static int ensemble_create(struct kernel_call *c, struct mu_err *err)
{
	return handle_create(c, &ensemble_type, ensemble_new, c, err);
}

static int ensemble_states(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO(ensemble_put) struct ensemble *e = NULL;
	struct mu_tensor *range;

	MU_RETURN_IF_ERROR(ensemble_get(c, &e, err));
	const struct trees *t = &e->trees;
	int32_t n = (int32_t)t->n;
	int32_t finalized = n == 0 || t->trees[n - 1].is_finalized ? n : n - 1;
	int32_t layers = (int32_t)t->layers_attempted;
	MU_RETURN_IF_ERROR(kernel_out_value(c, 0, MU_INT64, &e->stamp, err));
	MU_RETURN_IF_ERROR(kernel_out_value(c, 1, MU_INT32, &n, err));
	MU_RETURN_IF_ERROR(kernel_out_value(c, 2, MU_INT32, &finalized, err));
	MU_RETURN_IF_ERROR(kernel_out_value(c, 3, MU_INT32, &layers, err));
	MU_RETURN_IF_ERROR(kernel_out_vec(c, 4, MU_INT32, 2, &range, err));
	MU_DATA(int32_t, range)[0] = t->last_layer_start;
	/* The range of an empty ensemble also has one node. */
	MU_DATA(int32_t, range)[1] = t->last_layer_end > 1 ? t->last_layer_end : 1;
	return 0;
}

static int ensemble_serialize(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO(ensemble_put) struct ensemble *e = NULL;
	MU_AUTO_BUF message = {0};

	MU_RETURN_IF_ERROR(ensemble_get(c, &e, err));
	trees_serialize(&e->trees, &message);
	MU_RETURN_IF_ERROR(kernel_out_value(c, 0, MU_INT64, &e->stamp, err));
	return kernel_out_string(c, 1, mu_buf_span(&message), err);
}

static int ensemble_deserialize(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO(ensemble_put) struct ensemble *e = NULL;
	struct trees trees = {0};

	MU_RETURN_IF_ERROR(ensemble_get(c, &e, err));
	int rc = trees_parse(&trees, serialized_in(c), err);
	if (rc) {
		trees_fini(&trees);
		return rc;
	}
	trees_fini(&e->trees);
	e->trees = trees;
	e->stamp = MU_DATA(int64_t, kernel_in(c, 1))[0];
	return 0;
}

static const struct kernel rows[] = {
    {"BoostedTreesEnsembleResourceHandleOp", .run = ensemble_handle},
    {"IsBoostedTreesEnsembleInitialized", .run = is_initialized},
    {"BoostedTreesCreateEnsemble", .run = ensemble_create},
    {"BoostedTreesGetEnsembleStates", .run = ensemble_states},
    {"BoostedTreesSerializeEnsemble", .run = ensemble_serialize},
    {"BoostedTreesDeserializeEnsemble", .run = ensemble_deserialize},
};
KERNEL_TABLE(boosted_trees_ensemble_ops, rows)
