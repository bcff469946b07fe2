// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tessera/nn/layer.hpp"
#include "tessera/ops/spmm.hpp"

namespace tessera::nn {

struct ReadoutOptions {
  std::int64_t width = 0;
  ops::Reduction reduction = ops::Reduction::sum;
};

/// One row per graph of a union: the sum, mean, max or min over its vertices. Reads
/// `Context::pooling`. PyG's global_add_pool, global_mean_pool and global_max_pool.
class Readout final : public Layer {
 public:
  explicit Readout(const ReadoutOptions& options, Placement placement = {})
      : Layer(placement), options_(options) {}

  std::int64_t num_graphs() const override { return 0; }
  std::int64_t input_width() const override { return options_.width; }
  std::int64_t output_width() const override { return options_.width; }
  std::string describe() const override;
  bool accepts_sparse() const override { return false; }

 private:
  step::Value build(const StepInputs& inputs) override;

  ReadoutOptions options_;
};

}  // namespace tessera::nn
