/* SPDX-License-Identifier: Apache-2.0 */
/* The backward step of one LSTM element, for every device. nvcc also compiles it, like the headers
 * *.cu.h. */
#ifndef MU_TASK_KERNELS_RNN_LSTM_ELEMENT_H
#define MU_TASK_KERNELS_RNN_LSTM_ELEMENT_H

#ifdef __CUDACC__
#define LSTM_ELEMENT_FN static __device__ __forceinline__
#else
#define LSTM_ELEMENT_FN static inline
#endif

struct lstm_element { /* outputs of the step, previous cs, gradients, peepholes if any */
	int peep;
	float i, f, o, ci, co, before, d_cs, d_h, peep_i, peep_f, peep_o;
};
struct lstm_element_back { /* of the gates before their activation, and of the previous cs */
	float i, ci, f, o, before;
};

LSTM_ELEMENT_FN struct lstm_element_back lstm_element_back(const struct lstm_element *e)
{
	struct lstm_element_back b;

	b.o = e->o * (1 - e->o) * e->d_h * e->co;
	float d_cs =
	    (1 - e->co * e->co) * e->d_h * e->o + e->d_cs + (e->peep ? b.o * e->peep_o : 0);
	b.f = e->f * (1 - e->f) * d_cs * e->before;
	b.i = e->i * (1 - e->i) * d_cs * e->ci;
	b.ci = (1 - e->ci * e->ci) * d_cs * e->i;
	b.before = d_cs * e->f + (e->peep ? b.i * e->peep_i + b.f * e->peep_f : 0);
	return b;
}

#endif
