# SPDX-License-Identifier: Apache-2.0
# The everyday commands. CMake does the building; this file saves typing and installs what is missing.
BUILD ?= build
JOBS ?= $(shell nproc)
CMAKE_FLAGS ?=

.PHONY: help demo test test-threads test-python program build configure dependencies dev-test format format-check clean

help: ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

# In a new folder the program is built without what only benchmarks use; `make program` adds it.
demo: dependencies ## Build what it runs, and run the main job on an embedded data set
	cmake --preset default -B $(BUILD) $(if $(wildcard $(BUILD)/CMakeCache.txt),,-DTESSERA_BUILD_BENCH=OFF) $(CMAKE_FLAGS)
	cmake --build $(BUILD) --parallel $(JOBS) --target tessera_app
	@tools/demo.sh $(BUILD)/bin/tessera

test: build ## Build, and run every test
	ctest --test-dir $(BUILD) --output-on-failure --parallel $(JOBS)

test-threads: ## Run the tests of threads under the thread sanitizer (in a folder that make test has configured)
	cmake --build $(BUILD) --parallel $(JOBS) --target thread_tests
	$(BUILD)/bin/thread_tests --gtest_brief=1

test-python: ## Make a virtual environment with torch and PyG, install the Python package, and run its tests
	@tools/test_python.sh

program: configure ## Build the program and the library, and nothing else
	cmake --build $(BUILD) --parallel $(JOBS) --target tessera_app

build: configure ## Install what is missing, and build everything into build/
	cmake --build $(BUILD) --parallel $(JOBS)

configure: dependencies
	cmake --preset default -B $(BUILD) -DTESSERA_BUILD_BENCH=ON $(CMAKE_FLAGS)

dependencies: ## Install the packages the build needs, where they are missing
	@tools/install_dependencies.sh

dev-test: dependencies ## Build with the sanitizers, and run the C++ tests
	cmake --preset dev $(CMAKE_FLAGS)
	cmake --build --preset dev --parallel $(JOBS)
	ctest --test-dir build/dev --output-on-failure --parallel $(JOBS)

format: ## Format all C++ files
	@tools/format.sh

format-check: ## Fail if a file is not formatted
	@tools/format.sh --check

clean: ## Remove everything built
	rm -rf build
