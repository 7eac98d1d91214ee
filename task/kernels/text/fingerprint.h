/* SPDX-License-Identifier: Apache-2.0 */
/* Fingerprints of strings. The results equal TensorFlow's bit for bit, because trained models
 * depend on the bucket of each word and feature cross. */
#ifndef MU_TASK_KERNELS_TEXT_FINGERPRINT_H
#define MU_TASK_KERNELS_TEXT_FINGERPRINT_H

#include <stddef.h>
#include <stdint.h>

uint64_t fingerprint64(const char *s, size_t n);
/* out: the low half, then the high half. */
void fingerprint128(const char *s, size_t n, uint64_t out[2]);
/* Combines the fingerprints of two consecutive values. */
uint64_t fingerprint64_join(uint64_t a, uint64_t b);

#endif
