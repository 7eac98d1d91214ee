// SPDX-License-Identifier: Apache-2.0
/* The trainer's own task: until a server runs in this process, whoever started us has started it.
 */
#include "cli/task_of.h"

#include <stdio.h>

int task_of_start(const struct mu_cluster *c, const struct mu_self *self, struct task_server **out,
		  char *target, size_t size, struct mu_err *err)
{
	const char *address = mu_cluster_address(c, self->job, self->index, err);

	if (!address)
		return -(int)MU_NOT_FOUND;
	snprintf(target, size, "%s", address);
	*out = NULL;
	return 0;
}

void task_of_stop(struct task_server *s)
{
}
