/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizer updates; part of body.h.  k holds the step's scalars in the order that loops.h
 * gives. */

#define UPDATE_LOOPS(op, T, dt, expr)                                                              \
	static void up_sgd_##dt(void *var_, const void *g_, int64_t n, const double *k)            \
	{                                                                                          \
		T *var = var_;                                                                     \
		const T *g = g_, lr = (T)k[0];                                                     \
		VECTORISE for (int64_t i = 0; i < n; i++) var[i] -= g[i] * lr;                     \
	}                                                                                          \
	static void up_adagrad_##dt(void *var_, void *acc_, const void *g_, int64_t n,             \
				    const double *k)                                               \
	{                                                                                          \
		T *var = var_, *acc = acc_;                                                        \
		const T *g = g_, lr = (T)k[0], eps = (T)k[1];                                      \
		if (k[2] != 0)                                                                     \
			VECTORISE for (int64_t i = 0; i < n; i++) acc[i] += g[i] * g[i];           \
		if (eps != 0)                                                                      \
			VECTORISE for (int64_t i = 0; i < n; i++) var[i] -=                        \
			    g[i] * lr / (sqrt(acc[i]) + eps);                                      \
		else                                                                               \
			VECTORISE for (int64_t i = 0; i < n; i++) var[i] -=                        \
			    g[i] * lr / sqrt(acc[i]);                                              \
	}                                                                                          \
	static void up_momentum_##dt(void *var_, void *acc_, const void *g_, int64_t n,            \
				     const double *k)                                              \
	{                                                                                          \
		T *var = var_, *acc = acc_;                                                        \
		const T *g = g_, lr = (T)k[0], mom = (T)k[1];                                      \
		const bool nesterov = k[2] != 0, keras = k[3] != 0;                                \
		VECTORISE for (int64_t i = 0; i < n; i++)                                          \
		{                                                                                  \
			T a = keras ? acc[i] * mom - g[i] * lr : acc[i] * mom + g[i];              \
			T step = keras      ? (nesterov ? g[i] * lr - a * mom : -a)                \
				 : nesterov ? g[i] * lr + a * mom * lr                             \
					    : a * lr;                                              \
			acc[i] = a;                                                                \
			var[i] -= step;                                                            \
		}                                                                                  \
	}                                                                                          \
	static void up_adam_##dt(void *var_, void *m_, void *v_, const void *g_, int64_t n,        \
				 const double *k)                                                  \
	{                                                                                          \
		T *var = var_, *m = m_, *v = v_;                                                   \
		const T *g = g_, alpha = (T)k[0], b1 = (T)k[1], b2 = (T)k[2], eps = (T)k[3];       \
		const bool nesterov = k[4] != 0;                                                   \
		VECTORISE for (int64_t i = 0; i < n; i++)                                          \
		{                                                                                  \
			T mi = m[i] + (g[i] - m[i]) * (1 - b1);                                    \
			T vi = v[i] + (g[i] * g[i] - v[i]) * (1 - b2);                             \
			T up = nesterov ? mi * b1 + (1 - b1) * g[i] : mi;                          \
			m[i] = mi;                                                                 \
			v[i] = vi;                                                                 \
			var[i] -= up * alpha / (sqrt(vi) + eps);                                   \
		}                                                                                  \
	}                                                                                          \
	static void up_rmsprop_##dt(void *var_, void *mg_, void *ms_, void *mom_, const void *g_,  \
				    int64_t n, const double *k)                                    \
	{                                                                                          \
		T *var = var_, *mg = mg_, *ms = ms_, *mom = mom_;                                  \
		const T *g = g_, lr = (T)k[0], rho = (T)k[1], momentum = (T)k[2], eps = (T)k[3];   \
		for (int64_t i = 0; i < n; i++) {                                                  \
			T denom, s = ms[i] + (g[i] * g[i] - ms[i]) * (1 - rho);                    \
			ms[i] = s;                                                                 \
			denom = s + eps;                                                           \
			if (mg) {                                                                  \
				T mean = mg[i] + (g[i] - mg[i]) * (1 - rho);                       \
				mg[i] = mean;                                                      \
				denom = s - mean * mean + eps;                                     \
			}                                                                          \
			mom[i] = mom[i] * momentum + g[i] * lr / sqrt(denom);                      \
			var[i] -= mom[i];                                                          \
		}                                                                                  \
	}                                                                                          \
	static void up_adadelta_##dt(void *var_, void *acc_, void *upd_, const void *g_,           \
				     int64_t n, const double *k)                                   \
	{                                                                                          \
		T *var = var_, *acc = acc_, *upd = upd_;                                           \
		const T *g = g_, lr = (T)k[0], rho = (T)k[1], eps = (T)k[2];                       \
		for (int64_t i = 0; i < n; i++) {                                                  \
			acc[i] = acc[i] * rho + g[i] * g[i] * (1 - rho);                           \
			T step = sqrt(upd[i] + eps) / sqrt(acc[i] + eps) * g[i];                   \
			var[i] -= step * lr;                                                       \
			upd[i] = upd[i] * rho + step * step * (1 - rho);                           \
		}                                                                                  \
	}                                                                                          \
	static void up_ftrl_##dt(void *var_, void *acc_, void *lin_, const void *g_, int64_t n,    \
				 const double *k)                                                  \
	{                                                                                          \
		T *var = var_, *acc = acc_, *lin = lin_;                                           \
		const T *g = g_, lr = (T)k[0], l1 = (T)k[1], l2 = (T)k[2], shrink = (T)k[3];       \
		const T power = (T)-k[4], scale = k[5] != 0 ? lr : 1;                              \
		for (int64_t i = 0; i < n; i++) {                                                  \
			T shrunk = g[i] + 2 * shrink * var[i], grown = acc[i] + g[i] * g[i];       \
			T was = power == (T)0.5 ? sqrt(acc[i]) : pow(acc[i], power);               \
			T now = power == (T)0.5 ? sqrt(grown) : pow(grown, power);                 \
			lin[i] += shrunk * scale - (now - was) * scale / lr * var[i];              \
			T quad = now * scale / lr + 2 * l2 * scale, bound = l1 * scale;            \
			T sign = (T)((lin[i] > 0) - (lin[i] < 0));                                 \
			var[i] = fabs(lin[i]) > bound ? (sign * bound - lin[i]) / quad : 0;        \
			acc[i] = grown;                                                            \
		}                                                                                  \
	}                                                                                          \
	static void up_prox_##dt(void *var_, void *acc_, const void *g_, int64_t n,                \
				 const double *k)                                                  \
	{                                                                                          \
		T *var = var_, *acc = acc_;                                                        \
		const T *g = g_, l1 = (T)k[1], l2 = (T)k[2];                                       \
		for (int64_t i = 0; i < n; i++) {                                                  \
			T lr = (T)k[0];                                                            \
			if (acc) {                                                                 \
				acc[i] += g[i] * g[i];                                             \
				lr /= sqrt(acc[i]);                                                \
			}                                                                          \
			T x = var[i] - g[i] * lr;                                                  \
			T sign = (T)((x > 0) - (x < 0)), size = fabs(x) - lr * l1;                 \
			if (l1 > 0)                                                                \
				x = size > 0 ? sign * size : 0;                                    \
			var[i] = x / (1 + l2 * lr);                                                \
		}                                                                                  \
	}
