// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tessera/nn/layer.hpp"

namespace tessera::nn {

struct RelationalGatOptions {
  std::int64_t in = 0;
  std::int64_t out = 0;  ///< of all heads together, a multiple of their number
  std::int64_t relations = 0;
  std::int64_t heads = 1;
  double negative_slope = 0.2;
  double attention_dropout = 0;
  EpilogueOptions output = {};  ///< its bias: whether every relation has one
};

/// GAT on every relation, summed: each target attends to its sources of each relation apart.
///
/// What PyG's HeteroConv of a GATConv((-1, -1)) without self loops for each relation computes with
/// `aggr="sum"`. Each parameter has a row for each relation: `lin_src.weight` and `lin_dst.weight`
/// matrices row by row, in x out, `att_src`, `att_dst` and `bias`. Takes nine graphs: those of
/// `RelationSegments`, of `KindGraphs` and of `RelationSources`. Kinds that no relation ends in
/// have rows of 0.
class RelationalGat final : public Layer {
 public:
  explicit RelationalGat(const RelationalGatOptions& options, Placement placement = {});

  std::int64_t num_graphs() const override { return 9; }
  std::int64_t input_width() const override { return options_.in; }
  std::int64_t output_width() const override { return options_.out; }
  std::string describe() const override;
  bool accepts_sparse() const override { return false; }

 private:
  step::Value build(const StepInputs& inputs) override;

  RelationalGatOptions options_;
  Parameter source_, target_, source_scores_, target_scores_, bias_;
};

}  // namespace tessera::nn
