/* SPDX-License-Identifier: Apache-2.0 */
/* Products and sums by an equation. */
#ifndef TESTS_CLIENT_GRADIENT_CASES_EINSUM_H
#define TESTS_CLIENT_GRADIENT_CASES_EINSUM_H

#define EINSUM(equation, ...)                                                                      \
	mu_op(b, "Einsum", MU_IN(__VA_ARGS__), MU_ATTRS(MU_A_STR("equation", equation)))
#define CUBE mu_reshape(b, values(b, 4, 6, 0), ints(b, 3, (int32_t[]){2, 3, 4}))

CASE(y_einsum_left, EINSUM("ab,bc->ca", x, values(b, 3, 4, 0)))
CASE(y_einsum_right, EINSUM("adb,bc->dca", CUBE, x))
CASE(y_einsum_batch, EINSUM("abc,acd->abd", x, CUBE))
CASE(y_einsum_reduced, EINSUM("abc,ad->d", x, values(b, 2, 5, 0)))
CASE(y_einsum_dots, EINSUM("...ab,...bc->...ca", x, CUBE))
CASE(y_einsum_dots_of_one, EINSUM("a...->...", x))
CASE(y_einsum_turned, EINSUM("abc->cab", x))
CASE(y_einsum_summed, EINSUM("abc->b", x))
CASE(y_einsum_diagonal, EINSUM("aab->ba", x))
CASE(y_einsum_trace, EINSUM("aa->", x))
CASE(y_einsum_to_diagonal, EINSUM("ab->aba", x))
CASE(y_einsum_square, EINSUM("ab,cb->ac", x, x))

#define EINSUM_CASES                                                                               \
	{"Einsum, left", {2, {2, 3}}, y_einsum_left, -1, 1},                                       \
	    {"Einsum, right", {2, {4, 3}}, y_einsum_right, -1, 1},                                 \
	    {"Einsum, batch", {3, {2, 2, 3}}, y_einsum_batch, -1, 1},                              \
	    {"Einsum, reduced", {3, {2, 3, 2}}, y_einsum_reduced, -1, 1},                          \
	    {"Einsum, dots", {3, {1, 2, 3}}, y_einsum_dots, -1, 1},                                \
	    {"Einsum, dots of one", {3, {2, 3, 2}}, y_einsum_dots_of_one, -1, 1},                  \
	    {"Einsum, turned", {3, {2, 3, 2}}, y_einsum_turned, -1, 1},                            \
	    {"Einsum, summed", {3, {2, 3, 2}}, y_einsum_summed, -1, 1},                            \
	    {"Einsum, diagonal", {3, {3, 3, 2}}, y_einsum_diagonal, -1, 1},                        \
	    {"Einsum, trace", {2, {3, 3}}, y_einsum_trace, -1, 1},                                 \
	    {"Einsum, to diagonal", {2, {3, 2}}, y_einsum_to_diagonal, -1, 1},                     \
	    {"Einsum, square", {2, {3, 2}}, y_einsum_square, -1, 1},

#endif
