/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests that were read lately, so that they need not be read for each look. */
#ifndef CONTROL_SPEC_MEMO_H
#define CONTROL_SPEC_MEMO_H

#include <pthread.h>

#include "operator/plan/job_spec.h"

enum { SPEC_MEMO = 256 }; /* some 3 KB each */

struct spec_memo {
	pthread_mutex_t lock;
	struct spec_slot {
		char *uid;
		uint64_t manifest;
		struct job_spec *spec;
	} slots[SPEC_MEMO];
};

void spec_memo_init(struct spec_memo *m);
void spec_memo_fini(struct spec_memo *m);
/* The job of that uid with that manifest (cached_job.manifest); NULL when it is not here.  It is
 * the caller's. */
struct job_spec *spec_memo_take(struct spec_memo *m, const char *uid, uint64_t manifest);
/* Takes the spec. */
void spec_memo_put(struct spec_memo *m, const char *uid, uint64_t manifest, struct job_spec *spec);

#endif
