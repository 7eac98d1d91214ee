/* SPDX-License-Identifier: Apache-2.0 */
/* Logging: one line per event, with level, component, message, then key=value pairs.
 *
 * The format is text, or with MUSTER_LOG_FORMAT=json (as in pods) one JSON object per line.
 * MUSTER_LOG=debug|info|warn|error sets the level.
 */
#ifndef MU_LIB_BASE_LOG_H
#define MU_LIB_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mu_log_level { MU_DEBUG, MU_INFO, MU_WARN, MU_ERROR };

/* Reads the environment; each line has the name `program`.  Call once, from main.  Without this
 * call only warnings and errors are logged. */
void mu_log_init(const char *program);
void mu_log_set_level(enum mu_log_level level);
int mu_log_enabled(enum mu_log_level level);

void mu_log(enum mu_log_level level, const char *component, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* True for a line of n bytes that mu_log wrote at level info, in either format. */
bool mu_log_line_is_info(const char *line, size_t n);

/* Rate limit for warnings that a peer can cause at will: true at most once in ten seconds for each
 * *next_ms, which starts at 0. */
bool mu_log_ratelimit(_Atomic int64_t *next_ms);

#define mu_debug(component, ...)                                                                   \
	do {                                                                                       \
		if (mu_log_enabled(MU_DEBUG))                                                      \
			mu_log(MU_DEBUG, component, __VA_ARGS__);                                  \
	} while (0)
#define mu_info(component, ...)  mu_log(MU_INFO, component, __VA_ARGS__)
#define mu_warn(component, ...)  mu_log(MU_WARN, component, __VA_ARGS__)
#define mu_error(component, ...) mu_log(MU_ERROR, component, __VA_ARGS__)

#endif
