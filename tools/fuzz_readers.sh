#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Feeds mutants to every reader of files on all cores, with nothing but a compiler: no CMake, no
# CUDA, and of the library only what readers need.
#   tools/fuzz_readers.sh [SECONDS [EXECUTIONS]]
# runs the mutants 0 to EXECUTIONS - 1 (10000000) of each reader, or those that SECONDS (240) allow,
# and prints which they were. Mutants are drawn from their numbers: the same ones every time.
#   FIRST        the number to begin with, for all readers and for some: "6000000 container=2400000"
#   SANITIZE=1   with the address and undefined-behaviour sanitizers, some five times slower
#   CXX, JOBS    the compiler (g++), and how many processes (one per core)
#   FOLDER       where to build (build/fuzz_readers)
#   READERS      some of them
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-240}
executions=${2:-10000000}
jobs=${JOBS:-$(nproc)}
folder=${FOLDER:-build/fuzz_readers}
readers=${READERS:-"container npz edge_list ogb tu node_table graphml matrix_market metis index_file bit_tensor plans"}
flags="-std=c++20 -O2 -Wno-free-nonheap-object -DNDEBUG -D_GLIBCXX_ASSERTIONS -DTESSERA_VERSION=\"fuzz\" -Iinclude -Isrc -Itests -Ifuzz"
[[ -z ${SANITIZE:-} ]] || flags="-fsanitize=address,undefined -fno-sanitize-recover=all -g1 ${flags/-O2/-O1}"

sources=$(find src/core src/graph src/data src/io src/quant -name '*.cpp' ! -path '*/cuda/*' \
  ! -name '*cuda_backend_present.cpp' ! -name '*_absent.cpp')
sources+=" $(find src/core src/graph -name '*cuda_backend_absent.cpp') src/ops/plan/plan_store.cpp"
sources+=" fuzz/support.cpp fuzz/mutate_archive.cpp fuzz/mutate_container.cpp fuzz/replay.cpp"
for reader in $readers; do sources+=" fuzz/$reader.cpp"; done
begun=$SECONDS
rm -rf "$folder" && mkdir -p "$folder"
export folder compiler=${CXX:-"$(command -v ccache || true) g++"}
compile() {
  local object=$folder/${1//\//_}.o
  $compiler $2 -c "$1" -o "$object"
}
export -f compile
printf '%s\n' $sources | xargs -P "$jobs" -I{} bash -c 'compile "$@"' _ {} "$flags"
for reader in $readers; do
  others=$(printf '%s\n' $sources | grep -v '^fuzz/' | sed "s|/|_|g; s|.*|$folder/&.o|")
  ${CXX:-g++} $flags -o "$folder/fuzz_$reader" "$folder/fuzz_$reader.cpp.o" "$folder"/fuzz_{support,mutate_archive,mutate_container,replay}.cpp.o \
    $others -lfmt -lz -fopenmp &
done
wait
for reader in $readers; do [[ -x $folder/fuzz_$reader ]] || exit 2; done
echo "built in $((SECONDS - begun)) s"

first_of() {
  local begin=0 word
  for word in ${FIRST:-0}; do
    case $word in
      "$1"=*) begin=${word#*=} ;;
      *=*) ;;
      *) begin=$word ;;
    esac
  done
  echo "$begin"
}

# Pieces of all readers in turn, in the order of how much of a reader's range they complete: each gets
# its share when time runs out.
piece=$((executions < 100000 ? executions : 50000))
rm -rf "$folder/results" && mkdir "$folder/results"
export OMP_NUM_THREADS=1 ASAN_OPTIONS=abort_on_error=1 UBSAN_OPTIONS=abort_on_error=1
export piece executions deadline=$(($(date +%s) + seconds))
run_piece() {
  local left=$((deadline - $(date +%s))) result=$folder/results/$1.$2
  local count=$((executions - $2 < piece ? executions - $2 : piece))
  [[ $left -gt 0 ]] || return 0
  timeout "$left" "$folder/fuzz_$1" "$count" "$2" > "$result" 2>&1 || {
    local status=$?
    [[ $status -eq 124 ]] && rm "$result" || mv "$result" "$result.finding"
  }
}
export -f run_piece
for reader in $readers; do
  begin=$(first_of "$reader")
  for ((first = begin; first < executions; first += piece)); do
    echo "$(((first - begin) * 1000000 / (executions - begin))) $reader $first"
  done
done | sort -n -s -k 1,1 | cut -d ' ' -f 2- | xargs -P "$jobs" -L 1 bash -c 'run_piece "$@"' _

# The numbers of a reader's finished pieces, as ranges.
ranges() {
  find "$folder/results" -name "$1.*" ! -name '*.finding' -exec awk '{ sub(".*[.]", "", FILENAME); print FILENAME, $1 }' {} + |
    sort -n | awk '
    $1 != end { if (NR > 1) printf "%d-%d,", begin, end - 1; begin = $1 }
    { end = $1 + $2 }
    END { if (NR > 0) printf "%d-%d", begin, end - 1; else printf "none" }'
}
found=0
printf '%-14s %12s %12s %14s %9s  %s\n' reader executions accepted 'per s and core' findings mutants
for reader in $readers; do
  findings=$(find "$folder/results" -name "$reader.*.finding" | wc -l)
  found=$((found + findings))
  find "$folder/results" -name "$reader.*" ! -name '*.finding' -exec cat {} + |
    awk -v reader="$reader" -v findings="$findings" -v ranges="$(ranges "$reader")" '
    { executions += $1; seconds += $4; accepted += $6 }
    END { printf "%-14s %12d %12d %14d %9d  %s\n", reader, executions, accepted, seconds ? executions / seconds : 0, findings, ranges }'
done
find "$folder/results" -name '*.finding' -exec tail -n 5 {} +
exit $((found > 0))
