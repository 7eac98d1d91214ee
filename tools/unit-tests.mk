# ---- unit tests: each tests/<part>/<name>_test.c is a program linked with that part's libraries ----
TESTS := $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/lib/*_test.c tests/task/*_test.c \
         tests/client/*_test.c tests/operator/*_test.c tests/cli/*_test.c tests/fake/*_test.c \
         tests/kernels/*_test.c tests/cluster/*_test.c))
test_parts = $(if $(filter lib/kube% lib/http%,$(1)),kube http tls net base,$(if $(filter lib/tls%,$(1)),tls base,$(if $(filter lib/%,$(1)),base,$(if $(filter operator/% fake/%,$(1)),$(OPERATOR_PARTS),$(if $(filter cli/cluster%,$(1)),$(CLUSTER_PARTS),$(if $(filter cli/%,$(1)),$(CLI_PARTS),$(if $(filter client/%,$(1)),$(CLIENT_PARTS),$(if $(filter kernels/%,$(1)),kernel base,$(TASK_PARTS)))))))))
# Tests of GPU code (any gpu_*) use the stand-in: tests of kernels link it, others load it as a plug-in.
define test_rule
$(B)/tests/$(1): $(B)/o/tests/$(1).o $(if $(findstring /gpu_,$(1)),$(B)/libmuster-fake-cuda.so) $(call lib,$(call test_parts,$(1)))
	$$(call program,$$(call libs_of,$(call test_parts,$(1))) $(if $(filter lib/kube%,$(1)),-lssl) -lcmocka -rdynamic)
endef
$(foreach t,$(filter-out kernels/gpu_%,$(patsubst $(B)/tests/%,%,$(TESTS))),$(eval $(call test_rule,$(t))))

# Runs one kernel at a time for tests/compat/ops_diff.py.
$(B)/tests/kernels/op_driver: $(B)/o/tests/kernels/op_driver.o $(B)/o/tests/kernels/harness.o $(call lib,kernel base)
	$(call program,$(call libs_of,kernel base) -rdynamic)

# Draws random graphs.
$(B)/tests/task/random_nodes_test: $(B)/o/tests/task/random_nodes.o

# A test runs the examples.
$(B)/tests/cli/programs_test: | $(EXAMPLES)
