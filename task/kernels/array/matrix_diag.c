/* SPDX-License-Identifier: Apache-2.0 */
/* MatrixDiag, MatrixDiagPart, MatrixSetDiag and MatrixBandPart: the diagonals of the matrices in
 * the innermost two dimensions; Diag and DiagPart: the diagonal of a tensor.
 *
 * The V3 ops handle a band of diagonals k0 … k1 (0 is the main one, positive is above it). A band
 * of several diagonals is a matrix with one row per diagonal, from the uppermost down, as wide as
 * the longest. `align` is the side to which shorter diagonals are aligned, separately above and
 * below the main diagonal. The V2 ops have no such attribute and align all to the left. */
#include "lib/base/ints.h"
#include "task/kernels/array/matrix_band.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/move.h"

static int read_align(const struct kernel_call *c, struct matrix_band *b, struct mu_err *err)
{
	static const char *const names[] = {"RIGHT_RIGHT", "RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT"};
	bool is_v2 = strcmp(c->node->op + strlen(c->node->op) - 2, "V2") == 0;
	const char *align = is_v2 ? "LEFT_LEFT" : args_attr_string(c->node, "align", "RIGHT_LEFT");

	for (unsigned i = 0; i < MU_COUNT(names); i++)
		if (strcmp(align, names[i]) == 0) {
			b->upper_left = i >> 1;
			b->lower_left = i & 1;
			return 0;
		}
	return mu_invalid(err, "align '%s' is unknown", align);
}

/* Reads input `in`: the lowest and the highest diagonal, or one number for both. */
static int read_k(const struct kernel_call *c, unsigned in, struct matrix_band *b,
		  struct mu_err *err)
{
	int64_t k[2];
	int n;

	MU_RETURN_IF_ERROR(args_ints(c, in, k, 2, &n, err));
	if (n < 1)
		return mu_invalid(err, "diag_index must have one or two elements, not none");
	b->from = k[0];
	b->to = k[n - 1];
	return b->from <= b->to
		   ? 0
		   : mu_invalid(
			 err,
			 "lower_diag_index must not be larger than upper_diag_index: %lld > %lld",
			 (long long)b->from, (long long)b->to);
}

/* Checks that the band is within its matrix, and sets the length of its longest diagonal. */
static int check_band(struct matrix_band *b, struct mu_err *err)
{
	if ((b->from && b->from <= -b->rows) || (b->from && b->from >= b->cols) ||
	    (b->to && b->to <= -b->rows) || (b->to && b->to >= b->cols))
		return mu_invalid(err, "diagonals %lld to %lld are not in a matrix of %lld by %lld",
				  (long long)b->from, (long long)b->to, (long long)b->rows,
				  (long long)b->cols);
	b->longest = mu_min(b->rows + mu_min(b->to, 0), b->cols - (b->from > 0 ? b->from : 0));
	return 0;
}

/* Sets *s to the first `n_outer` dimensions of `outer`, a (unless it is negative), and b. */
static int set_inner(struct mu_shape *s, const struct mu_shape *outer, int n_outer, int64_t a,
		     int64_t b, struct mu_err *err)
{
	const int64_t inner[] = {a, b};

	return mu_shape_splice(s, outer, n_outer, outer->rank - n_outer, 2 - (a < 0),
			       inner + (a < 0), err);
}

/* ---- MatrixDiag ---- */

/* Sets the size of the matrices.  An omitted number of rows or columns (-1) is the minimum for the
 * diagonals. */
static int size_matrix(const struct kernel_call *c, struct matrix_band *b, int64_t longest,
		       struct mu_err *err)
{
	int64_t rows = -1, cols = -1;

	MU_RETURN_IF_ERROR(args_int(c, 2, &rows, err));
	MU_RETURN_IF_ERROR(args_int(c, 3, &cols, err));
	int64_t min_rows = longest - mu_min(b->to, 0);
	int64_t min_cols = longest + (b->from > 0 ? b->from : 0);
	if ((rows != -1 && rows < min_rows) || (cols != -1 && cols < min_cols))
		return mu_invalid(err, "The number of %s is too small.",
				  rows != -1 && rows < min_rows ? "rows" : "columns");
	if (rows < 0 && cols < 0) {
		rows = cols = min_rows > min_cols ? min_rows : min_cols;
	} else {
		rows = rows < 0 ? min_rows : rows;
		cols = cols < 0 ? min_cols : cols;
	}
	if (rows != min_rows && cols != min_cols)
		return mu_invalid(err, "The number of rows or columns is not consistent with the "
				       "specified d_lower, d_upper, and diagonal.");
	b->rows = rows;
	b->cols = cols;
	return check_band(b, err);
}

