/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of Fourier transforms. The gradient of a complex transform is the same transform
 * between two conjugates.
 *
 * A transform of reals stores only half of the spectrum. For the gradient of the reals, the missing
 * half is zero. For the gradient of the spectrum, an element that represents two numbers has weight
 * 2.
 */
#include <string.h>

#include "lib/grad/op_grads.h"

GRAD_UNARY(g_fft, grad_conj(b, GRAD_OP(c, c->node->op, grad_conj(b, g))))

/* Crops x, or pads it with zeros, at the end of each dimension. The transforms do the same. */
static struct mu_out crop_or_pad(struct mu_builder *b, struct mu_out x, struct mu_out shape)
{
	struct mu_out old_shape = grad_shape(b, x), zeros = grad_zeros(b, old_shape);
	struct mu_out common_shape = mu_op(b, "Minimum", MU_IN(old_shape, shape));
	struct mu_out pads = mu_op(b, "Pack", MU_IN(zeros, mu_sub(b, shape, common_shape)),
				   MU_ATTRS(MU_A_INT("axis", 1)));

	return mu_op(b, "Pad", MU_IN(mu_op(b, "Slice", MU_IN(x, zeros, common_shape)), pads));
}

/* Adds the complex transform (FFT… or IFFT…) with the number of dimensions of the node. */
static struct mu_out complex_transform(struct grad_call *c, bool inverse, struct mu_out x)
{
	const char *plain = strstr(c->node->op, "RFFT") + 1;
	char op[8] = "I";

	strncat(op, plain, sizeof op - 2);
	return mu_op(c->b, inverse ? op : plain, MU_IN(x));
}

/* Returns the number of reals in the last dimension, as a vector of one element. */
static struct mu_out last_length(struct grad_call *c)
{
	const char *op = c->node->op;
	char end = op[strlen(op) - 2];

	return mu_op(c->b, "Slice",
		     MU_IN(grad_in(c, 1),
			   grad_single(c->b, end >= '2' && end <= '3' ? end - '1' : 0),
			   grad_single(c->b, 1)));
}

static void g_rfft(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct mu_out g = grad_conj(b, c->gy[0]), shape = grad_shape(b, g);
	struct mu_out n_leading =
	    mu_reshape(b, mu_sub(b, grad_size(b, shape), grad_int(b, 1)), grad_single(b, 1));
	struct mu_out leading = mu_op(b, "Slice", MU_IN(shape, grad_single(b, 0), n_leading));
	struct mu_out full_shape =
	    mu_op(b, "ConcatV2", MU_IN(leading, last_length(c), grad_int(b, 0)));

	c->gx[0] = crop_or_pad(
	    b, grad_part(b, "Real", complex_transform(c, false, crop_or_pad(b, g, full_shape))),
	    grad_shape(b, grad_in(c, 0)));
}

static void g_irfft(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct mu_out g = c->gy[0], y = grad_in(c, 0), shape = grad_shape(b, y), n = last_length(c);
	struct mu_out n_leading =
	    mu_reshape(b, mu_sub(b, grad_size(b, shape), grad_int(b, 1)), grad_single(b, 1));
	struct mu_out n_stored =
	    mu_reshape(b, mu_op(b, "Slice", MU_IN(shape, n_leading, grad_single(b, 1))),
		       mu_const_ints(b, (int32_t[]){0}, 0));
	struct mu_out index = mu_op(b, "Range", MU_IN(grad_int(b, 0), n_stored, grad_int(b, 1)));
	struct mu_out doubled_index = mu_add(b, index, index);
	enum mu_dtype t = mu_dtype_base(mu_out_dtype(b, g));
	struct mu_out weights = mu_cast(b, mu_op(b, "LessEqual", MU_IN(doubled_index, n)), t);

	weights = mu_add(b, weights, mu_cast(b, mu_op(b, "Less", MU_IN(doubled_index, n)), t));
	weights =
	    mu_sub(b, weights, mu_cast(b, mu_op(b, "Equal", MU_IN(index, grad_int(b, 0))), t));
	struct mu_out spectrum =
	    grad_conj(b, complex_transform(c, true, grad_complex(b, g, grad_zeros(b, g))));
	c->gx[0] = mu_mul(b, crop_or_pad(b, spectrum, shape),
			  grad_complex(b, weights, grad_zeros(b, weights)));
}

const struct op_grad grads_of_fourier[] = {
    {"FFT", g_fft, GRAD_FIRST},       {"FFT2D", g_fft, GRAD_FIRST},
    {"FFT3D", g_fft, GRAD_FIRST},     {"IFFT", g_fft, GRAD_FIRST},
    {"IFFT2D", g_fft, GRAD_FIRST},    {"IFFT3D", g_fft, GRAD_FIRST},
    {"IRFFT", g_irfft, GRAD_FIRST},   {"IRFFT2D", g_irfft, GRAD_FIRST},
    {"IRFFT3D", g_irfft, GRAD_FIRST}, {"RFFT", g_rfft, GRAD_FIRST},
    {"RFFT2D", g_rfft, GRAD_FIRST},   {"RFFT3D", g_rfft, GRAD_FIRST},
    {NULL, NULL, GRAD_FIRST},
};
