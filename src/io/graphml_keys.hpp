// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The attributes that a GraphML file declares by `<key>`.
namespace tessera::io {

/// An attribute of vertices or of edges: its value for each of them.
struct Attribute {
  std::string name;
  std::string type;                          ///< `attr.type`; empty: any
  std::optional<std::string> default_value;  ///< where `<data>` says nothing
  std::vector<std::optional<std::string>> values;

  /// Sets the value of the last of `count` items; false where it has one already.
  bool set_last(std::int64_t count, std::string value);
  /// The value of every item: its own, or the default. Empty where there is neither.
  std::vector<std::string> filled(std::int64_t count) const;
};

/// The value as `attr.type` writes it: truth values as true and false, everything else without the
/// blanks around it. Nothing where it is not of that type. An empty text is of every type: no
/// value.
std::optional<std::string> value_of_type(std::string_view text, std::string_view type);

}  // namespace tessera::io
