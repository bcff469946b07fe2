// SPDX-License-Identifier: Apache-2.0
#include "train/stored_ranges.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/step/rounder.hpp"

namespace tessera::train {
namespace {

constexpr const char* features_path = "features";

StoredTensor stored(std::string path, const std::vector<float>& numbers) {
  const auto size = numbers.size() * sizeof(float);
  Buffer<std::byte> bytes(static_cast<std::int64_t>(size));
  std::memcpy(bytes.data(), numbers.data(), size);
  return {std::move(path), {"<f4", {std::ssize(numbers) / 2, 2}, std::move(bytes)}};
}

}  // namespace

std::vector<float> numbers_in(const StoredTensor& ranges) {
  const SharedArray<std::byte>& bytes = ranges.array.bytes;
  std::vector<float> numbers(static_cast<std::size_t>(bytes.size()) / sizeof(float));
  if (!numbers.empty()) {
    std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(float));
  }
  return numbers;
}

std::vector<StoredTensor> store_ranges(const std::vector<nn::NamedRounder>& rounders,
                                       const std::vector<float>& feature_reach) {
  std::vector<StoredTensor> ranges;
  if (!feature_reach.empty()) ranges.push_back(stored(features_path, feature_reach));
  for (const auto& [path, rounder] : rounders) {
    const std::vector<float> numbers = rounder->last_ranges();
    if (!numbers.empty()) ranges.push_back(stored(path, numbers));
  }
  return ranges;
}

void restore_ranges(const std::vector<StoredTensor>& ranges,
                    const std::vector<nn::NamedRounder>& rounders, const std::string& where) {
  const auto named = [](const std::string& path) {
    return [&path](const auto& other) { return other.path == path; };
  };
  for (const StoredTensor& of : ranges) {
    if (of.path == features_path || std::any_of(rounders.begin(), rounders.end(), named(of.path))) {
      continue;
    }
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the model has nothing that the ranges '{}' are of", of.path), where,
                "use the checkpoint with its own model, or find the ranges anew (--calibrate)");
  }
  for (const auto& [path, rounder] : rounders) {
    const auto found = std::find_if(ranges.begin(), ranges.end(), named(path));
    rounder->set_ranges(found == ranges.end() ? std::vector<float>() : numbers_in(*found));
  }
}

std::vector<float> stored_feature_reach(const std::vector<StoredTensor>& ranges) {
  for (const StoredTensor& of : ranges) {
    if (of.path == features_path) return numbers_in(of);
  }
  return {};
}

}  // namespace tessera::train
