#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds, tests and measures the tree on a machine with a GPU. Needs no network and no git.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

usage() {
  cat <<'TEXT'
usage: tools/gpu.sh [options] STEP...

Steps, in the order given; each also runs alone once the tree is built:
  build      configure and build everything with CUDA
  test       the tests that touch the GPU: the conformance bodies on every CUDA kernel, and more
  sanitize   compute-sanitizer, memcheck and racecheck, on tests of every kernel (tools/sanitize.py)
  check      tools/check_all.py: every kernel against the reference on the graphs of TESSERA_CHECK_DATA
  docs       the commands of every page of the documentation, those for a GPU among them; Python where it has tessera
  bench      tessera bench --device cuda: spmm, cuSPARSE beside it, and sddmm, checked and measured
  big        more than 2^31 edges and elements (needs about 60 GiB on the GPU)
  all        build, test, sanitize, bench

Options:
  -o, --out FOLDER    where logs and records go (default: $OUT, or build/gpu)
  -B, --build FOLDER  build folder (default: build/cuda)
  -c, --commit ID     noted in the records (default: $TESSERA_COMMIT, or what git says)
  -a, --arch LIST     CUDA architectures (default: those of the GPU, 90a-real on Hopper)
  -j, --jobs N        compiler and test processes at once (default: one per core)
  -h, --help          this text

Environment:
  TESSERA_DATA              folder of NAME/NAME.npz: real graphs for tests and benchmark
  TESSERA_CHECK_DATA        folders, files or twin:NAME, separated by spaces (default: TESSERA_DATA and small twins)
  TESSERA_CHECK_SECONDS     time after which no further graph is begun (default: 240)
  TESSERA_BENCH_SOURCES     graphs of the benchmark instead of the usual ones, separated by spaces
  TESSERA_BENCH_OPS         its ops, such as "edge_softmax attention_gat gemm step_gcn"
  TESSERA_BENCH_FLAGS       more options of tessera bench, such as "--kernel all"
  TESSERA_SANITIZE_FILTER   tests under compute-sanitizer (a GoogleTest filter)
  TESSERA_SANITIZE_TOOLS    its tools (default: "memcheck racecheck")
  TESSERA_SANITIZE_SECONDS  the time of one test (default: 100)

Exit code: 0 when every step passed, otherwise 1. FOLDER/summary.txt has a line for each step.
TEXT
}

fail() {
  echo "gpu.sh: error: $1" >&2
  exit 2
}

out=${OUT:-build/gpu}
build=build/cuda
commit=${TESSERA_COMMIT:-}
arch=
jobs=$(nproc)
steps=()
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage; exit 0 ;;
    -o | --out | -B | --build | -c | --commit | -a | --arch | -j | --jobs)
      [ $# -ge 2 ] || fail "$1 needs a value; see --help"
      case $1 in
        -o | --out) out=$2 ;;
        -B | --build) build=$2 ;;
        -c | --commit) commit=$2 ;;
        -a | --arch) arch=$2 ;;
        -j | --jobs) jobs=$2 ;;
      esac
      shift ;;
    build | test | sanitize | check | docs | bench | big) steps+=("$1") ;;
    all) steps+=(build test sanitize bench) ;;
    *) fail "no step or option is called '$1'; see --help" ;;
  esac
  shift
done
[ ${#steps[@]} -gt 0 ] || { usage >&2; exit 2; }
if [ -z "$commit" ]; then
  commit=$(git rev-parse --short HEAD 2>/dev/null) || commit=
fi
export TESSERA_COMMIT=$commit
mkdir -p "$out" || fail "cannot write to $out"

need_program() {
  [ -x "$build/bin/$1" ] || { echo "$build/bin/$1 is missing: run the step build first"; return 1; }
}

gpu_architecture() {
  local capability
  capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d .)
  case $capability in
    90) echo 90a-real ;;
    '') echo 90a-real ;;
    *) echo "$capability-real" ;;
  esac
}

step_build() {
  # shellcheck disable=SC2086
  cmake --preset cuda -B "$build" -DCMAKE_CUDA_ARCHITECTURES="${arch:-$(gpu_architecture)}" \
    ${CMAKE_FLAGS:-} && cmake --build "$build" --parallel "$jobs"
}

# The tests whose names say that they run on the GPU. Kernels are parameters of the conformance
# bodies, so theirs do; others have Cuda, Gpu or OnDevice in their names.
gpu_filter='*_cuda_*:*Cuda*:*Gpu*:*OnDevice*'

