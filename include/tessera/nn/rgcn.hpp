// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tessera/nn/layer.hpp"

namespace tessera::nn {

struct RgcnOptions {
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::int64_t relations = 0;
  /// Each relation's weight is so many blocks on the diagonal, of (in / blocks) x (out / blocks).
  std::int64_t blocks = 1;
  /// Each relation's weight is a sum of so many bases; 0: it is its own.
  std::int64_t bases = 0;
  bool root = true;  ///< whether a vertex counts itself, too
  EpilogueOptions output = {};
};

/// Schlichtkrull et al. (2018): y_i = W_0 x_i + the sum over relations r of W_r times the mean of
/// x_j over the edges of r from j to i, + b.
///
/// PyG's RGCNConv: `weight` has a row for each relation, block after block, each in x out; with
/// bases `comp`, relations x bases, and `weight`, which has a column for each basis. `root.weight`
/// is out x in. Takes three graphs, those of `RelationSegments` in their order. What it keeps is as
/// many rows as there are pairs of a vertex and a relation that ends there.
class Rgcn final : public Layer {
 public:
  explicit Rgcn(const RgcnOptions& options, Placement placement = {});

  std::int64_t num_graphs() const override { return 3; }
  std::int64_t input_width() const override { return options_.in; }
  std::int64_t output_width() const override { return options_.out; }
  std::string describe() const override;
  bool accepts_sparse() const override { return false; }

 private:
  step::Value build(const StepInputs& inputs) override;

  RgcnOptions options_;
  Parameter weight_;
  std::optional<Parameter> comp_, root_;
  Epilogue epilogue_;
};

}  // namespace tessera::nn
