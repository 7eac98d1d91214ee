# Rules for object files, for the static library of each part, and for linking programs.
define compile
	@mkdir -p $(@D)
	@echo "  cc       $<"
	@$(CC) $(CPPFLAGS) $(CFLAGS) $(CFLAGS_$(subst /,_,$(basename $<))) -c -o $@ $<
endef
$(B)/o/%.o: %.c | $(GEN)
	$(compile)
# Folders without messages need no protoc-c either.
define plain_rule
$(B)/o/$(1)/%.o: $(1)/%.c
	$$(compile)
endef
$(foreach d,lib task/kernels task/runtime task/device tests/kernels tests/fake/cuda tests/bare,$(eval $(call plain_rule,$(d))))

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

.SECONDARY:
-include $(shell find $(B)/o -name '*.d' 2>/dev/null)
