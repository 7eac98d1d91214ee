# What people type.

# by all processors, unless -j says otherwise
again = $(MAKE) --no-print-directory $(if $(findstring j,$(filter-out --%,$(MAKEFLAGS))),,-j$(shell nproc))

.PHONY: deps demo test unit build-tests test-install test-compat test-api test-simulator test-cluster test-images check asan tsan tidy fmt bench fuzz install clean help gpu-test
deps: ## install what is missing (Debian, Ubuntu) and say what it does
	@tools/deps

demo: ## build, then watch a small cluster train a network to read digits
	@tools/deps
	@$(again) all
	@build/bin/muster run examples/cnn.yaml

test: ## unit tests, taste, and the programs driven as their users would
	@tools/deps
	@$(again) all unit
	@tests/install/run.sh
	@tests/bare/run.sh
	@tests/docs/run.sh
	@tools/check-taste

unit: $(TESTS) $(B)/bench/gpu $(PROGRAMS) $(B)/libmuster-cuda.so ## unit tests only
	@tools/run-tests $(TESTS)

build-tests: $(TESTS) $(B)/bench/gpu ## compile the unit tests, run none

test-install: ## a C program outside the tree against what `make install` puts there
	@tests/install/run.sh

test-compat: ## real TensorFlow clients against stock servers and ours
	@tools/deps
	@$(again) all examples $(B)/tests/client/callable_test $(B)/tests/kernels/op_driver
	@tests/compat/run.sh
	@tests/compat/run.sh --newest

test-api: ## the operator against a real API server (etcd and kube-apiserver from pinned sources)
	@tools/deps
	@$(again) all
	@WITHOUT='$(WITHOUT)' tests/cluster-api/run.sh

test-simulator: $(B)/tests/fake/simulator_test ## the operator in a simulated cluster: SIM_SCHEDULES (100000) of mishaps
	@SIM_SCHEDULES=$${SIM_SCHEDULES:-100000} SIM_WORKERS=$${SIM_WORKERS:-$$(nproc)} TEST_TIMEOUT=1800 TEST_AGAIN=0 tools/run-tests $<

test-kill: all $(B)/tests/cli/kill_test ## kill -9 of any process of a muster run job, MUSTER_KILL_ROUNDS (50) times
	@MUSTER_KILL_ROUNDS=$${MUSTER_KILL_ROUNDS:-50} TEST_TIMEOUT=1800 TEST_AGAIN=0 tools/run-tests $(B)/tests/cli/kill_test

test-cluster: ## helm install, kubectl apply and scale on a real Kubernetes node; SCENARIOS="digits scale" for some
	@tools/deps
	@$(again) all
	@tests/e2e/run.sh $(SCENARIOS)

test-images: ## the Dockerfile, built by buildah on a Debian bootstrapped here; IMAGES="operator task cli task-tf task-cuda" for others
	@tests/images/run.sh $(IMAGES)

# Each GPU kernel beside the CPU's, on a GPU; needs a C compiler, nvcc and the driver.  GPU_PLUGIN, with GPU_NODE=/:
# another plug-in; the stand-in's shows that all of this runs, and nothing else.
ON_GPU     := $(filter-out %/gpu_device_test,$(GPU_TESTS))
GPU_NODE   ?= /dev/nvidiactl
GPU_PLUGIN ?= $(B)/libmuster-cuda.so
SANITIZER  ?= $(or $(shell command -v compute-sanitizer 2>/dev/null),$(wildcard $(dir $(NVCC))compute-sanitizer))
gpu_here = test -e $(GPU_NODE) || { echo "  SKIPPED  $@: no NVIDIA GPU here (no $(GPU_NODE))"; exit 0; }; \
	test -n '$(NVCC)' -o '$(GPU_NODE)' = / || { echo "  SKIPPED  $@: no nvcc; install NVIDIA CUDA 12 or newer, or say NVCC=…/nvcc"; exit 0; }
gpu-test: ## the GPU's kernels on this machine's GPU, beside the CPU's, then under compute-sanitizer; says so where there is none
	@$(gpu_here); $(again) $(GPU_PLUGIN) $(ON_GPU) && \
	MUSTER_GPU_TEST=$(abspath $(GPU_PLUGIN)) tools/run-tests $(ON_GPU) && $(again) gpu-sanitize

