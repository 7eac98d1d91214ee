/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent cells on the GPU compared with the CPU kernels. */
#include "tests/kernels/gpu_compare.h"

static const struct sizes {
	int64_t time, batch, in, cell, seq_len;
} all_sizes[] = {
    {1, 1, 1, 1, 1},  {4, 3, 5, 6, 4}, {5, 2, 3, 8, 2},   {3, 4, 7, 64, 3}, {6, 5, 1, 3, 0},
    {0, 2, 3, 4, 0},  {2, 0, 3, 4, 2}, {2, 3, 0, 4, 2},   {2, 3, 4, 0, 2},  {2, 3, 4, 5, 3},
    {2, 3, 4, 5, -1}, {2, 1, 2, 2, 1}, {70, 9, 2, 2, 70},
};

/* Letters as in rnn_cell.h. */
static struct mu_tensor make_input(const struct sizes *s, const char *letters, unsigned seed)
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

/* bad_input: the index of an input with a mismatched shape; -1: none. */
static void compare_cell(const char *op, const struct sizes *s, const char *const *shapes,
			 unsigned n, bool has_seq_len, bool peep, int bad_input)
{
	const bool back = strstr(op, "Grad") != NULL, clips = strncmp(op, "GRU", 3) && !back;
	const struct attr attrs[] = {{"T", A_TYPE, MU_FLOAT, NULL},
				     {"use_peephole", A_BOOL, peep, NULL},
				     {clips ? "cell_clip" : NULL, A_FLOAT, peep ? 300 : -1, NULL},
				     {0}};
	struct mu_tensor in[MAX_IN] = {0};
	unsigned at = 0;

	if (has_seq_len)
		in[at++] = ints(MU_INT64, -1, &s->seq_len);
	for (unsigned i = 0; i < n; i++)
		in[at++] = make_input(s, (int)i == bad_input ? "ICC" : shapes[i], i + 1);
	compare(op, attrs, in, at, 60);
	while (at--)
		mu_tensor_unref(&in[at]);
}

static void compare_all_sizes(const char *op, const char *const *shapes, unsigned n,
			      bool has_seq_len)
{
	for (unsigned i = 0; i < MU_COUNT(all_sizes); i++)
		for (unsigned peep = 0; peep < 2; peep++)
			compare_cell(op, &all_sizes[i], shapes, n, has_seq_len, peep, -1);
	for (unsigned i = 0; i < n; i++)
		compare_cell(op, &all_sizes[1], shapes, n, has_seq_len, true, (int)i);
}

static const char *const lstm[] = {"BI", "BC", "BC", "S4", "C",  "C",  "C",  "4",
				   "BC", "BC", "BC", "BC", "BC", "BC", "BC", "BC"};
static const char *const sequence[] = {"TBI", "BC",  "BC",  "S4",  "C",   "C",   "C",   "4",  "TBC",
				       "TBC", "TBC", "TBC", "TBC", "TBC", "TBC", "TBC", "TBC"};
static const char *const gru[] = {"BI", "BC", "S2", "SC", "2", "C", "BC", "BC", "BC", "BC"};

static void lstm_block_cell__of_all_sizes__matches_the_cpu(void **state)
{
	compare_all_sizes("LSTMBlockCell", lstm, 8, false);
	compare_all_sizes("LSTMBlockCellGrad", lstm, MU_COUNT(lstm), false);
}

static void block_lstm__of_all_sizes__matches_the_cpu(void **state)
{
	compare_all_sizes("BlockLSTM", sequence, 8, true);
	compare_all_sizes("BlockLSTMV2", sequence, 8, true);
}

static void block_lstm_grad__of_all_sizes__matches_the_cpu(void **state)
{
	compare_all_sizes("BlockLSTMGrad", sequence, MU_COUNT(sequence), true);
	compare_all_sizes("BlockLSTMGradV2", sequence, MU_COUNT(sequence), true);
}

static void gru_block_cell__of_all_sizes__matches_the_cpu(void **state)
{
	compare_all_sizes("GRUBlockCell", gru, 6, false);
	compare_all_sizes("GRUBlockCellGrad", gru, MU_COUNT(gru), false);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
	    T(lstm_block_cell__of_all_sizes__matches_the_cpu),
	    T(block_lstm__of_all_sizes__matches_the_cpu),
	    T(block_lstm_grad__of_all_sizes__matches_the_cpu),
	    T(gru_block_cell__of_all_sizes__matches_the_cpu),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
