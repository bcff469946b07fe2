// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tessera/nn/layer.hpp"

/// Layers that multiply with powers of the adjacency, or a polynomial of it.
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

  /// One for each of its sums.
  std::int64_t num_graphs() const override { return options_.precomputed ? 0 : options_.hops; }
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

struct LightGcnOptions {
  std::int64_t vertices = 0;
  std::int64_t out = 0;
  std::int64_t layers = 3;  ///< K
};

/// He et al. (2020): Y = (E + A E + … + A^K E) / (K + 1) with GCN's normalised A without self loops
/// of the layer's own. PyG's LightGCN: `embedding.weight`, E, a row for each vertex. Edge weights
/// count. The input has a column for each vertex, and its numbers are not read: it stands for one
/// that says of each vertex which it is.
class LightGcn final : public Layer {
 public:
  explicit LightGcn(const LightGcnOptions& options, Placement placement = {});

  std::int64_t input_width() const override { return embedding_.value.rows(); }
  std::int64_t output_width() const override { return embedding_.value.cols(); }
  std::string describe() const override;

 private:
  step::Value build(const StepInputs& inputs) override;

  std::int64_t layers_;
  Parameter embedding_;
};

}  // namespace tessera::nn
