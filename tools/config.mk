# What this machine has.  `make` opens with this as a report.
have = $(shell pkg-config --exists $(1) 2>/dev/null && pkg-config --modversion $(1) || echo missing)

GRPC_LIBS  := $(shell pkg-config --libs grpc 2>/dev/null || echo -lgrpc -lgpr)
BLAS_LIBS  := -lopenblas
NVCC       ?= $(shell command -v nvcc 2>/dev/null || ls .cuda/*/bin/nvcc .cuda/bin/nvcc 2>/dev/null | head -1)

.PHONY: report
report:
	@printf '  muster %s, mode %s, %s\n' '$(VERSION)' '$(MODE)' "$$($(CC) --version | head -1)"
	@printf '  grpc %s, protobuf-c %s, openblas %s, curl %s, openssl %s, yaml %s, cjson %s\n' \
	  '$(call have,grpc)' '$(call have,libprotobuf-c)' '$(call have,openblas)' '$(call have,libcurl)' \
	  '$(call have,openssl)' '$(call have,yaml-0.1)' '$(call have,libcjson)'
	@printf '  cuda compiler: %s\n' '$(if $(NVCC),$(NVCC),none (the GPU plug-in answers "no CUDA here"))'
	@for p in grpc libprotobuf-c openblas libcurl openssl yaml-0.1 libcjson; do \
	  pkg-config --exists $$p 2>/dev/null || { echo "  missing $$p: run 'make deps'"; exit 1; }; done
