/* SPDX-License-Identifier: Apache-2.0 */
/* The request ids seen lately: a client that lost its connection may send a call again, and a step
 * must not run twice.  Random numbers, too: ids, handles, steps. */
#ifndef MU_BASE_REQUEST_IDS_H
#define MU_BASE_REQUEST_IDS_H

#include <stdbool.h>
#include <stdint.h>

struct mu_request_ids;
struct mu_request_ids *mu_request_ids_new(void);
void mu_request_ids_free(struct mu_request_ids *r);
/* False when id is among the last 65,536.  0 is no id, and always new. */
bool mu_request_ids_add(struct mu_request_ids *r, int64_t id);

uint64_t mu_random_u64(void); /* never 0 */

#endif
