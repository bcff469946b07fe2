// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tessera/nn/layer.hpp"

namespace tessera::nn {

struct ChebOptions {
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::int64_t order = 2;  ///< K: the number of polynomials, from T_0 to T_(K-1)
  double lambda_max = 2;   ///< the largest eigenvalue assumed of the Laplacian
  EpilogueOptions output = {};
};

/// Defferrard et al. (2016): Y = sum over k of T_k(L) X W_k^T + b, L = 2 (I - D^-1/2 A D^-1/2) /
/// lambda_max - I. PyG's ChebConv with "sym": `lins.0.weight`, …, `bias`. Edge weights count; the
/// graph's own self loops do not. Summed by Clenshaw's recurrence, in the width of the output.
class Cheb final : public Layer {
 public:
  explicit Cheb(const ChebOptions& options, Placement placement = {});

  std::int64_t input_width() const override { return options_.in; }
  std::int64_t output_width() const override { return options_.out; }
  std::string describe() const override;

 private:
  step::Value build(const StepInputs& inputs) override;
  /// factor * L x.
  step::Value laplacian(step::Program& program, double factor, step::Value x) const;

  ChebOptions options_;
  std::vector<std::unique_ptr<Parameter>> weights_;
  Epilogue epilogue_;
};

}  // namespace tessera::nn
