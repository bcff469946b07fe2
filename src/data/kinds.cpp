// SPDX-License-Identifier: Apache-2.0
#include "tessera/data/kinds.hpp"

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "core/listing.hpp"

namespace tessera {
namespace {

constexpr char separator = ':';

bool is_of(const std::string& kind, std::string_view name) noexcept {
  return name.size() > kind.size() && name.starts_with(kind) && name[kind.size()] == separator;
}

}  // namespace

Kinds parse_kinds(const std::string& text) {
  if (text.empty()) return {};
  const std::size_t comma = text.find(',');
  const Kinds kinds{text.substr(0, comma),
                    comma == std::string::npos ? std::string() : text.substr(comma + 1)};
  const bool fits = !kinds.source.empty() && !kinds.target.empty() &&
                    kinds.source != kinds.target && kinds.target.find(',') == std::string::npos &&
                    text.find(separator) == std::string::npos;
  if (fits) return kinds;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} are no two kinds of vertices", in_quotes(text)), "kinds",
              "name two, such as user,item");
}

std::string to_string(const Kinds& kinds) {
  return kinds.given() ? kinds.source + "," + kinds.target : std::string();
}

std::string name_of_kind(const std::string& kind, std::string_view name) {
  return fmt::format("{}{}{}", kind, separator, name);
}

std::string_view name_within(const std::string& kind, std::string_view name) noexcept {
  return is_of(kind, name) ? name.substr(kind.size() + 1) : name;
}

VertexId num_of_first_kind(const Names& names, const Kinds& kinds) {
  std::int64_t first = 0;
  while (first < names.size() && is_of(kinds.source, names[first])) ++first;
  std::int64_t end = first;
  while (end < names.size() && is_of(kinds.target, names[end])) ++end;
  if (first > 0 && end > first && end == names.size()) return static_cast<VertexId>(first);
  const std::string found = end < names.size()
                                ? fmt::format("vertex {} is called {}", end, in_quotes(names[end]))
                                : "the data has no vertices of two kinds";
  throw Error(ErrorCode::bad_data, found, fmt::format("kinds {}", to_string(kinds)),
              "read a table of interactions with --kinds, which names its vertices by their kinds");
}

}  // namespace tessera
