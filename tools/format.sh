#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Formats every C++ file, or with --check fails if one is not formatted. The version is pinned: another
# one formats differently.
set -eu
cd "$(dirname "$0")/.."

formatter=""
for candidate in clang-format-14 clang-format "$HOME/.local/bin/clang-format"; do
  if "$candidate" --version 2>/dev/null | grep -q 'version 14\.'; then
    formatter=$candidate
    break
  fi
done
if [ -z "$formatter" ]; then
  echo "format: clang-format 14 is missing; run tools/install_dependencies.sh --dev," >&2
  echo "  or where the system has it no more: pip3 install clang-format==14.0.6" >&2
  exit 1
fi

mode="-i"
if [ "${1:-}" = "--check" ]; then
  mode="--dry-run --Werror"
fi
# shellcheck disable=SC2086  # the mode is meant to be split
git ls-files '*.cpp' '*.hpp' '*.cu' '*.cuh' | xargs "$formatter" $mode
