# Features of this machine.  `make` prints them first.
have = $(shell pkg-config --exists $(1) 2>/dev/null && pkg-config --modversion $(1) || echo missing)

NVCC       ?= $(shell command -v nvcc 2>/dev/null || ls .cuda/*/bin/nvcc .cuda/bin/nvcc 2>/dev/null | head -1)

.PHONY: report
report:
	@printf '  muster %s, mode %s, %s\n' '$(VERSION)' '$(MODE)' "$$($(CC) --version | head -1)"
	@printf '  protobuf-c %s, openssl %s, yaml %s, cjson %s, curl %s\n' \
	  '$(call have,libprotobuf-c)' '$(call have,openssl)' '$(call have,yaml-0.1)' '$(call have,libcjson)' '$(call have,libcurl)'
	@printf '  jpeg: %s\n' '$(if $(JPEG),$(call have,libjpeg),none: pictures are PNG only (install libjpeg-dev))'
	@printf '  cuda compiler: %s\n' '$(if $(NVCC),$(NVCC),none: the GPU plug-in is built without kernels (install NVIDIA CUDA 12 or newer, or say NVCC=…/nvcc))'
	@for p in libpng libgif libpcre2-8 libprotobuf-c openssl yaml-0.1 libcjson libcurl; do \
	  pkg-config --exists $$p 2>/dev/null || { echo "  missing $$p: run 'make deps'"; exit 1; }; done
