/* SPDX-License-Identifier: Apache-2.0 */
/* What every unit test includes: cmocka with what it needs before it, and our own few checks. */
#ifndef TESTS_TEST_H
#define TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/err.h"

/* The call succeeded; otherwise fails with its message. */
#define assert_ok(call, err)                                                                       \
	do {                                                                                       \
		if ((call) != 0)                                                                   \
			fail_msg("%s: %s: %s", #call, mu_code_name((err)->code), (err)->msg);      \
	} while (0)

/* The call failed with this code and its message contains this text. */
#define assert_fails(call, err, want_code, text)                                                   \
	do {                                                                                       \
		mu_err_clear(err);                                                                 \
		assert_int_equal((call), -(int)(want_code));                                       \
		assert_int_equal((err)->code, (want_code));                                        \
		if (!strstr((err)->msg, (text)))                                                   \
			fail_msg("'%s' does not say '%s'", (err)->msg, (text));                    \
	} while (0)

#endif
