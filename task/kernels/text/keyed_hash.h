/* SPDX-License-Identifier: Apache-2.0 */
/* The hashes of StringToHashBucketStrong and StringToHashBucket.  As in fingerprint.h, the results
 * equal TensorFlow's bit for bit. */
#ifndef MU_TASK_KERNELS_TEXT_KEYED_HASH_H
#define MU_TASK_KERNELS_TEXT_KEYED_HASH_H

#include <stddef.h>
#include <stdint.h>

/* SipHash-2-4: without the key an attacker cannot choose buckets. */
uint64_t keyed_hash(const uint64_t key[2], const char *s, size_t n);
/* MurmurHash64A with the seed of TensorFlow's first releases. */
uint64_t legacy_hash64(const char *s, size_t n);

#endif
