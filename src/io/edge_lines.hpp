// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/io/open.hpp"

#include "io/edge_list_layout.hpp"
#include "io/name_index.hpp"
#include "io/text_edges.hpp"

namespace tessera::io {

/// Ids that are the numbers of the vertices.
struct NumberedVertices {
  int base = 0;
  std::int64_t limit = 0;  ///< the highest vertex allowed
  bool known = false;      ///< because there are no more

  const char* read(const char* at, const char* end, const FieldScanner& fields,
                   std::string& scratch, VertexId& vertex) const;
};

/// Ids that are names, known from elsewhere.
struct NamedVertices {
  const NameIndex& names;
  std::string origin;  ///< where they are known from
  bool drop_unknown = false;

  /// An unknown one is -1 where those are dropped.
  const char* read(const char* at, const char* end, const FieldScanner& fields,
                   std::string& scratch, VertexId& vertex) const;
};

/// Reads the lines of an edge list.
class EdgeLines {
 public:
  EdgeLines(const EdgeListLayout& layout, Nonfinite nonfinite)
      : layout_(layout), nonfinite_(nonfinite) {}

  /// Returns how many edges were dropped, because an end of theirs is unknown.
  template <class Vertices>
  std::int64_t parse(const TextChunk& chunk, const Vertices& vertices, bool with_values,
                     std::vector<Entry>& out) const;

  /// Adds the ids of a chunk, with their places in the text.
  void collect(const TextChunk& chunk, NameIndex& names) const;

 private:
  const char* read_weight(const char* at, const char* end, std::string& scratch,
                          float& weight) const;
  const char* finish_line(const char* at, const char* end, std::int64_t column) const;
  [[noreturn]] void too_few_columns(const char* at, std::int64_t columns) const;
  const char* look_ahead(const char* at, const char* end, const NameIndex& names) const;
  template <class OnField>
  void for_each_line(const TextChunk& chunk, std::int64_t last, const NameIndex* names,
                     OnField&& on_line) const;

  const EdgeListLayout& layout_;
  Nonfinite nonfinite_;
};

}  // namespace tessera::io
