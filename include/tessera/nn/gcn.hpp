// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tessera/nn/layer.hpp"

namespace tessera::nn {

struct GcnOptions {
  std::int64_t in = 0;
  std::int64_t out = 0;
  bool normalise = true;  ///< otherwise the graph is used as it is given
  bool add_self_loops = true;
  /// The input has been multiplied with the adjacency already.
  bool precomputed = false;
  int bits = 0;  ///< of weights and of what is propagated; 0: all of them
  /// Whether the input is rounded to as many before it meets the weights; features have been,
  /// before they were normalised. What the graph sums is always rounded.
  bool rounds_input = true;
  EpilogueOptions output = {};
};

/// Kipf and Welling (2017): Y = D^-1/2 (A + I) D^-1/2 X W^T + b. PyG's GCNConv: `lin.weight`,
/// `bias`. Edge weights count. Works in the narrower of the two widths.
class Gcn final : public Layer {
 public:
  explicit Gcn(const GcnOptions& options, Placement placement = {});

  std::int64_t num_graphs() const override { return options_.precomputed ? 0 : 1; }
  std::int64_t input_width() const override { return options_.in; }
  std::int64_t output_width() const override { return options_.out; }
  std::string describe() const override;

 private:
  step::Value build(const StepInputs& in) override;
  Derivation adjacency(const StepInputs& in) const;

  GcnOptions options_;
  Parameter weight_;
  Rounder weight_rounder_, input_rounder_, inner_rounder_;
  Epilogue epilogue_;
};

}  // namespace tessera::nn
