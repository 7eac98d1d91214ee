/* SPDX-License-Identifier: Apache-2.0 */
/* Nearest centers, and the initial centers of k-means: k-means++ (Arthur and Vassilvitskii, 2007)
 * and the Markov chain of k-MC² (Bachem et al., 2016).  The random numbers are those of TensorFlow
 * for a seed. */
#include <math.h>
#include <string.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/random/philox.h"

enum { MAX_RETRIES = 1 << 20 };

static int need_matrix(const struct kernel_call *c, unsigned i, const char *name,
		       struct mu_err *err)
{
	return kernel_in(c, i)->shape.rank == 2
		   ? 0
		   : mu_invalid(err, "Input %s should be a matrix.", name);
}

static int need_scalar(const struct kernel_call *c, unsigned i, const char *name, int64_t *out,
		       struct mu_err *err)
{
	if (kernel_in(c, i)->shape.rank)
		return mu_invalid(err, "Input %s should be a scalar.", name);
	return args_int(c, i, out, err);
}

static struct philox_stream philox_of_seed(int64_t seed)
{
	return (struct philox_stream){
	    .from = {.key = {(uint32_t)seed, (uint32_t)((uint64_t)seed >> 32)}}};
}

/* Independent partial sums: the compiler adds them as vectors, which it may not do with one sum. */
static float squared_distance(const float *a, const float *b, int64_t n)
{
	enum { SUMS = 32 };
	float sums[SUMS] = {0}, sum = 0;
	int64_t i = 0;

	for (; i + SUMS <= n; i += SUMS)
		for (int64_t j = 0; j < SUMS; j++)
			sums[j] += (a[i + j] - b[i + j]) * (a[i + j] - b[i + j]);
	for (; i < n; i++)
		sum += (a[i] - b[i]) * (a[i] - b[i]);
	for (int64_t j = 0; j < SUMS; j++)
		sum += sums[j];
	return sum;
}

/* ---- NearestNeighbors ---- */

struct neighbors {
	const float *points, *centers;
	int64_t dims, n_centers, k;
	int64_t *indices; /* k for each point, the nearest first */
	float *distances;
};

/* Inserts center j among the `found` nearest ones.  Of equal distances the first stays first. */
static void insert_neighbor(const struct neighbors *s, int64_t point, int64_t found, int64_t j,
			    float distance)
{
	int64_t *indices = s->indices + point * s->k, at = found;
	float *distances = s->distances + point * s->k;

	while (at > 0 && distances[at - 1] > distance)
		at--;
	if (at == s->k)
		return;
	int64_t n_moved = (found < s->k ? found : s->k - 1) - at;
	memmove(indices + at + 1, indices + at, (size_t)n_moved * sizeof *indices);
	memmove(distances + at + 1, distances + at, (size_t)n_moved * sizeof *distances);
	indices[at] = j;
	distances[at] = distance;
}

static void find_neighbors(void *arg, int64_t from, int64_t to)
{
	const struct neighbors *s = arg;

	for (int64_t i = from; i < to; i++)
		for (int64_t j = 0; j < s->n_centers; j++)
			insert_neighbor(s, i, j < s->k ? j : s->k, j,
					squared_distance(s->points + i * s->dims,
							 s->centers + j * s->dims, s->dims));
}

static int nearest_neighbors(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *points = kernel_in(c, 0), *centers = kernel_in(c, 1);
	struct mu_tensor *indices, *distances;
	int64_t k;

	MU_RETURN_IF_ERROR(need_matrix(c, 0, "points", err));
	MU_RETURN_IF_ERROR(need_matrix(c, 1, "centers", err));
	MU_RETURN_IF_ERROR(need_scalar(c, 2, "k", &k, err));
	const int64_t n = points->shape.dim[0], dims = points->shape.dim[1];
	if (n <= 0)
		return mu_invalid(err, "Expected points.rows() > 0.");
	if (dims != centers->shape.dim[1])
		return mu_invalid(err,
				  "Expected point_dimensions == center_dimensions: %lld vs %lld.",
				  (long long)dims, (long long)centers->shape.dim[1]);
	if (k < 0)
		return mu_invalid(err, "k must be non-negative, got %lld", (long long)k);
	k = k < centers->shape.dim[0] ? k : centers->shape.dim[0];
	const int64_t shape[] = {n, k};
	MU_RETURN_IF_ERROR(kernel_out_dims(c, 0, MU_INT64, 2, shape, &indices, err));
	MU_RETURN_IF_ERROR(kernel_out_dims(c, 1, MU_FLOAT, 2, shape, &distances, err));
	/* centers without dimensions are all equally near: the first k are the nearest */
	int64_t n_centers = dims ? centers->shape.dim[0] : k;
	struct neighbors s = {
	    MU_DATA(float, points),    MU_DATA(float, centers),  dims, n_centers, k,
	    MU_DATA(int64_t, indices), MU_DATA(float, distances)};
	if (k)
		kernel_parallel(c, n, 1 + 16384 / (s.n_centers * (dims + 1)), find_neighbors, &s);
	return 0;
}

/* ---- KmeansPlusPlusInitialization ---- */

struct seeding {
	const float *points;
	int64_t n, dims;
	float *nearest;   /* half the squared distance of each point to the nearest sample */
	float *sums;      /* of `nearest`, up to each point */
	float *candidate; /* `nearest` with the candidate as another sample */
	float *best;      /* the same with the best candidate */
	struct philox_stream random;
};

/* Draws a point with a probability proportional to its squared distance from the nearest sample;
 * the first sample is drawn uniformly. */
