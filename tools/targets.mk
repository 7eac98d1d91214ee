.PHONY: unit
unit: $(TESTS) $(PROGRAMS) ## unit tests only
	@tools/run-tests $(TESTS)

.PHONY: fmt
fmt: ## clang-format every source in place
	@git ls-files '*.c' '*.h' | xargs clang-format -i

.PHONY: clean
clean: ## remove build/
	@rm -rf build
.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | expand -t 16
