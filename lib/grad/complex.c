/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of complex numbers. The gradient of z = x + iy is d loss / dx + i d loss / dy.
 *
 * The ops of this table convert between real and complex numbers. The ops of
 * grad_supports_complex propagate complex gradients: Mul, and ops that are linear with real
 * coefficients. All other ops would need a conjugate, so a complex gradient through them is an
 * error.
 */
#include <stdio.h>
#include <string.h>

#include "lib/grad/op_grads.h"

static bool is_complex(struct mu_builder *b, struct mu_out x)
{
	return mu_dtype_is_complex(mu_dtype_base(mu_out_dtype(b, x)));
}

bool grad_supports_complex(const struct grad_call *c)
{
	static const char supported[] =
	    " AccumulateNV2 Add AddN AddV2 BatchToSpaceND BroadcastTo Cast Complex"
	    " ConcatV2 Conj Cumsum Diag DiagPart DynamicPartition DynamicStitch"
	    " ExpandDims FFT FFT2D FFT3D Fill Gather GatherNd GatherV2 IFFT IFFT2D"
	    " IFFT3D Identity IdentityN MatrixBandPart MatrixDiag MatrixDiagPart Mean"
	    " Mul Neg Pack Pad RFFT RFFT2D RFFT3D Reshape ReverseV2 Roll ScatterNd"
	    " SegmentSum Select SelectV2 Slice SpaceToBatchND Split SplitV Squeeze"
	    " StridedSlice Sub Sum Tile Transpose Unpack UnsortedSegmentSum ";
	char name[80];
	bool is_any_complex = false;

	for (unsigned i = 0; i < c->n_gy; i++)
		is_any_complex |= c->gy[i].node && is_complex(c->b, c->gy[i]);
	snprintf(name, sizeof(name), " %.70s ", c->node->op);
	return !is_any_complex || strstr(supported, name);
}

struct mu_out grad_conj(struct mu_builder *b, struct mu_out x)
{
	return is_complex(b, x) ? mu_op(b, "Conj", MU_IN(x)) : x;
}

struct mu_out grad_part(struct mu_builder *b, const char *op, struct mu_out z)
{
	bool is_double = mu_dtype_base(mu_out_dtype(b, z)) == MU_COMPLEX128;

	return mu_op(b, op, MU_IN(z),
		     MU_ATTRS(MU_A_TYPE("Tout", is_double ? MU_DOUBLE : MU_FLOAT)));
}

struct mu_out grad_complex(struct mu_builder *b, struct mu_out x, struct mu_out y)
{
	bool is_double = mu_dtype_base(mu_out_dtype(b, x)) == MU_DOUBLE;

	return mu_op(b, "Complex", MU_IN(x, y),
		     MU_ATTRS(MU_A_TYPE("Tout", is_double ? MU_COMPLEX128 : MU_COMPLEX64)));
}

GRAD_BINARY(g_complex, grad_part(b, "Real", g), grad_part(b, "Imag", g))
GRAD_UNARY(g_real, grad_complex(b, g, grad_zeros(b, g)))
GRAD_UNARY(g_imag, grad_complex(b, grad_zeros(b, g), g))
GRAD_UNARY(g_conj, mu_op(b, "Conj", MU_IN(g)))
/* x / |z|, y / |z| */
GRAD_UNARY(g_abs, grad_complex(b, mu_mul(b, g, grad_div_no_nan(b, grad_part(b, "Real", x), y)),
			       mu_mul(b, g, grad_div_no_nan(b, grad_part(b, "Imag", x), y))))
/* -1 / (y + i x), whose parts are -y / |z|² and x / |z|² */
GRAD_UNARY(g_angle,
	   mu_mul(b, mu_neg(b, grad_complex(b, g, grad_zeros(b, g))),
		  grad_unary(b, "Reciprocal",
			     grad_complex(b, grad_part(b, "Imag", x), grad_part(b, "Real", x)))))

const struct op_grad grads_of_complex[] = {
    {"Angle", g_angle, GRAD_FIRST},    {"Complex", g_complex, GRAD_FIRST},
    {"ComplexAbs", g_abs, GRAD_FIRST}, {"Conj", g_conj, GRAD_FIRST},
    {"Imag", g_imag, GRAD_FIRST},      {"Real", g_real, GRAD_FIRST},
    {NULL, NULL, GRAD_FIRST},
};
