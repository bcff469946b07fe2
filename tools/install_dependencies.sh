#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian or Ubuntu packages that the build needs and that are missing. Asks for nothing
# when all are there, so that a plain user can build where somebody else has installed them.
#   tools/install_dependencies.sh [--dev] [--list]
#     --dev   adds what only contributors need
#     --list  prints the names of the missing packages and installs nothing
set -eu

dev="" list=""
for argument in "$@"; do
  case $argument in
    --dev) dev=1 ;;
    --list) list=1 ;;
    *) echo "install_dependencies: unknown option $argument; use --dev or --list" >&2; exit 2 ;;
  esac
done

# Releases name some packages differently: of names joined by | any will do, the first is preferred.
# OpenBLAS comes in several variants; the one with OpenMP threads shares their number with our own loops.
wanted="g++ cmake ninja-build pkg-config|pkgconf python3 zlib1g-dev|libz-dev libfmt-dev
libopenblas0-openmp|libopenblas0-pthread|libopenblas0-serial libcli11-dev nlohmann-json3-dev|nlohmann-json-dev libgtest-dev|googletest
libgmock-dev|google-mock|googletest libmetis-dev ccache"
# clang-format is pinned, since every version formats differently. Where a release has left it behind,
# pip has it.
[ -z "$dev" ] || wanted="$wanted clang-format-14|python3-pip"

if ! command -v dpkg-query >/dev/null 2>&1; then
  echo "install_dependencies: no Debian package manager here; going on with what is installed." >&2
  echo "  The build needs the equivalents of:" $wanted >&2
  exit 0
fi

installed() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }
any_installed() {
  for name in $(echo "$1" | tr '|' ' '); do
    if installed "$name"; then return 0; fi
  done
  return 1
}

missing=""
for names in $wanted; do
  any_installed "$names" || missing="$missing $names"
done

as_root=""
if [ -n "$missing" ] && [ -z "$list" ]; then
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
      echo "install_dependencies: missing packages; ask an administrator to install (of names joined by | one):" >&2
      echo " $missing" >&2
      exit 1
    fi
    as_root="sudo"
  fi
  $as_root apt-get update -qq  # a fresh system knows no package yet
fi

# The first name that this release knows; if it knows none, the first, so that apt says what is wrong.
known_name() {
  for name in $(echo "$1" | tr '|' ' '); do
    if apt-cache show "$name" >/dev/null 2>&1; then echo "$name"; return; fi
  done
  echo "$1" | cut -d '|' -f 1
}
chosen=""
for names in $missing; do
  name=$(known_name "$names")
  case " $chosen " in *" $name "*) ;; *) chosen="$chosen $name" ;; esac
done
if [ -n "$list" ]; then
  for name in $chosen; do echo "$name"; done
  exit 0
fi
if [ -n "$chosen" ]; then
  echo "Installing:$chosen"
  # shellcheck disable=SC2086  # the list is meant to be split
  DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends $chosen
fi

# Ubuntu 22.04 has an older CMake and an older default compiler than the build needs.
at_least() { printf '%s\n%s\n' "$2" "$1" | sort -V -C; }
cmake_version=$(cmake --version | sed -n 's/^cmake version //p')
if ! at_least "$cmake_version" 3.25; then
  echo "install_dependencies: CMake $cmake_version is too old; get 3.25 or later: pip3 install cmake" >&2
  exit 1
fi
compiler_version=$(${CXX:-g++} -dumpfullversion -dumpversion 2>/dev/null || echo 0)
if [ -z "${CXX:-}" ] && ! at_least "$compiler_version" 12; then
  echo "install_dependencies: g++ $compiler_version is too old; apt-get install g++-12, then make CXX=g++-12" >&2
  exit 1
fi
