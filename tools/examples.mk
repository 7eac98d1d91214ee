# The C examples: each file of examples/ is a program linked with libmuster.
EXAMPLES := $(patsubst examples/%.c,$(B)/examples/%,$(wildcard examples/*.c))

.PHONY: examples
examples: $(EXAMPLES) ## build the C examples into build/<mode>/examples
$(EXAMPLES): $(B)/examples/%: $(B)/o/examples/%.o $(foreach p,$(CLIENT_PARTS),$(B)/libmuster-$(p).a)
	@mkdir -p $(@D)
	@echo "  link     $@"
	@$(CC) $(LDFLAGS) -o $@ $< -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(foreach p,$(CLIENT_PARTS),$(LIBS_$(p))) -rdynamic
