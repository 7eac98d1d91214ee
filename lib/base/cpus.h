/* SPDX-License-Identifier: Apache-2.0 */
/* How many processors there are for us. */
#ifndef MU_LIB_BASE_CPUS_H
#define MU_LIB_BASE_CPUS_H

unsigned mu_cpus(void); /* what affinity and the cgroup's quota leave to this process; at least 1 */

#endif
