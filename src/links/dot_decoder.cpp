// SPDX-License-Identifier: Apache-2.0
#include "tessera/links/decoder.hpp"

#include <fmt/format.h>

#include "tessera/core/parallel.hpp"
#include "tessera/graph/build.hpp"
#include "tessera/ops/sddmm.hpp"

#include "links/decoder_checks.hpp"

namespace tessera::links {
namespace {

/// Scores as a matrix of one column.
template <class T>
MatrixView<T> column(std::span<T> scores) {
  return {scores.data(), std::ssize(scores), 1};
}

}  // namespace

struct DotDecoder::State {
  State(const Pairs& pairs, VertexId num_sources, VertexId num_targets,
        const DecoderOptions& options)
      : width(options.features), precision(options.precision) {
    require_one_each(pairs.targets.size(), pairs, "targets");
    require_ids(pairs.sources, num_sources, "source");
    require_ids(pairs.targets, num_targets, "target");
    decoder_check.that(width > 0, fmt::format("embeddings of {} numbers", width), "give features");
    decoder_check.that(precision == Precision::fp32 || precision == Precision::fp64,
                       fmt::format("scores in {}", to_string(precision)), "use fp32 or fp64");
    graph = from_coo(num_targets, num_sources, pairs.targets, pairs.sources, {},
                     {.duplicates = Duplicates::keep, .keep_edge_ids = true});
    ops::SddmmOptions planned;
    planned.precision = precision;
    planned.features = width;
    planned.backward = options.backward;
    plan = ops::plan_sddmm(graph, planned);
  }

  /// The place of pair k among the edges of the graph.
  EdgeOffset edge_of(std::int64_t k) const { return graph.edge_ids()[k]; }

  std::int64_t width;
  Precision precision;
  Graph graph;
  ops::SddmmPlan plan;
};

DotDecoder::DotDecoder(const Pairs& pairs, VertexId num_sources, VertexId num_targets,
                       const DecoderOptions& options)
    : state_(std::make_unique<State>(pairs, num_sources, num_targets, options)) {}
DotDecoder::~DotDecoder() = default;
DotDecoder::DotDecoder(DotDecoder&&) noexcept = default;
DotDecoder& DotDecoder::operator=(DotDecoder&&) noexcept = default;

template <class T>
void DotDecoder::score(MatrixView<const T> sources, MatrixView<const T> targets,
                       std::span<T> scores) {
  const Graph& graph = state_->graph;
  decoder_check.matrix(column(scores), "scores", expected<T>(graph.num_edges(), 1));
  Matrix<T> edges(graph.num_edges(), 1);
  ops::run(state_->plan, targets, sources, edges);
  parallel_for(edges.rows(), even_grain(edges.rows()), [&](std::int64_t k) {
    scores[static_cast<std::size_t>(k)] = edges(state_->edge_of(k), 0);
  });
}

template <class T>
void DotDecoder::backward(MatrixView<const T> sources, MatrixView<const T> targets,
                          std::span<const T> grad_scores, MatrixView<T> grad_sources,
                          MatrixView<T> grad_targets) {
  const Graph& graph = state_->graph;
  decoder_check.matrix(column(grad_scores), "grad_scores", expected<T>(graph.num_edges(), 1));
  Matrix<T> edges(graph.num_edges(), 1);
  parallel_for(edges.rows(), even_grain(edges.rows()), [&](std::int64_t k) {
    edges(state_->edge_of(k), 0) = grad_scores[static_cast<std::size_t>(k)];
  });
  ops::run_backward(state_->plan, targets, sources, edges, grad_targets, grad_sources);
}

template void DotDecoder::score(MatrixView<const float>, MatrixView<const float>, std::span<float>);
template void DotDecoder::backward(MatrixView<const float>, MatrixView<const float>,
                                   std::span<const float>, MatrixView<float>, MatrixView<float>);
template void DotDecoder::score(MatrixView<const double>, MatrixView<const double>,
                                std::span<double>);
template void DotDecoder::backward(MatrixView<const double>, MatrixView<const double>,
                                   std::span<const double>, MatrixView<double>, MatrixView<double>);

}  // namespace tessera::links
