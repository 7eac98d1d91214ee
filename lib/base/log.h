/* SPDX-License-Identifier: Apache-2.0 */
/* Logging: one line an event; level, component, message, then key=value pairs.
 *
 * Text for people when standard error is a terminal or MUSTER_LOG_FORMAT=text, one JSON object a
 * line when MUSTER_LOG_FORMAT=json (pods).  MUSTER_LOG=debug|info|warn|error sets the level.
 */
#ifndef MU_BASE_LOG_H
#define MU_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum mu_log_level { MU_DEBUG, MU_INFO, MU_WARN, MU_ERROR };

/* Reads the environment; `program` names the process in each line.  Call once, from main.  A
 * program that does not call it hears of warnings and errors only. */
void mu_log_init(const char *program);
void mu_log_set_level(enum mu_log_level level);
int mu_log_enabled(enum mu_log_level level);

void mu_log(enum mu_log_level level, const char *component, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* True at most once in ten seconds for each *next_ms, which starts at 0: for warnings that a peer
 * can cause as often as it likes. */
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
