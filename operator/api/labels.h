/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of what the operator makes: written by render, read by pod_decode. */
#ifndef API_LABELS_H
#define API_LABELS_H

#define LABEL_JOB     "muster.dev/job"
#define LABEL_TASK    "muster.dev/task"
#define LABEL_INDEX   "muster.dev/index"
#define LABEL_GPU     "muster.dev/gpu"     /* "true": observed_pod.gpu */
#define LABEL_LEAVES  "muster.dev/leaves"  /* "true": plan_pod.is_departure_pod */
#define LABEL_KERNELS "muster.dev/kernels" /* observed_pod.chosen_kernels */
#define LABEL_EPOCH   "muster.dev/epoch"   /* plan_pod.epoch */

#endif
