// SPDX-License-Identifier: Apache-2.0
/* Batches: a permutation of the rows, drawn anew each time it is used up. */
#include "client/data/shuffle.h"
#include "muster/data.h"

struct mu_batches {
	const struct mu_dataset *d;
	int64_t *order, at, batch;
	uint64_t state;
	struct mu_tensor x, y;
};

static void shuffle(struct mu_batches *b)
{
	data_shuffle(b->order, b->d->rows, &b->state);
	b->at = 0;
}

struct mu_batches *mu_batches_new(const struct mu_dataset *d, int64_t batch, uint64_t seed)
{
	struct mu_batches *b = MU_NEW(struct mu_batches);

	b->d = d;
	b->batch = batch > 0 ? batch : 1;
	b->state = seed;
	b->order = MU_NEW_ARRAY(int64_t, (size_t)d->rows + 1);
	for (int64_t i = 0; i < d->rows; i++)
		b->order[i] = i;
	shuffle(b);
	return b;
}

void mu_batches_free(struct mu_batches *b)
{
	if (!b)
		return;
	mu_tensor_unref(&b->x);
	mu_tensor_unref(&b->y);
	free(b->order);
	free(b);
}

/* The tensors are used again when nobody else holds them. */
static int make_room(struct mu_batches *b, struct mu_err *err)
{
	struct mu_tensor x, y;
	struct mu_shape sx, sy;
	int rc;

	if (mu_tensor_is_set(&b->x) && mu_tensor_is_sole(&b->x) && mu_tensor_is_sole(&b->y))
		return 0;
	rc = mu_shape_set(&sx, 2, (int64_t[]){b->batch, b->d->features}, err);
	if (!rc)
		rc = mu_shape_set(&sy, 1, &b->batch, err);
	if (!rc)
		rc = mu_tensor_new(&x, MU_FLOAT, &sx, err);
	if (rc)
		return rc;
	rc = mu_tensor_new(&y, MU_INT32, &sy, err);
	if (rc) {
		mu_tensor_unref(&x);
		return rc;
	}
	mu_tensor_unref(&b->x);
	mu_tensor_unref(&b->y);
	b->x = x;
	b->y = y;
	return 0;
}

int mu_batches_next(struct mu_batches *b, const struct mu_tensor **x, const struct mu_tensor **y,
		    struct mu_err *err)
{
	size_t width = (size_t)b->d->features;
	int rc = b->d->rows ? make_room(b, err)
			    : mu_fail(err, MU_OUT_OF_RANGE, "the data set has no rows");

	if (rc)
		return rc;
	for (int64_t i = 0; i < b->batch; i++) {
		if (b->at == b->d->rows)
			shuffle(b);
		int64_t r = b->order[b->at++];

		memcpy(MU_DATA(float, &b->x) + (size_t)i * width,
		       MU_DATA(float, &b->d->x) + (size_t)r * width, width * sizeof(float));
		MU_DATA(int32_t, &b->y)[i] = MU_DATA(int32_t, &b->d->y)[r];
	}
	*x = &b->x;
	*y = &b->y;
	return 0;
}
