// SPDX-License-Identifier: Apache-2.0
#include "tessera/data/feature_columns.hpp"

#include <string_view>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

namespace tessera {
namespace {

constexpr char between = '=';

}  // namespace

std::string category_feature(const std::string& column, const std::string& category) {
  return column + between + category;
}

std::vector<FeatureColumn> feature_columns(const Names& names,
                                           const SharedArray<std::int32_t>& prefixes) {
  std::vector<FeatureColumn> columns;
  std::int32_t last_prefix = -1;
  for (std::int64_t feature = 0; feature < names.size(); ++feature) {
    const std::int32_t prefix = prefixes.empty() ? -1 : prefixes[feature];
    const std::string_view name =
        prefix < 0 ? names[feature] : names[feature].substr(0, static_cast<std::size_t>(prefix));
    const bool goes_on = prefix >= 0 && prefix == last_prefix && columns.back().name == name;
    if (!goes_on) columns.push_back({std::string(name), feature, {}});
    if (prefix >= 0) {
      columns.back().categories.emplace_back(names[feature].substr(name.size() + 1));
    }
    last_prefix = prefix;
  }
  return columns;
}

void validate_feature_columns(const Names& names, const SharedArray<std::int32_t>& prefixes) {
  const auto reject = [](const std::string& problem) {
    throw Error(ErrorCode::bad_data, problem, "category_prefix",
                "give the length of the column's name in each feature's, and -1 for numbers");
  };
  if (prefixes.empty()) return;
  if (prefixes.size() != names.size()) {
    reject(fmt::format("{} entries for {} names of features", prefixes.size(), names.size()));
  }
  for (std::int64_t feature = 0; feature < names.size(); ++feature) {
    const std::int32_t prefix = prefixes[feature];
    if (prefix == -1) continue;
    const std::string_view name = names[feature];
    const bool fits = prefix >= 0 && prefix < std::ssize(name) &&
                      name[static_cast<std::size_t>(prefix)] == between;
    if (!fits) reject(fmt::format("{} does not fit the name of feature {}", prefix, feature));
  }
}

}  // namespace tessera
