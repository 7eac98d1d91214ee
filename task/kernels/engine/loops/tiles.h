/* SPDX-License-Identifier: Apache-2.0 */
/* The innermost loop of matrix products and convolutions: one tile of the result, in registers
 * during the sum.
 *
 *     c[row, column] (+)= sum over k of a(row, k) * b(k, column)
 *
 * The left side is read in place, element by element: a row or a column of a matrix, or the pixels
 * under a filter.  The right side is read by vectors.  k goes through `n_runs` runs of `run`
 * elements: run i of the left side starts at a + runs[i]; the runs of the right side are
 * contiguous. Each element is summed in the order of k for every tile size, so results do not
 * depend on how the work is cut along rows and columns.
 *
 * Strides count elements.  All lanes of each vector of b are read, also those beyond `columns`. */
#ifndef MU_TASK_KERNELS_ENGINE_LOOPS_TILES_H
#define MU_TASK_KERNELS_ENGINE_LOOPS_TILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TILE_ROWS = 14, TILE_VECTORS = 2 };

struct tile {
	const void *a, *b;
	void *c;
	const int64_t *runs;
	int64_t n_runs, run;
	int64_t a_row, a_k, b_k, c_row;
	int64_t columns; /* at most lanes * vectors */
	bool add;        /* to c */
};

typedef void tile_loop(const struct tile *t);

struct tile_loops {
	int64_t lanes; /* elements of a vector */
	int64_t rows;  /* the largest number of rows of a tile */
	tile_loop *run[TILE_VECTORS][TILE_ROWS];
};

/* Computes any number of rows, in tiles of about equal height.  size: bytes of an element. */
static inline void tile_rows(const struct tile_loops *l, size_t size, struct tile t, int64_t rows)
{
	int64_t tiles = (rows + l->rows - 1) / l->rows;
	const char *a = t.a;
	char *c = t.c;

	for (int64_t i = 0; i < tiles; i++) {
		int64_t at = rows * i / tiles, n = rows * (i + 1) / tiles - at;
		t.a = a + (size_t)(at * t.a_row) * size;
		t.c = c + (size_t)(at * t.c_row) * size;
		l->run[t.columns > l->lanes][n - 1](&t);
	}
}

#endif
