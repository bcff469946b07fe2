// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tessera/train/checkpoint.hpp"

#include "io/array.hpp"

namespace tessera::train {

/// The sections of a checkpoint that say what the features of edges were like, gathered until all
/// have been read.
class EdgeSections {
 public:
  /// False for a section that is none of these.
  bool take(io::ArrayReader& array);
  /// Puts them into the checkpoint; names that do not fit their ends are `bad_data`.
  void give(const std::string& path, Checkpoint& checkpoint);

 private:
  ModelInput input_;
  Normalisation normalisation_;
  std::string name_bytes_;
  SharedArray<std::int64_t> name_ends_;
};

/// Adds these sections, of a model that reads edges, to those that are to be written.
void add_edge_sections(const Checkpoint& checkpoint, std::vector<io::NamedArray>& arrays);

}  // namespace tessera::train