static int matrix_diag(struct kernel_call *c, bool v3, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	const struct mu_shape *s = &in->shape;
	struct mu_tensor *out;
	struct mu_shape shape;
	struct matrix_band b = {0};
	int rc = 0;

	if (s->rank < 1)
		return mu_invalid(err, "input must be at least 1-dim, received shape: %s",
				  mu_shape_str(s));
	int64_t longest = s->dim[s->rank - 1];
	if (v3 && ((rc = read_align(c, &b, err)) || (rc = read_k(c, 1, &b, err))))
		return rc;
	bool is_band = b.to != b.from;
	if (v3 && kernel_in(c, 4)->shape.count != 1)
		return mu_invalid(err, "padding_value must be a scalar");
	if (is_band && (s->rank < 2 || s->dim[s->rank - 2] != b.to - b.from + 1))
		return mu_invalid(err,
				  "The number of diagonals provided in the input does not match "
				  "the lower_diag_index and upper_diag_index range: %s",
				  mu_shape_str(s));
	if (v3 && (rc = size_matrix(c, &b, longest, err)))
		return rc;
	if (!v3)
		b = (struct matrix_band){.rows = longest, .cols = longest, .longest = longest};
	if (b.longest != longest)
		return mu_invalid(err, "diagonals of %lld elements do not fit", (long long)longest);
	int n_outer = s->rank - 1 - is_band;
	MU_RETURN_IF_ERROR(set_inner(&shape, s, n_outer, b.rows, b.cols, err));
	MU_RETURN_IF_ERROR(kernel_out_on_device(c, 0, in->dtype, &shape, &out, err));
	MU_RETURN_IF_ERROR(move_fill(out, v3 ? kernel_in(c, 4) : NULL, err));
	return band_copy(out, in, &b, mu_shape_product(s, 0, n_outer), true, err);
}

/* ---- MatrixDiagPart, MatrixSetDiag, MatrixBandPart ---- */

static int read_matrix(const struct kernel_call *c, bool v3, unsigned k_in, struct matrix_band *b,
		       struct mu_err *err)
{
	const struct mu_shape *s = &kernel_in(c, 0)->shape;
	int rc = 0;

	if (s->rank < 2)
		return mu_invalid(err, "input must be at least 2-dim, received shape: %s",
				  mu_shape_str(s));
	b->rows = s->dim[s->rank - 2];
	b->cols = s->dim[s->rank - 1];
	if (v3 && ((rc = read_align(c, b, err)) || (rc = read_k(c, k_in, b, err))))
		return rc;
	return check_band(b, err);
}

static int diag_part(struct kernel_call *c, bool v3, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct mu_tensor *out;
	struct mu_shape shape;
	struct matrix_band b = {0};

	MU_RETURN_IF_ERROR(read_matrix(c, v3, 1, &b, err));
	if (v3 && kernel_in(c, 2)->shape.count != 1)
		return mu_invalid(err, "padding_value must be a scalar");
	bool is_band = b.to != b.from;
	int n_outer = in->shape.rank - 2;
	MU_RETURN_IF_ERROR(set_inner(&shape, &in->shape, n_outer, is_band ? b.to - b.from + 1 : -1,
				     b.longest, err));
	MU_RETURN_IF_ERROR(kernel_out_on_device(c, 0, in->dtype, &shape, &out, err));
	if (v3)
		MU_RETURN_IF_ERROR(move_fill(out, kernel_in(c, 2), err));
	return band_copy(in, out, &b, mu_shape_product(&in->shape, 0, n_outer), false, err);
}

static int set_diag(struct kernel_call *c, bool v3, struct mu_err *err)
{
	const struct mu_tensor in = *kernel_in(c, 0); /* the output may reuse its memory */
	const struct mu_tensor *band = kernel_in(c, 1);
	struct mu_shape want, shape = in.shape;
	struct mu_tensor *out;
	struct matrix_band b = {0};

	MU_RETURN_IF_ERROR(read_matrix(c, v3, 2, &b, err));
	if (!band->shape.rank)
		return mu_invalid(err, "diagonal must be at least 1-dim, received shape: []");
	bool is_band = b.to != b.from;
	int n_outer = shape.rank - 2;
	MU_RETURN_IF_ERROR(
	    set_inner(&want, &shape, n_outer, is_band ? b.to - b.from + 1 : -1, b.longest, err));
	if (!mu_shape_eq(&want, &band->shape))
		return mu_invalid(err, "Expected diagonal of shape %s, got %s", mu_shape_str(&want),
				  mu_shape_str(&band->shape));
	MU_RETURN_IF_ERROR(move_out_reuse(c, 0, 0, in.dtype, &shape, &out, err));
	MU_RETURN_IF_ERROR(move_all(out, &in, err));
	return band_copy(out, band, &b, mu_shape_product(&shape, 0, n_outer), true, err);
}

