// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/nn/input.hpp"
#include "tessera/nn/names.hpp"
#include "tessera/ops/linear.hpp"

namespace tessera::nn {

struct NamedParameter {
  std::string path;  ///< "convs.0.lin.weight"
  Parameter* parameter;
};

struct NamedTensor {
  std::string path;
  Tensor* tensor;
};

class Rounder;

struct NamedRounder {
  std::string path;  ///< "convs.0.inner"
  Rounder* rounder;
};

class BitSteps;
class Epilogue;

/// The gradient of a layer's output as a product that nobody has written
/// (ops/gradient_factors.hpp): rows x k times k x width.
struct GradientProduct {
  const Tensor* left = nullptr;
  const Tensor* right = nullptr;

  ops::GradientFactors factors() const { return {*left, *right}; }
};

/// A differentiable function with parameters. A layer owns its output and its gradients; both stay
/// valid until its next pass. Not copied or moved, since others point at its parts.
class Layer {
 public:
  explicit Layer(Placement placement) : placement_(placement) {}
  virtual ~Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  /// `input` must live until backward is over.
  virtual const Tensor& forward(const Input& input, const Context& context) = 0;

  /// Takes the gradient of the last forward's output, which it may overwrite, writes the gradient
  /// of every trainable parameter, and returns that of the input, which the caller may overwrite;
  /// nullptr if the input was sparse or `set_needs_input_gradient(false)` was called.
  virtual Tensor* backward(Tensor& grad_output, const Context& context) = 0;

  /// Whether backward takes a product as well, and the pass itself.
  virtual bool takes_product() const { return false; }
  virtual Tensor* backward_product(const GradientProduct& grad_output, const Context& context);
  /// Lets backward leave the gradient of the input as a product where that pays: it returns nullptr
  /// then. Its factors stay valid until the next pass.
  void let_leave_product(bool lets) { leaves_product_ = lets; }
  /// What the last backward pass left; null: nothing.
  const GradientProduct* left_product() const noexcept {
    return left_product_.left == nullptr ? nullptr : &left_product_;
  }

  /// Makes all plans and buffers that passes on inputs of this shape need, and computes nothing: in
  /// training those of backward, too. Passes that are recorded must be prepared.
  void prepare(const Input& input, const Context& context);

  /// How many graphs of a list (`Context::graphs`) the layer takes.
  virtual std::int64_t num_graphs() const { return 0; }

  virtual std::int64_t input_width() const = 0;
  virtual std::int64_t output_width() const = 0;
  /// One line: "GCN(1433, 16, relu)".
  virtual std::string describe() const = 0;
  /// False where a sparse input must be made dense first.
  virtual bool accepts_sparse() const { return true; }

  const Placement& placement() const noexcept { return placement_; }
  Device device() const noexcept { return placement_.device(); }

  /// Parameters of this layer and the layers in it, in a fixed order.
  std::vector<NamedParameter> parameters();
  /// Parameters and the rest that a checkpoint keeps, such as running means. Whoever writes to them
  /// calls `round_parameters` then.
  std::vector<NamedTensor> state();
  /// What rounds features and activations to few bits; nothing where all bits stay.
  std::vector<NamedRounder> rounders();
  /// As `Parameter::round` for all of them.
  void round_parameters(Stream stream = {});
  std::int64_t num_parameters();

  /// Draws every parameter afresh; the same seed gives the same numbers on any device.
  void reset_parameters(std::uint64_t seed);

  /// Gives this layer and those in it four numbers each from `first` on, so that their random
  /// numbers differ; returns the next unused one. `number()` is the first of a layer's four.
  std::uint32_t assign_numbers(std::uint32_t first);
  std::uint32_t number() const noexcept { return number_; }

  /// For a batch norm that follows directly, to which a bias costs nothing: hands over the bias
  /// that is the last thing this layer adds. From then on its passes leave it out, and its gradient
  /// is for the other to write. nullptr: there is none.
  virtual Parameter* leave_bias() { return nullptr; }
  /// For the same: the moments of the output's columns. From then on passes in training find them
  /// where that costs nothing, and say so. nullptr: they never do.
  virtual const ColumnMoments* leave_moments() { return nullptr; }

