// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <string>
#include <vector>

#include <fmt/compile.h>
#include <fmt/format.h>

#include "tessera/core/parallel.hpp"
#include "tessera/io/matrix_market.hpp"

#include "io/deflate.hpp"
#include "io/file.hpp"
#include "io/matrix_market_header.hpp"

namespace tessera::io {
namespace {

constexpr std::int64_t rows_per_task = 1 << 12;

/// The shortest text that reads back as the same float.
void append_shortest(std::string& text, float value) {
  char digits[32];
  const auto [stop, problem] = std::to_chars(std::begin(digits), std::end(digits), value);
  text.append(digits, stop);
}

std::string format_rows(const Graph& graph, VertexId begin, VertexId end) {
  std::string text;
  for (VertexId row = begin; row < end; ++row) {
    for (EdgeOffset e = graph.row_offsets()[row]; e < graph.row_offsets()[row + 1]; ++e) {
      fmt::format_to(std::back_inserter(text), FMT_COMPILE("{} {}"), row + std::int64_t{1},
                     graph.col_indices()[e] + std::int64_t{1});
      if (graph.is_weighted()) {
        text += ' ';
        append_shortest(text, graph.weight(row, e));
      }
      text += '\n';
    }
  }
  return text;
}

std::vector<std::string> format_graph(const Graph& graph) {
  const std::int64_t tasks = (std::int64_t{graph.num_rows()} + rows_per_task - 1) / rows_per_task;
  std::vector<std::string> parts(static_cast<std::size_t>(tasks) + 1);
  parts[0] = fmt::format("{} matrix coordinate {} general\n{} {} {}\n", matrix_market_banner,
                         graph.is_weighted() ? "real" : "pattern", graph.num_rows(),
                         graph.num_cols(), graph.num_edges());
  parallel_ranges(graph.num_rows(), rows_per_task, [&](std::int64_t begin, std::int64_t end) {
    parts[static_cast<std::size_t>(begin / rows_per_task) + 1] =
        format_rows(graph, static_cast<VertexId>(begin), static_cast<VertexId>(end));
  });
  return parts;
}

}  // namespace

void write_matrix_market(const Graph& graph, const std::string& path, const Progress& progress) {
  graph.validate();
  report(progress, "formatting", 0, graph.num_edges());
  const std::vector<std::string> parts = format_graph(graph);
  AtomicFile file(path);
  report(progress, "writing", 0, graph.num_edges());
  if (path.ends_with(".gz")) {
    std::vector<std::span<const std::byte>> bytes;
    for (const std::string& part : parts) bytes.push_back(bytes_of(part));
    for (const Buffer<std::byte>& piece : gzip(bytes)) file.write(piece.span());
  } else {
    for (const std::string& part : parts) file.write(bytes_of(part));
  }
  file.commit();
}

}  // namespace tessera::io
