/* SPDX-License-Identifier: Apache-2.0 */
/* Local response normalisation: a thread sums the neighbours of its element, which are few. */
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/cuda/math.h"

DEVICE int64_t first_neighbour(const struct lrn_args *a, int64_t ch)
{
	return ch > a->radius ? ch - a->radius : 0;
}

DEVICE int64_t after_neighbours(const struct lrn_args *a, int64_t ch)
{
	return ch + a->radius < a->channels ? ch + a->radius + 1 : a->channels;
}

DEVICE float lrn_norm(const struct lrn_args *a, int64_t row, int64_t ch)
{
	float sum = 0;

	for (int64_t k = first_neighbour(a, ch); k < after_neighbours(a, ch); k++) {
		const float x = GET(f32, a->x, row * a->channels + k);
		sum += x * x;
	}
	return a->bias + a->alpha * sum;
}

KERNEL(lrn, lrn_args)
{
	EACH(i, a.n)
	{
		const float norm = lrn_norm(&a, i / a.channels, i % a.channels);
		PUT(f32, a.out, i, GET(f32, a.x, i) * pow(norm, -a.beta));
	}
}

/* A thread sums the gradient of one element over the norms of its neighbours. */
KERNEL(lrn_back, lrn_args)
{
	EACH(i, a.n)
	{
		const int64_t row = i / a.channels, own = i % a.channels;
		float sum = 0;
		for (int64_t ch = first_neighbour(&a, own); ch < after_neighbours(&a, own); ch++) {
			const int64_t at = row * a.channels + ch;
			const float norm = lrn_norm(&a, row, ch), g = GET(f32, a.g, at);
			const float share = -2 * a.alpha * a.beta * GET(f32, a.y, at) / norm * g;
			sum += share * GET(f32, a.x, i);
			sum += ch == own ? pow(norm, -a.beta) * g : 0.0f;
		}
		PUT(f32, a.out, i, sum);
	}
}
