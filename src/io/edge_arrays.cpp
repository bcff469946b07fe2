// SPDX-License-Identifier: Apache-2.0
#include "io/edge_arrays.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"

#include "io/file.hpp"

namespace tessera::io {
namespace {

bool is_of_edges(const std::string& name, const ExtraArray& extra, EdgeOffset edges) {
  return name.starts_with("edge_") && !extra.shape.empty() && extra.shape[0] == edges && edges > 0;
}

[[noreturn]] void reject_merged(const Graph& graph, EdgeOffset edge, const std::string& path) {
  const auto next = std::upper_bound(graph.row_offsets().begin(), graph.row_offsets().end(), edge);
  throw Error(ErrorCode::bad_data,
              fmt::format("edges from vertex {} to vertex {} are merged, but their features differ",
                          graph.col_indices()[edge], next - graph.row_offsets().begin() - 1),
              path, "keep the first of them with --duplicates first, or leave out the features");
}

/// Edges that all have the place of the first of them get one after the other, as they are listed.
void part_repeated(EdgeOffset num_edges, std::vector<EdgeOffset>& places) {
  std::vector<EdgeOffset> listed(static_cast<std::size_t>(num_edges), 0);
  for (EdgeOffset& place : places) {
    if (place >= 0) place += listed[static_cast<std::size_t>(place)]++;
  }
}

/// Row k goes to `places[k]`; the first of those with one place stays.
std::shared_ptr<const Matrix<float>> placed(const Matrix<float>& rows,
                                            std::span<const EdgeOffset> places, const Graph& graph,
                                            Duplicates duplicates, const std::string& path) {
  if (rows.rows() != std::ssize(places)) {
    damaged(path, fmt::format("{} rows for {} edges", rows.rows(), places.size()));
  }
  const bool must_agree = duplicates == Duplicates::sum && graph.num_edges() < rows.rows();
  auto sorted = std::make_shared<Matrix<float>>(graph.num_edges(), rows.cols());
  std::vector<bool> written(must_agree ? static_cast<std::size_t>(graph.num_edges()) : 0);
  for (EdgeOffset k = rows.rows() - 1; k >= 0; --k) {
    const EdgeOffset place = places[static_cast<std::size_t>(k)];
    if (place < 0) continue;
    if (must_agree) {
      const auto edge = static_cast<std::size_t>(place);
      if (written[edge] &&
          !std::equal(rows.row(k), rows.row(k) + rows.cols(), sorted->row(place))) {
        reject_merged(graph, place, path);
      }
      written[edge] = true;
    }
    std::copy_n(rows.row(k), rows.cols(), sorted->row(place));
  }
  return sorted;
}

}  // namespace

bool has_arrays_of_edges(const Dataset& dataset, EdgeOffset edges) {
  return dataset.edge_features.matrix != nullptr ||
         std::any_of(dataset.extras.begin(), dataset.extras.end(), [&](const auto& named) {
           return is_of_edges(named.first, named.second, edges);
         });
}

void sort_arrays_of_edges(const Graph& graph, EdgeOffset edges, Duplicates duplicates,
                          const std::string& path, Dataset& dataset) {
  const SharedArray<EdgeOffset>& places = graph.edge_ids();
  if (auto& matrix = dataset.edge_features.matrix; matrix != nullptr) {
    matrix = placed(*matrix, places.span(), graph, duplicates, path);
  }
  for (auto& [name, extra] : dataset.extras) {
    if (!is_of_edges(name, extra, edges)) continue;
    const std::int64_t row_bytes = extra.bytes.size() / edges;
    Buffer<std::byte> sorted(graph.num_edges() * row_bytes);
    for (EdgeOffset k = edges - 1; k >= 0; --k) {
      if (places[k] < 0) continue;  // dropped
      std::copy_n(extra.bytes.data() + k * row_bytes, row_bytes,
                  sorted.data() + places[k] * row_bytes);
    }
    extra.shape[0] = graph.num_edges();
    extra.bytes = std::move(sorted);
  }
}

void sort_edge_features(const Graph& graph, std::span<const VertexId> sources,
                        std::span<const VertexId> targets, Duplicates duplicates,
                        const std::string& path, EdgeFeatures& features) {
  std::vector<EdgeOffset> places(sources.size(), -1);
  parallel_for(std::ssize(sources), std::int64_t{1} << 12, [&](std::int64_t k) {
    const auto edge = static_cast<std::size_t>(k);
    if (sources[edge] < 0 || targets[edge] < 0) return;
    const auto row = graph.neighbours(targets[edge]);
    places[edge] = graph.row_offsets()[targets[edge]] +
                   (std::lower_bound(row.begin(), row.end(), sources[edge]) - row.begin());
  });
  if (graph.has_repeated_edges()) part_repeated(graph.num_edges(), places);
  features.matrix = placed(*features.matrix, places, graph, duplicates, path);
}

}  // namespace tessera::io
