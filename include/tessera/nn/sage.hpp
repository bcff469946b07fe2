// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tessera/nn/layer.hpp"

namespace tessera::nn {

enum class SageAggregation {
  mean,  ///< of the sources
  max,   ///< of the sources, element by element
  gcn,   ///< mean of the sources and the target itself, without a weight of its own for the target
};

const char* to_string(SageAggregation aggregation) noexcept;
SageAggregation parse_sage_aggregation(const std::string& text);

struct SageOptions {
  std::int64_t in = 0;
  std::int64_t in_target = 0;  ///< width of the targets' features; 0: as `in`
  std::int64_t out = 0;
  SageAggregation aggregation = SageAggregation::mean;
  bool root_weight = true;
  bool normalise = false;  ///< rows of the output to unit length
  EpilogueOptions output = {};
};

/// Hamilton et al. (2017): Y = aggregate(X_source) W_l^T + b + X_target W_r^T. PyG's SAGEConv:
/// `lin_l.weight`, `lin_l.bias`, `lin_r.weight`. Edge weights do not count. Max needs dense input.
class Sage final : public PairLayer {
 public:
  explicit Sage(const SageOptions& options, Placement placement = {});

  std::int64_t input_width() const override { return options_.in; }
  std::int64_t output_width() const override { return options_.out; }
  std::string describe() const override;
  bool accepts_sparse() const override { return options_.aggregation != SageAggregation::max; }

 private:
  step::Value build(const StepInputs& inputs) override;

  SageOptions options_;
  Parameter weight_;
  std::optional<Parameter> root_;
  Epilogue epilogue_;
};

}  // namespace tessera::nn