/* Keeps at most num_lower diagonals below and num_upper above the main one; negative: all. */
static int band_part(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct mu_tensor *out;
	struct matrix_band b = {0};
	int64_t low, high;
	int rc;

	MU_RETURN_IF_ERROR(read_matrix(c, false, 0, &b, err));
	MU_RETURN_IF_ERROR(args_int(c, 1, &low, err));
	MU_RETURN_IF_ERROR(args_int(c, 2, &high, err));
	if (low > b.rows || high > b.cols)
		return mu_invalid(err,
				  "num_lower and num_upper must be negative or less or equal to "
				  "number of rows (%lld) and columns (%lld), got %lld and %lld",
				  (long long)b.rows, (long long)b.cols, (long long)low,
				  (long long)high);
	b.from = low < 0 ? -b.rows : -low;
	b.to = high < 0 ? b.cols : high;
	rc = kernel_out_on_device(c, 0, in->dtype, &in->shape, &out, err);
	return rc || !in->shape.count ? rc : band_part_copy(out, in, &b, err);
}

/* ---- DiagPart, Diag ---- */

static int tensor_diag_part(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	int half = in->shape.rank / 2;
	struct mu_shape shape;
	struct mu_tensor *out;

	if (in->shape.rank % 2)
		return mu_invalid(err, "The rank of the tensor should be even, got shape %s",
				  mu_shape_str(&in->shape));
	for (int d = 0; d < half; d++)
		if (in->shape.dim[d] != in->shape.dim[half + d])
			return mu_invalid(err,
					  "Invalid shape %s: dimensions %d and %d do not match.",
					  mu_shape_str(&in->shape), d, half + d);
	MU_RETURN_IF_ERROR(mu_shape_set(&shape, half, in->shape.dim, err));
	MU_RETURN_IF_ERROR(kernel_out_on_device(c, 0, in->dtype, &shape, &out, err));
	if (!shape.count)
		return 0;
	struct view diagonal = {.rank = 1, .dim = {shape.count}, .stride = {shape.count + 1}};
	return move_read(out, in, &diagonal, err);
}

static int diag(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct mu_shape shape = in->shape;
	struct mu_tensor *out;

	if (in->shape.rank == 0)
		return mu_invalid(err, "Input must be at least rank 1, got 0");
	MU_RETURN_IF_ERROR(mu_shape_append(&shape, in->shape.rank, in->shape.dim, err));
	MU_RETURN_IF_ERROR(kernel_out_on_device(c, 0, in->dtype, &shape, &out, err));
	if (!shape.count)
		return 0;
	MU_RETURN_IF_ERROR(move_fill(out, NULL, err));
	int64_t n = in->shape.count;
	struct view diagonal = {.rank = 1, .dim = {n}, .stride = {n + 1}};
	return move_write(out, &diagonal, in, err);
}

#define BOTH(name)                                                                                 \
	KERNEL_RUN(name##_v1, name(c, false, err))                                                 \
	KERNEL_RUN(name##_v3, name(c, true, err))
BOTH(matrix_diag)
BOTH(diag_part)
BOTH(set_diag)

static const struct kernel rows[] = {
    {"MatrixDiagV2 MatrixDiagV3", .run = matrix_diag_v3},
    {"MatrixDiagPartV2 MatrixDiagPartV3", .run = diag_part_v3},
    {"MatrixSetDiagV2 MatrixSetDiagV3", .run = set_diag_v3},
    {"MatrixDiag BatchMatrixDiag", .run = matrix_diag_v1},
    {"MatrixDiagPart BatchMatrixDiagPart", .run = diag_part_v1},
    {"MatrixSetDiag BatchMatrixSetDiag", .run = set_diag_v1},
    {"MatrixBandPart BatchMatrixBandPart", .run = band_part},
    {"DiagPart", .run = tensor_diag_part},
    {"Diag", .run = diag},
};
KERNEL_TABLE(array_matrix_diag, rows)
