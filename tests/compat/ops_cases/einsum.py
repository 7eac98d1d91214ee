# SPDX-License-Identifier: Apache-2.0
"""Einsum equations: products, sums, diagonals, ellipses, and invalid equations."""
import numpy as np

from ops_cases import Case, D, F, I, L, ints, real

SIZES = dict(zip("abcdefghij", (2, 3, 4, 5, 2, 3, 1, 4, 2, 3)))
C64, C128 = np.complex64, np.complex128


def tensor(t, *shape):
    if t in (C64, C128):
        return (real(D, *shape) + 1j * real(D, *shape)).astype(t)
    return ints(t, *shape) if t in (I, L) else real(t, *shape)


def case(equation, t=F, shapes=None):
    terms = equation.split("->")[0].split(",")
    shapes = shapes or [[SIZES[c] for c in term] for term in terms]
    tol = {"rtol": 1e-4, "atol": 1e-5} if t in (F, C64) else {"rtol": 1e-10, "atol": 1e-11} if t in (D, C128) else {}
    return Case("Einsum", {"inputs": [tensor(t, *s) for s in shapes]}, {"equation": equation}, **tol)


def einsum_cases():
    for t in (F, D, I, L, C64, C128):
        for equation in ("ab,bc->ac", "ab,cb->ca", "ba,bc->ca", "abc,cd->abd", "abc,acd->abd", "cab,cbd->dac", "abc,abc->", "abc,d->adcb", "a,a->",
                         "a,b->ab", "abcd,acbe->dbea", "abc,bd->da", "ab,b->", "a,->a", ",->",
                         "ab->ba", "abc->b", "abc->", "abc->cab", "aab->ab", "aa->", "aba->ab", "->", "a->aa", "ab,bc->caac", "aab,bcc->ac"):
            yield case(equation, t)
        for equation, *shapes in (("...ab,...bc->...ac", (2, 3, 4), (2, 4, 5)), ("...ab,...bc->...ac", (3, 1, 3, 4), (2, 4, 5)),
                                  ("...ab,bc->...ac", (2, 2, 3, 4), (4, 5)), ("ab...,b->...a", (2, 3, 4, 5), (3,)),
                                  ("...,...->...", (3, 1), (4,)), ("...a->a...", (2, 3, 4)), ("...a->...", (2, 3, 4)),
                                  ("a...a->...a", (3, 2, 3)), ("a...->...aa", (3, 2)), ("...ab,...bc->...ac", (3, 4), (4, 5))):
            yield case(equation, t, shapes)
        for equation, *shapes in (("ab,bc->ac", (2, 0), (0, 3)), ("ab,bc->ac", (0, 2), (2, 3)), ("ab->a", (2, 0)), ("aa->a", (0, 0)), ("ab,c->a", (2, 0), (3,))):
            yield case(equation, t, shapes)
    # attention, with the equations that Keras uses
    yield case("aecd,abcd->acbe", F, [(2, 6, 4, 8), (2, 5, 4, 8)])
    yield case("acbe,aecd->abcd", F, [(2, 4, 5, 6), (2, 6, 4, 8)])
    yield case("abc,cde->abde", F, [(2, 7, 9), (9, 4, 3)])
    yield case("abde,dec->abc", F, [(2, 7, 4, 3), (4, 3, 9)])
    yield case("ab,bc->ac", F, [(130, 70), (70, 90)])
    for equation, *shapes in (("ab,bc->ac", (2, 3), (4, 5)), ("ab,bc->ac", (2, 1), (4, 5)), ("ab,bc->ac", (2, 3, 1), (3, 5)), ("...ab->ab", (2, 3, 4)),
                              ("aa->a", (2, 3)), ("...a,...a->...a", (2, 3), (4, 3)), ("a...b->...", (2,))):
        yield case(equation, F, shapes)