# run_shards COUNT PROGRAM FILTER COMMAND...: the tests of a program in COUNT processes at once, each
# started through COMMAND. Only what failed, and a line for each process, goes into the log.
run_shards() {
  local count=$1 program=$2 filter=$3 failed=0 i pids=() logs
  shift 3
  logs=$(mktemp -d)
  for ((i = 0; i < count; ++i)); do
    GTEST_TOTAL_SHARDS=$count GTEST_SHARD_INDEX=$i OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
      "$@" "$build/bin/$program" --gtest_filter="$filter" --gtest_brief=1 >"$logs/$i" 2>&1 &
    pids+=($!)
  done
  for ((i = 0; i < count; ++i)); do
    wait "${pids[i]}"
    local code=$?
    if [ $code -ne 0 ]; then
      failed=1
      echo "--- $program, process $i of $count: exit code $code$([ $code -eq 124 ] && echo ' (out of time)')"
      head -c 100000 "$logs/$i"
    else
      echo "$program $i of $count: $(grep -E ' ran\.|SUMMARY' "$logs/$i" | tr '\n' ' ')"
    fi
  done
  # How many cases each kernel's tests compared, over all processes.
  cat "$logs"/* | awk '/^compared / { sum[$2] += $3 } END { for (k in sum) print "compared", k, sum[k] }' | sort
  rm -rf "$logs"
  return $failed
}

step_test() {
  local failed=0 program
  for program in conformance_tests unit_tests; do
    need_program $program || return 1
    run_shards "$jobs" $program "$gpu_filter" || failed=1
  done
  # Counted to the end of the list: a reader that stops early would fail the program that writes it.
  if [ "$("$build/bin/conformance_tests" --gtest_list_tests --gtest_filter='*Kernels.*_cuda_*' | grep -c '^ ')" -eq 0 ]; then
    echo "no conformance test ran on a GPU: is there one? (tessera doctor)"
    failed=1
  fi
  return $failed
}

step_sanitize() {
  command -v compute-sanitizer >/dev/null || { echo "compute-sanitizer is not installed"; return 1; }
  need_program conformance_tests && need_program unit_tests || return 1
  python3 tools/sanitize.py --jobs "$jobs" --tools "${TESSERA_SANITIZE_TOOLS:-memcheck racecheck}" \
    --filter "${TESSERA_SANITIZE_FILTER:-$gpu_filter}" --seconds "${TESSERA_SANITIZE_SECONDS:-100}" \
    "$build/bin/conformance_tests" "$build/bin/unit_tests"
}

# The graphs of the published comparisons: real ones where TESSERA_DATA has them, and the generated
# twins of those that are too large to ship.
bench_sources() {
  local name
  for name in cora pubmed amazon-computers soc-Epinions1 fb100-Cornell5 tolokers ego-twitter DD \
    cnr-2000 gowalla-lightgcn web-NotreDame NCI-balanced-union COLLAB; do
    if [ -f "${TESSERA_DATA:-/nowhere}/$name/$name.npz" ]; then echo "$TESSERA_DATA/$name/$name.npz"; fi
  done
  for name in rmat17 amazon molecules proteins reddit products; do echo "twin:$name"; done
}

step_check() {
  local source sources=()
  need_program tessera || return 1
  for source in ${TESSERA_CHECK_DATA:-${TESSERA_DATA:-} twin:cora twin:pubmed}; do sources+=(--data "$source"); done
  python3 tools/check_all.py --tessera "$build/bin/tessera" --device cuda --jobs "$jobs" --features 1,33,64 \
    --sample 4096 --max-edges 1000000 --seconds "${TESSERA_CHECK_SECONDS:-240}" "${sources[@]}" \
    --out "$out/check_cuda.md"
}

step_docs() {
  local folder
  need_program tessera || return 1
  folder=$(realpath "$build")
  TESSERA_PAGES_GPU=1 TESSERA_BIN=$folder/bin/tessera TESSERA_BUILD=$folder TESSERA_CXX=${CXX:-c++} \
    python3 -B tests/scripts/pages_test.py || return 1
  if python3 -c 'import tessera, torch_geometric, pytest' 2>/dev/null; then
    (cd tests/python && TESSERA_PROGRAM=$folder/bin/tessera \
      python3 -m pytest -q -p no:cacheprovider test_documentation.py)
  else
    echo "python3 has no tessera, PyG and pytest: blocks of Python were left out"
  fi
}

step_bench() {
  local source sources=()
  need_program tessera || return 1
  # shellcheck disable=SC2086
  for source in ${TESSERA_BENCH_SOURCES:-$(bench_sources)}; do sources+=(--data "$source"); done
  # shellcheck disable=SC2086
  "$build/bin/tessera" bench ${TESSERA_BENCH_OPS:-spmm sddmm} --device cuda --tune measured \
    --features 16,32,64,128,256 --precision fp32,bf16,fp16@128 --baseline 'spmm/cuda/cusparse*' \
    "${sources[@]}" --json "$out/bench.json" ${TESSERA_BENCH_FLAGS:-}
}

step_big() {
  need_program unit_tests || return 1
  TESSERA_BIG_TESTS=1 "$build/bin/unit_tests" --gtest_filter='*Big*'
}

status=0
echo "commit ${commit:-unknown}; $(nvidia-smi -L 2>/dev/null | head -n 1 || true)" >"$out/summary.txt"
for step in "${steps[@]}"; do
  begin=$SECONDS
  if "step_$step" >"$out/$step.log" 2>&1; then verdict=passed; else verdict=FAILED; status=1; fi
  line="$step: $verdict in $((SECONDS - begin)) s, $out/$step.log"
  echo "$line" | tee -a "$out/summary.txt"
  if [ "$verdict" = FAILED ]; then
    tail -n 40 "$out/$step.log"
    [ "$step" = build ] && break
  fi
done
exit $status
