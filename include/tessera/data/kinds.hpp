// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "tessera/core/types.hpp"
#include "tessera/data/names.hpp"

namespace tessera {

/// What the two kinds of vertices of a list of interactions are called: "user" and "item". Edges
/// lead from either kind to the other, vertices of the first have the lower numbers, and each has
/// its kind before its own name: "user:7", "item:7".
struct Kinds {
  std::string source = {}, target = {};

  bool given() const noexcept { return !source.empty(); }
  friend bool operator==(const Kinds&, const Kinds&) = default;
};

/// "user,item"; nothing: no kinds. Others are an `invalid_argument` error.
Kinds parse_kinds(const std::string& text);
std::string to_string(const Kinds& kinds);

/// "user:7"
std::string name_of_kind(const std::string& kind, std::string_view name);
/// "7" of "user:7"; a name of another kind stays.
std::string_view name_within(const std::string& kind, std::string_view name) noexcept;

/// How many vertices are of the first kind. Names that are not those of vertices of two kinds, the
/// first before the second, are a `bad_data` error.
VertexId num_of_first_kind(const Names& names, const Kinds& kinds);

}  // namespace tessera
