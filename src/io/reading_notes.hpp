// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/data/dataset.hpp"

/// What readers say of what they guessed, dropped or merged (`Dataset::notes`).
namespace tessera::io {

/// Adds what can be seen of any data set, whatever its format: loops, vertices without a label,
/// arrays that nothing uses.
void note_contents(Dataset& dataset);

/// Adds how many of `listed` edges were merged with others.
void note_merged_edges(EdgeOffset listed, Duplicates duplicates, Dataset& dataset);

/// "1 edge", "2 edges"
std::string counted(std::int64_t count, const char* one, const char* several);

}  // namespace tessera::io