static int64_t seeding_draw(struct seeding *s, bool is_first)
{
	int64_t low = 0, high = s->n - 1;

	if (is_first)
		return (int64_t)philox_below_64(&s->random, (uint64_t)s->n);
	const float target = philox_float(philox_32(&s->random)) * s->sums[s->n - 1];
	while (low < high) { /* finds the first sum that is not below target */
		int64_t middle = (low + high) / 2;
		if (s->sums[middle] < target)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Returns the sum of distances with point i as another sample; fills s->candidate. */
static float seeding_try(struct seeding *s, int64_t i)
{
	float sum = 0;

	for (int64_t j = 0; j < s->n; j++) {
		float d = 0.5f * squared_distance(s->points + j * s->dims, s->points + i * s->dims,
						  s->dims);
		s->candidate[j] = d < s->nearest[j] ? d : s->nearest[j];
		sum += s->candidate[j];
	}
	return sum;
}

/* Returns the next sample, the best of some candidates. */
static int64_t seeding_next(struct seeding *s, bool is_first, int64_t candidates)
{
	float lowest = INFINITY, sum = 0;
	int64_t best = 0;

	for (int64_t j = 0; j < s->n; j++)
		s->sums[j] = sum += s->nearest[j];
	for (int64_t k = 0; k < candidates; k++) {
		int64_t i = seeding_draw(s, is_first);
		float total = seeding_try(s, i);
		if (k && !(total < lowest))
			continue;
		lowest = total;
		best = i;
		float *swapped = s->best;
		s->best = s->candidate;
		s->candidate = swapped;
	}
	float *swapped = s->nearest;
	s->nearest = s->best;
	s->best = swapped;
	return best;
}

static int check_seeding(const struct kernel_call *c, int64_t *samples, int64_t *seed,
			 int64_t *retries, struct mu_err *err)
{
	MU_RETURN_IF_ERROR(need_matrix(c, 0, "points", err));
	MU_RETURN_IF_ERROR(need_scalar(c, 1, "num_to_sample", samples, err));
	MU_RETURN_IF_ERROR(need_scalar(c, 2, "seed", seed, err));
	MU_RETURN_IF_ERROR(need_scalar(c, 3, "num_retries_per_sample", retries, err));
	const int64_t n = kernel_in(c, 0)->shape.dim[0];
	if (n <= 0)
		return mu_invalid(err, "Expected points.rows() > 0.");
	if (*samples <= 0)
		return mu_invalid(err, "Expected num_to_sample > 0.");
	if (*samples > n)
		return mu_invalid(err, "Expected num_to_sample <= points.rows(). %lld vs %lld.",
				  (long long)*samples, (long long)n);
	if (*retries > MAX_RETRIES)
		return mu_invalid(err, "num_retries_per_sample is too large: %lld",
				  (long long)*retries);
	if (*retries < 0)
		*retries = (int64_t)(2 + log((double)*samples));
	return 0;
}

static int kmeans_plus_plus(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *points = kernel_in(c, 0);
	int64_t samples, seed, retries;
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(check_seeding(c, &samples, &seed, &retries, err));
	const int64_t n = points->shape.dim[0], dims = points->shape.dim[1];
	MU_RETURN_IF_ERROR(
	    kernel_out_dims(c, 0, MU_FLOAT, 2, (int64_t[]){samples, dims}, &out, err));
	MU_AUTO_TENSOR buffer = {0};
	struct mu_shape shape;
	MU_RETURN_IF_ERROR(mu_shape_set(&shape, 2, (int64_t[]){4, n}, err));
	MU_RETURN_IF_ERROR(mu_tensor_new(&buffer, MU_FLOAT, &shape, err));
	float *work = MU_DATA(float, &buffer);
	struct seeding s = {
	    MU_DATA(float, points), n, dims, work, work + n, work + 2 * n, work + 3 * n,
	    philox_of_seed(seed)};
	for (int64_t j = 0; j < n; j++)
		s.nearest[j] = INFINITY;
	for (int64_t k = 0; k < samples; k++) {
		int64_t i = seeding_next(&s, k == 0, 1 + retries);
		memcpy(MU_DATA(float, out) + k * dims, s.points + i * dims,
		       (size_t)dims * sizeof *s.points);
	}
	return 0;
}

/* ---- KMC2ChainInitialization ---- */

/* A candidate replaces the current point with the probability candidate distance / current
 * distance. */
static int kmc2_chain(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *distances = kernel_in(c, 0);
	const float *d = MU_DATA(float, distances);
	int64_t seed, current = 0;

	if (distances->shape.rank != 1)
		return mu_invalid(err, "Input distances should be a vector.");
	MU_RETURN_IF_ERROR(need_scalar(c, 1, "seed", &seed, err));
	if (!distances->shape.count)
		return mu_invalid(err, "Expected distances_tensor.size() > 0.");
	struct philox_stream random = philox_of_seed(seed);
	for (int64_t i = 1; i < distances->shape.count; i++)
		if (d[i] > philox_float(philox_32(&random)) * d[current])
			current = i;
	return kernel_out_value(c, 0, MU_INT64, &current, err);
}

static const struct kernel rows[] = {
    {"KMC2ChainInitialization", .run = kmc2_chain},
    {"KmeansPlusPlusInitialization", KERNEL_EXPENSIVE, .run = kmeans_plus_plus},
    {"NearestNeighbors", KERNEL_EXPENSIVE, .run = nearest_neighbors},
};
KERNEL_TABLE(math_clustering, rows)