# Slow: each program once for each tool.  A find is never chance, so nothing runs twice.  What the driver is asked for in
# order to be refused is no find.
.PHONY: gpu-sanitize
gpu-sanitize: ## the same under compute-sanitizer's memcheck, racecheck and initcheck
	@$(gpu_here); test -n '$(SANITIZER)' || { echo "  SKIPPED  $@: no compute-sanitizer here; it comes with NVIDIA CUDA"; exit 0; }; \
	$(again) $(GPU_PLUGIN) $(ON_GPU) && for tool in 'memcheck --report-api-errors no' racecheck initcheck; do echo "  $$tool"; \
	TEST_UNDER="$(SANITIZER) --tool $$tool --error-exitcode 99" TEST_TIMEOUT=$${TEST_TIMEOUT:-1800} TEST_AGAIN=0 \
	MUSTER_GPU_TEST=$(abspath $(GPU_PLUGIN)) tools/run-tests $(ON_GPU) || exit 1; done

check: ## what CI runs
	@.ci/run

asan: ## unit tests under AddressSanitizer and UBSan
	@ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 \
	  LSAN_OPTIONS=suppressions=tools/lsan.supp:print_suppressions=0 \
	  TEST_TIMEOUT=$${TEST_TIMEOUT:-600} $(again) MODE=asan unit

tsan: ## unit tests under ThreadSanitizer
	@TSAN_OPTIONS=ignore_noninstrumented_modules=1:halt_on_error=1:suppressions=tools/tsan.supp \
	  TEST_TIMEOUT=$${TEST_TIMEOUT:-600} $(again) MODE=tsan unit

tidy: compile_commands.json ## clang-tidy and the limits of taste
	@tools/check-taste
	@git ls-files '*.c' | grep -vE '^(tests|bench|examples)/' | \
	  xargs -P2 -n8 clang-tidy --quiet -p . 2>/dev/null | grep -E 'warning:|error:' && exit 1 || \
	  echo "tidy: no complaints"

compile_commands.json: $(GEN) FORCE
	@tools/compile-commands $(CC) $(CPPFLAGS) $(filter-out -MMD -MP,$(CFLAGS)) > $@
.PHONY: FORCE
FORCE:

fmt: ## clang-format every source in place
	@git ls-files '*.c' '*.h' | xargs clang-format -i

bench: all $(B)/bench/raw_client $(B)/bench/client_steps ## benchmarks beside their peers; writes docs/performance.md
	@bench/run.sh --page docs/performance.md

.PHONY: bench-kernels
bench-kernels: $(B)/tests/kernels/op_driver ## each CPU kernel beside TensorFlow's, on 1 and on 2 threads
	@bench/run.sh kernels.py $< --threads 1
	@bench/run.sh kernels.py $< --threads 2

# What one GPU does, beside its limits and beside PyTorch where that is installed.  BENCH_GPU: seconds a figure, side of
# the products, MiB of the buffers.
.PHONY: bench-gpu
bench-gpu: ## products, memory and the link of this machine's GPU beside their limits, and PyTorch's figures
	@$(gpu_here); $(again) $(GPU_PLUGIN) $(B)/bench/gpu && $(B)/bench/gpu $(abspath $(GPU_PLUGIN)) $(BENCH_GPU) && \
	python3 bench/gpu_peer.py $(word 2,$(BENCH_GPU))

.PHONY: bench-read
bench-read: $(B)/bench/read_files ## reading data files, beside tf.data
	@bench/run.sh read.py $<

.PHONY: bench-executor
bench-executor: $(B)/bench/executor_bench ## what the executor costs an op
	@$(B)/bench/executor_bench
$(B)/bench/%: $(B)/o/bench/%.o $(call lib,$(TASK_PARTS))
	$(call program,$(call libs_of,$(TASK_PARTS)) -rdynamic)

$(B)/bench/client_steps: $(B)/o/bench/client_steps.o $(call lib,$(CLIENT_PARTS))
	$(call program,$(call libs_of,$(CLIENT_PARTS)) -rdynamic)

