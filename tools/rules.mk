# How things are made.
define compile
	@mkdir -p $(@D)
	@echo "  cc       $<"
	@$(CC) $(CPPFLAGS) $(CFLAGS) $(CFLAGS_$(subst /,_,$(basename $<))) -c -o $@ $<
endef
$(B)/o/%.o: %.c | $(GEN)
	$(compile)
# Folders that send no messages need no protoc-c either.
define plain_rule
$(B)/o/$(1)/%.o: $(1)/%.c
	$$(compile)
endef
$(foreach d,lib task/kernels task/runtime task/device tests/kernels tests/fake/cuda tests/bare,$(eval $(call plain_rule,$(d))))

$(B)/gen/proto/%.pb-c.c: proto/%.proto
	@mkdir -p $(@D)
	@echo "  protoc-c $<"
	@protoc-c --c_out=$(B)/gen $<

$(B)/o/gen/%.o: $(B)/gen/%.c
	@mkdir -p $(@D)
	@$(CC) $(CPPFLAGS) $(filter-out -Werror -W%,$(CFLAGS)) -c -o $@ $<

define part_rule
$(B)/libmuster-$(1).a: $(call objs,$(SRC_$(1))) $(if $(filter rpc,$(1)),$(patsubst $(B)/gen/%.c,$(B)/o/gen/%.o,$(GEN)))
	@mkdir -p $$(@D)
	@rm -f $$@
	@ar rcs $$@ $$^
endef
$(foreach p,$(PARTS),$(eval $(call part_rule,$(p))))

libs_of = $(foreach p,$(1),$(LIBS_$(p)))
define program
	@mkdir -p $(@D)
	@echo "  link     $@"
	@$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(1)
endef

$(BIN)/muster-task: $(B)/o/task/main.o $(call lib,$(TASK_PARTS))
	$(call program,$(call libs_of,$(TASK_PARTS)) -rdynamic)
$(BIN)/muster-operator: $(B)/o/operator/main.o $(call lib,$(OPERATOR_PARTS))
	$(call program,$(call libs_of,$(OPERATOR_PARTS)))
$(BIN)/muster-cluster: $(B)/o/cli/cluster/main.o $(call lib,$(CLUSTER_PARTS))
	$(call program,$(call libs_of,$(CLUSTER_PARTS)))
$(BIN)/muster: $(B)/o/cli/main.o $(call lib,$(CLI_PARTS))
	$(call program,$(call libs_of,$(CLI_PARTS)))

# The GPU plug-in: the driver's entry points and the kernels, which nvcc makes; without it the library
# says so.  Code for sm_80 and sm_90, and PTX for newer ones.
CUDA_KERNELS := $(if $(NVCC),$(B)/cuda/kernels.fatbin)
CUDA_ARCHS   ?= 80 90
$(B)/cuda/kernels.fatbin: $(wildcard task/kernels/engine/cuda/* task/kernels/*/*.cu.h) task/kernels/engine/loops/loops.def task/kernels/rnn/lstm_element.h
	@mkdir -p $(@D)
	@echo "  nvcc     $@ (minutes)"
	@$(NVCC) -O3 -std=c++17 -I. --fatbin -Xfatbin -compress-all -t 2 -o $@ \
	  $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$(a),code=sm_$(a)) \
	  -gencode arch=compute_$(lastword $(CUDA_ARCHS)),code=compute_$(lastword $(CUDA_ARCHS)) task/kernels/engine/cuda/kernels.cu

# What we say of NVIDIA's libraries beside their headers, which come with nvcc: compiled or not.
CUDA_CHECKED := $(if $(NVCC),$(B)/cuda/headers.o)
$(B)/cuda/headers.o: tests/kernels/cuda_headers.cc task/device/cuda_api.h task/device/dnn_api.h
	@mkdir -p $(@D)
	@echo "  compare  NVIDIA's headers"
	@$(NVCC) -std=c++17 -I. -Xcompiler -Wall,-Wno-deprecated-declarations,-Werror -c -o $@ $<

$(B)/libmuster-cuda.so: task/kernels/engine/cuda/plugin.c task/device/cuda_api.h task/device/dnn_api.h $(CUDA_KERNELS) $(CUDA_CHECKED)
	@mkdir -p $(@D) $(BIN)
	@echo "  plug-in  $@"
	@$(CC) $(CPPFLAGS) $(if $(CUDA_KERNELS),-DCUDA_IMAGE='"$(CUDA_KERNELS)"') $(CFLAGS) -fPIC -shared -o $@ $< -ldl
	@cp $@ $(BIN)/

# A stand-in for it: CUDA in host memory, for tests.
FAKE_CUDA := $(call objs,$(wildcard tests/fake/cuda/*.c))
$(FAKE_CUDA): CFLAGS += -fPIC
$(B)/libmuster-fake-cuda.so: $(FAKE_CUDA)
	@mkdir -p $(@D)
	@echo "  plug-in  $@"
	@$(CC) $(CFLAGS) $(LDFLAGS) -shared -o $@ $^ -lm

# ---- unit tests: tests/<part>/<name>_test.c is a program linked with that part's libraries ----
TESTS := $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/lib/*_test.c tests/task/*_test.c \
         tests/client/*_test.c tests/operator/*_test.c tests/cli/*_test.c tests/fake/*_test.c \
         tests/kernels/*_test.c tests/cluster/*_test.c))
test_parts = $(if $(filter lib/kube% lib/http%,$(1)),kube http tls net base,$(if $(filter lib/tls%,$(1)),tls base,$(if $(filter lib/%,$(1)),base,$(if $(filter operator/% fake/%,$(1)),$(OPERATOR_PARTS),$(if $(filter cli/cluster%,$(1)),$(CLUSTER_PARTS),$(if $(filter cli/%,$(1)),$(CLI_PARTS),$(if $(filter client/%,$(1)),$(CLIENT_PARTS),$(if $(filter kernels/%,$(1)),kernel base,$(TASK_PARTS)))))))))
# Tests of what runs on GPUs (any gpu_*) get the stand-in: those of kernels linked, others as plug-in.
define test_rule
$(B)/tests/$(1): $(B)/o/tests/$(1).o $(if $(findstring /gpu_,$(1)),$(B)/libmuster-fake-cuda.so) $(call lib,$(call test_parts,$(1)))
	$$(call program,$$(call libs_of,$(call test_parts,$(1))) $(if $(filter lib/kube%,$(1)),-lssl) -lcmocka -rdynamic)
endef
$(foreach t,$(filter-out kernels/gpu_%,$(patsubst $(B)/tests/%,%,$(TESTS))),$(eval $(call test_rule,$(t))))

# Tests of the GPU's kernels are made of C alone, since a machine with a GPU has little else: no source
# that needs a library, and tests/bare in place of cmocka and of those libraries.
GPU_TESTS := $(filter $(B)/tests/kernels/gpu_%,$(TESTS))
BARE      := $(SRC_kernel) $(SRC_base)
BARE      := $(sort $(filter-out $(shell grep -lE '^#include <(zlib|png|yaml|cjson/cJSON|jpeglib|pcre2|cblas)\.h>' $(BARE)),$(BARE)) $(NO_JPEG)) \
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

.SECONDARY:
-include $(shell find $(B)/o -name '*.d' 2>/dev/null)
