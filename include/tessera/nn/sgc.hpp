// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tessera/nn/layer.hpp"

namespace tessera::nn {

struct SgcOptions {
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::int64_t hops = 1;  ///< K
  bool add_self_loops = true;
  /// The input has been propagated already (`propagated`): only the product with W is left.
  bool precomputed = false;
  EpilogueOptions output = {};
};

/// Wu et al. (2019): Y = A^K X W^T + b with GCN's normalised A. PyG's SGConv: `lin.weight`,
/// `lin.bias`. Edge weights count. Computed as A (… (A (X W^T))), in the narrow width.
class Sgc final : public Layer {
 public:
  explicit Sgc(const SgcOptions& options, Placement placement = {});

  std::int64_t num_graphs() const override { return options_.precomputed ? 0 : 1; }
  std::int64_t input_width() const override { return options_.in; }
  std::int64_t output_width() const override { return options_.out; }
  std::string describe() const override;

 private:
  step::Value build(const StepInputs& inputs) override;

  SgcOptions options_;
  Parameter weight_;
  Epilogue epilogue_;
};

/// Y = A X with GCN's normalised A.
void propagate(const Tensor& x, Topology& graph, Tensor& y, Stream stream = {});
/// A^hops X, dense: what layers with `precomputed` read.
Tensor propagated(const Input& x, Topology& graph, std::int64_t hops, Placement placement = {},
                  Stream stream = {});

}  // namespace tessera::nn
