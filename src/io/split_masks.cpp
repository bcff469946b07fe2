// SPDX-License-Identifier: Apache-2.0
#include "io/split_masks.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

namespace tessera::io {
namespace {

struct Part {
  std::string_view mask_name, masks_name, indices_name;
  SharedArray<std::int64_t> Dataset::*indices;
  SharedArray<std::int64_t> VertexSplit::*of_split;
};
constexpr Part parts[] = {
    {"train_mask", "train_masks", "train_idx", &Dataset::train, &VertexSplit::train},
    {"val_mask", "val_masks", "val_idx", &Dataset::validation, &VertexSplit::validation},
    {"test_mask", "test_masks", "test_idx", &Dataset::test, &VertexSplit::test}};

std::size_t part_of(std::string_view name) noexcept {
  const auto* const found = std::find_if(std::begin(parts), std::end(parts), [&](const Part& part) {
    return name == part.mask_name || name == part.masks_name;
  });
  return static_cast<std::size_t>(found - std::begin(parts));
}

[[noreturn]] void reject(const SplitMask& mask, const std::string& problem,
                         const std::string& fix) {
  throw Error(ErrorCode::bad_data, problem, mask.name, fix);
}

/// How many splits a mask holds, and how far the values of a vertex and of a split are apart.
struct MaskLayout {
  std::int64_t splits = 1;
  std::int64_t vertex_step = 1;
  std::int64_t split_step = 0;
};

MaskLayout layout_of(const SplitMask& mask, std::int64_t vertices) {
  const std::vector<std::int64_t>& shape = mask.shape;
  if (shape.size() == 1 && shape[0] == vertices) return {};
  if (shape.size() == 1) {
    reject(mask, fmt::format("has {} entries for {} vertices", shape[0], vertices),
           "give one truth value per vertex");
  }
  if (shape[0] == vertices && shape[1] == vertices && vertices != 1) {
    reject(mask,
           fmt::format("is {} x {}, which does not say whether a row is a vertex or a split",
                       vertices, vertices),
           "leave out a split, or give one split with one truth value per vertex");
  }
  if (shape[0] == vertices) return {shape[1], shape[1], 1};
  if (shape[1] == vertices) return {shape[0], 1, vertices};
  reject(mask, fmt::format("is {} x {} for {} vertices", shape[0], shape[1], vertices),
         "give one truth value per vertex and split");
}

std::vector<std::int64_t> marked(const SplitMask& mask, const MaskLayout& layout,
                                 std::int64_t split, std::int64_t vertices) {
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < vertices; ++i) {
    const std::int32_t value = mask.values[i * layout.vertex_step + split * layout.split_step];
    if (value != 0 && value != 1) {
      throw Error(ErrorCode::bad_data, fmt::format("{} is no truth value", value),
                  fmt::format("{}[{}]", mask.name, i), "use 0 and 1, or False and True");
    }
    if (value == 1) indices.push_back(i);
  }
  return indices;
}

bool same_vertices(const SharedArray<std::int64_t>& given,
                   const std::vector<std::int64_t>& rising) {
  std::vector<std::int64_t> sorted(given.begin(), given.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted == rising;
}

/// The number of splits of all masks: those of one part may be the same in all.
std::int64_t number_of_splits(const SplitMasks& masks, std::int64_t vertices) {
  std::int64_t splits = 1;
  for (const SplitMask& mask : masks) {
    if (mask.name.empty()) continue;
    const std::int64_t here = layout_of(mask, vertices).splits;
    if (here == 0) reject(mask, "has no split", "give one truth value per vertex, or leave it out");
    if (here == 1 || here == splits) continue;
    if (splits != 1) {
      reject(mask, fmt::format("has {} splits, another mask {}", here, splits),
             "give all parts the same number of splits, or one for all of them");
    }
    splits = here;
  }
  return splits;
}

}  // namespace

bool is_split_mask(std::string_view name) noexcept { return part_of(name) < std::size(parts); }

SplitMask read_split_mask(std::string_view name, ArrayReader& array) {
  if (array.shape().size() != 1 && array.shape().size() != 2) {
    array.reject("must have a truth value per vertex, and for several splits per split");
  }
  return {std::string(name), array.shape(), read_flat<std::int32_t>(array)};
}

void keep_split_mask(SplitMasks& masks, SplitMask mask) {
  SplitMask& place = masks[part_of(mask.name)];
  if (!place.name.empty()) {
    reject(mask, fmt::format("is given as {}, too", place.name), "keep one of the two");
  }
  place = std::move(mask);
}

void apply_split_masks(const SplitMasks& masks, Dataset& dataset) {
  const std::int64_t vertices = dataset.graph.num_rows();
  std::vector<VertexSplit> splits(static_cast<std::size_t>(number_of_splits(masks, vertices)));
  for (std::size_t p = 0; p < masks.size(); ++p) {
    const SplitMask& mask = masks[p];
    SharedArray<std::int64_t>& given = dataset.*parts[p].indices;
    if (mask.name.empty()) {
      for (VertexSplit& split : splits) split.*parts[p].of_split = given;
      continue;
    }
    const MaskLayout layout = layout_of(mask, vertices);
    for (std::size_t s = 0; s < splits.size(); ++s) {
      std::vector<std::int64_t> indices =
          marked(mask, layout, layout.splits == 1 ? 0 : static_cast<std::int64_t>(s), vertices);
      if (s == 0 && !given.empty() && !same_vertices(given, indices)) {
        reject(mask,
               fmt::format("{}differs from {}", splits.size() == 1 ? "" : "its first split ",
                           parts[p].indices_name),
               "keep one of the two");
      }
      splits[s].*parts[p].of_split = std::move(indices);
    }
    if (given.empty() || splits.size() > 1) given = splits.front().*parts[p].of_split;
  }
  if (splits.size() > 1) dataset.splits = std::move(splits);
}

std::optional<ExtraArray> mask_of_splits(const Dataset& dataset,
                                         SharedArray<std::int64_t> VertexSplit::*part) {
  if (dataset.splits.empty()) return {};
  const std::int64_t count = std::ssize(dataset.splits);
  Buffer<std::byte> bytes(dataset.graph.num_rows() * count, std::byte{0});
  for (std::int64_t s = 0; s < count; ++s) {
    for (const std::int64_t vertex : dataset.splits[static_cast<std::size_t>(s)].*part) {
      bytes[vertex * count + s] = std::byte{1};
    }
  }
  return ExtraArray{"|b1", {dataset.graph.num_rows(), count}, std::move(bytes)};
}

}  // namespace tessera::io
