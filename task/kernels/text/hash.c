/* SPDX-License-Identifier: Apache-2.0 */
/* StringToHashBucket, StringToHashBucketFast, StringToHashBucketStrong and Fingerprint. */
#include <string.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/text/fingerprint.h"
#include "task/kernels/text/keyed_hash.h"

typedef uint64_t hash_fn(const uint64_t key[2], const char *s, size_t n);

static int to_buckets(struct kernel_call *c, hash_fn *hash, const uint64_t key[2],
		      struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	int64_t buckets = args_attr_int(c->node, "num_buckets", 0);
	struct mu_tensor *out;

	if (buckets < 1)
		return mu_invalid(err, "num_buckets must be at least 1, not %lld",
				  (long long)buckets);
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_INT64, &in->shape, &out, err));
	int64_t *bucket = out->data;
	for (int64_t i = 0; i < in->shape.count; i++) {
		struct mu_span s = elems_span(in, i);
		bucket[i] = (int64_t)(hash(key, s.data, s.len) % (uint64_t)buckets);
	}
	return 0;
}

static uint64_t hash_fast(const uint64_t key[2], const char *s, size_t n)
{
	return fingerprint64(s, n);
}

static uint64_t hash_legacy(const uint64_t key[2], const char *s, size_t n)
{
	return legacy_hash64(s, n);
}

KERNEL_RUN(hash_bucket_fast, to_buckets(c, hash_fast, NULL, err))
KERNEL_RUN(hash_bucket_legacy, to_buckets(c, hash_legacy, NULL, err))

static int hash_bucket_strong(struct kernel_call *c, struct mu_err *err)
{
	int64_t key[2] = {0};

	if (args_attr_ints(c->node, "key", key, 2) != 2)
		return mu_invalid(err, "Key must have 2 elements");
	return to_buckets(c, keyed_hash, (const uint64_t[]){(uint64_t)key[0], (uint64_t)key[1]},
			  err);
}

/* The fingerprint of a row.  For more than one string, it is the fingerprint of the strings'
 * fingerprints in memory order. */
static uint64_t fingerprint_row(const struct mu_tensor *data, int64_t row, int64_t width)
{
	size_t bytes = (size_t)width * mu_dtype_size(data->dtype);

	if (data->dtype != MU_STRING)
		return fingerprint64((const char *)data->data + (size_t)row * bytes, bytes);
	MU_AUTO_BUF fingerprints = {0};
	for (int64_t i = 0; i < width; i++) {
		struct mu_span s = elems_span(data, row * width + i);
		uint64_t string_fingerprint = fingerprint64(s.data, s.len);
		if (width == 1)
			return string_fingerprint;
		mu_buf_put(&fingerprints, (const char *)&string_fingerprint,
			   sizeof string_fingerprint);
	}
	return fingerprint64(fingerprints.data, fingerprints.len);
}

static int fingerprint(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *data = kernel_in(c, 0);
	struct mu_tensor *out;
	struct mu_shape shape;

	MU_RETURN_IF_ERROR(args_rank(c, 1, 0, err));
	if (!mu_span_eq(elems_span(kernel_in(c, 1), 0), MU_SPAN("farmhash64")))
		return mu_invalid(err, "Unsupported fingerprint method");
	if (!data->shape.rank)
		return mu_invalid(err, "Shape must be at least rank 1 but is rank 0");
	if (data->dtype != MU_STRING && !mu_dtype_size(data->dtype))
		return args_no_kernel(c, data->dtype, err);
	const int64_t n = data->shape.dim[0];
	MU_RETURN_IF_ERROR(mu_shape_set(&shape, 2, (int64_t[]){n, sizeof(uint64_t)}, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_UINT8, &shape, &out, err));
	for (int64_t i = 0; i < n; i++) {
		uint64_t row = fingerprint_row(data, i, data->shape.count / n);
		memcpy((char *)out->data + i * (int64_t)sizeof row, &row, sizeof row);
	}
	return 0;
}

static const struct kernel rows[] = {
    {"Fingerprint", .run = fingerprint},
    {"StringToHashBucketFast", .run = hash_bucket_fast},
    {"StringToHashBucketStrong", .run = hash_bucket_strong},
    {"StringToHashBucket", .run = hash_bucket_legacy},
};
KERNEL_TABLE(text_hash, rows)
