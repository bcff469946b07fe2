// SPDX-License-Identifier: Apache-2.0
#include "train/blockwise_pass.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/graph/transform.hpp"
#include "tessera/ops/elementwise.hpp"
#include "tessera/ops/gather.hpp"

namespace tessera::train {
namespace {

/// Some rows of a matrix, as a matrix of their own.
step::Tensor rows_of(const step::Tensor& x, std::span<const VertexId> vertices, Stream stream) {
  step::Placement placement = x.placement();
  placement.stream = stream;
  step::Tensor chosen(std::ssize(vertices), x.cols(), placement);
  Buffer<VertexId> rows(std::ssize(vertices), placement.place());
  copy_bytes(rows.data(), vertices.data(), vertices.size_bytes(), placement.device(), stream);
  ops::gather_rows(x, MatrixView<const VertexId>(rows.data(), rows.size(), 1, placement.device()),
                   chosen, placement.device(), stream);
  return chosen;
}

/// So many rows of a matrix from `begin` on.
ops::Operand rows_from(step::Tensor& x, std::int64_t begin, std::int64_t count) {
  ops::Operand rows = x;
  rows.data = static_cast<std::byte*>(rows.data) + bytes_of(rows.type, begin * rows.stride);
  rows.rows = count;
  return rows;
}

}  // namespace

void require_blocks(const nn::ModelConfig& config, bool graph_task) {
  const std::pair<bool, const char*> impossible[] = {
      {graph_task, "graphs are classified"},
      {config.kind == nn::ModelKind::cheb, "cheb computes all its sums on the same vertices"},
      {config.kind == nn::ModelKind::agnn,
       "agnn's attention needs the same vertices on both sides"},
      {config.kind == nn::ModelKind::gine, "features of edges are read"},
      {config.kind == nn::ModelKind::lightgcn, "lightgcn has no layers"},
      {!config.bits.empty(), "a model of few bits has ranges of whole matrices"}};
  for (const auto& [given, why] : impossible) {
    if (!given) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("some rows at a time are not possible where {}", why), "rows_at_a_time",
                "leave it out");
  }
}

BlockwisePass::BlockwisePass(nn::Model& model, const Graph& graph, std::int64_t rows_at_a_time,
                             const ops::PlanOptions& plans)
    : model_(model),
      vertices_(graph.num_rows()),
      rows_(rows_at_a_time),
      plans_(plans),
      read_(model.placement()),
      written_(model.placement()) {
  // Every block is planned for once in every pass.
  plans_.epochs = 1;
  plans_.store = nullptr;
  find_stages();
  for (const Stage& stage : stages_) {
    if (stage.hops == 0 || draws_.contains(stage.hops)) continue;
    sample::NeighbourOptions all;
    all.fan_outs.assign(static_cast<std::size_t>(stage.hops), -1);
    draws_.emplace(stage.hops, NeighbourDraws(graph, all, drawn_edges_of(model)));
  }
}

void BlockwisePass::find_stages() {
  nn::Sequential& stack = model_.stack();
  for (std::int64_t i = 0; i < stack.size(); ++i) {
    const std::int64_t hops = stack.layer(i).num_graphs();
    if (i == 0 || hops > 0) stages_.push_back({i, i, hops});
    stages_.back().end = i + 1;
  }
}

const step::Tensor& BlockwisePass::run(const nn::Input& features, Stream stream,
                                       const ops::DenseWorkspace* workspace) {
  for (const Stage& stage : stages_) {
    const bool is_first = stage.first == 0;
    std::swap(read_, written_);
    written_.resize(vertices_, model_.stack().layer(stage.end - 1).output_width());
    for (std::int64_t begin = 0; begin < vertices_; begin += rows_) {
      run_block(stage, begin, std::min<std::int64_t>(begin + rows_, vertices_),
                is_first ? features : nn::Input(read_), stream, workspace);
    }
  }
  return written_;
}

void BlockwisePass::run_block(const Stage& stage, std::int64_t begin, std::int64_t end,
                              const nn::Input& features, Stream stream,
                              const ops::DenseWorkspace* workspace) {
  NeighbourDraws::Layers drawn;
  drawn.vertices.resize(static_cast<std::size_t>(end - begin));
  std::iota(drawn.vertices.begin(), drawn.vertices.end(), static_cast<VertexId>(begin));
  if (stage.hops > 0) {
    const std::vector<VertexId> seeds = std::move(drawn.vertices);
    drawn = draws_.at(stage.hops).draw(seeds, 0);
  }
  Place place = model_.placement().place();
  place.stream = stream;
  std::vector<step::Topology> graphs;
  for (const Graph& graph : drawn.graphs) graphs.emplace_back(graph, place, plans_);
  std::vector<step::Topology*> list;
  for (step::Topology& graph : graphs) list.push_back(&graph);
  step::Context context;
  context.stream = stream;
  context.workspace = workspace;

  std::optional<step::Topology> sparse;
  std::optional<step::Tensor> dense;
  if (features.is_sparse()) {
    sparse.emplace(selected_rows(features.sparse().graph(), drawn.vertices, stream), place, plans_);
  } else {
    dense.emplace(rows_of(features.dense("a pass by blocks"), drawn.vertices, stream));
  }
  const step::Tensor* result = nullptr;
  for (std::int64_t i = stage.first; i < stage.end; ++i) {
    const bool is_first = i == stage.first;
    context.graphs =
        is_first ? std::span<step::Topology* const>(list) : std::span<step::Topology* const>();
    const step::Input input = !is_first ? step::Input(*result)
                              : sparse  ? step::Input(*sparse)
                                        : step::Input(*dense);
    result = &model_.stack().layer(i).forward(input, context);
  }
  ops::copy(*result, rows_from(written_, begin, end - begin), place.device, stream);
  // What was planned for the block goes with it.
  synchronise(place.device, stream);
}

}  // namespace tessera::train
