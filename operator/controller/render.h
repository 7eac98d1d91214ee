/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of the cluster, as JSON. */
#ifndef MU_OPERATOR_CONTROLLER_RENDER_H
#define MU_OPERATOR_CONTROLLER_RENDER_H

#include "lib/io/json_build.h"
#include "operator/plan/job_plan.h"

/* The pod borrows strings from the spec. */
cJSON *render_pod(const struct job_spec *spec, const struct plan_pod *pod);
cJSON *render_service(const struct job_spec *spec);
/* The Service through which users reach TensorBoard. */
cJSON *render_tensorboard_service(const struct job_spec *spec, const struct plan_pod *pod);
/* Without its data. */
cJSON *render_secret(const struct job_spec *spec, const char *name);
/* operator_ns: of the operator, which may reach the status port; status_from: (optional) more
 * namespaces that may, "a,b". */
cJSON *render_policy(const struct job_spec *spec, const char *operator_ns, const char *status_from);
/* The PodGroup of the gang scheduler. */
cJSON *render_group(const struct job_spec *spec, int members);

#endif
