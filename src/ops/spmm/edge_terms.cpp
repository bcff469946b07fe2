// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/edge_terms.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "graph/coo_access.hpp"

namespace tessera::ops {
namespace {

/// How many edges rows have. Sequential: one pass over the ids, beside passes over features.
SharedArray<std::uint32_t> counted(const EdgeTerms& terms) {
  Buffer<std::uint32_t> degrees(terms.num_rows);
  std::fill(degrees.begin(), degrees.end(), 0u);
  for (const VertexId row : terms.rows.span()) ++degrees[row];
  for (std::int64_t i = 0; i < terms.loops.size(); ++i) degrees[i] += terms.loops[i] != 0 ? 1 : 0;
  return degrees;
}

/// The loops that are added, where the edges have none.
SharedArray<float> added_loops(const EdgeTerms& terms, float weight) {
  Buffer<float> loops(terms.num_rows);
  std::fill(loops.begin(), loops.end(), weight);
  for (EdgeOffset k = 0; k < terms.num_edges; ++k) {
    if (terms.rows[k] == terms.cols[k]) loops[terms.rows[k]] = 0;
  }
  return loops;
}

/// GCN's D^-1/2.
SharedArray<float> gcn_scale(const EdgeTerms& terms) {
  std::vector<double> degrees(static_cast<std::size_t>(terms.num_rows));
  std::copy(terms.loops.begin(), terms.loops.end(), degrees.begin());
  for (EdgeOffset k = 0; k < terms.num_edges; ++k) {
    degrees[static_cast<std::size_t>(terms.rows[k])] += terms.values.empty() ? 1 : terms.values[k];
  }
  std::vector<float> scale(degrees.size());
  std::transform(degrees.begin(), degrees.end(), scale.begin(), [](double degree) {
    return static_cast<float>(degree <= 0 ? 0.0 : 1 / std::sqrt(degree));
  });
  return SharedArray<float>(std::move(scale));
}

EdgeTerms cpu_edge_terms(const Coo& coo, bool with_degrees) {
  using Of = detail::CooAccess;
  EdgeTerms terms;
  terms.num_rows = coo.num_rows();
  terms.num_cols = coo.num_cols();
  terms.num_edges = coo.num_edges();
  terms.rows = Of::rows(coo).here();
  terms.cols = Of::cols(coo).here();
  if (coo.rule() != EdgeRule::looped) terms.values = Of::values(coo).here();
  terms.function = coo.function();
  terms.row_numbers = Of::row_numbers(coo).here();
  terms.col_numbers = Of::col_numbers(coo).here();
  if (adds_loops(coo)) terms.loops = added_loops(terms, coo.loop_weight());
  if (coo.rule() == EdgeRule::gcn) terms.row_numbers = terms.col_numbers = gcn_scale(terms);
  if (with_degrees) terms.degrees = counted(terms);
  return terms;
}

EdgeTerms cpu_edge_terms(const Graph& graph, bool with_degrees) {
  EdgeTerms terms;
  terms.num_rows = graph.num_rows();
  terms.num_cols = graph.num_cols();
  terms.num_edges = graph.num_edges();
  Buffer<VertexId> rows(graph.num_edges());
  for (VertexId row = 0; row < graph.num_rows(); ++row) {
    std::fill(rows.begin() + graph.row_offsets()[row], rows.begin() + graph.row_offsets()[row + 1],
              row);
  }
  terms.rows = std::move(rows);
  terms.cols = graph.col_indices();
  terms.values = graph.values();
  terms.row_numbers = graph.row_scale();
  terms.col_numbers = graph.col_scale();
  if (with_degrees) terms.degrees = counted(terms);
  return terms;
}

template <class Matrix>
std::shared_ptr<const EdgeTerms> made(const Matrix& matrix, bool with_degrees,
                                      [[maybe_unused]] const Place& place) {
#ifdef TESSERA_WITH_CUDA
  if (place.device.kind == DeviceKind::cuda) {
    return std::make_shared<const EdgeTerms>(cuda_edge_terms(matrix, with_degrees, place));
  }
#endif
  return std::make_shared<const EdgeTerms>(cpu_edge_terms(matrix, with_degrees));
}

}  // namespace

std::shared_ptr<const EdgeTerms> edge_terms(const SpmmProblem& problem) {
  const Place place = problem.place();
  const bool with_degrees = problem.reduction == Reduction::mean;
  if (!problem.edges) return made(problem.graph, with_degrees, place);
  const std::string key =
      fmt::format("terms of {}, {}, {}{}", to_string(place.device), fmt::ptr(place.memory),
                  fmt::ptr(place.stream.handle), with_degrees ? ", degrees" : "");
  return std::static_pointer_cast<const EdgeTerms>(detail::CooAccess::shared(
      *problem.edges, key,
      [&]() -> std::shared_ptr<const void> { return made(*problem.edges, with_degrees, place); }));
}

}  // namespace tessera::ops
