# What a stranger types. `make help` lists it.

PREFIX ?= /usr/local
DESTDIR ?=

TARGET := $(or $(CARGO_TARGET_DIR),target)
COMMAND := $(TARGET)/release/transpress
LIBRARY := $(TARGET)/release/libtranspress.so
SOURCES := Cargo.toml Cargo.lock build.rs $(shell find src -type f)
HEADERS := include/transpress.h include/transpress.f90

# Where rustup's installer puts cargo; not every shell looks there.
export PATH := $(PATH):$(HOME)/.cargo/bin

.PHONY: build
build: $(COMMAND) $(LIBRARY)

.PHONY: help
help:
	@echo "make            build the library and the command, $(LIBRARY) and $(COMMAND)"
	@echo "make demo       run ECMWF's ecTrans with its all-to-alls compressed, and print what came of it"
	@echo "make test       format, lints, all tests, with Open MPI and MPICH"
	@echo "make bench      what the library costs a call that it does not compress"
	@echo "make bench-network [ARGS=--quick]  what it wins over links of 100 Mbit/s and more; up to 20 minutes, or 3"
	@echo "make check-gpu  what the library makes of this machine's GPU: bits, all-to-alls, speed; 4 minutes"
	@echo "make install    into PREFIX=$(PREFIX), below DESTDIR=$(DESTDIR)"
	@echo "make deps       install what demo, test and bench need (Debian packages, Rust); they do it themselves"

# cargo does nothing where only the clock says that a source is newer. Once this is built, `sudo make
# install` needs no cargo.
$(COMMAND) $(LIBRARY) &: $(SOURCES)
	cargo build --release --locked

.PHONY: deps
deps:
	.ci/deps test

.PHONY: demo
demo:
	.ci/deps demo
	$(MAKE) build
	examples/ectrans_demo.py $(COMMAND)

.PHONY: test
test:
	.ci/run

.PHONY: bench
bench:
	.ci/deps test
	$(MAKE) build
	benches/overhead/run.py $(LIBRARY)

ARGS ?=
.PHONY: bench-network
bench-network:
	.ci/deps test
	$(MAKE) build
	benches/network/run.py $(COMMAND) $(ARGS)

# On a machine with a GPU and nothing else, `tests/gpu/check.sh` runs what `tests/gpu/check.sh build` made elsewhere.
.PHONY: check-gpu
check-gpu:
	.ci/deps test
	tests/gpu/check.sh build
	tests/gpu/check.sh

.PHONY: install
install: build
	install -d $(addprefix $(DESTDIR)$(PREFIX)/,bin lib include share/doc/transpress)
	install -m 755 $(COMMAND) $(DESTDIR)$(PREFIX)/bin/
	install -m 644 $(LIBRARY) $(DESTDIR)$(PREFIX)/lib/
	install -m 644 $(HEADERS) $(DESTDIR)$(PREFIX)/include/
	install -m 644 LICENSE $(wildcard README.md docs/*.md) $(DESTDIR)$(PREFIX)/share/doc/transpress/
