// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint_names.hpp"

#include <string_view>

#include "io/dataset_arrays.hpp"
#include "io/sections.hpp"

namespace tessera::train {
namespace {

constexpr const char* class_bytes = "class_names";
constexpr const char* class_ends = "class_name_ends";
constexpr const char* feature_bytes = "feature_names";
constexpr const char* feature_ends = "feature_name_ends";
constexpr const char* prefixes = "category_prefixes";
constexpr const char* fills = "feature_fills";

void add_names(const Names& names, const char* bytes, const char* ends,
               std::vector<io::NamedArray>& arrays) {
  if (names.empty()) return;
  arrays.emplace_back(bytes, io::stored(names.bytes()));
  arrays.emplace_back(ends, io::stored(names.ends()));
}

}  // namespace

bool NameSections::take(io::ArrayReader& array) {
  const std::string_view name = array.name();
  if (name == class_bytes) {
    classes_.bytes = io::read_text(array);
  } else if (name == class_ends) {
    classes_.ends = io::read_vector<std::int64_t>(array);
  } else if (name == feature_bytes) {
    features_.bytes = io::read_text(array);
  } else if (name == feature_ends) {
    features_.ends = io::read_vector<std::int64_t>(array);
  } else if (name == prefixes) {
    prefixes_ = io::read_vector<std::int32_t>(array);
  } else if (name == fills) {
    fills_ = io::read_vector<float>(array);
  } else {
    return false;
  }
  return true;
}

Names NameSections::joined(const NameArrays& arrays) {
  return {arrays.ends, std::vector<std::uint8_t>(arrays.bytes.begin(), arrays.bytes.end())};
}

void NameSections::give(const std::string& path, Checkpoint& checkpoint) const {
  io::naming_file(path, [&] {
    checkpoint.class_names = joined(classes_);
    checkpoint.input.feature_names = joined(features_);
  });
  checkpoint.input.category_prefixes = prefixes_;
  checkpoint.input.means.assign(fills_.begin(), fills_.end());
}

void add_name_sections(const Checkpoint& checkpoint, std::vector<io::NamedArray>& arrays) {
  add_names(checkpoint.class_names, class_bytes, class_ends, arrays);
  const ModelInput& input = checkpoint.input;
  if (input.feature_names.empty()) return;
  add_names(input.feature_names, feature_bytes, feature_ends, arrays);
  if (!input.category_prefixes.empty()) {
    arrays.emplace_back(prefixes, io::stored(input.category_prefixes));
  }
  arrays.emplace_back(fills, io::stored(SharedArray<float>(input.means)));
}

}  // namespace tessera::train
