/* SPDX-License-Identifier: Apache-2.0 */
/* Errors: one type, one contract (docs/errors.md).
 *
 * A function that can fail returns 0 or a negative code.  Its last parameter is `struct mu_err
 * *err`, which may be NULL.  A failure sets err, with a message of one line, and leaves all other
 * outputs unchanged.  The function that handles an error logs it, once; all others return it.
 */
#ifndef MU_LIB_BASE_ERR_H
#define MU_LIB_BASE_ERR_H

#include <stdarg.h>
#include <stdbool.h>

/* The status codes of gRPC and TensorFlow. */
enum mu_code {
	MU_OK = 0,
	MU_CANCELLED = 1,
	MU_UNKNOWN = 2,
	MU_INVALID_ARGUMENT = 3, /* the caller's bug */
	MU_DEADLINE_EXCEEDED = 4,
	MU_NOT_FOUND = 5,
	MU_ALREADY_EXISTS = 6,
	MU_PERMISSION_DENIED = 7,
	MU_RESOURCE_EXHAUSTED = 8, /* a limit or the memory */
	MU_FAILED_PRECONDITION = 9,
	MU_ABORTED = 10, /* restart the step or the session */
	MU_OUT_OF_RANGE = 11,
	MU_UNIMPLEMENTED = 12,
	MU_INTERNAL = 13,    /* our bug */
	MU_UNAVAILABLE = 14, /* retry the call */
	MU_DATA_LOSS = 15,
	MU_UNAUTHENTICATED = 16,
};

struct mu_err {
	enum mu_code code;
	char msg[1024];
};

/* Fills err and returns -code: `return mu_fail(err, MU_NOT_FOUND, "no job '%s'", name);` */
int mu_fail(struct mu_err *err, enum mu_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* mu_fail(err, MU_INVALID_ARGUMENT, …), the error of most checks. */
#define mu_invalid(err, ...) mu_fail(err, MU_INVALID_ARGUMENT, __VA_ARGS__)
/* Returns the error of `call` from the function around it. */
#define MU_RETURN_IF_ERROR(call)                                                                   \
	do {                                                                                       \
		int error_ = (call);                                                               \
		if (error_)                                                                        \
			return error_;                                                             \
	} while (0)

int mu_vfail(struct mu_err *err, enum mu_code code, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));

/* As mu_fail, with ": <strerror(errnum)>" appended and a code that corresponds to errnum. */
int mu_fail_errno(struct mu_err *err, int errnum, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "<fmt>: " before the message; returns -code, so `return mu_wrap(err, "node '%s'", n);` */
int mu_wrap(struct mu_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Appends to the message; returns -code. */
int mu_append(struct mu_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Returns "INVALID_ARGUMENT" and so on; "UNKNOWN" for numbers that are not codes. */
const char *mu_code_name(enum mu_code code);

/* Converts a received integer; returns MU_UNKNOWN for numbers that are not codes. */
enum mu_code mu_code_from(long number);

#endif
