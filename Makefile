# Thin, for people: each target is a few lines of CMake. Builds go to
# build/<preset>; CMakePresets.json has the presets.

PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test bench fuzz lint install wheel package clean \
        packages packages-test packages-clang release asan

# Shows a command and runs it; exit status 1 means that it found a problem.
show = printf '\n$$ %s\n' "$(1)"; $(1) || test $$? -eq 1

help: ## list these targets
	@echo 'postflight says what happened to a distributed PyTorch job.'
	@echo
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-9s%s\n", $$1, $$2}' \
	  Makefile
	@echo
	@echo 'Missing packages of packages.txt are listed and installed first (root or sudo).'

demo: packages ## build the program and run it on bundled real files
	cmake --preset release
	cmake --build --preset release --target postflight
	@$(call show,build/release/postflight pickle --summary \
	  tests/data/ckpt/evil_reduce.pt)
	@$(call show,build/release/postflight ckpt ls \
	  tests/data/ckpt/train_state.pt)
	@$(call show,build/release/postflight trace \
	  tests/data/flight/nccl_tp_fsdp)

# The program is tested as released, the libraries under the address sanitizer.
test: packages-test release asan ## build everything and run all tests
	ctest --preset release
	ctest --preset release-sampler
	ctest --preset asan
	ctest --preset sampler

bench: packages-test release ## run the benchmarks and print their tables
	@for table in bench/*_table.py; do \
	  printf '\n%s\n\n' "$$table"; /usr/bin/python3 "$$table" build/release || exit; done

fuzz: packages-clang ## fuzz each decoder for FUZZ_SECONDS (60)
	cmake --preset fuzz
	cmake --build --preset fuzz --target fuzz/all
	fuzz/run.sh $(FUZZ_SECONDS)

lint: packages-clang ## check format, names, likely bugs and the scripts
	find src include examples tests bench fuzz -name '*.h' -o -name '*.cc' | \
	  xargs clang-format --dry-run -Werror
	find python tests bench fuzz -name '*.py' | xargs python3 -c \
	  'import sys; [compile(open(f).read(), f, "exec") for f in sys.argv[1:]]'
	bash -n .ci/run
	sh -n cmake/packages.sh
	sh -n fuzz/run.sh
	sh -n contrib/bin/strobeclient
	cmake --preset tidy
	run-clang-tidy -quiet -p build/tidy '/src/' >build/tidy/findings 2>&1 || \
	  { grep -E '(warning|error):' build/tidy/findings; false; }

install: release ## install it below PREFIX (/usr/local) and DESTDIR
	DESTDIR='$(DESTDIR)' cmake --install build/release --prefix '$(PREFIX)' \
	  --strip

wheel: release ## make a wheel for Python 3.9 and later in build/wheel
	/usr/bin/python3 -B python/make_wheel.py build/release build/wheel

package: release ## make a Debian package in build/
	cpack --config build/release/CPackConfig.cmake -B build

clean: ## remove build/
	rm -rf build

# Warnings are errors in a release built by CI only.
release: packages
	cmake --preset release \
	  -DCMAKE_COMPILE_WARNING_AS_ERROR=$(if $(CI),ON,OFF)
	cmake --build --preset release

asan: packages-test
	cmake --preset asan
	cmake --build --preset asan

packages:
	@cmake/packages.sh build

packages-test:
	@cmake/packages.sh build test

packages-clang:
	@cmake/packages.sh build test clang
