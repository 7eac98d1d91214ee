/* SPDX-License-Identifier: Apache-2.0 */
/* The controller and one job in the simulated cluster (sim.h), for tests with their own scenario.
 */
#ifndef MU_TESTS_FAKE_ONE_JOB_H
#define MU_TESTS_FAKE_ONE_JOB_H

#include "tests/test.h"

#include "lib/base/log.h"
#include "tests/fake/sim.h"

#include "tests/fake/sim_cluster.c"
#include "tests/fake/sim_kubelet.c"
#include "tests/fake/sim_membership.c"
#include "tests/fake/sim_run.c"
#include "tests/fake/sim_secret.c"

#define JOB_PATH "/apis/muster.dev/v1/namespaces/default/distributedtrainingjobs/j"
#define COMMAND  "{\"command\":[\"x\"]}"
#define TRAIN    "{\"train\":{\"dataset\":{\"path\":\"a.csv\"}}}"

static int never_ends(const struct sim_script *s, const char *task, int index, int n)
{
	return -1;
}

/* Starts a job of one ps and two workers. */
static struct sim *start_job(struct sim_script *script, const char *program, const char *run,
			     uint64_t seed, bool faulty)
{
	MU_AUTO_FREE char *text = mu_xasprintf(
	    "{\"apiVersion\":\"muster.dev/v1\",\"kind\":\"DistributedTrainingJob\",\"metadata\":{"
	    "\"name\":\"j\",\"namespace\":\"default\",\"generation\":1},\"spec\":{\"program\":%s,"
	    "\"tasks\":{\"ps\":{\"replicas\":1},\"worker\":{\"replicas\":2}},\"run\":{%s}}}",
	    program, run);
	struct sim *s = MU_NEW(struct sim);

	script->job = cJSON_Parse(text);
	assert_non_null(script->job);
	sim_start(s, script, seed, faulty);
	return s;
}

static void stop(struct sim *s, struct sim_script *script)
{
	assert_string_equal(s->violation, "");
	sim_end(s);
	cJSON_Delete(script->job);
	free(s);
}

/* A condition of the job's status; NULL if there is none of this type. */
static inline const cJSON *condition_of(struct sim *s, const char *type)
{
	const cJSON *c;

	cJSON_ArrayForEach(c, sim_at(sim_find(s, JOB_PATH)->json, "status.conditions"))
	{
		if (strcmp(sim_text(c, "type"), type) == 0)
			return c;
	}
	return NULL;
}

#endif
