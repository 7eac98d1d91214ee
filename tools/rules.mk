# How things are made.
$(B)/o/%.o: %.c | $(GEN)
	@mkdir -p $(@D)
	@echo "  cc       $<"
	@$(CC) $(CPPFLAGS) $(CFLAGS) $(CFLAGS_$(subst /,_,$(basename $<))) -c -o $@ $<

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
$(BIN)/muster: $(B)/o/cli/main.o $(call lib,$(CLI_PARTS))
	$(call program,$(call libs_of,$(CLI_PARTS)))

# The GPU plug-in; without nvcc it is the small object that says so.
$(B)/libmuster-cuda.so: $(wildcard task/kernels/cuda/*.c task/kernels/cuda/*.h)
	@mkdir -p $(@D) $(BIN)
	@echo "  plug-in  $@"
	@$(CC) $(CPPFLAGS) $(CFLAGS) -fPIC -shared -o $@ $(filter %.c,$^) -ldl
	@cp $@ $(BIN)/

# ---- unit tests: tests/<part>/<name>_test.c is a program linked with that part's libraries ----
TESTS := $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/lib/*_test.c tests/task/*_test.c \
         tests/client/*_test.c tests/operator/*_test.c tests/cli/*_test.c tests/fake/*_test.c \
         tests/kernels/*_test.c tests/cluster/*_test.c))
test_parts = $(if $(filter lib/%,$(1)),base,$(if $(filter operator/% fake/%,$(1)),$(OPERATOR_PARTS),$(if $(filter cli/%,$(1)),$(CLI_PARTS),$(if $(filter client/%,$(1)),$(CLIENT_PARTS),$(if $(filter kernels/%,$(1)),kernel base,$(TASK_PARTS))))))
define test_rule
$(B)/tests/$(1): $(B)/o/tests/$(1).o $(call lib,$(call test_parts,$(1)))
	$$(call program,$$(call libs_of,$(call test_parts,$(1))) -lcmocka -rdynamic)
endef
$(foreach t,$(patsubst $(B)/tests/%,%,$(TESTS)),$(eval $(call test_rule,$(t))))

.SECONDARY:
-include $(shell find $(B)/o -name '*.d' 2>/dev/null)
