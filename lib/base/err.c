/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const names[] = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

enum { N_NAMES = sizeof names / sizeof names[0] };

enum mu_code mu_code_from(long number)
{
	return number >= 0 && number < N_NAMES ? (enum mu_code)number : MU_UNKNOWN;
}

const char *mu_code_name(enum mu_code code)
{
	return names[mu_code_from(code)];
}

int mu_vfail(struct mu_err *err, enum mu_code code, const char *fmt, va_list ap)
{
	if (err) {
		err->code = code;
		vsnprintf(err->msg, sizeof err->msg, fmt, ap);
	}
	return -(int)code;
}

int mu_fail(struct mu_err *err, enum mu_code code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	int rc = mu_vfail(err, code, fmt, ap);
	va_end(ap);
	return rc;
}

static enum mu_code code_of_errno(int errnum)
{
	switch (errnum) {
	case ENOENT:
	case ENODEV:
		return MU_NOT_FOUND;
	case EEXIST:
		return MU_ALREADY_EXISTS;
	case EACCES:
	case EPERM:
	case EROFS:
		return MU_PERMISSION_DENIED;
	case ENOMEM:
	case ENOSPC:
	case EDQUOT:
	case EMFILE:
	case ENFILE:
		return MU_RESOURCE_EXHAUSTED;
	case EBADMSG: /* a corrupt compressed file: lib/io/decompress.h */
		return MU_DATA_LOSS;
	case EINVAL:
	case ENAMETOOLONG:
		return MU_INVALID_ARGUMENT;
	case ETIMEDOUT:
		return MU_DEADLINE_EXCEEDED;
	case EADDRINUSE:
	case ENOTDIR:
	case EISDIR:
	case ENOTEMPTY:
		return MU_FAILED_PRECONDITION;
	case ECONNREFUSED:
	case ECONNRESET:
	case EPIPE:
	case EHOSTUNREACH:
	case ENETUNREACH:
		return MU_UNAVAILABLE;
	default:
		return MU_UNKNOWN;
	}
}

int mu_fail_errno(struct mu_err *err, int errnum, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	int rc = mu_vfail(err, code_of_errno(errnum), fmt, ap);
	va_end(ap);
	mu_append(err, ": %s",
		  errnum == EBADMSG ? "the compressed data is corrupt" : strerror(errnum));
	return rc;
}

/* An error with code MU_OK is a bug in the function that returned it.  Callers would take it for
 * success. */
static void require_code(struct mu_err *err)
{
	if (err->code == MU_OK)
		mu_fail(err, MU_INTERNAL, "failed without an error code");
}

int mu_append(struct mu_err *err, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return -MU_UNKNOWN;
	require_code(err);
	size_t n = strlen(err->msg);
	va_start(ap, fmt);
	vsnprintf(err->msg + n, sizeof err->msg - n, fmt, ap);
	va_end(ap);
	return -(int)err->code;
}

int mu_wrap(struct mu_err *err, const char *fmt, ...)
{
	char old[sizeof err->msg];
	va_list ap;

	if (!err)
		return -MU_UNKNOWN;
	require_code(err);
	memcpy(old, err->msg, sizeof old);
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof err->msg, fmt, ap);
	va_end(ap);
	return mu_append(err, ": %s", old);
}
