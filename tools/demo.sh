#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The main job on an embedded data set: what is in it, and a model trained on it. Takes the program.
set -euo pipefail
program=${1:-build/bin/tessera}

show() {
  printf '\n$ tessera %s\n' "$*"
  "$program" "$@"
}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

show info embedded:citation
show train embedded:citation --model gcn --runs 3 --curve --checkpoint "$folder/model.tsr"
show predict embedded:citation --checkpoint "$folder/model.tsr"
