# One command per need; `make help` lists them. Everything runs from a fresh clone on Debian 12 as root.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
SECONDS ?= 60

.PHONY: help build demo bench policy-sim test test-fast \
  test-clients test-asan test-tsan fuzz format cluster-up cluster-down clean

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## Release programs nezha-webhook, nezha-cache and nezha in build/bin/
	@scripts/install-deps build
	@cmake -S . -B build -G Ninja -DNEZHA_TESTS=OFF > /dev/null
	@ninja -C build nezha-webhook nezha-cache nezha

demo: build ## The main job in one go, without a cluster: direct, cold and warm, side by side
	@scripts/demo

bench: ## Speed side by side with nginx, Varnish and Traffic Server; ROWS="small large …" RUNS=5
	@scripts/install-deps bench
	@cmake -S . -B build -G Ninja -DNEZHA_TESTS=OFF -DNEZHA_BENCH=ON > /dev/null
	@ninja -C build nezha-cache bench/all
	@ROWS="$(ROWS)" RUNS="$(RUNS)" scripts/bench

policy-sim: ## What eviction and admission hit, against LRU and S3-FIFO, as a table; SEED=1
	@scripts/install-deps build
	@cmake -S . -B build -G Ninja -DNEZHA_BENCH=ON > /dev/null
	@ninja -C build bench_policy_sim > /dev/null
	@build/bin/bench/bench_policy_sim $(SEED)

test: ## Everything, with the end-to-end tests on a real Kubernetes
	@scripts/install-deps test
	@scripts/run-tests all

test-fast: ## Everything that needs no cluster
	@scripts/install-deps test
	@scripts/run-tests fast

test-clients: build ## Real S3 clients and servers, directly and through the cache; writes docs/compatibility.md
	@scripts/install-deps clients
	@scripts/s3-clients

test-asan: ## The C++ tests under the address and undefined-behaviour sanitizers (clang)
	@scripts/install-deps test
	@CC=clang-16 CXX=clang++-16 scripts/run-tests programs --build build-asan -D 'NEZHA_SANITIZE=address;undefined'

test-tsan: ## The C++ tests under the thread sanitizer (clang)
	@scripts/install-deps test
	@CC=clang-16 CXX=clang++-16 scripts/run-tests programs --build build-tsan -D NEZHA_SANITIZE=thread

fuzz: ## Each fuzz target for SECONDS=60
	@scripts/install-deps test
	@scripts/fuzz $(SECONDS)

format: ## Format the C++ sources in place
	@git ls-files '*.h' '*.cc' | xargs clang-format-16 -i

cluster-up: ## Start the test cluster and load the images of this tree into it
	@scripts/install-deps test
	@test/cluster/cluster.sh build
	@test/cluster/cluster.sh images
	@test/cluster/cluster.sh up
	@test/cluster/cluster.sh load-all
	@echo "next: test/cluster/cluster.sh kubectl get pods -A"

cluster-down: ## End the test cluster; nothing of it stays running
	@test/cluster/cluster.sh down

clean: ## Remove what was built here (caches in ~/.cache stay)
	@rm -rf build build-asan build-tsan build-fuzz
