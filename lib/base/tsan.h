/* SPDX-License-Identifier: Apache-2.0 */
/* Order that ThreadSanitizer cannot see, because a library makes it that is not instrumented: what
 * a thread did before mu_tsan_release(p) happens before what another does after mu_tsan_acquire(p).
 */
#ifndef MU_BASE_TSAN_H
#define MU_BASE_TSAN_H

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#define mu_tsan_acquire(p) __tsan_acquire(p)
#define mu_tsan_release(p) __tsan_release(p)
#else
#define mu_tsan_acquire(p) ((void)(p))
#define mu_tsan_release(p) ((void)(p))
#endif

#endif
