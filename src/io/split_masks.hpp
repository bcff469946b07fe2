// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/data/dataset.hpp"

#include "io/array.hpp"

/// Splits as truth values: `train_mask`, `val_mask` and `test_mask`, or `train_masks` and so on.
/// With one value per vertex they are one split; with two dimensions, vertices x splits or splits x
/// vertices, several.
namespace tessera::io {

/// A mask as it was read.
struct SplitMask {
  std::string name;  ///< empty: the file has none
  std::vector<std::int64_t> shape;
  SharedArray<std::int32_t> values;
};

/// Of the parts for training, validation and test.
using SplitMasks = std::array<SplitMask, 3>;

bool is_split_mask(std::string_view name) noexcept;

/// Reads the array as the mask of this name.
SplitMask read_split_mask(std::string_view name, ArrayReader& array);

/// Adds it to the others; two of one part are an error.
void keep_split_mask(SplitMasks& masks, SplitMask mask);

/// Turns masks into lists of vertices. Where a file has those as well, they must say the same; of
/// several splits they are the first. A part with one mask, or a list alone, is the same in all.
void apply_split_masks(const SplitMasks& masks, Dataset& dataset);

/// Several splits as a mask of vertices x splits, for writing; nothing where there is one at most.
std::optional<ExtraArray> mask_of_splits(const Dataset& dataset,
                                         SharedArray<std::int64_t> VertexSplit::*part);

}  // namespace tessera::io
