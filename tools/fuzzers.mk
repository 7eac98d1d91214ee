# A fuzz target is tests/fuzz/<name>_fuzz.c; FUZZ_SECONDS each.
FUZZERS := $(patsubst tests/fuzz/%.c,build/fuzz/bin/%,$(wildcard tests/fuzz/*_fuzz.c))
.PHONY: fuzz
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
