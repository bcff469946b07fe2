#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian or Ubuntu packages that the build needs and that are missing. Asks for nothing
# when all are there, so that a plain user can build where somebody else has installed them.
#   tools/install_dependencies.sh [--dev]      --dev adds what only contributors need
set -eu

# OpenBLAS comes in several variants. The one with OpenMP threads shares them with our own loops.
packages="g++ cmake ninja-build pkg-config python3 zlib1g-dev libfmt-dev libopenblas-openmp-dev
libcli11-dev nlohmann-json3-dev libgtest-dev libgmock-dev libmetis-dev ccache"
if [ "${1:-}" = "--dev" ]; then
  packages="$packages clang-format-14"
fi

if ! command -v dpkg-query >/dev/null 2>&1; then
  echo "install_dependencies: no Debian package manager here; going on with what is installed." >&2
  echo "  The build needs the equivalents of:" $packages >&2
  exit 0
fi

missing=""
for package in $packages; do
  if ! dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed'; then
    missing="$missing $package"
  fi
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -eq 0 ]; then
  as_root=""
elif command -v sudo >/dev/null 2>&1; then
  as_root="sudo"
else
  echo "install_dependencies: missing packages; ask an administrator to run:" >&2
  echo "  apt-get install$missing" >&2
  exit 1
fi

echo "Installing:$missing"
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -qq
# shellcheck disable=SC2086  # the list is meant to be split
$as_root apt-get install -y -qq --no-install-recommends $missing
