# Flags, source lists and rules. Sources are found by wildcard, so a new file needs no entry.

SAN   ?=
BUILD := build$(if $(SAN),/$(SAN))
OPT   ?= $(if $(SAN),-O1,-O2) -g1
Q     := $(if $(V),,@)
say    = $(if $(V),,@printf '  %-6s %s\n' $(1) $(2))
# MAKEFLAGS shows -j only inside recipes, hence the lazy assignment.
JOBS   = $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(shell nproc))

# Flags -------------------------------------------------------------------------------------------

# AddressSanitizer finds accesses by a null pointer and beyond an object. ubsan's checks of both are a
# quarter of the code to compile, so only `make ubsan` has them.
SAN_FLAGS_asan  := -fsanitize=address,undefined -fno-sanitize=null,object-size
SAN_FLAGS_ubsan := -fsanitize=undefined
SAN_FLAGS_tsan  := -fsanitize=thread
# libFuzzer needs clang: `make fuzz` builds its programs here, and nothing else.
SAN_FLAGS_fuzz  := -fsanitize=fuzzer-no-link,address,undefined
ifeq ($(SAN),fuzz)
ifeq ($(origin CXX),default)
CXX := clang++
endif
# The pragmas that choose instruction sets are GCC's.
FUZZ_FLAGS := -DSLIME_LIBFUZZER -Wno-unknown-pragmas
endif
ifneq ($(SAN),)
ifeq ($(SAN_FLAGS_$(SAN)),)
$(error SAN=$(SAN) is unknown; choose asan, ubsan, tsan or fuzz)
endif
SAN_FLAGS := $(SAN_FLAGS_$(SAN)) -fno-sanitize-recover=all -fno-omit-frame-pointer
endif

# What is compiled names no directory of this machine, so ccache also finds what another clone left. A
# compiled header differs from clone to clone; its .sum, of what it is made of, does not.
CCACHE := $(shell command -v ccache 2>/dev/null)
NO_PLACE := -ffile-prefix-map=$(CURDIR)=.
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_PCH_EXTSUM := 1
INCLUDES := -Iinclude -I. -I$(BUILD)/gen
# base/check.h; `make CHECKS=1` has the checks in any other build.
CHECKS ?= $(if $(SAN)$(filter -O0 -Og,$(OPT)),1)
CXX_ALL := $(INCLUDES) -std=c++20 -Wall -Wextra -Werror -fPIC -pthread -fvisibility=hidden \
  -fvisibility-inlines-hidden -ffunction-sections -fdata-sections $(OPT) $(SAN_FLAGS) \
  $(FUZZ_FLAGS) $(if $(filter 1,$(CHECKS)),-DSLIME_CHECKS) $(CPPFLAGS) $(CXXFLAGS)
LINK_ALL := -pthread $(OPT) $(SAN_FLAGS) -Wl,--gc-sections -Wl,--as-needed $(LDFLAGS)
# The plugin runs in another program's process: it exports only NCCL's symbols, resolves everything at
# load time, and is never unmapped while a thread may still run in it.
# The same holds for libslime, the library of peers.
GUEST_FLAGS := -shared -Wl,--exclude-libs,ALL -Wl,-z,defs -Wl,-z,now -Wl,-z,relro -Wl,-z,nodelete
PLUGIN_LINK_FLAGS := $(GUEST_FLAGS) -Wl,-soname,libnet-slime.so -Wl,--version-script,plugin/exports.map
PEER_LINK_FLAGS := $(GUEST_FLAGS) -Wl,-soname,libslime.so.1 -Wl,--version-script,c_abi/exports.map
# What users get brings its C++ library along and, on x86-64, loads on glibc 2.28: portable/ has what
# is newer, and its stubs stand for the libraries of 2.28. PORTABLE= links with this machine's.
PORTABLE ?= $(if $(SAN),,1)
OLD_GLIBC := $(if $(PORTABLE),$(filter x86_64-%,$(shell $(CXX) -dumpmachine 2>/dev/null)))
STATIC_CXX := $(if $(PORTABLE),-static-libstdc++ -static-libgcc)
STUBS     := $(if $(OLD_GLIBC),$(addprefix $(BUILD)/gen/glibc/,libpthread.so.0 libdl.so.2))

# Sources -----------------------------------------------------------------------------------------

