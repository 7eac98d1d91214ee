/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the programs that tests run as users do. */
#ifndef MU_TESTS_PROGRAM_H
#define MU_TESTS_PROGRAM_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/err.h"

static char program[4096];

/* Stores the path of build/<mode>/bin/NAME or build/bin/NAME in `program`. The test is in
 * build/<mode>/tests/<folder>. Returns -1 after a message if the program is not built. */
static inline int find_program_named(const char *name)
{
	static const char *const places[] = {"/../../bin", "/../../../bin"};
	char self[2048];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n <= 0)
		return -1;
	self[n] = 0;
	*strrchr(self, '/') = 0;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(program, sizeof(program), "%s%s/%s", self, places[i], name);
		if (access(program, X_OK) == 0)
			return 0;
	}
	fprintf(stderr, "%s is not built: `make all` does it\n", name);
	return -1;
}

#endif
