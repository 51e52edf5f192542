# Macrotick: thin targets. The work is done by setup, by cargo and by the crates.

# The directory of rustup's Rust, if it is not in the user's PATH.
export PATH := $(PATH):$(HOME)/.cargo/bin

LAB := cargo run --quiet --release -p macrotick-lab --bin macrotick-lab --
BENCH := cargo run --quiet --release -p macrotick-bench --bin macrotick-bench --
MACROTICK := target/x86_64-unknown-linux-gnu/release/macrotick
KERNELS := kernel kernel-pristine kernel-debug kernel-nonrt kernel-debug-nonrt kernel-engines kernel-scx kernel-debug-scx kernel-net
VERSIONS := 6.12 7.2 7.3
# The kernel that make test-full does not need.
OTHERS := kernel-debug-engines

.PHONY: help setup setup-packages setup-arm64 setup-newer test-matrix lab-tool demo test test-full $(KERNELS) $(OTHERS) kernel-arm64 kernel-series tasks product man deb deb-kernel docs lint publish lint-results clean

help:
	@echo "make demo             run examples/robot-arm.yaml in the lab, under SCHED_OTHER and SCHED_TT, and compare"
	@echo "make test             set-up and the tests, except the slow ones (at most 30 minutes from nothing)"
	@echo "make test-full        the same, then all suites of slow ones (hours): $(wordlist 1,4,$(SUITES))"
	@echo "                      $(wordlist 5,99,$(SUITES))"
	@echo "make kernel           the patched kernel, at build/kernel/bzImage"
	@echo "make kernel-pristine  the same without the overlay and the hooks (also: kernel-debug, kernel-nonrt,"
	@echo "                      kernel-debug-nonrt, kernel-scx, kernel-debug-scx, kernel-engines, kernel-debug-engines,"
	@echo "                      kernel-net)"
	@echo "make kernel-arm64     the patched kernel and the tests' programs for arm64, at build/arm64/kernel/Image"
	@echo "make kernel-series    build every patch of the series that kernel/apply emits"
	@echo "make test-matrix      build the kernel and run the short scenarios, on every version of Linux: $(VERSIONS)"
	@echo "make tasks            the example tasks in C, C++, Rust and Python, in build/tasks"
	@echo "make man              the manual pages, one per verb, in build/man"
	@echo "make deb              the Debian packages macrotick and libmacrotick-dev, in build/deb, and Lintian's verdict"
	@echo "make deb-kernel       Debian packages of the patched kernel for a virtual machine, in build/kernel-vm"
	@echo "make docs             the documentation as a web page, in build/docs"
	@echo "make lint             format, clippy, checkpatch, and the English of pages, comments and messages"
	@echo "make publish          all benches on the present commit, and their pages in docs/results (hours; can be repeated)"
	@echo "make lint-results     list pages in docs/results that do not describe the present kernel"
	@echo "make setup            install what is missing (Debian 12 or 13, x86-64); every target above does it first"
	@echo "make clean            remove everything built"

setup:
	@./setup

# Cargo shows its progress here; LAB then has nothing to compile.
lab-tool: setup
	cargo build --release -p macrotick-lab

kernel: lab-tool
	@$(LAB) kernel patched

$(filter kernel-%,$(KERNELS)) $(OTHERS): kernel-%: lab-tool
	@$(LAB) kernel $*

kernel-arm64: setup-arm64 lab-tool
	cargo build --release --target aarch64-unknown-linux-gnu -p macrotick-kernel-tests
	@$(LAB) --arch arm64 kernel patched

kernel-series: lab-tool
	@$(LAB) series

product: setup
	cargo build --release -p macrotick

demo: product
	@echo; echo "The tasks under SCHED_OTHER, as in stock Linux. Misses are expected."
	@$(MACROTICK) run examples/robot-arm.yaml --lab --backend other || [ $$? -eq 1 ]
	@echo; echo "The same plan under SCHED_TT:"
	@$(MACROTICK) run examples/robot-arm.yaml --lab
	@echo; echo "Comparison:"
	@$(MACROTICK) compare build/run/robot-arm-other build/run/robot-arm-kernel

tasks: setup
	@$(MAKE) --no-print-directory -C examples/tasks

man: product
	@$(MACROTICK) man build/man

setup-packages:
	@./setup packages

setup-arm64:
	@./setup arm64

setup-newer: setup
	@./setup linux-7.2
	@./setup linux-7.3

deb: setup-packages
	packaging/deb
	lintian --fail-on error --allow-root build/deb/*.changes

deb-kernel: setup-packages
	@$(LAB) package vm

docs: setup
	@site/build

lint:
	@./setup linters
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	@source=$$($(LAB) source) && echo kernel/checkpatch "$$source" && kernel/checkpatch "$$source"
	prose/lint

# A publication goes on where it was interrupted: it skips the pages that the present commit has made.
publish: kernel kernel-pristine kernel-engines kernel-net product
	cargo build --release -p macrotick-bench
	$(BENCH) --all --publish
	MACROTICK_BLESS=1 cargo test --release -p macrotick-bench --test figures
	$(BENCH) --outdated

lint-results:
	$(BENCH) --outdated

# The lab's tests wait for their kernels behind a lock: building them first shows progress.
test: lint kernel
	cargo test --release --workspace -- --include-ignored --skip full_

# The variable works for every other target, too: MACROTICK_LINUX=7.3 make test-kernel.
test-matrix: setup-newer
	@failed=; for version in $(VERSIONS); do \
		echo; echo "Linux $$version"; export MACROTICK_LINUX=$$version; \
		$(MAKE) --no-print-directory kernel && \
			cargo test --release -p macrotick-kernel-tests --test golden --test suite -- --include-ignored \
				--skip full_ --skip on_two_cpus || failed="$$failed $$version"; \
	done; [ -z "$$failed" ] || { echo; echo "failed:$$failed"; exit 1; }

include suites.mk

# Runs all suites, even after a failure; the end lists those that failed.
test-full: test
	@failed=; for suite in $(SUITES); do \
		echo; echo "$$suite"; $(MAKE) --no-print-directory $$suite || failed="$$failed $$suite"; \
	done; [ -z "$$failed" ] || { echo; echo "failed:$$failed"; exit 1; }

clean:
	rm -rf build target
