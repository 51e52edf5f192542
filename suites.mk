# The suites of slow tests, which have names that begin with full_. docs/contributing/kernel-tests.md lists the purpose
# and the time of each suite.
#
# A line names the kernels that a suite boots, which are built first, and its tests: package, program, and a part of
# their names. crates/macrotick-lab/tests/suites.rs checks that every slow test is in exactly one suite.

SLOW := cargo test --release --no-fail-fast
CLASS := -p macrotick-kernel-tests --test suite -- --ignored

test-kernel: kernel
	$(SLOW) $(CLASS) full_scenarios full_long_scenarios
test-kernel-debug: kernel-debug
	$(SLOW) $(CLASS) full_debug_on full_groups_come_and_go
test-kernel-nonrt: kernel-nonrt kernel-debug-nonrt
	$(SLOW) $(CLASS) full_nonrt full_debug_without_rt
test-kernel-scx: kernel-scx kernel-debug-scx
	$(SLOW) $(CLASS) full_scx
test-kernel-fuzz: kernel kernel-debug
	$(SLOW) $(CLASS) full_fuzz
test-kernel-suspend: kernel-debug
	$(SLOW) $(CLASS) full_suspend
test-kernel-arm64: kernel-arm64
	$(SLOW) -p macrotick-kernel-tests --test suite --test golden -- --ignored full_arm64
test-timers: kernel kernel-pristine kernel-debug kernel-nonrt
	$(SLOW) -p macrotick-kernel-tests --test timers -- --ignored full_
test-machines: kernel product
	$(SLOW) -p macrotick-kernel-tests --test machines -- --ignored full_
test-network: kernel-pristine
	$(SLOW) -p macrotick-net-tests --test lab -- --ignored full_
test-lab: kernel kernel-pristine
	$(SLOW) -p macrotick --test lab -- --ignored full_
test-soak: kernel
	$(SLOW) -p macrotick --test soak -- --ignored full_
test-containers: kernel-engines kernel-pristine
	$(SLOW) -p macrotick --test containers --test executed -- --ignored full_
test-cards: kernel-net
	$(SLOW) -p macrotick-lab --test lab -- --ignored full_
test-gates: kernel-net
	$(SLOW) -p macrotick --test gates -- --ignored full_
test-benches: kernel kernel-pristine kernel-engines kernel-net product
	$(SLOW) -p macrotick-bench --test benches -- --ignored full_
test-planner: setup
	$(SLOW) -p macrotick-check --test anything -- --ignored full_
test-series: setup
	$(SLOW) -p macrotick-lab --test series -- --ignored full_
test-packages: setup-packages kernel-engines
	$(SLOW) -p macrotick --test packages -- --ignored full_

SUITES := test-kernel test-kernel-debug test-kernel-nonrt test-kernel-scx test-kernel-fuzz test-kernel-suspend \
	test-kernel-arm64 test-timers test-machines test-network test-lab test-soak test-containers test-cards test-gates \
	test-benches \
	test-planner test-series test-packages
.PHONY: $(SUITES)
