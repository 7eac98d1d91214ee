# The GPU plug-in: the driver's entry points and the kernels, which nvcc compiles.  Without nvcc the library only
# reports that it has no kernels.  Code for sm_80 and sm_90, and PTX for newer ones.
CUDA_KERNELS := $(if $(NVCC),$(B)/cuda/kernels.fatbin)
CUDA_ARCHS   ?= 80 90
$(B)/cuda/kernels.fatbin: $(wildcard task/kernels/engine/cuda/* task/kernels/*/*.cu.h) task/kernels/engine/loops/loops.def $(wildcard task/kernels/engine/loops/optimizer*) task/kernels/rnn/lstm_element.h
	@mkdir -p $(@D)
	@echo "  nvcc     $@ (minutes)"
	@$(NVCC) -O3 -std=c++17 -I. --fatbin -Xfatbin -compress-all -t 2 -o $@ \
	  $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$(a),code=sm_$(a)) \
	  -gencode arch=compute_$(lastword $(CUDA_ARCHS)),code=compute_$(lastword $(CUDA_ARCHS)) task/kernels/engine/cuda/kernels.cu

# Our declarations of NVIDIA's libraries are compiled together with their headers, which come with nvcc.
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

# A stand-in for the plug-in: CUDA in host memory, for tests.
FAKE_CUDA := $(call objs,$(wildcard tests/fake/cuda/*.c))
$(FAKE_CUDA): CFLAGS += -fPIC
$(B)/libmuster-fake-cuda.so: $(FAKE_CUDA)
	@mkdir -p $(@D)
	@echo "  plug-in  $@"
	@$(CC) $(CFLAGS) $(LDFLAGS) -shared -o $@ $^ -lm

# The GPU's kernels as C: integers wrap, as on the device.  There are very many functions: with
# sanitizers they are compiled with little optimisation and without UBSan, which would take minutes.
CFLAGS_tests_fake_cuda_kernels := -fwrapv $(if $(filter release,$(MODE)),-O2,-O1 -fno-sanitize=undefined)