sources = $(sort $(foreach d,$(1),$(wildcard $(d)/*.cc $(d)/*/*.cc $(d)/*/*/*.cc)))
objects = $(patsubst %.cc,$(BUILD)/obj/%.o,$(1))
# Directories under $(1) that hold sources, without the names in $(2).
groups  = $(filter-out $(2),$(sort $(patsubst $(1)/%/,%,$(dir $(wildcard $(1)/*/*.cc)))))

# Without a switch the ranks do a switch's work for each other, so the plugin has switch/core too.
LIB_SRCS  := $(call sources,base settings switch/protocol transports devices link message collnet plugin switch/core)
# Only slime-switchd has the driver of bmv2, and only where Thrift is installed.
THRIFT    := $(shell SLIME_NO_INSTALL=1 mk/ensure-tools.sh bmv2 2>/dev/null && echo thrift)
BMV2_SRCS := $(if $(THRIFT),$(wildcard switch/bmv2/*.cc))
THRIFT_GEN  := $(foreach s,Standard SimplePreLag SimpleSwitch runtime_types,$(BUILD)/gen/bmv2/$s.cpp)
THRIFT_OBJS := $(if $(THRIFT),$(patsubst $(BUILD)/gen/%.cpp,$(BUILD)/obj/gen/%.o,$(THRIFT_GEN)))
# The same for Tofino and gRPC; the program, which is pure functions, needs none.
GRPC        := $(shell SLIME_NO_INSTALL=1 mk/ensure-tools.sh tofino 2>/dev/null && echo grpc)
GRPC_SRCS   := $(filter-out switch/tofino/program.cc,$(wildcard switch/tofino/*.cc))
TOFINO_SRCS := $(if $(GRPC),$(GRPC_SRCS))
PROTOBUF_GEN  := $(addprefix $(BUILD)/gen/tofino/bfruntime,.pb.cc .grpc.pb.cc .pb.h .grpc.pb.h)
PROTOBUF_OBJS := $(if $(GRPC),$(patsubst $(BUILD)/gen/%.cc,$(BUILD)/obj/gen/%.o, \
  $(filter %.cc,$(PROTOBUF_GEN))))
DRIVERS     := $(THRIFT:%=-DSLIME_BMV2) $(GRPC:%=-DSLIME_TOFINO)
SWITCH_SRCS := $(filter-out $(LIB_SRCS) switch/bmv2/% $(GRPC_SRCS),$(call sources,switch))
# The interface for programs without NCCL, and the rendezvous of its ranks, are in the static library
# only.
AGGREGATION_SRCS := $(call sources,rendezvous aggregation peer c_abi)
# Engines and their peers, without anything of NCCL's.
PEER_SRCS := $(call sources,base settings transports devices link peer c_abi)
PORTABLE_SRCS := $(if $(OLD_GLIBC),$(call sources,portable))
EXAMPLES  := $(sort $(patsubst examples/%.cc,%,$(wildcard examples/*.cc)))
C_EXAMPLES := $(sort $(patsubst examples/%.c,%,$(wildcard examples/*.c)))
TOOLS     := $(call groups,tools,common)
# LIBS_<tool>: libraries that a tool links besides our own.
# BFRuntime has no TLS, so gRPC needs none.
LIBS_GRPC    := $(if $(GRPC),-lgrpc++_unsecure -lgrpc_unsecure -lgpr -lprotobuf -labsl_synchronization)
LIBS_switchd := -lyaml-cpp -lmicrohttpd $(THRIFT:%=-lthrift) $(LIBS_GRPC)
SRCS_switchd := $(BMV2_SRCS) $(TOFINO_SRCS)
# The same for a test, and sources of tools that it tests: SRCS_TEST_<test>.
LIBS_TEST_fuzz := -lyaml-cpp
LIBS_TEST_p4   := -lthrift
LIBS_TEST_tofino := $(LIBS_GRPC)
SRCS_TEST_fuzz := $(wildcard tools/switchd/config*.cc) tools/common/bytes.cc \
  switch/tofino/info.cc
SRCS_TEST_p4   := $(BMV2_SRCS) $(addprefix test/vectors/,recorder.cc vector.cc)
SRCS_TEST_tofino := $(TOFINO_SRCS)
SRCS_TEST_topology := $(addprefix tools/info/,topology.cc topology_print.cc)
SRCS_TEST_verbs := tools/perf/p2p/bare_end.cc
SRCS_TEST_unit := $(filter-out tools/perf/main.cc,$(call sources,tools/perf tools/common))
BENCHES   := $(call groups,bench,common)
# Sources that a benchmark shares with the tests: SRCS_BENCH_<benchmark>.
SRCS_BENCH_posting := $(call sources,test/support/sim)
SRCS_BENCH_verbs := tools/perf/p2p/bare_end.cc
# Directories of test/ that are plain programs. Tests run under them.
TEST_PROGRAMS := pause
# Tests with one thread show ThreadSanitizer nothing. gRPC's packaged library is not instrumented, so
# ThreadSanitizer would report races where gRPC's threads exchange data.
TESTS     := $(call groups,test,support $(TEST_PROGRAMS) $(if $(THRIFT),,p4) $(if $(GRPC),,tofino) \
  $(if $(filter tsan,$(SAN)),fuzz model tofino vectors))
# A fuzz target is a file of test/fuzz; what they share is below, and *_test.cc is for GoogleTest.
FUZZ_TARGETS := $(patsubst test/fuzz/%.cc,%,$(filter-out %_test.cc,$(sort $(wildcard test/fuzz/*.cc))))
FUZZ_SHARED  := $(call sources,test/fuzz/support test/support) $(SRCS_TEST_fuzz)
ALL_SRCS  := $(LIB_SRCS) $(SWITCH_SRCS) $(BMV2_SRCS) $(sort $(TOFINO_SRCS) switch/tofino/info.cc) \
  $(AGGREGATION_SRCS) $(PORTABLE_SRCS) \
  $(filter-out $(if $(THRIFT),,test/p4/%) $(if $(GRPC),,test/tofino/%), \
    $(call sources,tools bench test examples))

LIB_A       := $(BUILD)/lib/libslime.a
PLUGIN_SO   := $(BUILD)/lib/libnet-slime.so
PEER_SO     := $(BUILD)/lib/libslime.so.1
PEER_LINK   := $(BUILD)/lib/libslime.so
PLUGIN_LINK := $(BUILD)/lib/libnccl-net-slime.so
TOOL_BINS   := $(TOOLS:%=$(BUILD)/bin/slime-%)
BENCH_BINS  := $(BENCHES:%=$(BUILD)/bin/bench-%)
EXAMPLE_BINS := $(foreach e,$(EXAMPLES),$(BUILD)/bin/example-$(subst _,-,$e))
C_EXAMPLE_BINS := $(foreach e,$(C_EXAMPLES),$(BUILD)/bin/example-$(subst _,-,$e))
TEST_BINS   := $(TESTS:%=$(BUILD)/test/%)
TEST_PROGRAM_BINS := $(TEST_PROGRAMS:%=$(BUILD)/test/%)
FUZZ_BINS   := $(FUZZ_TARGETS:%=$(BUILD)/bin/fuzz-%)
TIDY_STAMPS := $(ALL_SRCS:%.cc=$(BUILD)/tidy/%.ok)

# Small files that change only when their content does. A new flag recompiles everything, an added or
# removed source relinks, a new commit recompiles the file that prints it, and installing or removing
# Thrift or gRPC recompiles the file that chooses a driver.
FLAGS_FILE   := $(BUILD)/gen/flags
SOURCES_FILE := $(BUILD)/gen/sources
VERSION_FILE := $(BUILD)/gen/slime_version.h
DRIVERS_FILE := $(BUILD)/gen/drivers
ifneq ($(filter-out clean help,$(or $(MAKECMDGOALS),all)),)
ifneq ($(shell mkdir -p $(BUILD)/gen || echo failed),)
$(error cannot create $(BUILD)/gen)
endif
# One that is missing is written even if it is to be empty: rules name it.
update = $(if $(or $(if $(wildcard $(1)),,missing),$(call differs,$(strip $(2)),$(strip $(file <$(1))))), \
  $(file >$(1),$(strip $(2))))
differs = $(subst x$(1)x,,x$(2)x)$(subst x$(2)x,,x$(1)x)
$(call update,$(FLAGS_FILE),$(CXX) $(CXX_ALL) : $(LINK_ALL) $(PLUGIN_LINK_FLAGS) $(STATIC_CXX) $(STUBS))
$(call update,$(SOURCES_FILE),$(ALL_SRCS))
$(call update,$(DRIVERS_FILE),$(DRIVERS))
VERSION_STATE := $(shell mk/version.sh $(VERSION) $(VERSION_FILE))
endif

# Rules -------------------------------------------------------------------------------------------

# Tests compile in half the time without optimisation, and only long simulations run faster with it.
# Code that only parses command lines gains nothing from -O2. An OPT that the user sets holds for all.
BUSY_TESTS := collnet engine model support
TEST_OPT = $(if $(filter file,$(origin OPT)),-O0)
CLI_OPT  = $(if $(filter file,$(origin OPT)),$(if $(filter asan,$(SAN)),-O0,-O1))
$(BUILD)/obj/test/%.o: OPT_HERE = $(TEST_OPT)
$(BUILD)/obj/tools/info/%.o $(BUILD)/obj/tools/%/options.o: OPT_HERE = $(CLI_OPT)
$(foreach d,$(BUSY_TESTS),$(BUILD)/obj/test/$d/%.o): OPT_HERE = $(TEST_OPT:-O0=-O1)

# GoogleTest's headers are a third of what a test takes to compile, those of the C++ library half of a
# small source. Both are compiled once for each level of optimisation, the latter not for asan: that
# build finds the source that forgets to include one. GCC 12 takes a compiled header for ours and not
# for the system's, and warns of what it inlines from it; it also warns falsely of what sanitizers add.
ifneq ($(SAN),fuzz)
export CCACHE_SLOPPINESS := pch_defines,time_macros
HEADERS_std   := algorithm array atomic bit chrono cstddef cstdint cstdio cstring deque functional \
  map memory mutex optional random ranges span string string_view thread tl/expected.hpp utility vector
HEADERS_tests := $(HEADERS_std) gmock/gmock.h gtest/gtest.h
# $(1) std or tests, $(2) flags, of which the last level counts
PCH_OF = $(BUILD)/pch/$(1)$(lastword $(filter -O%,$(OPT) $(2))).h
FALSE_ALARMS := -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread
use_pch = $(if $(SAN),-w,$(FALSE_ALARMS)) -fpch-preprocess -include $(call PCH_OF,$(1),$(2))
PCHS = $(sort $(foreach o,$(OPT) $(CLI_OPT) $(TEST_OPT) $(TEST_OPT:-O0=-O1),$(call PCH_OF,$(1),$o).gch))
$(BUILD)/obj/test/%.o: PCH_HERE = $(call use_pch,tests,$(OPT_HERE))
$(call objects,$(filter test/%,$(ALL_SRCS))): | $(call PCHS,tests)
ifneq ($(SAN),asan)
$(BUILD)/obj/%.o: PCH_HERE = $(call use_pch,std,$(OPT_HERE))
# The headers of the C++ library declare what portable/ defines as visible.
$(BUILD)/obj/portable/%.o: PCH_HERE =
$(call objects,$(filter-out test/%,$(ALL_SRCS))): | $(call PCHS,std)
else
$(BUILD)/obj/%.o: PCH_HERE = -w
endif
$(BUILD)/pch/%.h.gch: $(FLAGS_FILE) | $(BUILD)/gen/tools.ok
	$(call say,PCH,$@)
	@mkdir -p $(@D)
	@printf '#include <%s>\n' $(HEADERS_$(firstword $(subst -, ,$*))) >$(@:.gch=)
	$(Q)$(if $(CCACHE),$(CXX) $(CXX_ALL) $(filter -O%,$(subst -O, -O,$*)) -x c++-header -E -P $(@:.gch=) | sha256sum >$@.sum)
	$(Q)$(CXX) $(CXX_ALL) $(NO_PLACE) $(filter -O%,$(subst -O, -O,$*)) -x c++-header $(@:.gch=) -o $@
endif

$(BUILD)/obj/%.o: %.cc $(FLAGS_FILE) | $(BUILD)/gen/tools.ok
	$(call say,CXX,$<)
	@mkdir -p $(@D)
	$(Q)$(CCACHE) $(CXX) $(CXX_ALL) $(NO_PLACE) $(OPT_HERE) $(PCH_HERE) $(FLAGS_HERE) -MMD -MP -c $< -o $@

# The code that Thrift generates for the runtime interface of bmv2 is compiled without warnings.
$(THRIFT_GEN) &: switch/bmv2/runtime.thrift | $(BUILD)/gen/tools.ok
	$(call say,THRIFT,$<)
	@mkdir -p $(BUILD)/gen/bmv2
	$(Q)thrift --gen cpp:no_skeleton -out $(BUILD)/gen/bmv2 $<
$(THRIFT_OBJS): $(BUILD)/obj/gen/%.o: $(BUILD)/gen/%.cpp $(FLAGS_FILE)
	$(call say,CXX,$<)
	@mkdir -p $(@D)
	$(Q)$(CCACHE) $(CXX) $(CXX_ALL) $(NO_PLACE) -w -c $< -o $@
THRIFT_USERS := $(call objects,$(BMV2_SRCS) $(if $(THRIFT),$(wildcard test/p4/*.cc)))
$(THRIFT_USERS): FLAGS_HERE = -isystem $(BUILD)/gen
$(THRIFT_USERS): $(if $(THRIFT),$(THRIFT_GEN))
$(BUILD)/obj/tools/switchd/make_driver.o: FLAGS_HERE = $(DRIVERS)
$(BUILD)/obj/tools/switchd/make_driver.o: $(DRIVERS_FILE)
$(BUILD)/bin/slime-switchd $(BUILD)/test/p4: $(THRIFT_OBJS)
$(BUILD)/test/p4: | $(BUILD)/bin/slime-switchd # which a test starts

# So is the code that protoc generates for BFRuntime.
$(PROTOBUF_GEN) &: switch/tofino/bfruntime.proto | $(BUILD)/gen/tools.ok
	$(call say,PROTOC,$<)
	@mkdir -p $(BUILD)/gen/tofino
	$(Q)protoc -I switch --cpp_out=$(BUILD)/gen --grpc_out=$(BUILD)/gen \
	  --plugin=protoc-gen-grpc="$$(command -v grpc_cpp_plugin)" $<
$(PROTOBUF_OBJS): $(BUILD)/obj/gen/%.o: $(BUILD)/gen/%.cc $(FLAGS_FILE) $(PROTOBUF_GEN)
	$(call say,CXX,$<)
	@mkdir -p $(@D)
	$(Q)$(CCACHE) $(CXX) $(CXX_ALL) $(NO_PLACE) -w -c $< -o $@
GRPC_USERS := $(call objects,$(TOFINO_SRCS) $(if $(GRPC),$(wildcard test/tofino/*.cc)))
$(GRPC_USERS): FLAGS_HERE = -isystem $(BUILD)/gen
$(GRPC_USERS): $(if $(GRPC),$(PROTOBUF_GEN))
$(BUILD)/bin/slime-switchd $(BUILD)/test/tofino: $(PROTOBUF_OBJS)
-include $(patsubst %.cc,$(BUILD)/obj/%.d,$(ALL_SRCS))

# Tools are checked once for each build directory and list of needs. `make run` and `make check`
# install missing ones instead of failing.
$(BUILD)/gen/tools.ok: mk/ensure-tools.sh
	@SLIME_NO_INSTALL=1 mk/ensure-tools.sh build
	@touch $@

$(BUILD)/layers.ok: mk/layers.sh mk/layers.awk mk/sources.sh $(shell mk/sources.sh)
	$(call say,LAYERS,)
	$(Q)mk/layers.sh
	@touch $@

# The static library also has the switch and the C++ interface; the plugin has neither.
$(LIB_A): $(call objects,$(LIB_SRCS) $(SWITCH_SRCS) $(AGGREGATION_SRCS)) $(SOURCES_FILE)
	$(call say,AR,$@)
	@mkdir -p $(@D) && rm -f $@
	$(Q)$(AR) rcs $@ $(filter %.o,$^)

$(STUBS): portable/glibc.symbols mk/stub.awk $(FLAGS_FILE)
	$(call say,STUB,$@)
	@mkdir -p $(@D)
	$(Q)awk -v library=$(@F) -v versions=$@.map -f mk/stub.awk $< >$@.s
	$(Q)$(CXX) -shared -nostdlib -Wl,-soname,$(@F) -Wl,--version-script,$@.map -o $@ $@.s

$(PLUGIN_SO): $(call objects,$(LIB_SRCS) $(filter-out portable/start.cc,$(PORTABLE_SRCS))) $(STUBS) \
  plugin/exports.map $(SOURCES_FILE)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CXX) $(PLUGIN_LINK_FLAGS) -o $@ $(filter %.o,$^) $(STATIC_CXX) $(STUBS) $(LINK_ALL)

$(PEER_SO): $(call objects,$(PEER_SRCS) $(filter-out portable/start.cc,$(PORTABLE_SRCS))) $(STUBS) \
  c_abi/exports.map $(SOURCES_FILE)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CXX) $(PEER_LINK_FLAGS) -o $@ $(filter %.o,$^) $(STATIC_CXX) $(STUBS) $(LINK_ALL)

$(PEER_LINK): $(PEER_SO)
	$(Q)ln -sf $(notdir $<) $@

$(PLUGIN_LINK): $(PLUGIN_SO)
	$(Q)ln -sf $(notdir $<) $@

# $(1) program, $(2) its sources, $(3) more libraries, $(4) what makes it portable
define program
$(1): $(call objects,$(2)) $(LIB_A) $(SOURCES_FILE)
	$$(call say,LINK,$$@)
	@mkdir -p $$(@D)
	$$(Q)$$(CXX) -o $$@ $$(filter %.o,$$^) $$(LIB_A) $(3) $(4) $$(LINK_ALL) -ldl
endef
# slime-switchd hands objects of C++ to libraries of this machine, and so needs their C++ library.
SHARED_CXX := switchd
WRAP  := -Wl,--wrap=__libc_start_main
START := $(if $(OLD_GLIBC),$(WRAP) $(STUBS))
$(TOOL_BINS) $(EXAMPLE_BINS): $(STUBS)
$(foreach t,$(TOOLS),$(eval $(call program,$(BUILD)/bin/slime-$t,$(call sources,tools/$t) \
  $(SRCS_$t) $(call sources,tools/common) $(PORTABLE_SRCS),$(LIBS_$t), \
  $(START) $(if $(filter $t,$(SHARED_CXX)),,$(STATIC_CXX)))))
$(foreach b,$(BENCHES),$(eval $(call program,$(BUILD)/bin/bench-$b,$(call sources,bench/$b) \
  $(SRCS_BENCH_$b) $(call sources,bench/common))))
$(foreach e,$(EXAMPLES),$(eval $(call program,$(BUILD)/bin/example-$(subst _,-,$e),examples/$e.cc $(PORTABLE_SRCS),, \
  $(START) $(STATIC_CXX))))
$(foreach t,$(TESTS),$(eval $(call program,$(BUILD)/test/$t,$(call sources,test/$t) \
  $(SRCS_TEST_$t) $(call sources,test/support),-lgmock_main -lgmock -lgtest $(LIBS_TEST_$t))))
$(foreach t,$(TEST_PROGRAMS),$(eval $(call program,$(BUILD)/test/$t,$(call sources,test/$t),)))
ifeq ($(SAN),fuzz)
$(foreach t,$(FUZZ_TARGETS),$(eval $(call program,$(BUILD)/bin/fuzz-$t,test/fuzz/$t.cc \
  $(FUZZ_SHARED),-fsanitize=fuzzer $(LIBS_TEST_fuzz))))
endif

# Examples of libslime are what users write: C, linked with the shared library. They find it beside
# themselves.
$(C_EXAMPLE_BINS): $(BUILD)/bin/example-%: examples/%.c include/slime/slime.h include/slime/types.h $(PEER_SO) $(PEER_LINK)
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c99 -Wall -Wextra -Werror -pedantic -O2 -g1 $(SAN_FLAGS) -Iinclude $< -o $@ -L$(BUILD)/lib -lslime \
	  -Wl,-rpath,'$$ORIGIN/../lib'

# A stamp for each file: tidy runs in parallel, and again only where the object would be rebuilt.
$(BUILD)/tidy/%.ok: %.cc .clang-tidy $(BUILD)/obj/%.o
	$(call say,TIDY,$<)
	@mkdir -p $(@D)
	$(Q)clang-tidy --quiet $< -- $(INCLUDES) $(DRIVERS) -std=c++20 -pthread 2>$@.err || \
	  { cat $@.err >&2; exit 1; }
	@touch $@
