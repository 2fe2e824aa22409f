# Sluice: the server extension (PGXS) and the agent.
#
#   make              builds both        make check    all tests
#   make install      installs both      make demo     see it work, from nothing
#   make stage        private copy of the server with the extension in it
#
# PG=17 chooses /usr/lib/postgresql/17/bin/pg_config, PG_CONFIG=… any other.
# WERROR=1 (or CI=true) makes warnings errors.

ifdef PG
PG_CONFIG ?= /usr/lib/postgresql/$(PG)/bin/pg_config
endif
PG_CONFIG ?= $(or $(shell command -v pg_config),$(lastword $(sort $(wildcard /usr/lib/postgresql/*/bin/pg_config))))
PGXS := $(wildcard $(shell $(PG_CONFIG) --pgxs 2>/dev/null))

ifeq ($(CI),true)
WERROR ?= 1
endif
ifeq ($(WERROR),1)
werror = -Werror
endif

warnings = -Wall -Wextra -Wshadow -Wvla -Wmissing-prototypes -Wno-unused-parameter \
	-Wno-sign-compare -Wno-missing-field-initializers -Wno-declaration-after-statement $(werror)

.DEFAULT_GOAL = all
all: agent-if-present

# ---- the extension ----

MODULE_big = sluice
EXTENSION = pg_ext/sluice
DATA = $(wildcard pg_ext/sluice--*.sql)
sources = $(sort $(wildcard pg_ext/*.c pg_ext/*/*.c))
OBJS = $(sources:.c=.o)
include_dirs = $(sort pg_ext/common/ $(dir $(wildcard pg_ext/*/*.[ch])))
PG_CPPFLAGS = $(addprefix -I$(CURDIR)/,$(include_dirs)) -MMD -MP
PG_CFLAGS = -std=gnu11 $(warnings)
EXTRA_CLEAN = build sluice-agent $(sources:.c=.d)

# no bitcode: it wants the very clang the server was built with
override with_llvm = no

ifneq ($(PGXS),)
include $(PGXS)
else
CC ?= cc
clean:
	rm -rf $(EXTRA_CLEAN)
endif

ifneq ($(findstring clang,$(CC)),)
CFLAGS += -Wno-unknown-warning-option -Wno-ignored-optimization-argument
endif

$(OBJS): Makefile
-include $(sources:.c=.d)

# ---- the agent: no server headers, its own objects of the shared code ----

agent_shared = $(wildcard $(addprefix pg_ext/common/,watermark.c buffer.c spec*.c wire*.c))
agent_sources = $(sort $(wildcard agent/*.c)) $(agent_shared)
B = build
agent_objects = $(agent_sources:%.c=$(B)/agent/%.o)
agent_pkgs = libpq sqlite3
AGENT = sluice-agent
AGENT_CC ?= $(CC)
AGENT_OPT ?= -O2 -g -D_FORTIFY_SOURCE=2 -fstack-protector-strong
AGENT_CFLAGS = -std=gnu11 -D_GNU_SOURCE $(AGENT_OPT) $(warnings) -pthread \
	-Iagent -Ipg_ext/common $(shell pkg-config --cflags $(agent_pkgs))
AGENT_LIBS = $(shell pkg-config --libs $(agent_pkgs)) -pthread -lm
AGENT_BINDIR ?= /usr/local/bin

.PHONY: agent-if-present install-agent
agent-if-present: $(if $(wildcard agent/main.c),$(AGENT))

$(AGENT): $(agent_objects)
	$(AGENT_CC) $(AGENT_OPT) $^ $(AGENT_LIBS) -o $@

$(B)/agent/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(AGENT_CC) $(AGENT_CFLAGS) -MMD -MP -c $< -o $@

-include $(agent_objects:.o=.d)

install: $(if $(wildcard agent/main.c),install-agent)
install-agent: $(AGENT)
	install -d '$(DESTDIR)$(AGENT_BINDIR)'
	install -m 755 $(AGENT) '$(DESTDIR)$(AGENT_BINDIR)'

# ---- unit tests: each tests/unit/test_*.c is a CUnit program of its own,
# linked with what it uses of the agent and the shared code ----

units = $(patsubst tests/unit/%.c,$(B)/unit/%,$(sort $(wildcard tests/unit/test_*.c)))

.PHONY: units unit asan-unit
units: $(units)

$(B)/unit/libsluice.a: $(filter-out %/main.o,$(agent_objects))
	@mkdir -p $(@D)
	@rm -f $@
	ar rcs $@ $^

$(B)/unit/%: tests/unit/%.c $(B)/unit/libsluice.a Makefile
	@mkdir -p $(@D)
	$(AGENT_CC) $(AGENT_CFLAGS) -Itests/unit -MMD -MP $< $(B)/unit/libsluice.a $(AGENT_LIBS) -lcunit -o $@

-include $(units:=.d)

unit: units
	tests/lib/unit $(units)

sanitize = -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
asan-unit:
	$(MAKE) --no-print-directory unit B=build/asan AGENT_OPT='$(sanitize)'

# ---- a private copy of the server's installation, with the extension ----

STAGE ?= $(CURDIR)/build/stage

.PHONY: stage
stage: all
	tests/lib/stage '$(PG_CONFIG)' '$(STAGE)'
	$(MAKE) --no-print-directory -s install DESTDIR='$(STAGE)'
