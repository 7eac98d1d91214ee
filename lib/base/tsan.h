/* SPDX-License-Identifier: Apache-2.0 */
/* Annotations for ThreadSanitizer where an uninstrumented library synchronizes threads: operations
 * before mu_tsan_release(p) happen before operations after mu_tsan_acquire(p). */
#ifndef MU_LIB_BASE_TSAN_H
#define MU_LIB_BASE_TSAN_H

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#define mu_tsan_acquire(p) __tsan_acquire(p)
#define mu_tsan_release(p) __tsan_release(p)
#else
#define mu_tsan_acquire(p) ((void)(p))
#define mu_tsan_release(p) ((void)(p))
#endif

#endif
