/* SPDX-License-Identifier: Apache-2.0 */
/* The discrete Fourier transform of n complex numbers, any n, in n log n steps. */
#ifndef MU_TASK_KERNELS_MATH_FFT_H
#define MU_TASK_KERNELS_MATH_FFT_H

#include <complex.h>
#include <stdbool.h>
#include <stdint.h>

struct fft {
	int64_t n, m;              /* m: n, or the power of two that is transformed instead */
	int64_t work;              /* numbers that fft_run needs as work space */
	int factor[64];            /* of m */
	double _Complex *twiddles; /* m of them: e^(-2 pi i k / m) */
	double _Complex *chirp;    /* n of them: e^(-pi i k² / n), if n has a large factor */
	double _Complex *reverse;  /* m of them: the transform of the reversed chirp */
};
/* n: at least 1.  Returns false if memory is exhausted. */
bool fft_init(struct fft *f, int64_t n);
void fft_fini(struct fft *f);
/* Transforms x in place.  forward: x[j] = sum of x[k] e^(-2 pi i j k / n); else the inverse. */
void fft_run(const struct fft *f, bool forward, double _Complex *x, double _Complex *work);

#endif
