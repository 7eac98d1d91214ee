/* SPDX-License-Identifier: Apache-2.0 */
/* Gives a process the env, command and workingDir of a container, as a kubelet does. */
#ifndef MU_CLI_RUN_ENV_H
#define MU_CLI_RUN_ENV_H

#include "operator/plan/job_plan.h"

/* Sets the variables of the pod template, which take precedence, as in a pod.  Runs in the child.
 */
void run_env_set(const struct plan_pod *pod, const char *namespace);
/* The text with $(NAME) replaced by the value of a variable that is set, and $$ by $; new memory.
 */
char *run_env_expand(const char *text);
/* Changes to the template's workingDir.  If this machine has no such folder, says so on standard
 * error and stays. */
void run_env_change_folder(const struct plan_pod *pod);

#endif
