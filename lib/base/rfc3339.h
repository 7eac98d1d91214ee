/* SPDX-License-Identifier: Apache-2.0 */
/* Times in RFC 3339 form: "2026-01-31T23:59:59Z". */
#ifndef MU_LIB_BASE_RFC3339_H
#define MU_LIB_BASE_RFC3339_H

#include <stdbool.h>

enum { MU_RFC3339 = 32 }; /* buffer size in bytes */

/* Writes whole seconds, UTC.  Returns false, with "", outside the years 1970 to 9999. */
bool mu_rfc3339_write(char out[MU_RFC3339], double seconds);
/* Writes microseconds too, as Kubernetes' MicroTime; writes the start of 1970 if the time is out
 * of range. */
void mu_rfc3339_write_micro(char out[MU_RFC3339], double seconds);
/* Reads a time in UTC ("Z"), as Kubernetes writes it, and ignores the zone.  Returns 0 if text is
 * NULL or invalid. */
double mu_rfc3339_read(const char *text);

#endif
