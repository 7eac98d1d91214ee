/* SPDX-License-Identifier: Apache-2.0 */
/* Expectations: creates and deletes that the API server accepted and that no watch has shown yet,
 * by the object's UID.  The caller locks.
 *
 * A created object is in the store at once, from the answer to its create, and a deleted one counts
 * as being deleted.  So the next reconcile does not repeat the write.  An object that is deleted
 * before a watch shows it has no watch event: the store drops a created object that no watch shows
 * in EXPECTATION_TIMEOUT_S. */
#ifndef CONTROLLER_EXPECTATIONS_H
#define CONTROLLER_EXPECTATIONS_H

#include "lib/base/map.h"

enum { EXPECTATION_TIMEOUT_S = 60 };

struct expectations {
	struct mu_map created; /* UID -> when it times out */
	struct mu_map deleted; /* UID -> any value */
};

void expectations_init(struct expectations *e);
void expectations_fini(struct expectations *e);
void expect_created(struct expectations *e, const char *uid, double now);
void expect_deleted(struct expectations *e, const char *uid);
/* A watch has shown the object, or that it is gone. */
void expectations_seen(struct expectations *e, const char *uid);
void expectations_gone(struct expectations *e, const char *uid);
bool is_expected_deleted(const struct expectations *e, const char *uid);
/* When the expected create of this object times out; 0: none is expected. */
double expected_until(const struct expectations *e, const char *uid);

#endif
