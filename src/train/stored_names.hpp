// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/data/names.hpp"

#include "io/array.hpp"

namespace tessera::train {

/// The arrays that names are stored as: PREFIX_name_ends and PREFIX_name_bytes.
struct StoredNames {
  SharedArray<std::int64_t> ends;
  SharedArray<std::uint8_t> bytes;

  /// Whether the array is one of these.
  bool take(const std::string& prefix, io::ArrayReader& array);
  Names names() const { return {ends, bytes}; }
};

void add_names(const std::string& prefix, const Names& names, std::vector<io::NamedArray>& arrays);

}  // namespace tessera::train
