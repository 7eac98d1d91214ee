/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of the cluster, as JSON. */
#ifndef CONTROLLER_RENDER_H
#define CONTROLLER_RENDER_H

#include "operator/plan/job_plan.h"
#include <cjson/cJSON.h>

/* The pod borrows strings from the spec. */
cJSON *render_pod(const struct job_spec *spec, const struct plan_pod *pod);
cJSON *render_service(const struct job_spec *spec, int port, int http_port);
/* TensorBoard's own name and port; it is found through this one. */
cJSON *render_board_service(const struct job_spec *spec, const struct plan_pod *pod);
/* Without its data.  name NULL: none is drawn yet. */
cJSON *render_secret(const struct job_spec *spec, const char *name);
/* An object named as the job, with its labels and owner. */
cJSON *render_object(const char *version, const char *kind, const struct job_spec *spec);

/* The object that the action creates; NULL: none.  operator_ns, status_from: as of render_policy.
 */
cJSON *render_action(const struct job_spec *spec, const struct plan_action *a,
		     const char *operator_ns, const char *status_from);

/* ---- shared by render.c and render_group.c ---- */
/* The object or array under the key, made when it is absent or null.  A value of another kind is a
 * mistake of the user's template: it stays, and what the API server says of it becomes a condition
 * of the job. */
cJSON *object_in(cJSON *object, const char *key);
cJSON *array_in(cJSON *object, const char *key);
cJSON *append_object(cJSON *array);                               /* returns a new element */
void set_text(cJSON *object, const char *key, const char *value); /* replaces the member */

/* ---- render_group.c ---- */
/* operator_ns: of the operator, which may reach the status port; status_from: (optional) more
 * namespaces that may, "a,b". */
cJSON *render_policy(const struct job_spec *spec, int port, int http_port, const char *operator_ns,
		     const char *status_from);
/* The gang scheduler's group of so many pods. */
cJSON *render_group(const struct job_spec *spec, int members);
/* Makes a pod a member. */
void render_member(cJSON *pod, const struct job_spec *spec, int members);

#endif
