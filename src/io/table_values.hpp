// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

/// What a field of a table means by itself.
namespace tessera::io {

/// True for an empty field and for what programs write where there is no value, in any letter case:
/// NA, N/A, #N/A, <NA>, NaN, -NaN, null, None, ? and -.
bool is_missing(std::string_view field);

/// True and false in any letter case.
std::optional<bool> parse_truth(std::string_view field);

/// A real number, or 1 and 0 for true and false. What is too large for a float is infinity.
std::optional<float> parse_value(std::string_view field);

/// What a field is called as a category or class: true and false in lower case, others as they are.
std::string_view category_of(std::string_view field);

}  // namespace tessera::io
