# libnet-slime: plain GNU make. `make help` lists the targets; mk/compile.mk holds flags and rules.

VERSION := 0.1.0
PREFIX  ?= /usr/local
LIBDIR  ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
BINDIR  ?= $(PREFIX)/bin
DOCDIR  := $(PREFIX)/share/doc/libnet-slime
DATADIR := $(PREFIX)/share/libnet-slime
UNITDIR ?= $(PREFIX)/lib/systemd/system

.DEFAULT_GOAL := all
MAKEFLAGS += --no-builtin-rules
# These targets do their work in sub-makes that share one build directory: one after the other.
SERIAL := run run-switch check check-fresh check-sanitizers check-rdma bench fuzz fuzz-merge vectors asan ubsan tsan pause install \
  uninstall clean tidy
ifneq ($(filter $(SERIAL),$(MAKECMDGOALS)),)
.NOTPARALLEL:
endif

include mk/compile.mk

.PHONY: all programs run run-switch check check-fresh test check-sanitizers check-rdma check-lives asan ubsan tsan pause \
  model-check fuzz fuzz-merge vectors bench install uninstall layers format format-check tidy help clean

all: $(BUILD)/layers.ok $(PLUGIN_SO) $(PLUGIN_LINK) $(PEER_SO) $(PEER_LINK) $(LIB_A) $(TOOL_BINS) $(EXAMPLE_BINS) $(C_EXAMPLE_BINS)
programs: all $(TEST_BINS) $(TEST_PROGRAM_BINS) $(if $(SAN),,$(BENCH_BINS))

# The user's two commands -------------------------------------------------------------------------

# RAIL=name chooses the transport.
RUN_COMMAND ?= $(BUILD)/bin/slime-perf all_reduce --ranks 2 -b 8 -e 64M -f 2 -c 1

run:
	@mk/ensure-tools.sh build
	$(Q)$(MAKE) --no-print-directory $(JOBS) all
	@mk/run.sh $(BUILD) '$(RAIL)' $(RUN_COMMAND)

RANKS ?= 2

run-switch:
	@mk/ensure-tools.sh build
	$(Q)$(MAKE) --no-print-directory $(JOBS) all
	@mk/run-switch.sh $(BUILD) $(RANKS)

check:
	@mk/ensure-tools.sh build test bmv2 tofino format
	$(Q)$(MAKE) --no-print-directory layers
	$(Q)$(MAKE) --no-print-directory format-check
	$(Q)$(MAKE) --no-print-directory test

# Tests, once per kind of build -------------------------------------------------------------------

# The checks of the checks run no code of ours: they have nothing to tell under a sanitizer, which
# does not begin under a small ulimit -v, and whose libraries are never portable; system/starting
# waits for networks, and what it starts is started by other scripts too. Nor have command lines and
# their processes to ThreadSanitizer, which is about threads. Benchmarks are not built with a
# sanitizer.
NOT_SAN  := boundary/portable layers/layers layers/docs p4/bmv2 p4/sources runner/runner pause/pause system/install \
  system/limits system/networks system/starting
NOT_TSAN := gpu/gpu system/configs system/first_steps system/info system/interfaces system/nics system/outage \
  system/perf_failures system/perf_launch system/perf_results system/run system/small_path system/tuner_table
