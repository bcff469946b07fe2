// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/metis.hpp"

#include <algorithm>
#include <cmath>
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

bool is_comment_line(const char* at, const char* end) { return at != end && *at == '%'; }

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
  const char* at = block.text.data();
  const char* const end = at + block.text.size();
  while (at != end && is_comment_line(at, end)) at = std::min(line_end(at, end) + 1, end);
  const char* const stop = line_end(at, end);
  LineScanner line({at, static_cast<std::size_t>(stop - at)});
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
  header.begin =
      block.offset + std::min<std::int64_t>(stop + 1 - block.text.data(), std::ssize(block.text));
  parse_format(numbers[2], numbers[3], path, header);
  return header;
}

/// The lines of the vertices. Blank ones are vertices without neighbours.
class MetisLines {
 public:
  MetisLines(TextSource& source, const MetisHeader& header, const ReadOptions& options)
      : header_(header), nonfinite_(options.nonfinite) {
    std::vector<std::pair<std::int64_t, std::int64_t>> counts;
    for_each_chunk(
        source, header.begin, "counting lines", options.progress,
        [&](std::int64_t chunks) { counts.assign(static_cast<std::size_t>(chunks), {}); },
        [&](std::int64_t task, const TextChunk& chunk) {
          counts[static_cast<std::size_t>(task)] = {chunk.offset, count_lines(chunk.text)};
        },
        [&](std::int64_t) {
          for (const auto& [offset, lines] : counts) {
            first_lines_.emplace_back(offset, lines_);
            lines_ += lines;
          }
        });
    if (lines_ < header.vertices) {
      throw Error(ErrorCode::bad_data,
                  fmt::format("has lines for {} vertices, but its first line says {}", lines_,
                              header.vertices),
                  source.path(), damaged_file_fix);
    }
  }

  void parse(const TextChunk& chunk, std::vector<Entry>& out) const {
    const auto found = std::lower_bound(first_lines_.begin(), first_lines_.end(),
                                        std::pair(chunk.offset, std::int64_t{0}));
    std::int64_t vertex = found == first_lines_.end() ? lines_ : found->second;
    const char* at = chunk.text.data();
    const char* const end = at + chunk.text.size();
    while (at != end) {
      const char* const stop = line_end(at, end);
      if (!is_comment_line(at, stop)) parse_line(at, stop, vertex++, out);
      at = stop == end ? end : stop + 1;
    }
  }

 private:
  static std::int64_t count_lines(std::string_view text) {
    std::int64_t lines = 0;
    const char* at = text.data();
    const char* const end = at + text.size();
    while (at != end) {
      const char* const stop = line_end(at, end);
      lines += is_comment_line(at, stop) ? 0 : 1;
      at = stop == end ? end : stop + 1;
    }
    return lines;
  }

  void parse_line(const char* at, const char* stop, std::int64_t vertex,
                  std::vector<Entry>& out) const {
    at = skip_blanks(at, stop);
    if (vertex >= header_.vertices) {
      if (at == stop) return;
      throw LineProblem{at, fmt::format("a line more than the {} vertices", header_.vertices),
                        damaged_file_fix};
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
            begin, fmt::format("neighbour {} is not within 1 to {}", neighbour, header_.vertices),
            damaged_file_fix};
      }
      Entry entry{static_cast<VertexId>(vertex), static_cast<VertexId>(neighbour - 1), 1};
      if (header_.edge_weights) at = skip_blanks(scan_weight(at, stop, entry.value), stop);
      out.push_back(entry);
    }
  }

  static const char* scan_number(const char* at, const char* stop, std::int64_t& number) {
    const char* const after = scan_integer(at, stop, number);
    if (after == nullptr || (after != stop && !is_blank(*after))) {
      throw LineProblem{at, "holds something that is no integer, or too few of them",
                        damaged_file_fix};
    }
    return after;
  }

  const char* scan_weight(const char* at, const char* stop, float& weight) const {
    const char* const after = at == stop ? nullptr : scan_real(at, stop, is_blank, weight);
    if (after == nullptr) throw LineProblem{at, "a neighbour has no weight", damaged_file_fix};
    if (nonfinite_ == Nonfinite::reject && !std::isfinite(weight)) {
      throw LineProblem{at, "has a weight that is not finite",
                        "give finite weights, or use --nonfinite allow"};
    }
    return after;
  }

  const MetisHeader& header_;
  Nonfinite nonfinite_;
  std::int64_t lines_ = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> first_lines_;
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
    throw Error(ErrorCode::bad_data,
                fmt::format("lists {} neighbours, but its first line says {} edges, each from both "
                            "ends",
                            entries, header.edges),
                path, damaged_file_fix);
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
    throw Error(ErrorCode::bad_data,
                symmetry.of_pattern() ? "an edge has one weight at one end, another at the other"
                                      : "an edge stands in the line of one of its ends alone",
                path, damaged_file_fix);
  }
  dataset.edges_stored = header.edges;
  return dataset;
}

}  // namespace tessera::io