.PHONY: bench-operator
bench-operator: all $(B)/bench/operator/load ## the operator beside Kubeflow's and a bare loop, on one API server
	@LOAD=$(B)/bench/operator/load bench/operator/run.sh
$(B)/bench/operator/load: $(call objs,$(wildcard bench/operator/*.c)) $(call lib,$(OPERATOR_PARTS))
	$(call program,$(call libs_of,$(OPERATOR_PARTS)))

# A fuzz target is tests/fuzz/<name>_fuzz.c; FUZZ_SECONDS each.
FUZZERS := $(patsubst tests/fuzz/%.c,build/fuzz/bin/%,$(wildcard tests/fuzz/*_fuzz.c))
fuzz: ## fuzz every parser for FUZZ_SECONDS (10) each, with clang
	@tools/deps dev
	@$(again) MODE=fuzz CC=clang fuzzers
	@tools/run-fuzzers $(FUZZERS)
.PHONY: fuzzers
fuzzers: $(FUZZERS)
FUZZED_PARTS := controller kube http cli plan tls $(CLIENT_PARTS)
build/fuzz/bin/%: build/fuzz/o/tests/fuzz/%.o $(call lib,$(FUZZED_PARTS))
	@mkdir -p $(@D)
	@echo "  link     $@"
	@$(CC) $(LDFLAGS) -fsanitize=fuzzer,address,undefined -o $@ $< -Wl,--start-group $(filter %.a,$^) \
	  -Wl,--end-group $(call libs_of,$(FUZZED_PARTS))

PREFIX ?= /usr/local
# What a program that is built elsewhere needs: the public headers with all that they include, one
# library, and a .pc file that says how to link it.
PUBLIC_HEADERS = $(wildcard client/include/muster/*.h) task/server.h $(addprefix lib/, \
  base/log.h cluster/cluster_spec.h io/bundle.h io/checkpoint_state.h io/event_writer.h)

$(B)/libmuster.a: $(call lib,$(CLIENT_PARTS))
	@rm -f $@
	@{ echo create $@; for a in $^; do echo addlib $$a; done; echo save; echo end; } | ar -M

install: all $(B)/libmuster.a ## install programs, library and headers under PREFIX (/usr/local)
	@install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/pkgconfig $(DESTDIR)$(PREFIX)/include/muster
	@install $(PROGRAMS) $(DESTDIR)$(PREFIX)/bin/
	@install -m 644 $(B)/libmuster-cuda.so $(B)/libmuster.a $(DESTDIR)$(PREFIX)/lib/
	@install -d $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	@install -d $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d $(DESTDIR)$(PREFIX)/share/zsh/site-functions
	@$(BIN)/muster man > $(DESTDIR)$(PREFIX)/share/man/man1/muster.1
	@for v in $$($(BIN)/muster help | sed -n 's/^  muster \([a-z]*\).*/\1/p'); do \
	  $(BIN)/muster man $$v > $(DESTDIR)$(PREFIX)/share/man/man1/muster-$$v.1; done
	@$(BIN)/muster completion bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/muster
	@$(BIN)/muster completion fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/muster.fish
	@$(BIN)/muster completion zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_muster
	@install -m 644 client/include/muster/*.h $(DESTDIR)$(PREFIX)/include/muster/
	@for h in $$(printf '#include "%s"\n' $(PUBLIC_HEADERS) | $(CC) $(CPPFLAGS) -std=gnu17 -xc -MM - | \
	  tr -d '\\' | tr ' ' '\n' | grep -E '^(lib|task)/' | sort -u); do \
	  install -D -m 644 $$h $(DESTDIR)$(PREFIX)/include/muster/$$h; done
	@sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|; s|@LIBS@|$(foreach p,$(CLIENT_PARTS),$(LIBS_$(p)))|' \
	  tools/muster.pc.in > $(DESTDIR)$(PREFIX)/lib/pkgconfig/muster.pc
	@echo "  installed under $(DESTDIR)$(PREFIX)"

clean: ## remove build/
	@rm -rf build
help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort -u | expand -t 16
