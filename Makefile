# Sluice: the server extension, the agent, and what surrounds them.
#
#   make              builds both        make check    all tests
#   make install      installs both      make demo     see it work, from nothing
#   make stage        private copy of the server with the extension in it
#   make unit         unit tests only    make asan-unit  the same with sanitizers
#
# PG=17 chooses /usr/lib/postgresql/17/bin/pg_config, PG_CONFIG=… any other.
# WERROR=1 (or CI=true) makes warnings errors.  On a replica host without the
# server's headers, make and make install are about the agent alone.

ifdef PG
PG_CONFIG ?= /usr/lib/postgresql/$(PG)/bin/pg_config
endif
PG_CONFIG ?= $(or $(shell command -v pg_config),$(lastword $(sort $(wildcard /usr/lib/postgresql/*/bin/pg_config))))
server := $(wildcard $(shell $(PG_CONFIG) --pgxs 2>/dev/null))

ifeq ($(CI),true)
WERROR ?= 1
endif
ifeq ($(WERROR),1)
werror = -Werror
endif
export warnings = -Wall -Wextra -Wshadow -Wvla -Wmissing-prototypes -Wno-unused-parameter \
	-Wno-sign-compare -Wno-missing-field-initializers -Wno-declaration-after-statement $(werror)

parts = $(if $(server),extension) $(if $(wildcard agent/main.c),agent)

.PHONY: all install clean extension agent
all: $(parts)
install: $(parts:%=install-%)
clean:
	rm -rf build sluice-agent
	$(if $(server),$(MAKE) --no-print-directory -s -C pg_ext clean PG_CONFIG='$(PG_CONFIG)')

# ---- the extension: PGXS, in pg_ext/Makefile ----

.PHONY: install-extension
extension:
	@echo 'extension for '"$$($(PG_CONFIG) --version)"
	@$(MAKE) --no-print-directory -s -C pg_ext PG_CONFIG='$(PG_CONFIG)'
install-extension: extension
	$(MAKE) --no-print-directory -C pg_ext install PG_CONFIG='$(PG_CONFIG)' DESTDIR='$(DESTDIR)'

# ---- the agent: no server headers, its own objects of the shared code ----

agent_shared = $(wildcard $(addprefix pg_ext/common/,watermark.c buffer.c spec*.c wire*.c))
agent_sources = $(sort $(wildcard agent/*.c)) $(agent_shared)
B = build
agent_objects = $(agent_sources:%.c=$(B)/agent/%.o)
agent_pkgs = libpq sqlite3
AGENT = sluice-agent
AGENT_OPT ?= -O2 -g -D_FORTIFY_SOURCE=2 -fstack-protector-strong
AGENT_CFLAGS = -std=gnu11 -D_GNU_SOURCE $(AGENT_OPT) $(warnings) -pthread \
	-Iagent -Ipg_ext/common $(shell pkg-config --cflags $(agent_pkgs))
AGENT_LIBS = $(shell pkg-config --libs $(agent_pkgs)) -pthread -lm
AGENT_BINDIR ?= /usr/local/bin

.PHONY: install-agent
agent: $(AGENT)

$(AGENT): $(agent_objects)
	@echo link $@
	@$(CC) $(AGENT_OPT) $^ $(AGENT_LIBS) -o $@

$(B)/agent/%.o: %.c Makefile
	@mkdir -p $(@D)
	@echo cc $<
	@$(CC) $(AGENT_CFLAGS) -MMD -MP -c $< -o $@

-include $(agent_objects:.o=.d)

install-agent: $(AGENT)
	install -d '$(DESTDIR)$(AGENT_BINDIR)'
	install -m 755 $(AGENT) '$(DESTDIR)$(AGENT_BINDIR)'

# ---- fuzzing of what reads foreign bytes (clang); FUZZ_TIME in seconds ----

FUZZ_TIME ?= 60
FUZZ_CC ?= clang
fuzz_sources = $(agent_shared) agent/memory.c

.PHONY: fuzz
fuzz: build/fuzz/fuzz_wire
	@mkdir -p build/fuzz/corpus
	cd build/fuzz && ./fuzz_wire -max_total_time=$(FUZZ_TIME) -max_len=4096 corpus $(CURDIR)/tests/fuzz/corpus

build/fuzz/fuzz_wire: tests/fuzz/fuzz_wire.c $(fuzz_sources) $(wildcard pg_ext/common/*.h tests/unit/*.h) Makefile
	@mkdir -p $(@D)
	$(FUZZ_CC) -std=gnu11 -D_GNU_SOURCE $(sanitize) -fsanitize=fuzzer -Iagent -Ipg_ext/common -Itests/unit \
		$< $(fuzz_sources) -o $@

# ---- a private copy of the server's installation, with the extension ----

STAGE ?= $(CURDIR)/build/stage

.PHONY: stage
stage: all
	tests/lib/stage '$(PG_CONFIG)' '$(STAGE)'
	$(MAKE) --no-print-directory -s install DESTDIR='$(STAGE)'
	@set -e; for module in $(wildcard tests/modules/*/); do \
		$(MAKE) --no-print-directory -s -C $$module PG_CONFIG='$(PG_CONFIG)' all; \
		$(MAKE) --no-print-directory -s -C $$module PG_CONFIG='$(PG_CONFIG)' install DESTDIR='$(STAGE)'; done

# ---- programs that tests use: tests/tools/*.c ----

tools = $(patsubst tests/tools/%.c,$(B)/tools/%,$(wildcard tests/tools/*.c))
tool_objects = $(patsubst %.c,$(B)/agent/%.o,$(agent_shared) agent/memory.c)

.PHONY: tools
tools: $(tools)

$(B)/tools/%: tests/tools/%.c $(tool_objects) Makefile
	@mkdir -p $(@D)
	@echo cc $<
	@$(CC) $(AGENT_CFLAGS) $< $(tool_objects) $(AGENT_LIBS) -o $@

# ---- unit tests: each tests/unit/test_*.c is a CUnit program of its own,
# linked with what it uses of the agent and the shared code ----

units = $(patsubst tests/unit/%.c,$(B)/unit/%,$(sort $(wildcard tests/unit/test_*.c)))

.PHONY: units unit asan-unit
units: $(units)

$(B)/unit/libsluice.a: $(filter-out %/main.o,$(agent_objects))
	@mkdir -p $(@D)
	@rm -f $@
	@ar rcs $@ $^

$(B)/unit/%: tests/unit/%.c $(B)/unit/libsluice.a Makefile
	@mkdir -p $(@D)
	@echo cc $<
	@$(CC) $(AGENT_CFLAGS) -Itests/unit -MMD -MP $< $(B)/unit/libsluice.a $(AGENT_LIBS) -lcunit -o $@

-include $(units:=.d)

unit: units
	tests/lib/unit $(units)

sanitize = -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
.PHONY: asan asan-unit
asan: asan-unit
asan-unit:
	$(MAKE) --no-print-directory unit B=build/asan AGENT_OPT='$(sanitize)'

# ---- all tests, PHASES='unit tap' runs some; and the demonstration, DEMO=--keep ----

.PHONY: check demo
check:
	@tests/lib/packages check
	@cd "$$(tests/lib/reachable)" && $(MAKE) --no-print-directory -j$(shell nproc) stage tools && tests/lib/check $(PHASES)

demo:
	@tests/lib/packages demo
	@cd "$$(tests/lib/reachable)" && $(MAKE) --no-print-directory -j$(shell nproc) stage && demo/run $(DEMO)

# ---- static checks; make lint LINT=--short leaves out the slow ones ----

.PHONY: lint clang clang-all indent
lint: all
	tests/lib/packages lint
	tests/lint/run $(LINT)

clang:
	@$(MAKE) --no-print-directory -s clang-all CC=clang WERROR=1
clang-all:
	@$(MAKE) --no-print-directory -s -C pg_ext syntax PG_CONFIG='$(PG_CONFIG)'
	@$(if $(wildcard agent/main.c),$(MAKE) --no-print-directory -s agent B=build/clang AGENT=build/clang/sluice-agent)

indent:
	git ls-files -co --exclude-standard 'pg_ext/*.[ch]' 'agent/*.[ch]' 'tests/*.[ch]' | xargs clang-format -i

# ---- measurements ----

.PHONY: bench
bench: stage
	bench/decode

# ---- Debian packages, beside the tree ----

.PHONY: deb
deb:
	dpkg-buildpackage -us -uc -b
