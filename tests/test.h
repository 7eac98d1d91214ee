/* SPDX-License-Identifier: Apache-2.0 */
/* cmocka with the headers that it requires, and assertions on errors. */
#ifndef MU_TESTS_TEST_H
#define MU_TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/err.h"

/* Asserts that the call succeeds; else fails with its error message. */
#define assert_ok(call, err)                                                                       \
	do {                                                                                       \
		if ((call) != 0)                                                                   \
			fail_msg("%s: %s: %s", #call, mu_code_name((err)->code), (err)->msg);      \
	} while (0)

/* Asserts that the call fails with this code and a message that contains this text. */
#define assert_fails(call, err, want_code, text)                                                   \
	do {                                                                                       \
		*(err) = (struct mu_err){0};                                                       \
		assert_int_equal((call), -(int)(want_code));                                       \
		assert_int_equal((err)->code, (want_code));                                        \
		if (!strstr((err)->msg, (text)))                                                   \
			fail_msg("'%s' does not say '%s'", (err)->msg, (text));                    \
	} while (0)

#endif
