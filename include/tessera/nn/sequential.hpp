// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tessera/nn/layer.hpp"
#include "tessera/ops/spmm.hpp"

namespace tessera::nn {

/// Layers one after the other. Of a list of graphs, each takes as many as it needs, in order.
class Sequential : public Layer {
 public:
  explicit Sequential(Placement placement = {}) : Layer(placement) {}

  /// `name` is the prefix of its parameters. Widths must fit; an error names both.
  Layer& add(std::string name, std::unique_ptr<Layer> layer);

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(layers_.size()); }
  Layer& layer(std::int64_t i) { return *layers_[static_cast<std::size_t>(i)]; }

  std::int64_t num_graphs() const override;
  std::int64_t input_width() const override;
  std::int64_t output_width() const override;
  std::string describe() const override;
  bool accepts_sparse() const override;
  /// Appends the layers from `first` on, which take the first graphs of a list.
  step::Value append_from(std::int64_t first, const StepInputs& in);
  /// Whether programs keep what goes into the last layer (`step::Program::keep`).
  void keep_last_input(bool keeps) noexcept { keeps_last_input_ = keeps; }

 private:
  step::Value build(const StepInputs& in) override { return append_from(0, in); }

  std::vector<std::unique_ptr<Layer>> layers_;
  bool keeps_last_input_ = false;
};

/// y = f(x) + x, on a graph whose targets are the first of its sources the rows of these.
class Residual final : public Layer {
 public:
  Residual(std::unique_ptr<Layer> inner, Placement placement = {});

  std::int64_t num_graphs() const override { return inner_->num_graphs(); }
  std::int64_t input_width() const override { return inner_->input_width(); }
  std::int64_t output_width() const override { return inner_->output_width(); }
  std::string describe() const override;
  bool accepts_sparse() const override { return false; }

 private:
  step::Value build(const StepInputs& in) override;

  std::unique_ptr<Layer> inner_;
};

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
