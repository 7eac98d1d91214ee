/* SPDX-License-Identifier: Apache-2.0 */
/* Two things stay after a burst that nobody needs at rest: free pieces of the heap, and the pages
 * of libraries that only start-up and TLS handshakes run through.  The latter are clean pages of
 * files: dropped, they are mapped again from the page cache when touched.
 */
#include "operator/control/tidy.h"

#include <link.h>
#include <malloc.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TIDY_TICKS = 8 };

/* The segments that nobody ever writes to; a writable one may hold what is nowhere else. */
static int drop_clean(struct dl_phdr_info *object, size_t size, void *page_size)
{
	uintptr_t page = *(const uintptr_t *)page_size;

	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &object->dlpi_phdr[i];
		uintptr_t begin = (object->dlpi_addr + p->p_vaddr) & ~(page - 1);
		uintptr_t end = (object->dlpi_addr + p->p_vaddr + p->p_memsz) & ~(page - 1);

		if (p->p_type == PT_LOAD && !(p->p_flags & PF_W) && end > begin)
			madvise((void *)begin, end - begin, MADV_DONTNEED);
	}
	return 0;
}

struct tidy tidy_new(void)
{
	return (struct tidy){.quiet = TIDY_TICKS}; /* the first lists leave much */
}

bool tidy_tick(struct tidy *t, unsigned looks)
{
	if (looks != t->looks) {
		t->looks = looks;
		t->quiet = TIDY_TICKS;
	} else if (t->quiet > 0 && --t->quiet == 0) {
		uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

		malloc_trim(0);
		dl_iterate_phdr(drop_clean, &page);
	}
	return t->quiet > 0;
}
