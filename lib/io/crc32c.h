/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C (Castagnoli), by the processor's own instruction where it has one. */
#ifndef MU_IO_CRC32C_H
#define MU_IO_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Continues `crc` over n more bytes; start with 0. */
uint32_t mu_crc32c(uint32_t crc, const void *p, size_t n);
/* The plain table form, for machines without the instruction and for tests. */
uint32_t mu_crc32c_table(uint32_t crc, const void *p, size_t n);
/* That of two stretches of bytes one after the other, from their own; b is of n bytes. */
uint32_t mu_crc32c_join(uint32_t a, uint32_t b, uint64_t n);

/* Checksums that are stored beside data are masked, so that a checksum of data that holds
 * checksums stays good. */
static inline uint32_t mu_crc32c_mask(uint32_t crc)
{
	return (crc >> 15 | crc << 17) + 0xa282ead8u;
}
static inline uint32_t mu_crc32c_unmask(uint32_t masked)
{
	uint32_t rot = masked - 0xa282ead8u;

	return rot >> 17 | rot << 15;
}

#endif
