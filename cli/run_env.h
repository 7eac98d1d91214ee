/* SPDX-License-Identifier: Apache-2.0 */
/* Applies the env, command and workingDir of a container to a process, as a kubelet does. */
#ifndef MU_CLI_RUN_ENV_H
#define MU_CLI_RUN_ENV_H

#include "operator/plan/job_plan.h"

/* Sets the variables of the pod template. They take precedence, as in a pod. Runs in the child. */
void run_env_set(const struct plan_pod *pod, const char *namespace);
/* Returns a new string: replaces $(NAME) by the value of a variable that is set, and $$ by $. */
char *run_env_expand(const char *text);
/* Changes to the template's workingDir. If this machine has no such folder, prints a message to
 * standard error and keeps the current folder. */
void run_env_change_folder(const struct plan_pod *pod);

#endif
