/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the constants k of optimizers.def from an optimizer's scalar inputs g, on every device.
 * `flag`: the attributes, as optimizer_flag (state/optimizers.h) encodes them.  The including file
 * defines DEVICE and declares sqrt. */

DEVICE void k_plain(double *k, const double *g, int flag)
{
	for (int j = 0; j < 6; j++)
		k[j] = g[j];
}

DEVICE void k_adagrad(double *k, const double *g, int flag)
{
	k[0] = g[0];
	k[1] = g[1];
	k[2] = flag;
}

DEVICE void k_momentum(double *k, const double *g, int flag)
{
	k[0] = g[0];
	k[1] = g[1];
	k[2] = flag & 1;
	k[3] = flag >> 1;
}

DEVICE void k_adam(double *k, const double *g, int flag)
{
	k[0] = g[2] * sqrt(1 - g[1]) / (1 - g[0]);
	k[1] = g[3];
	k[2] = g[4];
	k[3] = g[5];
	k[4] = flag;
}

DEVICE void k_adamax(double *k, const double *g, int flag)
{
	k[0] = g[1] / (1 - g[0]);
	k[1] = g[2];
	k[2] = g[3];
	k[3] = g[4];
}

DEVICE void k_signs(double *k, const double *g, int flag)
{
	k_plain(k, g, flag);
	k[4] = flag;
}

DEVICE void k_ftrl(double *k, const double *g, int flag)
{
	k[0] = g[0];
	k[1] = g[1];
	k[2] = g[2];
	k[3] = g[4];
	k[4] = g[3];
	k[5] = flag;
}
