# The elementwise loops are compiled once for each level of vector instructions, and always with
# optimisation, which their templates need.
LOOPS_FLAGS := -O3 -fwrapv -fno-math-errno -fno-trapping-math -ffp-contract=fast -Wno-unused-function -Wno-type-limits -Wno-shadow -Wno-sign-compare
CFLAGS_task_kernels_engine_loops_generic := $(LOOPS_FLAGS)
CFLAGS_task_kernels_engine_loops_avx2    := $(LOOPS_FLAGS)
CFLAGS_task_kernels_engine_loops_avx512  := $(LOOPS_FLAGS)
ifneq ($(filter x86_64%,$(shell $(CC) -dumpmachine)),)
CFLAGS_task_kernels_engine_loops_avx2    += -mavx2 -mfma -mf16c -mbmi2
CFLAGS_task_kernels_engine_loops_avx512  += -mavx512f -mavx512dq -mavx512bw -mavx512vl -mfma -mf16c -mbmi2 -mprefer-vector-width=512
endif

# Plain loops, which -O2 does not vectorize.
CFLAGS_task_kernels_math_fft := -O3
CFLAGS_task_kernels_nn_lrn   := -O3 -fno-math-errno
