/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MU_LIB_BASE_CPUS_H
#define MU_LIB_BASE_CPUS_H

/* Returns the number of CPUs that affinity and cgroup quota leave to this process; at least 1. */
unsigned mu_cpus(void);

#endif
