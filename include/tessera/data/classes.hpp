// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tessera {

/// The class numbers that labels use, rising. -1 says that an item has no label; where all labels
/// are -1 and 1, both in use, they are two classes, as some collections write them.
std::vector<std::int64_t> class_values(std::span<const std::int64_t> labels);

/// The place of a label among the class numbers; -1 where it is none of them.
std::int64_t class_of(std::int64_t label, const std::vector<std::int64_t>& values);

/// The items whose label is one of the class numbers.
std::vector<std::int64_t> labelled_items(std::span<const std::int64_t> labels,
                                         const std::vector<std::int64_t>& values);

}  // namespace tessera
