// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tessera/io/open.hpp"

namespace tessera::io {

/// Two files of a TU folder with a line for each vertex or edge; empty: the folder has no such
/// file.
struct TuTables {
  std::string attributes, labels;
  bool may_be_sparse = false;  ///< features of labels alone
};

struct TuFeatures {
  Features matrix = {};  ///< none: the files hold nothing
  Names names = {};
  SharedArray<std::int32_t> category_prefixes = {};
  std::string note = {};
};

/// Features from the attributes and the labels of `items`, in that order, as PyG's TUDataset has
/// them with `use_node_attr` and `use_edge_attr`: attributes as they are, a label as one feature
/// for each value in use.
TuFeatures read_tu_features(const TuTables& tables, std::int64_t rows, const char* items,
                            const ReadOptions& options);

}  // namespace tessera::io
