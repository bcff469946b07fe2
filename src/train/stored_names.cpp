// SPDX-License-Identifier: Apache-2.0
#include "train/stored_names.hpp"

namespace tessera::train {

bool StoredNames::take(const std::string& prefix, io::ArrayReader& array) {
  constexpr const char* problem = "is no list of names";
  if (array.name() == prefix + "_name_ends") {
    ends = io::read_exact<std::int64_t>(array, problem);
  } else if (array.name() == prefix + "_name_bytes") {
    bytes = io::read_exact<std::uint8_t>(array, problem);
  } else {
    return false;
  }
  return true;
}

void add_names(const std::string& prefix, const Names& names, std::vector<io::NamedArray>& arrays) {
  arrays.emplace_back(prefix + "_name_ends", io::stored(names.ends()));
  arrays.emplace_back(prefix + "_name_bytes", io::stored(names.bytes()));
}

}  // namespace tessera::train
