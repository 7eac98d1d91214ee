/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/cpus.h"

#include <sched.h>
#include <stdio.h>

/* Reads cpu.max: "max 100000" or "200000 100000", quota and period in microseconds. */
static unsigned cgroup_cpus(void)
{
	FILE *f = fopen("/sys/fs/cgroup/cpu.max", "re");
	long long quota = 0, period = 0;

	if (!f)
		return 0;
	if (fscanf(f, "%lld %lld", &quota, &period) != 2)
		quota = 0;
	fclose(f);
	if (quota <= 0 || period <= 0)
		return 0;
	return quota / period > 4096 ? 4096 : (unsigned)((quota + period - 1) / period);
}

unsigned mu_cpus(void)
{
	cpu_set_t set;
	unsigned quota = cgroup_cpus(), n = 1;

	if (sched_getaffinity(0, sizeof set, &set) == 0)
		n = (unsigned)CPU_COUNT(&set);
	if (quota && quota < n)
		n = quota;
	return n ? n : 1;
}
