// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/io/open.hpp"

#include "graph/row_filler.hpp"
#include "io/text_source.hpp"

namespace tessera::io {

using detail::Entry;

/// A text whose lines are edges, and what is known of the graph before it is read.
struct TextEdges {
  std::int64_t begin = 0;  ///< of the first line with an edge
  std::int64_t num_rows = -1;
  std::int64_t num_cols = -1;  ///< -1: as the highest index asks for, as many as there are rows
  bool weighted = false;
  int mirror = 0;  ///< RowFiller's
  const char* row_word = "target";
  const char* col_word = "source";
  /// What the text calls a vertex.
  FunctionRef<std::string(VertexId)> name;
  /// Puts the edges of a chunk behind those in `out`; the values may be left out where they are not
  /// asked for. May throw a LineProblem. Called by several threads.
  FunctionRef<void(const TextChunk& chunk, bool with_values, std::vector<Entry>& out)> parse;
  /// Told how many edges there are, before memory for them is asked for.
  FunctionRef<void(std::int64_t entries)> counted;
};

/// How often `build_from_text` has every line parsed.
inline constexpr std::int64_t times_read = 2;

/// Reads the text twice: once to count, once to put every edge into its place. Memory is that of
/// the graph and a block of text.
Graph build_from_text(TextSource& source, const TextEdges& edges, const ReadOptions& options);

}  // namespace tessera::io
