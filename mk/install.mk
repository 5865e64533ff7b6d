# The files that `make install` places. `make uninstall` removes exactly these.

STRIP ?= strip
install_binary := install -m 755 $(if $(STRIP),-s --strip-program=$(STRIP))
INSTALLED_LIBS := libnet-slime.so libnccl-net-slime.so libnccl-net.so libslime.so.1 libslime.so libslime.a \
  pkgconfig/slime.pc pkgconfig/libslime.pc
INSTALLED_HEADERS := slime.h types.h p2p.h p2p_request.h aggregation.h
# Only this project writes there. Other projects may share DOCDIR and DATADIR.
OWN_DIRS := $(DOCDIR)/docs $(DOCDIR)/examples $(DATADIR)/nccl-tests-configs $(DATADIR)/p4
P4_PARTS := core tna v1model
P4_DIRS := $(P4_PARTS:%=$(DATADIR)/p4/%)
DIRS := $(LIBDIR)/pkgconfig $(BINDIR) $(UNITDIR) $(INCLUDEDIR)/slime $(OWN_DIRS) $(P4_DIRS)
TOP_DOCS := LICENSE $(wildcard README.md SECURITY.md)
filled = sed -e 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@INCLUDEDIR@|$(INCLUDEDIR)|' \
  -e 's|@VERSION@|$(VERSION)|; s|@BINDIR@|$(BINDIR)|; s|@DOCDIR@|$(DOCDIR)|' $(1) >$(DESTDIR)$(2)

install:
	$(Q)$(MAKE) --no-print-directory $(JOBS) all
	install -d $(DIRS:%=$(DESTDIR)%)
	$(install_binary) $(PLUGIN_SO) $(DESTDIR)$(LIBDIR)/libnet-slime.so
	ln -sf libnet-slime.so $(DESTDIR)$(LIBDIR)/libnccl-net-slime.so
ifdef DEFAULT_PLUGIN
	ln -sf libnet-slime.so $(DESTDIR)$(LIBDIR)/libnccl-net.so
endif
	$(install_binary) $(PEER_SO) $(DESTDIR)$(LIBDIR)
	ln -sf $(notdir $(PEER_SO)) $(DESTDIR)$(LIBDIR)/$(notdir $(PEER_LINK))
	install -m 644 $(LIB_A) $(DESTDIR)$(LIBDIR)
	$(if $(STRIP),$(STRIP) --strip-debug $(DESTDIR)$(LIBDIR)/$(notdir $(LIB_A)))
	install -m 644 $(INSTALLED_HEADERS:%=include/slime/%) $(DESTDIR)$(INCLUDEDIR)/slime
	$(call filled,mk/slime.pc.in,$(LIBDIR)/pkgconfig/slime.pc)
	$(call filled,mk/libslime.pc.in,$(LIBDIR)/pkgconfig/libslime.pc)
ifneq ($(TOOL_BINS),)
	$(install_binary) $(TOOL_BINS) $(DESTDIR)$(BINDIR)
endif
	$(call filled,mk/slime-switchd.service.in,$(UNITDIR)/slime-switchd.service)
	install -m 644 $(TOP_DOCS) $(DESTDIR)$(DOCDIR)
	install -m 644 $(wildcard docs/*.md docs/*.svg) $(DESTDIR)$(DOCDIR)/docs
	install -m 644 $(wildcard examples/*.cc examples/*.c) switch/switch.example.yaml $(DESTDIR)$(DOCDIR)/examples
	install -m 644 $(wildcard $(addprefix nccl-tests-configs/*.,conf md)) \
	  $(DESTDIR)$(DATADIR)/nccl-tests-configs
	install -m 755 $(wildcard $(addprefix nccl-tests-configs/*.,sh py)) \
	  $(DESTDIR)$(DATADIR)/nccl-tests-configs
	for dir in $(P4_PARTS); do \
	  install -m 644 switch/p4/$$dir/*.p4 $(DESTDIR)$(DATADIR)/p4/$$dir || exit 1; done
	mk/settle-links.sh $(OWN_DIRS:%=$(DESTDIR)%) $(TOP_DOCS:%=$(DESTDIR)$(DOCDIR)/%)

uninstall:
	rm -f $(INSTALLED_LIBS:%=$(DESTDIR)$(LIBDIR)/%) $(DESTDIR)$(UNITDIR)/slime-switchd.service \
	  $(TOOL_BINS:$(BUILD)/bin/%=$(DESTDIR)$(BINDIR)/%) $(INSTALLED_HEADERS:%=$(DESTDIR)$(INCLUDEDIR)/slime/%)
	rm -f $(TOP_DOCS:%=$(DESTDIR)$(DOCDIR)/%)
	rm -rf $(OWN_DIRS:%=$(DESTDIR)%)
	rmdir $(DESTDIR)$(DOCDIR) $(DESTDIR)$(DATADIR) $(DESTDIR)$(INCLUDEDIR)/slime 2>/dev/null || true
