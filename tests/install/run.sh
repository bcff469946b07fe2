#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh CMAKE BUILD CONSUMER WORK COMPILER: see CMakeLists.txt beside this file.
set -eu
cmake=$1 build=$2 consumer=$3 work=$4 compiler=$5

rm -rf "$work"
mkdir -p "$work"
DESTDIR= "$cmake" --install "$build" --prefix "$work/first" >"$work/install.log"
mv "$work/first" "$work/moved"

"$cmake" -S "$consumer" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/moved" \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Release
"$cmake" --build "$work/build"
"$work/build/consumer"
"$work/build/consumer_shared"

pc_folder=$(dirname "$(find "$work/moved" -name tessera.pc)")
libraries=$(dirname "$pc_folder")
flags() { PKG_CONFIG_PATH="$pc_folder" pkg-config "$@" tessera; }

# shellcheck disable=SC2046  # flags are meant to be split
"$compiler" -std=c++20 -c "$consumer/main.cpp" -o "$work/main.o" $(flags --cflags)
# shellcheck disable=SC2046
"$compiler" "$work/main.o" -o "$work/shared" $(flags --libs)
LD_LIBRARY_PATH="$libraries" "$work/shared"
LD_LIBRARY_PATH="$libraries" ldd "$work/shared" | grep -q "$libraries/libtessera.so"

# Without the shared library the same flags and --static take the archive.
rm "$libraries"/libtessera.so*
# shellcheck disable=SC2046
"$compiler" "$work/main.o" -o "$work/static" $(flags --libs --static)
"$work/static"

"$work/moved/bin/tessera" --version
# The script that converts files of PyTorch's is where the program says.
printf 'PK\003\004 graph/data.pkl' >"$work/graph.pt"
if "$work/moved/bin/tessera" info "$work/graph.pt" 2>"$work/said"; then exit 1; fi
test -f "$(sed -n 's/.*: python3 \([^ ]*\) pyg .*/\1/p' "$work/said")"
for printed in man/man1/tessera.1 bash-completion/completions/tessera zsh/site-functions/_tessera \
  fish/vendor_completions.d/tessera.fish; do
  grep -q tessera "$work/moved/share/$printed"
done
