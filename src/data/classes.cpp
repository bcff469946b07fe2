// SPDX-License-Identifier: Apache-2.0
#include "tessera/data/classes.hpp"

#include <algorithm>

namespace tessera {
namespace {

/// The different labels, rising. Most data numbers its classes from 0, so that a mark for each
/// number up to the highest is enough.
std::vector<std::int64_t> different(std::span<const std::int64_t> labels) {
  if (labels.empty()) return {};
  const auto [lowest, highest] = std::minmax_element(labels.begin(), labels.end());
  if (*lowest < -1 || *highest > std::ssize(labels)) {
    std::vector<std::int64_t> values(labels.begin(), labels.end());
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    return values;
  }
  std::vector<bool> used(static_cast<std::size_t>(*highest + 2), false);
  for (const std::int64_t label : labels) used[static_cast<std::size_t>(label + 1)] = true;
  std::vector<std::int64_t> values;
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (used[i]) values.push_back(static_cast<std::int64_t>(i) - 1);
  }
  return values;
}

}  // namespace

std::vector<std::int64_t> class_values(std::span<const std::int64_t> labels) {
  std::vector<std::int64_t> values = different(labels);
  if (values == std::vector<std::int64_t>{-1, 1}) return values;
  values.erase(values.begin(), std::lower_bound(values.begin(), values.end(), 0));
  return values;
}

std::int64_t class_of(std::int64_t label, const std::vector<std::int64_t>& values) {
  const auto place = std::lower_bound(values.begin(), values.end(), label);
  return place != values.end() && *place == label ? place - values.begin() : -1;
}

std::vector<std::int64_t> labelled_items(std::span<const std::int64_t> labels,
                                         const std::vector<std::int64_t>& values) {
  std::vector<std::int64_t> items;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (class_of(labels[i], values) >= 0) items.push_back(static_cast<std::int64_t>(i));
  }
  return items;
}

}  // namespace tessera
