/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent cells of the GPU beside the CPU's. */
#include "tests/kernels/gpu_compare.h"

static const struct sizes {
	int64_t time, batch, in, cell, moments;
} all_sizes[] = {
    {1, 1, 1, 1, 1},  {4, 3, 5, 6, 4}, {5, 2, 3, 8, 2},   {3, 4, 7, 64, 3}, {6, 5, 1, 3, 0},
    {0, 2, 3, 4, 0},  {2, 0, 3, 4, 2}, {2, 3, 0, 4, 2},   {2, 3, 4, 0, 2},  {2, 3, 4, 5, 3},
    {2, 3, 4, 5, -1}, {2, 1, 2, 2, 1}, {70, 9, 2, 2, 70},
};

/* Letters as in rnn_cell.h. */
static struct mu_tensor of_shape(const struct sizes *s, const char *letters, unsigned seed)
{
	int64_t dims[4];
	int rank = 0;

	for (; letters[rank]; rank++)
		switch (letters[rank]) {
		case 'T':
			dims[rank] = s->time;
			break;
		case 'B':
			dims[rank] = s->batch;
			break;
		case 'I':
			dims[rank] = s->in;
			break;
		case 'C':
			dims[rank] = s->cell;
			break;
		case 'S':
			dims[rank] = s->in + s->cell;
			break;
		default:
			dims[rank] = (letters[rank] - '0') * s->cell;
		}
	struct mu_shape shape = dims_of(rank, dims);
	return filled(MU_FLOAT, &shape, -1, 2, seed);
}

/* wrong: an input that is of another shape than it ought to be; -1: none. */
static void one(const char *op, const struct sizes *s, const char *const *shapes, unsigned n,
		bool counted, bool peep, int wrong)
{
	const bool back = strstr(op, "Grad") != NULL, clips = strncmp(op, "GRU", 3) && !back;
	const struct attr attrs[] = {{"T", A_TYPE, MU_FLOAT, NULL},
				     {"use_peephole", A_BOOL, peep, NULL},
				     {clips ? "cell_clip" : NULL, A_FLOAT, peep ? 300 : -1, NULL},
				     {0}};
	struct mu_tensor in[MAX_IN] = {0};
	unsigned at = 0;

	if (counted)
		in[at++] = ints(MU_INT64, -1, &s->moments);
	for (unsigned i = 0; i < n; i++)
		in[at++] = of_shape(s, (int)i == wrong ? "ICC" : shapes[i], i + 1);
	compare(op, attrs, in, at, 60);
	while (at--)
		mu_tensor_unref(&in[at]);
}

static void of_all_sizes(const char *op, const char *const *shapes, unsigned n, bool counted)
{
	for (unsigned i = 0; i < MU_COUNT(all_sizes); i++)
		for (unsigned peep = 0; peep < 2; peep++)
			one(op, &all_sizes[i], shapes, n, counted, peep, -1);
	for (unsigned i = 0; i < n; i++)
		one(op, &all_sizes[1], shapes, n, counted, true, (int)i);
}

static const char *const lstm[] = {"BI", "BC", "BC", "S4", "C",  "C",  "C",  "4",
				   "BC", "BC", "BC", "BC", "BC", "BC", "BC", "BC"};
static const char *const sequence[] = {"TBI", "BC",  "BC",  "S4",  "C",   "C",   "C",   "4",  "TBC",
				       "TBC", "TBC", "TBC", "TBC", "TBC", "TBC", "TBC", "TBC"};
static const char *const gru[] = {"BI", "BC", "S2", "SC", "2", "C", "BC", "BC", "BC", "BC"};

static void steps_of_an_lstm__match_the_cpus(void **state)
{
	of_all_sizes("LSTMBlockCell", lstm, 8, false);
	of_all_sizes("LSTMBlockCellGrad", lstm, MU_COUNT(lstm), false);
}

static void sequences_through_an_lstm__match_the_cpus(void **state)
{
	of_all_sizes("BlockLSTM", sequence, 8, true);
	of_all_sizes("BlockLSTMV2", sequence, 8, true);
}

static void sequences_back_through_an_lstm__match_the_cpus(void **state)
{
	of_all_sizes("BlockLSTMGrad", sequence, MU_COUNT(sequence), true);
	of_all_sizes("BlockLSTMGradV2", sequence, MU_COUNT(sequence), true);
}

static void steps_of_a_gru__match_the_cpus(void **state)
{
	of_all_sizes("GRUBlockCell", gru, 6, false);
	of_all_sizes("GRUBlockCellGrad", gru, MU_COUNT(gru), false);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
	    T(steps_of_an_lstm__match_the_cpus),
	    T(sequences_through_an_lstm__match_the_cpus),
	    T(sequences_back_through_an_lstm__match_the_cpus),
	    T(steps_of_a_gru__match_the_cpus),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
