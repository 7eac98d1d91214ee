/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/rnn/ctc.h"

#include "task/kernels/engine/convert.h"

int ctc_scores_in(const struct kernel_call *c, unsigned lengths, enum mu_code code,
		  struct ctc_scores *s, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);

	*s = (struct ctc_scores){.in = in,
				 .length = kernel_in(c, lengths)->data,
				 .time = in->shape.dim[0],
				 .batch = in->shape.dim[1],
				 .classes = in->shape.dim[2]};
	const bool decodes = code == MU_FAILED_PRECONDITION;
	if (!decodes && !s->batch)
		return mu_invalid(err, "batch_size must not be 0");
	if (!decodes && !s->time)
		return mu_invalid(err, "Max time or first dimension of input cannot be 0.");
	if (!s->batch || !s->time || !s->classes || s->classes > INT32_MAX)
		return mu_invalid(err, "inputs must not be empty: %s", mu_shape_str(&in->shape));
	if (kernel_in(c, lengths)->shape.count != s->batch)
		return mu_fail(err, code,
			       "len(sequence_length) != batch_size.  len(sequence_length):  %lld "
			       "batch_size: %lld",
			       (long long)kernel_in(c, lengths)->shape.count, (long long)s->batch);
	for (int64_t b = 0; b < s->batch; b++)
		if ((s->length[b] < 0 && !decodes) || s->length[b] > s->time)
			return mu_fail(err, code, "sequence_length(%lld) is not in [0, %lld]",
				       (long long)b, (long long)s->time);
	return 0;
}

void ctc_log_softmax(const struct ctc_scores *s, int64_t t, int64_t b, double *to)
{
	size_t at = (size_t)((t * s->batch + b) * s->classes) * mu_dtype_size(s->in->dtype);
	double max = -INFINITY, sum = 0;

	convert(MU_DOUBLE, to, s->in->dtype, (const char *)s->in->data + at, s->classes);
	for (int64_t k = 0; k < s->classes; k++)
		max = to[k] > max ? to[k] : max;
	for (int64_t k = 0; k < s->classes; k++)
		sum += exp(to[k] - max);
	sum = max + log(sum);
	for (int64_t k = 0; k < s->classes; k++)
		to[k] -= sum;
}
