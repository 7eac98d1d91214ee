/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/expectations.h"

#include <stdlib.h>

#include "lib/base/mem.h"

void expectations_init(struct expectations *e)
{
	mu_map_init(&e->created);
	mu_map_init(&e->deleted);
}

void expectations_fini(struct expectations *e)
{
	mu_map_each (&e->created, s)
		free(s->value);
	mu_map_fini(&e->created);
	mu_map_fini(&e->deleted);
}

void expect_created(struct expectations *e, const char *uid, double now)
{
	double *until = MU_NEW(double);

	*until = now + EXPECTATION_TIMEOUT_S;
	free(mu_map_put(&e->created, uid, until));
}

void expect_deleted(struct expectations *e, const char *uid)
{
	mu_map_put(&e->deleted, uid, e);
}

void expectations_seen(struct expectations *e, const char *uid)
{
	free(mu_map_del(&e->created, uid));
}

void expectations_gone(struct expectations *e, const char *uid)
{
	expectations_seen(e, uid);
	mu_map_del(&e->deleted, uid);
}

bool is_expected_deleted(const struct expectations *e, const char *uid)
{
	return mu_map_get(&e->deleted, uid) != NULL;
}

double expected_until(const struct expectations *e, const char *uid)
{
	const double *until = mu_map_get(&e->created, uid);

	return until ? *until : 0;
}