TEST_SCRIPTS := $(filter-out $(if $(SAN),$(NOT_SAN:%=test/%.test.sh)) \
  $(if $(filter tsan,$(SAN)),$(NOT_TSAN:%=test/%.test.sh)),$(sort $(wildcard test/*/*.test.sh)))

test:
	@mk/ensure-tools.sh build test bmv2 tofino
	$(Q)$(MAKE) --no-print-directory $(JOBS) programs
	@SLIME_BUILD_DIR=$(BUILD) SLIME_SAN=$(SAN) SLIME_PORTABLE=$(PORTABLE) test/run.sh $(TEST_BINS) $(TEST_SCRIPTS)

asan ubsan tsan:
	$(Q)$(MAKE) --no-print-directory SAN=$@ test

# asan is built with the checks of ubsan, but for two that it makes cheaper by itself.
check-sanitizers:
	$(Q)$(MAKE) --no-print-directory asan
	$(Q)$(MAKE) --no-print-directory tsan

# Random threads are stopped for random times; see test/pause/run.sh for its variables. What has
# threads, or peers that wait for each other; bounded, and not part of `make check`.
PAUSE_TESTS ?= $(filter-out $(NOT_PAUSED:%=$(BUILD)/test/%),$(TEST_BINS)) \
  $(PAUSED_SCRIPTS:%=test/system/%.test.sh)
NOT_PAUSED     := fuzz model
PAUSED_SCRIPTS := rack rails collnet_tree perf_failures perf_launch switch_control

pause:
	@mk/ensure-tools.sh build test
	$(Q)$(MAKE) --no-print-directory $(JOBS) all $(TEST_PROGRAM_BINS) $(filter $(BUILD)/%,$(PAUSE_TESTS))
	@SLIME_BUILD_DIR=$(BUILD) SLIME_SAN=$(SAN) test/pause/run.sh $(PAUSE_TESTS)

# A million lives of links and 1,000 cuts under load, whatever time that takes (20 minutes or so);
# `make check` runs as many as fit into a minute.
check-lives: $(BUILD)/test/engine
	SLIME_SCHEDULES=1000000 SLIME_BUILD_DIR=$(BUILD) $< --gtest_filter='Schedules.*:LifelineSchedules.*'
	SLIME_CUTS=1000 SLIME_BUILD_DIR=$(BUILD) $< --gtest_filter='TcpLifelineTest.OneRail*'

# Verbs over the kernel's Soft-RoCE, in a virtual machine; not part of `make check`. RDMA_CASES names
# some of the cases.
check-rdma:
	@mk/ensure-tools.sh build test
	$(Q)$(MAKE) --no-print-directory $(JOBS) $(BUILD)/test/contract $(BUILD)/test/engine $(BUILD)/test/boundary \
	  $(BUILD)/test/peer $(BUILD)/bin/slime-perf $(BUILD)/bin/slime-info $(PLUGIN_SO) $(PLUGIN_LINK)
	@SLIME_BUILD_DIR=$(BUILD) test/rdma/run.sh $(RDMA_CASES)

# What README and docs say of a fresh Debian 12, on one that debootstrap makes, as root.
check-fresh:
	@test/fresh/run.sh || [ $$? -eq 77 ]

# The bounds that every `make check` explores, and wider ones: about a minute and 4 GiB.
model-check:
	@mk/ensure-tools.sh build test
	$(Q)$(MAKE) --no-print-directory $(JOBS) $(BUILD)/test/model
	SLIME_MODEL=full $(BUILD)/test/model

# Ten minutes for all, or FUZZ_SECONDS for each; the kept corpus is part of `make check`.
fuzz fuzz-merge:
	@mk/ensure-tools.sh build test fuzz
	$(Q)$(MAKE) --no-print-directory $(JOBS) SAN=fuzz fuzzers
	@FUZZ_MERGE=$(if $(filter fuzz-merge,$@),1) mk/fuzz.sh $(FUZZ_TARGETS)

.PHONY: fuzzers
fuzzers: $(FUZZ_BINS)

# Writes the packet traces of test/vectors again; `make check` compares them with what is there.
vectors:
	@mk/ensure-tools.sh build test
	$(Q)$(MAKE) --no-print-directory $(JOBS) $(BUILD)/test/vectors
	SLIME_WRITE_VECTORS=test/vectors/data $(BUILD)/test/vectors --gtest_filter='Generator.*'

bench:
	@mk/ensure-tools.sh build bench
	$(Q)$(MAKE) --no-print-directory $(JOBS) all $(BENCH_BINS)
	@if [ -x bench/run.sh ]; then SLIME_BUILD_DIR=$(BUILD) bench/run.sh; \
	else echo "make bench: bench/run.sh is missing" >&2; exit 1; fi

# Source checks -----------------------------------------------------------------------------------

CPP_FILES = $(shell mk/sources.sh)

layers:
	@mk/layers.sh

format:
	@mk/ensure-tools.sh format
	$(Q)clang-format -i $(CPP_FILES)

format-check:
	@mk/ensure-tools.sh format
	$(Q)clang-format --dry-run -Werror $(CPP_FILES) || \
	  { echo "format-check: run 'make format' and look at the difference" >&2; exit 1; }

tidy:
	@mk/ensure-tools.sh build test bmv2 tofino tidy
	$(Q)$(MAKE) --no-print-directory -k $(JOBS) $(TIDY_STAMPS)

# Installing and the rest -------------------------------------------------------------------------

include mk/install.mk

clean:
	rm -rf build

help:
	@sed 's/^/  /' mk/help.txt
