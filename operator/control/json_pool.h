/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for trees of JSON, which come and go in hundreds of small pieces. */
#ifndef CONTROL_JSON_POOL_H
#define CONTROL_JSON_POOL_H

/* From now on cJSON keeps small pieces that are freed, each thread its own.  They are malloc's all
 * the same: any of them may be given to free(). */
void json_pool_install(void);

#endif
