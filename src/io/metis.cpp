// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/metis.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "graph/symmetry.hpp"
#include "io/dataset_arrays.hpp"
#include "io/text.hpp"
#include "io/text_edges.hpp"

namespace tessera::io {
namespace {

struct MetisHeader {
  VertexId vertices = 0;
  std::int64_t edges = 0;
  bool edge_weights = false;
  std::int64_t numbers_before = 0;  ///< in each line, before the neighbours
  std::int64_t begin = 0;           ///< of the line of the first vertex
};

bool is_comment_line(std::string_view line) { return line.starts_with('%'); }

[[noreturn]] void bad_header(const std::string& path, const std::string& problem) {
  throw Error(ErrorCode::bad_data, problem, path,
              "the first line must be 'VERTICES EDGES [FORMAT [WEIGHTS]]' (docs/formats.md)");
}

/// FORMAT has three digits: sizes of vertices, weights of vertices, weights of edges.
void parse_format(std::int64_t format, std::int64_t weights, const std::string& path,
                  MetisHeader& header) {
  const auto digit = [&](std::int64_t unit) { return format / unit % 10; };
  if (format < 0 || format > 111 || digit(1) > 1 || digit(10) > 1 || digit(100) > 1) {
    bad_header(path, fmt::format("format {} is not known", format));
  }
  constexpr std::int64_t most_weights = 1024;
  if (weights < 0 || weights > most_weights) {
    bad_header(path, fmt::format("{} weights per vertex", weights));
  }
  header.edge_weights = digit(1) == 1;
  header.numbers_before = digit(100) + (digit(10) == 1 ? std::max<std::int64_t>(weights, 1) : 0);
}

MetisHeader parse_header(const TextBlock& block, const std::string& path) {
  std::string_view rest = block.text;
  std::string_view first = take_line(rest);
  while (is_comment_line(first)) first = take_line(rest);
  LineScanner line(first);
  std::int64_t numbers[4] = {-1, -1, 0, 1};
  for (int i = 0; i < 4 && !line.at_end(); ++i) {
    const auto number = line.integer();
    if (!number) bad_header(path, "does not begin with the numbers of vertices and edges");
    numbers[i] = *number;
  }
  if (!line.at_end() || numbers[0] < 0 || numbers[1] < 0) {
    bad_header(path, "does not begin with the numbers of vertices and edges");
  }
  MetisHeader header;
  header.vertices = checked_vertex_count(numbers[0], std::ssize(block.text), path);
  header.edges = numbers[1];
  header.begin = block.offset + std::ssize(block.text) - std::ssize(rest);
  parse_format(numbers[2], numbers[3], path, header);
  return header;
}

/// The lines of the vertices. Blank ones are vertices without neighbours.
class MetisLines {
 public:
  MetisLines(TextSource& source, const MetisHeader& header, const ReadOptions& options)
      : header_(header),
        nonfinite_(options.nonfinite),
        numbers_(source, header.begin, "counting lines", options.progress,
                 [](std::string_view text) { return count_lines(text); }) {
    if (numbers_.total() < header.vertices) {
      damaged(source.path(), fmt::format("has lines for {} vertices, but its first line says {}",
                                         numbers_.total(), header.vertices));
    }
  }

  void parse(const TextChunk& chunk, std::vector<Entry>& out) const {
    std::int64_t vertex = numbers_.first_of(chunk);
    for (std::string_view rest = chunk.text; !rest.empty();) {
      const std::string_view line = take_line(rest);
      if (!is_comment_line(line)) parse_line(line, vertex++, out);
    }
  }

 private:
  static std::int64_t count_lines(std::string_view text) {
    std::int64_t lines = 0;
    while (!text.empty()) lines += is_comment_line(take_line(text)) ? 0 : 1;
    return lines;
  }

  void parse_line(std::string_view line, std::int64_t vertex, std::vector<Entry>& out) const {
    const char* const stop = line.data() + line.size();
    const char* at = skip_blanks(line.data(), stop);
    if (vertex >= header_.vertices) {
      if (at == stop) return;
      throw LineProblem{at, fmt::format("a line more than the {} vertices", header_.vertices)};
    }
    for (std::int64_t i = 0; i < header_.numbers_before; ++i) {
      std::int64_t ignored = 0;
      at = skip_blanks(scan_number(at, stop, ignored), stop);
    }
    while (at != stop) {
      std::int64_t neighbour = 0;
      const char* const begin = at;
      at = skip_blanks(scan_number(at, stop, neighbour), stop);
      if (neighbour < 1 || neighbour > header_.vertices) {
        throw LineProblem{
            begin, fmt::format("neighbour {} is not within 1 to {}", neighbour, header_.vertices)};
      }
      Entry entry{static_cast<VertexId>(vertex), static_cast<VertexId>(neighbour - 1), 1};
      if (header_.edge_weights) at = skip_blanks(scan_weight(at, stop, entry.value), stop);
      out.push_back(entry);
    }
  }

  static const char* scan_number(const char* at, const char* stop, std::int64_t& number) {
    const char* const after = scan_integer(at, stop, number);
    if (after == nullptr || (after != stop && !is_blank(*after))) {
      throw LineProblem{at, "holds something that is no integer, or too few of them"};
    }
    return after;
  }

  const char* scan_weight(const char* at, const char* stop, float& weight) const {
    const char* const after = at == stop ? nullptr : scan_real(at, stop, is_blank, weight);
    if (after == nullptr) throw LineProblem{at, "a neighbour has no weight"};
    require_finite(weight, at, "weight", nonfinite_);
    return after;
  }

  const MetisHeader& header_;
  Nonfinite nonfinite_;
  EntryNumbers numbers_;  ///< of the lines
};

}  // namespace

Dataset read_metis(const std::string& path, const ReadOptions& options) {
  TextSource source(path);
  const auto block = source.next();
  const MetisHeader header = parse_header(block.value_or(TextBlock{}), path);
  const MetisLines lines(source, header, options);
  const auto parse = [&](const TextChunk& chunk, bool, std::vector<Entry>& out) {
    lines.parse(chunk, out);
  };
  const auto check_count = [&](std::int64_t entries) {
    if (entries % 2 == 0 && entries / 2 == header.edges) return;
    damaged(path,
            fmt::format("lists {} neighbours, but its first line says {} edges, each from both "
                        "ends",
                        entries, header.edges));
  };
  const auto from_one = [](VertexId vertex) { return std::to_string(std::int64_t{vertex} + 1); };
  Dataset dataset;
  dataset.name = stem_of(path);
  dataset.graph =
      build_from_text(source,
                      {header.begin, header.vertices, header.vertices, header.edge_weights, 0,
                       "vertex", "neighbour", from_one, parse, check_count},
                      options);
  const detail::Symmetry symmetry = detail::symmetry_of(dataset.graph);
  const bool same_weights = symmetry.same_weights || options.nonfinite == Nonfinite::allow;
  if (!symmetry.of_pattern() || !same_weights) {
    damaged(path, symmetry.of_pattern() ? "an edge has one weight at one end, another at the other"
                                        : "an edge stands in the line of one of its ends alone");
  }
  dataset.edges_stored = header.edges;
  return dataset;
}

}  // namespace tessera::io
