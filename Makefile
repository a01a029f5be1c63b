# SPDX-License-Identifier: Apache-2.0
# The short way in. Meson builds; this installs what is missing, calls meson and ninja in ./build,
# and runs the scripts. Works on a bare Debian 12 with git and make.

.PHONY: build demo test test-long test-vm hunt bench bench-corun bench-papers bench-accuracy bench-overhead bench-pirate bench-page page screenshots format install clean

build:
	@scripts/install-deps.sh build
	@scripts/build-zydis.sh
	@scripts/build.sh build

demo:
	@scripts/install-deps.sh build demo
	@$(MAKE) --no-print-directory build
	@scripts/demo.sh

test:
	@scripts/install-deps.sh build demo test
	@scripts/build-zydis.sh
	@scripts/build.sh build -Dtests=true
	@scripts/run-tests.sh

# All of that, and then the tests that take minutes (an hour or more in all).
test-long:
	@scripts/install-deps.sh build demo test long
	@scripts/build-zydis.sh
	@scripts/build.sh build -Dtests=true
	@CACHEGRAM_TEST_LONG=1 scripts/run-tests.sh

# Five minutes of the hunt on Debian's own kernel, in an emulated machine; as root. VM="pytest tests/e2e/test_hunted.py"
# runs another command there.
test-vm:
	@scripts/install-deps.sh build vm
	@$(MAKE) --no-print-directory build
	@scripts/test-vm.sh $(VM)

# Programs at random, in all modes (tests/hunt/README.md): a minute. HUNT="--seconds 36000 --jobs 2" is ten hours.
hunt:
	@scripts/install-deps.sh build test
	@$(MAKE) --no-print-directory build
	@tests/hunt/hunt.py $(HUNT)

# Figures, not verdicts: a timing never decides a test. Some 20 minutes; BENCH="--rounds 1" is quicker.
bench:
	@scripts/install-deps.sh build test
	@scripts/build-zydis.sh
	@scripts/build.sh build -Dtests=true
	@meson test -C build --benchmark --verbose --no-rebuild
	@/usr/bin/python3 scripts/bench.py $(BENCH)
	@/usr/bin/python3 scripts/bench-traces.py

# StatCC against simulation (docs/accuracy.md); 20 minutes or more. CORUN="--references 20000000 --seconds 5" is quicker.
bench-corun:
	@scripts/install-deps.sh build test bench
	@scripts/build-zydis.sh
	@scripts/build.sh build -Dtests=true
	@scripts/bench-corun.sh $(CORUN)

# The StatStack paper's experiment (docs/accuracy.md): some minutes a program, resumed where it was interrupted.
# PAPERS="--programs bzip2,perl --repeats 8" is quicker.
bench-papers:
	@scripts/install-deps.sh build test papers
	@scripts/build-zydis.sh
	@scripts/build.sh build -Dtests=true
	@/usr/bin/python3 scripts/bench-papers.py --svg build/bench-papers.svg $(PAPERS)

# What a budget buys (docs/accuracy.md): exact curves once, 40 minutes, kept in /tmp/cachegram-accuracy; then some two
# minutes for each budget. BUDGETS="--overhead 1,5,20 --watch page,none --runs 3" asks for more.
bench-accuracy:
	@scripts/install-deps.sh build test papers
	@scripts/build-zydis.sh
	@scripts/build.sh build -Dtests=true
	@/usr/bin/python3 scripts/bench-accuracy.py $(BUDGETS)

# Reported overhead against measured, in pairs of runs (docs/overhead.md); a quarter of an hour on an idle machine.
# OVERHEAD="--pairs 3 --programs lua,php" is quicker.
bench-overhead:
	@scripts/install-deps.sh build overhead
	@scripts/build-zydis.sh
	@scripts/build.sh build
	@/usr/bin/python3 scripts/bench-overhead.py $(OVERHEAD)

# What `cachegram pirate` measures here (docs/pirate.md); some five minutes on a machine that does nothing else.
bench-pirate:
	@scripts/install-deps.sh build test bench
	@scripts/build-zydis.sh
	@scripts/build.sh build -Dtests=true
	@/usr/bin/python3 scripts/bench-pirate.py $(PIRATE)

# web/page.html from its sources, with the packages of the lock file; commit the result.
page:
	@scripts/install-deps.sh test
	cd web && npm ci --ignore-scripts --no-audit --no-fund && node build.mjs

# Pictures of docs/page.md, by the test that checks them.
screenshots: build
	@scripts/install-deps.sh test
	CACHEGRAM_SCREENSHOTS=1 /usr/bin/python3 -m pytest -q -p no:cacheprovider tests/e2e/test_page.py -k screenshots

# What a page of a large profile costs the browser; docs/page.md has the figures.
bench-page: build
	@scripts/install-deps.sh test
	@/usr/bin/python3 scripts/bench-page.py

format:
	@scripts/install-deps.sh test
	find src tests -name '*.[ch]' -exec clang-format -i {} +

# Honours DESTDIR; another prefix by `meson configure build -Dprefix=...`.
install: build
	@meson install -C build --no-rebuild

clean:
	rm -rf build build-asan build-asan-command
