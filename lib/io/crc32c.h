/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C (Castagnoli), with the CPU's instruction if it has one. */
#ifndef MU_LIB_IO_CRC32C_H
#define MU_LIB_IO_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Continues `crc` over n more bytes; start with 0. */
uint32_t mu_crc32c(uint32_t crc, const void *p, size_t n);
/* The table implementation, for CPUs without the instruction and for tests. */
uint32_t mu_crc32c_table(uint32_t crc, const void *p, size_t n);
/* Returns the checksum of two concatenated inputs from their checksums; the second has n bytes. */
uint32_t mu_crc32c_join(uint32_t a, uint32_t b, uint64_t n);

/* Stored checksums are masked, because the CRC of data that contains its own CRC is weak. */
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
