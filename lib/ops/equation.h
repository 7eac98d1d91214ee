/* SPDX-License-Identifier: Apache-2.0 */
/* The equations of Einsum: "ij,jk->ik", "...ab->...ba". */
#ifndef MU_LIB_OPS_EQUATION_H
#define MU_LIB_OPS_EQUATION_H

#include "lib/tensor/tensor.h"

/* Labels: a letter is a number below MU_LETTERS; MU_ELLIPSIS is any number of axes. */
enum { MU_LETTERS = 52, MU_ELLIPSIS = 255 };

struct mu_term {
	int n;
	unsigned char label[MU_MAX_RANK + 1];
};
struct mu_equation {
	unsigned n_in; /* 1 or 2 */
	struct mu_term in[2], out;
};
int mu_equation_read(struct mu_equation *e, const char *s, unsigned n_in, struct mu_err *err);
bool mu_term_has(const struct mu_term *t, unsigned char label);

#endif
