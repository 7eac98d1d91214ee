# What people type.

again = $(MAKE) --no-print-directory

.PHONY: deps demo test unit test-compat test-api test-cluster check asan tsan tidy fmt bench fuzz install clean help
deps: ## install what is missing (Debian, Ubuntu) and say what it does
	@tools/deps

demo: ## build, then watch a small cluster train a digit classifier
	@tools/deps
	@$(again) all
	@build/bin/muster run examples/digits.yaml

test: ## unit tests, taste, and the programs driven as their users would
	@tools/deps
	@$(again) all unit
	@tools/check-taste

unit: $(TESTS) $(PROGRAMS) $(B)/libmuster-cuda.so ## unit tests only
	@tools/run-tests $(TESTS)

test-compat: ## real TensorFlow clients against stock servers and ours
	@tools/deps
	@$(again) all
	@tests/compat/run.sh

test-api: ## the operator against a real API server (etcd and kube-apiserver from pinned sources)
	@tools/deps
	@$(again) all
	@tests/cluster-api/run.sh

test-cluster: ## helm install, kubectl apply and scale on a real Kubernetes node
	@tools/deps
	@$(again) all
	@tests/e2e/run.sh

check: ## what CI runs
	@.ci/run

asan: ## unit tests under AddressSanitizer and UBSan
	@ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 \
	  $(again) MODE=asan unit

tsan: ## unit tests under ThreadSanitizer
	@TSAN_OPTIONS=ignore_noninstrumented_modules=1:halt_on_error=1:suppressions=tools/tsan.supp \
	  $(again) MODE=tsan unit

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

bench: all ## benchmarks beside their peers
	@bench/run.sh

.PHONY: bench-executor
bench-executor: $(B)/bench/executor_bench ## what the executor costs an op
	@$(B)/bench/executor_bench
$(B)/bench/%: $(B)/o/bench/%.o $(call lib,$(TASK_PARTS))
	$(call program,$(call libs_of,$(TASK_PARTS)) -rdynamic)

# A fuzz target is tests/fuzz/<name>_fuzz.c; FUZZ_SECONDS each.
FUZZERS := $(patsubst tests/fuzz/%.c,build/fuzz/bin/%,$(wildcard tests/fuzz/*_fuzz.c))
fuzz: ## fuzz every parser for FUZZ_SECONDS (10) each, with clang
	@tools/deps dev
	@$(again) MODE=fuzz CC=clang fuzzers
	@tools/run-fuzzers $(FUZZERS)
.PHONY: fuzzers
fuzzers: $(FUZZERS)
build/fuzz/bin/%: build/fuzz/o/tests/fuzz/%.o $(call lib,$(OPERATOR_PARTS) $(TASK_PARTS))
	@mkdir -p $(@D)
	@echo "  link     $@"
	@$(CC) $(LDFLAGS) -fsanitize=fuzzer,address,undefined -o $@ $< -Wl,--start-group $(filter %.a,$^) \
	  -Wl,--end-group $(call libs_of,$(OPERATOR_PARTS) $(TASK_PARTS))

PREFIX ?= /usr/local
install: all ## install the programs under PREFIX (/usr/local)
	@install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib $(DESTDIR)$(PREFIX)/include/muster
	@install $(PROGRAMS) $(DESTDIR)$(PREFIX)/bin/
	@install -m 644 $(B)/libmuster-cuda.so $(DESTDIR)$(PREFIX)/lib/
	@install -m 644 client/include/muster/*.h $(DESTDIR)$(PREFIX)/include/muster/
	@echo "  installed under $(DESTDIR)$(PREFIX)"

clean: ## remove build/
	@rm -rf build
help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort -u | expand -t 16
