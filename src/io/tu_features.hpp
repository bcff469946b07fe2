// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tessera/io/open.hpp"

namespace tessera::io {

inline constexpr const char* attributes_file = "node_attributes.txt";
inline constexpr const char* labels_file = "node_labels.txt";

/// Features from the attributes and the labels of vertices in a TU folder, in that order, as PyG's
/// TUDataset has them with `use_node_attr`: attributes as they are, a label as one feature for each
/// value in use. Labels alone are sparse. An empty path: the folder has no such file.
void add_tu_features(const std::string& attributes, const std::string& labels,
                     std::int64_t vertices, const ReadOptions& options, Dataset& dataset);

}  // namespace tessera::io
