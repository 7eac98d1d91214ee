/* SPDX-License-Identifier: Apache-2.0 */
/* StringToHashBucket in its variants. */
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

static uint64_t fast(const uint64_t key[2], const char *s, size_t n)
{
	return fingerprint64(s, n);
}

static uint64_t first(const uint64_t key[2], const char *s, size_t n)
{
	return first_hash(s, n);
}

KERNEL_RUN(hash_bucket_fast, to_buckets(c, fast, NULL, err))
KERNEL_RUN(hash_bucket_first, to_buckets(c, first, NULL, err))

static int hash_bucket_strong(struct kernel_call *c, struct mu_err *err)
{
	int64_t key[2] = {0};

	if (args_attr_ints(c->node, "key", key, 2) != 2)
		return mu_invalid(err, "Key must have 2 elements");
	return to_buckets(c, keyed_hash, (const uint64_t[]){(uint64_t)key[0], (uint64_t)key[1]},
			  err);
}

static const struct kernel rows[] = {
    {"StringToHashBucketFast", .run = hash_bucket_fast},
    {"StringToHashBucketStrong", .run = hash_bucket_strong},
    {"StringToHashBucket", .run = hash_bucket_first},
};
KERNEL_TABLE(text_hash, rows)
