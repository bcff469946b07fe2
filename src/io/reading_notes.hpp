// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/data/dataset.hpp"
#include "tessera/io/notes.hpp"

/// What readers say of what they guessed, dropped or merged (`Dataset::notes`).
namespace tessera::io {

/// Adds what can be seen of any data set, whatever its format: loops, vertices without a label,
/// arrays that nothing uses.
void note_contents(Dataset& dataset);

/// Adds how many of `listed` edges were merged with others.
void note_merged_edges(EdgeOffset listed, Duplicates duplicates, Dataset& dataset);

/// What notes on tables are about, in the order in which they are shown.
namespace about {
inline constexpr std::string_view edge_list = "edge list";
inline constexpr std::string_view node_table = "node table";
inline constexpr std::string_view labels = "labels";
inline constexpr std::string_view split = "split";
inline constexpr std::string_view numbers = "numbers";
inline constexpr std::string_view categories = "categories";
inline constexpr std::string_view filled_in = "filled in";
inline constexpr std::string_view left_out = "left out";
}  // namespace about

/// "labels: 'churn', 2 classes", which `parted` takes apart.
std::string note_about(std::string_view topic, std::string_view text);

/// A file without its folder, for notes.
std::string file_name(const std::string& path);

/// "1 edge", "2 edges"
std::string counted(std::int64_t count, const char* one, const char* several);
/// "3 of 1,000 vertices have no label"
std::string note_without_label(std::int64_t without, std::int64_t all, const char* items);

}  // namespace tessera::io
