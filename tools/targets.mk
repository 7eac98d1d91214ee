# Targets for users.

# uses all processors, unless -j is given
again = $(MAKE) --no-print-directory $(if $(findstring j,$(filter-out --%,$(MAKEFLAGS))),,-j$(shell nproc))

.PHONY: deps demo test clang unit build-tests test-install test-compat diff test-api test-simulator test-cluster test-images check asan tsan tidy fmt clean help
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

test-compat: ## real TensorFlow clients against stock servers and ours; SAMPLE=COMMIT for a third of the cases
	@tools/deps
	@$(again) all examples $(B)/tests/client/callable_test $(B)/tests/kernels/op_driver
	@tests/compat/run.sh $(if $(SAMPLE),--sample $(SAMPLE))
	@$(if $(SAMPLE),:,tests/compat/run.sh --newest)
	@$(if $(SAMPLE),:,tests/compat/run.sh --client-1.15)

CASES  ?= 10000
GRAPHS ?= 0
SEED   ?= 0
diff: $(B)/tests/kernels/op_driver ## CASES (10000) drawn cases of single ops beside TensorFlow, from SEED (0) on; OPS="MatMul,Sum" for some ops; GRAPHS=N: drawn graphs instead
	@$(if $(filter-out 0,$(GRAPHS)),$(again) all && tests/compat/run.sh --graph-diff --graphs $(GRAPHS) --seed $(SEED),\
	  tests/compat/run.sh --diff --cases $(CASES) --seed $(SEED) --only '$(OPS)')

test-api: ## the operator against a real API server (etcd and kube-apiserver from pinned sources)
	@tools/deps
	@$(again) all
	@WITHOUT='$(WITHOUT)' tests/cluster-api/run.sh

test-simulator: $(B)/tests/fake/simulator_test $(B)/tests/fake/security_test ## the operator in a simulated cluster: SIM_SCHEDULES (100000) of mishaps
	@SIM_ROTATIONS=60 SIM_SCHEDULES=$${SIM_SCHEDULES:-100000} SIM_WORKERS=$${SIM_WORKERS:-$$(nproc)} TEST_TIMEOUT=1800 TEST_AGAIN=0 tools/run-tests $^

test-kill: all $(B)/tests/cli/kill_test ## kill -9 of any process of a muster run job, MUSTER_KILL_ROUNDS (50) times
	@MUSTER_KILL_ROUNDS=$${MUSTER_KILL_ROUNDS:-50} TEST_TIMEOUT=1800 TEST_AGAIN=0 tools/run-tests $(B)/tests/cli/kill_test

test-cluster: ## helm install, kubectl apply and scale on a real Kubernetes node; SCENARIOS="digits scale" for some
	@tools/deps
	@$(again) all
	@tests/e2e/run.sh $(SCENARIOS)

test-images: ## the Dockerfile, built by buildah on a Debian bootstrapped here; IMAGES="operator task cli task-tf task-cuda" for others
	@tests/images/run.sh $(IMAGES)

check: ## every test; .ci/run is a part of it
	@.ci/run all

asan: ## unit tests under AddressSanitizer and UBSan
	@ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 \
	  LSAN_OPTIONS=suppressions=tools/lsan.supp:print_suppressions=0 \
	  TEST_TIMEOUT=$${TEST_TIMEOUT:-600} $(again) MODE=asan unit

tsan: ## unit tests under ThreadSanitizer
	@TSAN_OPTIONS=ignore_noninstrumented_modules=1:halt_on_error=1:suppressions=tools/tsan.supp \
	  TEST_TIMEOUT=$${TEST_TIMEOUT:-600} $(again) MODE=tsan unit

clang: ## everything built with clang
	@tools/deps dev
	@$(again) MODE=clang CC=clang all examples bench-programs

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

clean: ## remove build/
	@rm -rf build
help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort -u | expand -t 16