  /// For the same: whether backward takes the gradient of what batch norm makes of the output in
  /// place of the output's own, so that nobody writes that; and what it needs for it, before each
  /// such pass.
  virtual bool takes_normed(const Context&) { return false; }
  virtual void take_normed(const ops::NormedGradient&) {}

  /// For whoever makes the gradient of the output: the bias whose gradient is the sum of that over
  /// the rows. It is to be written on the way; the next backward leaves it out. nullptr: there is
  /// none.
  virtual Parameter* leave_sum(const Context&) { return nullptr; }
  /// What this layer does last, for a layer that follows directly: it may find the gradient of that
  /// while it writes the gradient of its own input. nullptr: nothing that could be left to it.
  virtual Epilogue* last_epilogue() { return nullptr; }
  /// For the one that follows.
  void follow(Epilogue* before) { epilogue_before_ = before; }

  /// Whether small dense ops of its passes may wait for others, so that several run in one launch:
  /// a layer that says so lets them go before it gives anything else to the device
  /// (`ops::release_calls`). For layers of this library.
  virtual bool lets_calls_wait() const { return false; }

  /// Appends what the last forward pass computed as products of codes (bit_steps.hpp); false where
  /// it and all that follows it is computed in floating point. Layers that can do neither throw
  /// `unsupported`.
  virtual bool append_to(BitSteps& steps) const;

  /// First layers need none: skipping it saves a product.
  virtual void set_needs_input_gradient(bool needs) { needs_input_gradient_ = needs; }
  bool needs_input_gradient() const noexcept { return needs_input_gradient_; }

 protected:
  bool leaves_product() const noexcept { return leaves_product_; }
  /// Of the layer before, null where there is none.
  Epilogue* epilogue_before() const noexcept { return epilogue_before_; }
  /// For backward to say what it left; of nothing, that it left nothing.
  void leave(const GradientProduct& product) { left_product_ = product; }
  /// Called by a derived constructor for each of its parts, which must live as long as the layer.
  void register_parameter(Parameter& parameter) { parameters_.push_back(&parameter); }
  void register_buffer(std::string name, Tensor& tensor) {
    buffers_.emplace_back(std::move(name), &tensor);
  }
  void register_layer(std::string name, Layer& layer) {
    layers_.emplace_back(std::move(name), &layer);
  }
  void register_rounder(std::string name, Rounder& rounder) {
    rounders_.emplace_back(std::move(name), &rounder);
  }

 private:
  void collect(const std::string& prefix, std::vector<NamedRounder>& rounders) const;
  void collect(const std::string& prefix, std::vector<NamedParameter>& parameters,
               std::vector<NamedTensor>& buffers);

  Placement placement_;
  std::vector<Parameter*> parameters_;
  std::vector<std::pair<std::string, Tensor*>> buffers_;
  std::vector<std::pair<std::string, Layer*>> layers_;
  std::vector<std::pair<std::string, Rounder*>> rounders_;
  std::uint32_t number_ = 0;
  bool needs_input_gradient_ = true;
  bool leaves_product_ = false;
  GradientProduct left_product_;
  Epilogue* epilogue_before_ = nullptr;
};

/// A layer whose targets may have features of their own (bipartite graphs, as PyG's pairs of x).
/// Given one input only, the targets are the first of the sources, as many as the graph has rows:
/// all of them on a square graph.
class PairLayer : public Layer {
 public:
  using Layer::Layer;

  /// The targets are the first of the sources.
  const Tensor& forward(const Input& input, const Context& context) final;
  Tensor* backward(Tensor& grad_output, const Context& context) final;
  std::int64_t num_graphs() const override { return 1; }
  /// `sources` has the graph's columns as rows, `targets` its rows. Backward then returns the
  /// gradient of `sources`, and `target_gradient` has that of `targets`. If both are the same
  /// input, backward returns the sum.
  const Tensor& forward(const Input& sources, const Input& targets, const Context& context);
  virtual Tensor* target_gradient() = 0;

 protected:
  virtual const Tensor& forward_pair(const Input& sources, const Input& targets,
                                     const Context& context) = 0;
  /// For sources and targets as the last forward had them.
  virtual Tensor* backward_pair(Tensor& grad_output, const Context& context) = 0;

 private:
  std::optional<Tensor> first_sources_;  ///< the targets of a graph that is not square
  bool takes_first_sources_ = false;     ///< in the last forward
};

}  // namespace tessera::nn
