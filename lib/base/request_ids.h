/* SPDX-License-Identifier: Apache-2.0 */
/* Detection of duplicate requests: a client that lost its connection may send a call again, and a
 * step must not run twice. */
#ifndef MU_LIB_BASE_REQUEST_IDS_H
#define MU_LIB_BASE_REQUEST_IDS_H

#include <stdbool.h>
#include <stdint.h>

struct mu_request_ids;
struct mu_request_ids *mu_request_ids_new(void);
void mu_request_ids_free(struct mu_request_ids *r);
/* Returns false if id is one of the last 65,536.  0 means "no id" and is always accepted. */
bool mu_request_ids_add(struct mu_request_ids *r, int64_t id);

#endif
