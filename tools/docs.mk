# Generates docs/ops.md from the op table and the kernels.
$(B)/gen-ops-doc: $(B)/o/tools/gen-ops-doc.o $(call lib,kernel base)
	$(call program,$(call libs_of,kernel base) -rdynamic)

.PHONY: docs docs-current
docs: $(B)/gen-ops-doc ## write the pages that are made from the sources
	@$< > $(B)/ops.md && cp $(B)/ops.md docs/ops.md
docs-current: $(B)/gen-ops-doc
	@$< | cmp -s - docs/ops.md || { echo "docs/ops.md is not what the sources say: run make docs"; exit 1; }
unit: docs-current
