# Tests of the GPU's kernels consist of C only, since a machine with a GPU may lack the libraries: no source
# that needs a library, and tests/bare in place of cmocka and those libraries.
GPU_TESTS := $(filter $(B)/tests/kernels/gpu_%,$(TESTS))
BARE      := $(SRC_kernel) $(SRC_base)
BARE      := $(sort $(filter-out $(shell grep -lE '^#include <(zlib|png|yaml|cjson/cJSON|jpeglib|gif_lib|pcre2|cblas)\.h>' $(BARE)),$(BARE)) $(NO_JPEG)) \
             $(wildcard tests/bare/*.c)
GPU_TESTED := $(wildcard tests/kernels/gpu_*.c)
$(foreach t,$(GPU_TESTED),$(eval CFLAGS_$(subst /,_,$(basename $(t))) := -Itests/bare))
$(call objs,$(GPU_TESTED)): tests/bare/cmocka.h
$(B)/libmuster-bare.a: $(call objs,$(BARE))
	@rm -f $@
	@ar rcs $@ $^
$(GPU_TESTS): $(B)/tests/%: $(B)/o/tests/%.o $(B)/o/tests/kernels/gpu_compare.o $(FAKE_CUDA) $(B)/libmuster-bare.a
	$(call program,-ldl -lm -rdynamic)
$(B)/bench/gpu: $(B)/o/bench/gpu.o $(B)/libmuster-bare.a
	$(call program,-ldl -lm -rdynamic)
.PHONY: gpu-test-sources
gpu-test-sources: # for tests/bare/run.sh
	@printf '%s\n' $(BARE) $(GPU_TESTED) bench/gpu.c $(patsubst $(B)/o/%.o,%.c,$(FAKE_CUDA))

# Compares each GPU kernel with the CPU's, on a GPU; needs a C compiler, nvcc and the driver.  GPU_PLUGIN, with
# GPU_NODE=/, selects another plug-in; with the stand-in's this only shows that the tests run.
ON_GPU     := $(filter-out %/gpu_device_test,$(GPU_TESTS))
GPU_NODE   ?= /dev/nvidiactl
GPU_PLUGIN ?= $(B)/libmuster-cuda.so
SANITIZER  ?= $(or $(shell command -v compute-sanitizer 2>/dev/null),$(wildcard $(dir $(NVCC))compute-sanitizer))
kernel_gpu = test -e $(GPU_NODE) || { echo "  SKIPPED  $@: no NVIDIA GPU here (no $(GPU_NODE))"; exit 0; }; \
	test -n '$(NVCC)' -o '$(GPU_NODE)' = / || { echo "  SKIPPED  $@: no nvcc; install NVIDIA CUDA 12 or newer, or say NVCC=…/nvcc"; exit 0; }
.PHONY: gpu-test
gpu-test: ## the GPU's kernels on this machine's GPU, beside the CPU's, then under compute-sanitizer; says so where there is none
	@$(kernel_gpu); $(again) $(GPU_PLUGIN) $(ON_GPU) && \
	MUSTER_GPU_TEST=$(abspath $(GPU_PLUGIN)) tools/run-tests $(ON_GPU) && $(again) gpu-sanitize

# Slow: each program once for each tool.  A finding is never intermittent, so nothing runs twice.  Driver calls that
# are meant to fail are not findings.
.PHONY: gpu-sanitize
gpu-sanitize: ## the same under compute-sanitizer's memcheck, racecheck and initcheck
	@$(kernel_gpu); test -n '$(SANITIZER)' || { echo "  SKIPPED  $@: no compute-sanitizer here; it comes with NVIDIA CUDA"; exit 0; }; \
	$(again) $(GPU_PLUGIN) $(ON_GPU) && for tool in 'memcheck --report-api-errors no' racecheck initcheck; do echo "  $$tool"; \
	TEST_UNDER="$(SANITIZER) --tool $$tool --error-exitcode 99" TEST_TIMEOUT=$${TEST_TIMEOUT:-1800} TEST_AGAIN=0 \
	MUSTER_GPU_TEST=$(abspath $(GPU_PLUGIN)) tools/run-tests $(ON_GPU) || exit 1; done
