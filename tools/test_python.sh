#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tests of the Python package.
#
#   tools/test_python.sh              make a virtual environment with torch and PyG, install the package
#                                     into it as a user would (pip install .), and run the tests
#   tools/test_python.sh --in-place   use the torch that this Python has, build next to the sources and
#                                     install nothing; where there is no torch, say so (exit code 77)
#
# TESSERA_VENV names the environment (default: build/venv); it is kept, and used again. TESSERA_TEST_TORCH is what
# pip installs there as torch (default: torch==2.10.*). TESSERA_TEST_PROCESSES is how many processes share the
# tests (default: 1).
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=$(nproc)
processes=${TESSERA_TEST_PROCESSES:-1}

if [ "${1:-}" = "--in-place" ]; then
  python=${PYTHON:-python3}
  if ! "$python" -c 'import torch, torch_geometric, pytest; assert torch.__version__ >= "2.10"' 2>/dev/null; then
    echo "$python has no torch 2.10, torch_geometric and pytest: the Python tests are left out (make test-python installs them)"
    exit 77
  fi
  cmake -S . -B build/python_ops -DCMAKE_BUILD_TYPE=Release -DTESSERA_SPARSE_ONLY=ON -DTESSERA_TORCH=ON \
    -DTESSERA_CUDA=OFF -DTESSERA_TORCH_CUDA=OFF -DPython3_EXECUTABLE="$(command -v "$python")" >/dev/null
  cmake --build build/python_ops --parallel "$jobs" --target tessera_torch >/dev/null
  export TESSERA_LIBRARY_FOLDER="$PWD/build/python_ops/bindings/torch"
  export PYTHONPATH="$PWD/bindings/torch${PYTHONPATH:+:$PYTHONPATH}"
else
  venv=${TESSERA_VENV:-build/venv}
  python=$venv/bin/python
  if [ ! -x "$python" ] && ! python3 -m venv "$venv"; then
    echo "test_python: cannot make a virtual environment; on Debian and Ubuntu: apt-get install python3-venv" >&2
    exit 1
  fi
  # The oldest torch that the package supports. PyPI's for x86_64 brings gigabytes of CUDA; the CPU's has an
  # index of its own, which not every network reaches.
  torch=${TESSERA_TEST_TORCH:-torch==2.10.*}
  index=()
  cpu_index=https://download.pytorch.org/whl/cpu
  if [ "$(uname -m)" = x86_64 ] &&
    "$python" -c 'import sys, urllib.request as web; web.urlopen(sys.argv[1] + "/torch/", timeout=10)' $cpu_index 2>/dev/null; then
    index=(--index-url $cpu_index --extra-index-url https://pypi.org/simple)
  fi
  if ! "$python" -m pip install --quiet --disable-pip-version-check --retries 2 "${index[@]}" "$torch" \
    "torch_geometric>=2.8" numpy scipy scikit-learn pytest; then
    echo "test_python: $torch and PyG could not be installed here (pip says why above), so nothing was tested." \
      "With a network, or a TESSERA_VENV that has them, run make test-python again." >&2
    exit 1
  fi
  CMAKE_BUILD_PARALLEL_LEVEL=$jobs TESSERA_TORCH_CUDA=${TESSERA_TORCH_CUDA:-OFF} \
    "$python" -m pip install --quiet --disable-pip-version-check .
  python=$PWD/$python
  [ "${venv#/}" = "$venv" ] || python=$venv/bin/python
fi
failed=0
# Scripts of the program's tests that need torch or NumPy, which the interpreter of CTest may lack.
if [ -x build/bin/tessera ]; then
  for script in tests/scripts/pyg_stories_test.py tests/golden/to_npz_test.py; do
    TESSERA_BUILD=$PWD/build TESSERA_BIN=$PWD/build/bin/tessera TESSERA_SOURCE=$PWD "$python" -B "$script" || failed=1
  done
fi
cd tests/python
run_share() {
  TESSERA_TEST_SHARE=$1/$processes "$python" -m pytest -q -rs -W ignore --show-capture=no -p no:cacheprovider
}
# Other processes print when the first one is done.
output=$(mktemp -d)
trap 'rm -rf "$output"' EXIT
others=()
for ((share = 1; share < processes; ++share)); do
  run_share "$share" >"$output/$share" 2>&1 &
  others+=($!)
done
run_share 0 || failed=1
for ((share = 1; share < processes; ++share)); do
  wait "${others[share - 1]}" || failed=1
  cat "$output/$share"
done
exit $failed
