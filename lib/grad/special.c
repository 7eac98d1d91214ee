/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of special functions, one expression each. */
#include <math.h>

#include "lib/grad/op_grads.h"

/* π x² / 2 */
static struct mu_out half_pi_square(struct mu_builder *b, struct mu_out x)
{
	return grad_scale(b, mu_square(b, x), M_PI_2);
}

/* f exp(k y²) */
static struct mu_out scaled_exp_square(struct mu_builder *b, struct mu_out y, double f, double k)
{
	return grad_scale(b, mu_exp(b, grad_scale(b, mu_square(b, y), k)), f);
}

/* Returns y, but `limit` where x is `at` and y is therefore NaN. */
static struct mu_out with_limit(struct mu_builder *b, struct mu_out x, double at, double limit,
				struct mu_out y)
{
	struct mu_out is_at = mu_equal(b, x, grad_number(b, x, at));

	return mu_op(b, "SelectV2", MU_IN(is_at, grad_number(b, x, limit), y));
}

static struct mu_out sign(struct mu_builder *b, struct mu_out x)
{
	return grad_unary(b, "Sign", x);
}

GRAD_UNARY(g_erfinv, mu_mul(b, g, scaled_exp_square(b, y, 1 / M_2_SQRTPI, 1)))
GRAD_UNARY(g_ndtri, mu_mul(b, g, scaled_exp_square(b, y, M_SQRT2 / M_2_SQRTPI * 2, 0.5)))
GRAD_UNARY(g_expint, mu_mul(b, g, mu_div(b, mu_exp(b, x), x)))
GRAD_UNARY(g_dawsn,
	   mu_mul(b, g, mu_sub(b, grad_number(b, x, 1), grad_scale(b, mu_mul(b, x, y), 2))))
GRAD_UNARY(g_spence,
	   mu_mul(b, g,
		  with_limit(b, x, 1, -1,
			     mu_div(b, mu_ln(b, x), mu_neg(b, grad_add_number(b, x, -1))))))
GRAD_UNARY(g_fresnel_cos, mu_mul(b, g, grad_unary(b, "Cos", half_pi_square(b, x))))
GRAD_UNARY(g_fresnel_sin, mu_mul(b, g, grad_unary(b, "Sin", half_pi_square(b, x))))

GRAD_UNARY(g_i0, mu_mul(b, g, grad_unary(b, "BesselI1", x)))
GRAD_UNARY(g_i0e, mu_mul(b, g, mu_sub(b, grad_unary(b, "BesselI1e", x), mu_mul(b, sign(b, x), y))))
GRAD_UNARY(g_i1,
	   mu_mul(b, g,
		  with_limit(b, x, 0, 1, mu_sub(b, grad_unary(b, "BesselI0", x), mu_div(b, y, x)))))
GRAD_UNARY(
    g_i1e,
    mu_mul(b, g,
	   with_limit(b, x, 0, 0.5,
		      mu_sub(b, grad_unary(b, "BesselI0e", x),
			     mu_mul(b, y, mu_add(b, sign(b, x), grad_unary(b, "Reciprocal", x)))))))
GRAD_UNARY(g_k0, mu_neg(b, mu_mul(b, g, grad_unary(b, "BesselK1", x))))
GRAD_UNARY(g_k0e, mu_mul(b, g, mu_sub(b, y, grad_unary(b, "BesselK1e", x))))
GRAD_UNARY(g_k1, mu_neg(b, mu_mul(b, g, mu_add(b, grad_unary(b, "BesselK0", x), mu_div(b, y, x)))))
GRAD_UNARY(g_k1e,
	   mu_mul(b, g, mu_sub(b, mu_sub(b, y, mu_div(b, y, x)), grad_unary(b, "BesselK0e", x))))
GRAD_UNARY(g_j0, mu_neg(b, mu_mul(b, g, grad_unary(b, "BesselJ1", x))))
GRAD_UNARY(g_j1, mu_mul(b, g,
			with_limit(b, x, 0, 0.5,
				   mu_sub(b, grad_unary(b, "BesselJ0", x), mu_div(b, y, x)))))
GRAD_UNARY(g_y0, mu_neg(b, mu_mul(b, g, grad_unary(b, "BesselY1", x))))
GRAD_UNARY(g_y1, mu_mul(b, g, mu_sub(b, grad_unary(b, "BesselY0", x), mu_div(b, y, x))))

/* Returns the density of the gamma distribution with shape a, at x. */
static struct mu_out gamma_density(struct mu_builder *b, struct mu_out a, struct mu_out x)
{
	struct mu_out power = mu_op(b, "Xlogy", MU_IN(grad_add_number(b, a, -1), x));

	return mu_exp(b, mu_sub(b, mu_sub(b, power, x), grad_unary(b, "Lgamma", a)));
}

GRAD_BINARY(g_igamma, mu_mul(b, g, mu_op(b, "IgammaGradA", MU_IN(x, z))),
	    mu_mul(b, g, gamma_density(b, x, z)))
GRAD_BINARY(g_igammac, mu_neg(b, mu_mul(b, g, mu_op(b, "IgammaGradA", MU_IN(x, z)))),
	    mu_neg(b, mu_mul(b, g, gamma_density(b, x, z))))

/* Only x has a gradient, as in TensorFlow. */
static void g_betainc(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct mu_out p = grad_in(c, 0), q = grad_in(c, 1), x = grad_in(c, 2);
	struct mu_out log_beta =
	    mu_sub(b, mu_add(b, grad_unary(b, "Lgamma", p), grad_unary(b, "Lgamma", q)),
		   grad_unary(b, "Lgamma", mu_add(b, p, q)));
	struct mu_out power =
	    mu_add(b, mu_op(b, "Xlog1py", MU_IN(grad_add_number(b, q, -1), mu_neg(b, x))),
		   mu_op(b, "Xlogy", MU_IN(grad_add_number(b, p, -1), x)));
	struct mu_out slope = mu_exp(b, mu_sub(b, power, log_beta));

	c->gx[2] = grad_sum_to(b, mu_mul(b, c->gy[0], slope), x);
}

const struct op_grad grads_of_special[] = {
    {"BesselI0", g_i0, GRAD_FIRST},
    {"BesselI0e", g_i0e, GRAD_FIRST},
    {"BesselI1", g_i1, GRAD_FIRST},
    {"BesselI1e", g_i1e, GRAD_FIRST},
    {"BesselJ0", g_j0, GRAD_FIRST},
    {"BesselJ1", g_j1, GRAD_FIRST},
    {"BesselK0", g_k0, GRAD_FIRST},
    {"BesselK0e", g_k0e, GRAD_FIRST},
    {"BesselK1", g_k1, GRAD_FIRST},
    {"BesselK1e", g_k1e, GRAD_FIRST},
    {"BesselY0", g_y0, GRAD_FIRST},
    {"BesselY1", g_y1, GRAD_FIRST},
    {"Betainc", g_betainc, GRAD_FIRST},
    {"Dawsn", g_dawsn, GRAD_FIRST},
    {"Erfinv", g_erfinv, GRAD_FIRST},
    {"Expint", g_expint, GRAD_FIRST},
    {"FresnelCos", g_fresnel_cos, GRAD_FIRST},
    {"FresnelSin", g_fresnel_sin, GRAD_FIRST},
    {"Igamma", g_igamma, GRAD_FIRST},
    {"Igammac", g_igammac, GRAD_FIRST},
    {"Ndtri", g_ndtri, GRAD_FIRST},
    {"Spence", g_spence, GRAD_FIRST},
    {NULL, NULL, GRAD_FIRST},
};
