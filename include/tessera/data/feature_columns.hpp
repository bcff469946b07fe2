// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/core/shared_array.hpp"
#include "tessera/data/names.hpp"

namespace tessera {

/// A column of the data that features were made of: numbers, which are one feature, or categories,
/// which are one feature each, 1 for the vertices that have it and 0 for the others.
struct FeatureColumn {
  std::string name;
  std::int64_t first = 0;                    ///< its first feature
  std::vector<std::string> categories = {};  ///< empty: it holds numbers

  bool has_categories() const noexcept { return !categories.empty(); }
};

/// What the feature of a category is called: "colour=red".
std::string category_feature(const std::string& column, const std::string& category);

/// The columns behind features with these names, in their order. `prefixes` is
/// `Dataset::category_prefixes`; both must pass `validate_feature_columns`.
std::vector<FeatureColumn> feature_columns(const Names& names,
                                           const SharedArray<std::int32_t>& prefixes);

/// Throws `bad_data` unless every feature that is said to be a category has a name of the form
/// "column=category" with a column of the length said.
void validate_feature_columns(const Names& names, const SharedArray<std::int32_t>& prefixes);

}  // namespace tessera
