// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/data/change_edges.hpp"
#include "tessera/graph/transform.hpp"
#include "tessera/reorder/permutation.hpp"

#include "graph/select.hpp"

namespace tessera {
namespace {

constexpr std::int64_t bytes_per_task = 1 << 18;

/// Moves rows of `row_bytes` each: new row i is old row new_to_old[i].
void move_rows(const void* from, void* to, std::size_t row_bytes,
               const SharedArray<VertexId>& new_to_old) {
  if (row_bytes == 0) return;
  const auto* const source = static_cast<const std::byte*>(from);
  auto* const target = static_cast<std::byte*>(to);
  const auto grain =
      std::max<std::int64_t>(1, bytes_per_task / static_cast<std::int64_t>(row_bytes));
  parallel_for(new_to_old.size(), grain, [&](std::int64_t i) {
    std::memcpy(target + static_cast<std::size_t>(i) * row_bytes,
                source + static_cast<std::size_t>(new_to_old[i]) * row_bytes, row_bytes);
  });
}

std::shared_ptr<const Matrix<float>> moved_matrix(const Matrix<float>& matrix,
                                                  const SharedArray<VertexId>& new_to_old) {
  auto moved = std::make_shared<Matrix<float>>(matrix.rows(), matrix.cols());
  move_rows(matrix.data(), moved->data(), static_cast<std::size_t>(matrix.cols()) * sizeof(float),
            new_to_old);
  return moved;
}

Features moved_features(const Features& features, const SharedArray<VertexId>& new_to_old) {
  if (const auto* dense = std::get_if<DenseFeatures>(&features)) {
    return moved_matrix(**dense, new_to_old);
  }
  if (const auto* sparse = std::get_if<SparseFeatures>(&features)) {
    return selected_rows(*sparse, new_to_old);
  }
  return {};
}

Labels moved_labels(const Labels& labels, const SharedArray<VertexId>& new_to_old) {
  if (const auto* classes = std::get_if<ClassLabels>(&labels)) {
    return detail::gathered(*classes, new_to_old);
  }
  if (const auto* multi = std::get_if<MultiLabels>(&labels)) {
    return moved_matrix(**multi, new_to_old);
  }
  return {};
}

Targets moved_targets(const Targets& targets, const SharedArray<VertexId>& new_to_old) {
  if (targets.empty()) return {};
  return {moved_matrix(*targets.matrix, new_to_old), targets.names};
}

/// A list of vertices under their new numbers, in the order of the list.
SharedArray<std::int64_t> renumbered(const SharedArray<std::int64_t>& vertices,
                                     const SharedArray<VertexId>& old_to_new) {
  Buffer<std::int64_t> moved(vertices.size());
  parallel_for(vertices.size(), even_grain(vertices.size()),
               [&](std::int64_t i) { moved[i] = old_to_new[vertices[i]]; });
  return moved;
}

/// Cells of features, whose rows have new numbers, in their order.
SharedArray<std::int64_t> moved_cells(const SharedArray<std::int64_t>& cells, std::int64_t features,
                                      const SharedArray<VertexId>& old_to_new) {
  if (cells.empty()) return {};
  Buffer<std::int64_t> moved(cells.size());
  parallel_for(cells.size(), even_grain(cells.size()), [&](std::int64_t i) {
    moved[i] = std::int64_t{old_to_new[cells[i] / features]} * features + cells[i] % features;
  });
  std::sort(moved.begin(), moved.end());
  return moved;
}

Names moved_names(const Names& names, const SharedArray<VertexId>& new_to_old) {
  if (names.empty()) return {};
  Buffer<std::int64_t> ends(names.size());
  Buffer<std::uint8_t> bytes(names.bytes().size());
  std::int64_t end = 0;
  for (std::int64_t i = 0; i < names.size(); ++i) {
    const std::string_view name = names[new_to_old[i]];
    std::copy(name.begin(), name.end(), bytes.begin() + end);
    end += std::ssize(name);
    ends[i] = end;
  }
  return {std::move(ends), std::move(bytes)};
}

/// Moves an array that has one row per vertex, or one column per vertex as split masks do. Any
/// other is returned as it is.
ExtraArray moved_extra(const ExtraArray& extra, const SharedArray<VertexId>& new_to_old) {
  const std::int64_t vertices = new_to_old.size();
  const bool by_row = !extra.shape.empty() && extra.shape[0] == vertices;
  const bool by_column = !by_row && extra.shape.size() == 2 && extra.shape[1] == vertices;
  if ((!by_row && !by_column) || vertices == 0 || extra.bytes.empty()) return extra;
  // Rows of the vertices' dimension: the whole array once, or each of its rows.
  const std::int64_t repeats = by_row ? 1 : extra.shape[0];
  const std::int64_t block = extra.bytes.size() / repeats;
  ExtraArray moved{extra.type, extra.shape, {}};
  Buffer<std::byte> bytes(extra.bytes.size());
  for (std::int64_t i = 0; i < repeats; ++i) {
    move_rows(extra.bytes.data() + i * block, bytes.data() + i * block,
              static_cast<std::size_t>(block / vertices), new_to_old);
  }
  moved.bytes = std::move(bytes);
  return moved;
}

}  // namespace

Dataset permuted(const Dataset& dataset, const Permutation& permutation) {
  dataset.validate(Nonfinite::allow);
  const SharedArray<VertexId>& new_to_old = permutation.new_to_old();
  Dataset result = dataset;
  change_edges(result, [&](const Graph& graph) { return permuted(graph, permutation); });
  result.features = moved_features(dataset.features, new_to_old);
  result.labels = moved_labels(dataset.labels, new_to_old);
  result.targets = moved_targets(dataset.targets, new_to_old);
  const Permutation inverse = permutation.inverse();
  const SharedArray<VertexId>& old_to_new = inverse.new_to_old();
  result.train = renumbered(dataset.train, old_to_new);
  result.validation = renumbered(dataset.validation, old_to_new);
  result.test = renumbered(dataset.test, old_to_new);
  for (VertexSplit& split : result.splits) {
    for (SharedArray<std::int64_t>* part : {&split.train, &split.validation, &split.test}) {
      *part = renumbered(*part, old_to_new);
    }
  }
  result.graph_ids = detail::gathered(dataset.graph_ids, new_to_old);
  result.filled_cells = moved_cells(dataset.filled_cells, dataset.num_features(), old_to_new);
  result.vertex_names = moved_names(dataset.vertex_names, new_to_old);
  for (auto& [name, extra] : result.extras) extra = moved_extra(extra, new_to_old);
  return result;
}

}  // namespace tessera
