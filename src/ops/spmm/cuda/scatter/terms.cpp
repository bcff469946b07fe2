// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "cuda/array.hpp"
#include "cuda/coo.hpp"
#include "cuda/rows.hpp"
#include "graph/access.hpp"
#include "graph/coo_access.hpp"
#include "ops/spmm/edge_terms.hpp"

namespace tessera::ops {
namespace {

/// Counts what the terms ask for, on the place's stream.
class Survey {
 public:
  Survey(const EdgeTerms& terms, bool loops, bool edges, bool sums, const Place& place)
      : place_(place),
        num_rows_(terms.num_rows),
        edges_(edges ? terms.num_rows : 0, place),
        sums_(sums ? terms.num_rows : 0, place),
        loops_(loops ? terms.num_rows : 0, place) {
    cuda::clear(edges_, place);
    cuda::clear(sums_, place);
    cuda::clear(loops_, place);
    cuda::count_edges({terms.rows.data(), terms.cols.data(), terms.num_edges, terms.values.data()},
                      counts(), place.stream);
  }

  void rule(const cuda::RuledVertices& vertices) {
    cuda::rule_vertices(counts(), num_rows_, vertices, place_.stream);
  }

 private:
  cuda::RowCounts counts() { return {edges_.data(), sums_.data(), loops_.data()}; }

  Place place_;
  VertexId num_rows_;
  Buffer<std::uint32_t> edges_;
  Buffer<double> sums_;
  Buffer<std::uint32_t> loops_;
};

}  // namespace

EdgeTerms cuda_edge_terms(const Coo& coo, bool with_degrees, const Place& place) {
  using Of = detail::CooAccess;
  EdgeTerms terms;
  terms.num_rows = coo.num_rows();
  terms.num_cols = coo.num_cols();
  terms.num_edges = coo.num_edges();
  terms.rows = cuda::array_in(Of::rows(coo), place);
  terms.cols = cuda::array_in(Of::cols(coo), place);
  if (coo.rule() != EdgeRule::looped) terms.values = cuda::array_in(Of::values(coo), place);
  terms.function = coo.function();
  terms.row_numbers = cuda::array_in(Of::row_numbers(coo), place);
  terms.col_numbers = cuda::array_in(Of::col_numbers(coo), place);
  const bool gcn = coo.rule() == EdgeRule::gcn;
  const bool loops = adds_loops(coo);
  if (!gcn && !loops && !with_degrees) return terms;
  const bool sums = gcn && !terms.values.empty();
  Survey survey(terms, loops, with_degrees || (gcn && !sums), sums, place);
  Buffer<std::uint32_t> degrees(with_degrees ? terms.num_rows : 0, place);
  Buffer<float> loop_values(loops ? terms.num_rows : 0, place);
  Buffer<float> scales(gcn ? terms.num_rows : 0, place);
  survey.rule({coo.loop_weight(), degrees.data(), loop_values.data(), scales.data()});
  if (with_degrees) terms.degrees = std::move(degrees);
  if (loops) terms.loops = std::move(loop_values);
  if (gcn) terms.row_numbers = terms.col_numbers = std::move(scales);
  return terms;
}

EdgeTerms cuda_edge_terms(const Graph& graph, bool with_degrees, const Place& place) {
  EdgeTerms terms;
  terms.num_rows = graph.num_rows();
  terms.num_cols = graph.num_cols();
  terms.num_edges = graph.num_edges();
  const auto rows = cuda::device_rows(graph, place);
  Buffer<VertexId> expanded(graph.num_edges(), place);
  cuda::expand_rows(rows->offsets(), graph.num_rows(), graph.num_edges(), expanded.data(),
                    place.stream);
  terms.rows = std::move(expanded);
  terms.cols = rows->indices;
  terms.values = cuda::array_in(detail::GraphAccess::values(graph), place);
  terms.row_numbers = cuda::array_in(detail::GraphAccess::row_scale(graph), place);
  terms.col_numbers = cuda::array_in(detail::GraphAccess::col_scale(graph), place);
  if (!with_degrees) return terms;
  Survey survey(terms, false, true, false, place);
  Buffer<std::uint32_t> degrees(terms.num_rows, place);
  survey.rule({1, degrees.data(), nullptr, nullptr});
  terms.degrees = std::move(degrees);
  return terms;
}

}  // namespace tessera::ops
