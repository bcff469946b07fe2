// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tessera/core/memory.hpp"
#include "tessera/nn/epilogue.hpp"
#include "tessera/nn/layer.hpp"
#include "tessera/nn/projection.hpp"
#include "tessera/ops/aggregate_update.hpp"

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

  Tensor* target_gradient() override;
  std::int64_t input_width() const override { return options_.in; }
  std::int64_t output_width() const override { return options_.out; }
  std::string describe() const override;
  Parameter* leave_sum(const Context& context) override {
    return after_unit_ ? nullptr : epilogue_.leave_sum(context);
  }
  bool accepts_sparse() const override { return options_.aggregation != SageAggregation::max; }

 private:
  const Tensor& forward_pair(const Input& sources, const Input& targets,
                             const Context& context) override;
  Tensor* backward_pair(Tensor& grad_output, const Context& context) override;
  bool transforms_first(const Input& sources) const;
  bool uses_root(const Input& targets) const;
  /// What to ask a plan that sums and multiplies in one kernel for; absent where it cannot.
  std::optional<ops::AggregateUpdateOptions> fusable(const Input& sources, const Input& targets,
                                                     const Context& context) const;
  ops::AggregateUpdatePlan fused_plan(const Context& context) const;
  const Tensor& forward_fused(const Context& context);
  void backward_fused(const Tensor& grad, const Context& context);
  void aggregate(const Tensor& x, Tensor& y, const Context& context);
  void aggregate_backward(const Tensor& grad_y, Tensor& grad_x, const Context& context);

  SageOptions options_;
  Projection neighbours_;
  std::optional<Projection> root_;
  Epilogue epilogue_;
  std::optional<Epilogue> after_unit_;  ///< what follows where rows are brought to unit length
  std::optional<ops::AggregateUpdateOptions> fused_;  ///< of the last forward pass, if it was
  Input sources_;
  Input targets_;
  Tensor inner_;
  Tensor outer_;
  Tensor root_sums_;  ///< of the targets' own features, where the aggregation comes last
  Tensor unit_;
  Buffer<VertexId> winners_;
  Tensor grad_inner_;
  Tensor grad_sources_;
  Tensor grad_targets_;
};

}  // namespace tessera::nn