EACH_FLT(UPDATE_LOOPS, , )

/* ---- the rarer ones ---- */

#define UPDATE_LOOPS_MORE(op, T, dt, expr)                                                         \
	static void up_adagrad_da_##dt(void *var_, void *sum_, void *squares_, const void *g_,     \
				       int64_t n, const double *k)                                 \
	{                                                                                          \
		T *var = var_, *sum = sum_, *squares = squares_;                                   \
		const T *g = g_, lr = (T)k[0], l1 = (T)k[1], l2 = (T)k[2], step = (T)k[3];         \
		for (int64_t i = 0; i < n; i++) {                                                  \
			sum[i] += g[i];                                                            \
			squares[i] += g[i] * g[i];                                                 \
			T past = fabs(sum[i]) - l1 * step;                                         \
			T kept = l1 <= 0 ? sum[i] : past <= 0 ? 0 : sum[i] < 0 ? -past : past;     \
			var[i] = -lr * kept / (l2 * step * lr + sqrt(squares[i]));                 \
		}                                                                                  \
	}                                                                                          \
	static void up_adamax_##dt(void *var_, void *m_, void *v_, const void *g_, int64_t n,      \
				   const double *k)                                                \
	{                                                                                          \
		T *var = var_, *m = m_, *v = v_;                                                   \
		const T *g = g_, rate = (T)k[0], b1 = (T)k[1], b2 = (T)k[2], eps = (T)k[3];        \
		for (int64_t i = 0; i < n; i++) {                                                  \
			m[i] += (g[i] - m[i]) * (1 - b1);                                          \
			v[i] = larger(b2 * v[i], fabs(g[i]));                                      \
			var[i] -= rate * (m[i] / (v[i] + eps));                                    \
		}                                                                                  \
	}                                                                                          \
	static void up_amsgrad_##dt(void *var_, void *m_, void *v_, void *vhat_, const void *g_,   \
				    int64_t n, const double *k)                                    \
	{                                                                                          \
		T *var = var_, *m = m_, *v = v_, *vhat = vhat_;                                    \
		const T *g = g_, alpha = (T)k[0], b1 = (T)k[1], b2 = (T)k[2], eps = (T)k[3];       \
		for (int64_t i = 0; i < n; i++) {                                                  \
			m[i] += (g[i] - m[i]) * (1 - b1);                                          \
			v[i] += (g[i] * g[i] - v[i]) * (1 - b2);                                   \
			vhat[i] = larger(vhat[i], v[i]);                                           \
			var[i] -= m[i] * alpha / (sqrt(vhat[i]) + eps);                            \
		}                                                                                  \
	}                                                                                          \
	static void up_signs_##dt(void *var_, void *m_, const void *g_, int64_t n,                 \
				  const double *k)                                                 \
	{                                                                                          \
		T *var = var_, *m = m_;                                                            \
		const T *g = g_, lr = (T)k[0], a = (T)k[1], decay = (T)k[2], beta = (T)k[3];       \
		const bool power = k[4] != 0;                                                      \
		for (int64_t i = 0; i < n; i++) {                                                  \
			m[i] = m[i] * beta + g[i] * (1 - beta);                                    \
			T both = g[i] * m[i], sign = (T)((both > 0) - (both < 0));                 \
			var[i] -= lr * (power ? exp(a * decay * sign) : a + decay * sign) * g[i];  \
		}                                                                                  \
	}
EACH_FLT(UPDATE_LOOPS_MORE, , )

#define UPDATE_ENTRY(op, T, dt, expr)                                                              \
	[dt] = {up_sgd_##dt,        up_adagrad_##dt,  up_momentum_##dt, up_adam_##dt,              \
		up_rmsprop_##dt,    up_adadelta_##dt, up_ftrl_##dt,     up_prox_##dt,              \
		up_adagrad_da_##dt, up_adamax_##dt,   up_amsgrad_##dt,  up_signs_##dt},
#define UPDATE_TABLE                                                                               \
	{                                                                                          \
		EACH_FLT(UPDATE_ENTRY, , )                                                         \
	}
