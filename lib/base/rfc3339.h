/* SPDX-License-Identifier: Apache-2.0 */
/* Times as JSON has them: "2026-01-31T23:59:59Z".  The C library's ways to write and read them go
 * through locales and time zones, at a thousand instructions each. */
#ifndef MU_BASE_RFC3339_H
#define MU_BASE_RFC3339_H

#include <stdbool.h>

enum { MU_RFC3339 = 32 }; /* bytes, with the NUL and room to spare */

/* Whole seconds, UTC.  False, and "" , when it is not within the years 1970 to 9999. */
bool mu_rfc3339_write(char out[MU_RFC3339], double seconds);
/* The same for a clock that may be off: 1970 began when it says no such time. */
void mu_rfc3339_write_clock(char out[MU_RFC3339], double seconds);
/* Whole seconds; what follows them (a fraction, "Z") is not looked at.  0 when text is NULL or no
 * such time. */
double mu_rfc3339_read(const char *text);

#endif
