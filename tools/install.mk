# Paths of `make install`.
.PHONY: install
PREFIX ?= /usr/local
# Files for programs that are built elsewhere: the public headers with everything that they include, one
# library, and a .pc file for the linker options.
PUBLIC_HEADERS = $(wildcard include/muster/*.h) task/server.h $(addprefix lib/, \
  base/log.h checkpoint/bundle.h checkpoint/checkpoint_state.h cluster/cluster_spec.h io/event_writer.h)

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
	@install -m 644 include/muster/*.h $(DESTDIR)$(PREFIX)/include/muster/
	@for h in $$(printf '#include "%s"\n' $(PUBLIC_HEADERS) | $(CC) $(CPPFLAGS) -std=gnu17 -xc -MM - | \
	  tr -d '\\' | tr ' ' '\n' | grep -E '^(lib|task)/' | sort -u); do \
	  install -D -m 644 $$h $(DESTDIR)$(PREFIX)/include/muster/$$h; done
	@sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|; s|@LIBS@|$(foreach p,$(CLIENT_PARTS),$(LIBS_$(p)))|' \
	  tools/muster.pc.in > $(DESTDIR)$(PREFIX)/lib/pkgconfig/muster.pc
	@echo "  installed under $(DESTDIR)$(PREFIX)"
