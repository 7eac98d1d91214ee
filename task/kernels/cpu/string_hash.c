/* SPDX-License-Identifier: Apache-2.0 */
/* Strings to buckets. */
#include "task/kernels/args.h"
#include "task/kernels/fingerprint.h"
#include "task/kernels/kernel_table.h"

static int hash_bucket_fast(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	int64_t buckets = args_attr_int(c->node, "num_buckets", 0);
	struct mu_tensor *out;
	int rc = args_type(c, 0, MU_STRING, err);

	if (rc)
		return rc;
	if (buckets < 1)
		return mu_fail(err, MU_INVALID_ARGUMENT, "num_buckets must be at least 1, not %lld",
			       (long long)buckets);
	if ((rc = kernel_out(c, 0, MU_INT64, &in->shape, &out, err)))
		return rc;
	int64_t *bucket = out->data;
	for (int64_t i = 0; i < in->shape.count; i++) {
		const struct mu_string *s = &MU_DATA(struct mu_string, in)[i];
		bucket[i] =
		    (int64_t)(fingerprint64(s->data ? s->data : "", s->len) % (uint64_t)buckets);
	}
	return 0;
}

static const struct kernel rows[] = {
    {"StringToHashBucketFast", .run = hash_bucket_fast},
};
KERNEL_TABLE(string_hash, rows)
