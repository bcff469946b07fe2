// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tessera/nn/layer.hpp"

namespace tessera::nn {

struct RelationalSageOptions {
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::int64_t relations = 0;
  EpilogueOptions output = {};  ///< its bias: whether every relation has one
};

/// GraphSAGE on every relation, summed: y_i = the sum over relations r that end in the kind of i of
/// W_r times the mean of x_j over the edges of r from j to i, + R_r x_i + b_r.
///
/// What PyG's HeteroConv of a SAGEConv for each relation computes with `aggr="sum"`. Each parameter
/// has a row for each relation: `lin_l.weight` and `lin_r.weight` the matrices W_r and R_r row by
/// row, in x out, and `bias`. Takes five graphs: those of `RelationSegments` and those of
/// `KindGraphs`. Kinds that no relation ends in have rows of 0.
class RelationalSage final : public Layer {
 public:
  explicit RelationalSage(const RelationalSageOptions& options, Placement placement = {});

  std::int64_t num_graphs() const override { return 5; }
  std::int64_t input_width() const override { return options_.in; }
  std::int64_t output_width() const override { return options_.out; }
  std::string describe() const override;
  bool accepts_sparse() const override { return false; }

 private:
  step::Value build(const StepInputs& inputs) override;

  RelationalSageOptions options_;
  Parameter neighbours_, own_, bias_;
};

}  // namespace tessera::nn
