// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tessera/train/checkpoint.hpp"

#include "io/array.hpp"

namespace tessera::train {

/// The sections of a checkpoint that say what classes and features were called and what they held,
/// gathered until all have been read.
class NameSections {
 public:
  /// False for a section that is none of these.
  bool take(io::ArrayReader& array);
  /// Puts them into the checkpoint; names that do not fit their ends are `bad_data`.
  void give(const std::string& path, Checkpoint& checkpoint) const;

 private:
  struct NameArrays {
    std::string bytes;
    SharedArray<std::int64_t> ends;
  };
  static Names joined(const NameArrays& arrays);

  NameArrays classes_, features_;
  SharedArray<std::int32_t> prefixes_;
  SharedArray<float> fills_;
};

/// Adds these sections, where there are names, to those that are to be written.
void add_name_sections(const Checkpoint& checkpoint, std::vector<io::NamedArray>& arrays);

}  // namespace tessera::train
