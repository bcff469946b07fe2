// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/nn/names.hpp"
#include "tessera/ops/activation.hpp"
#include "tessera/step/nodes.hpp"
#include "tessera/step/program.hpp"
#include "tessera/step/recompute.hpp"
#include "tessera/step/rewrites.hpp"

namespace tessera::nn {

struct NamedParameter {
  std::string path;  ///< "convs.0.lin.weight"
  Parameter* parameter;
};

struct NamedTensor {
  std::string path;
  Tensor* tensor;
};

struct NamedRounder {
  std::string path;  ///< "convs.0.inner"
  Rounder* rounder;
};

struct EpilogueOptions {
  bool bias = true;
  ops::Activation activation = ops::Activation::none;
  double slope = 0.01;  ///< leaky_relu
  double alpha = 1;     ///< elu
  double dropout = 0;
};

/// ", relu, dropout 0.5", or nothing: the end of a layer's description.
std::string describe(const EpilogueOptions& options);

/// What ends a layer: y = drop(activate(x + bias)).
class Epilogue {
 public:
  Epilogue(const EpilogueOptions& options, std::int64_t width, Placement placement,
           Initial bias_initial = {}, std::string bias_name = "bias");

  std::optional<Parameter> bias;  ///< 1 x width
  const EpilogueOptions& options() const noexcept { return options_; }

 private:
  EpilogueOptions options_;
};

class Layer;

/// What a layer appends its nodes to, and what they read.
class StepInputs {
 public:
  StepInputs(step::Program& to, step::Value x, const Context* given, bool trains,
             std::uint32_t first_number)
      : program(to), sources(x), context(given), training(trains), number(first_number) {}
  /// For a layer that is a part of the one that these are for, and reads `x`.
  StepInputs(const StepInputs& whole, step::Value x, const Layer& part);

  step::Program& program;
  step::Value sources;
  const Context* context;  ///< null: every graph is square
  bool training;
  std::uint32_t number;  ///< of the layer: the first of its four (`Layer::assign_numbers`)
  /// Where they have features of their own; absent: they have none.
  std::optional<step::Value> own_targets = {};

  /// The rows that results are for: the sources where they are the same, or the first of them. May
  /// be absent.
  step::Value targets() const;
  step::Value parameter(Parameter& parameter) const { return program.parameter(parameter); }
  /// Bias, activation and, in training, dropout.
  step::Value finish(step::Value x, Epilogue& epilogue) const;
  /// The same but the bias.
  step::Value finish_without_bias(step::Value x, const EpilogueOptions& options) const;
  /// Codes of few bits, where the layer has a rounder for them.
  step::Value round(step::Value x, Rounder& rounder, const step::Rounding& rounding = {}) const {
    return step::round(program, x, rounder, rounding);
  }

 private:
  mutable std::optional<step::Value> found_targets_;
};

/// What became of the nodes that a layer appended.
struct StepExplanation {
  std::string written;    ///< the program as layers say it
  std::string rewritten;  ///< what is run, with its gradients
  std::vector<step::Fired> fired;
  step::Recomputed recomputed;
  std::int64_t bytes_moved = 0;     ///< by the nodes of the rewritten one
  std::int64_t arena_bytes = 0;     ///< of its values
  std::int64_t unshared_bytes = 0;  ///< what these would take side by side
};

class StepRunner;

/// A differentiable function with parameters that says what it computes as nodes of a step
/// (step/nodes.hpp): gradients, what is fused, and memory follow from them.
///
///     step::Value build(const nn::StepInputs& in) override {
///       const step::Value x = step::linear(in.program, in.sources, in.parameter(weight_));
///       return in.finish(step::aggregate(in.program, x, {nn::gcn_adjacency}), epilogue_);
///     }
///
/// A layer owns its output and its gradients; both stay valid until its next pass. Layers that are
/// parts of another one are parts of its program. Not copied or moved, since others point at its
/// parts.
class Layer {
 public:
  explicit Layer(Placement placement);
  virtual ~Layer();
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  /// `input` must live until backward is over.
  virtual const Tensor& forward(const Input& input, const Context& context);

  /// Takes the gradient of the last forward's output, which it may overwrite, writes the gradient
  /// of every trainable parameter, and returns that of the input, which the caller may overwrite;
  /// nullptr if the input was sparse or `set_needs_input_gradient(false)` was called.
  virtual Tensor* backward(Tensor& grad_output, const Context& context);

  /// Both passes in one, with the loss of the result against `context.targets`, which goes to
  /// `context.loss`: writes the gradient of every trainable parameter, and keeps no output.
  virtual void learn(const Input& input, const Context& context);

  /// Makes all plans and buffers that passes on inputs of this shape need, and computes nothing: in
  /// training those of backward, too. Passes that are recorded must be prepared.
  void prepare(const Input& input, const Context& context);
  /// The same for `learn`, of which the targets may follow.
  void prepare_to_learn(const Input& input, const Context& context);

  /// Appends what it computes to a program, and returns its result.
  step::Value append(const StepInputs& inputs) { return build(inputs); }

  /// The program of the last pass.
  StepExplanation explain() const;
  /// Rewrites that are left out from now on (step/rewrites.hpp): to measure what they are worth.
  void leave_out_rewrites(std::vector<std::string> names);
  /// Whether values are computed again for gradients, rather than kept, where that saves memory and
  /// costs little (step/recompute.hpp). Results are the same.
  void set_recompute(bool recompute);

  /// How many graphs of a list (`Context::graphs`) the layer takes.
  virtual std::int64_t num_graphs() const { return 1; }

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

  /// First layers need none: skipping it saves a product.
  void set_needs_input_gradient(bool needs) noexcept { needs_input_gradient_ = needs; }
  bool needs_input_gradient() const noexcept { return needs_input_gradient_; }

 protected:
  virtual step::Value build(const StepInputs& inputs) = 0;

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
  StepRunner& runner() noexcept { return *runner_; }

 private:
  void require_graphs(const Context& context) const;
  void collect(const std::string& prefix, std::vector<NamedRounder>& rounders) const;
  void collect(const std::string& prefix, std::vector<NamedParameter>& parameters,
               std::vector<NamedTensor>& buffers);

  Placement placement_;
  std::unique_ptr<StepRunner> runner_;
  std::vector<Parameter*> parameters_;
  std::vector<std::pair<std::string, Tensor*>> buffers_;
  std::vector<std::pair<std::string, Layer*>> layers_;
  std::vector<std::pair<std::string, Rounder*>> rounders_;
  std::uint32_t number_ = 0;
  bool needs_input_gradient_ = true;
};

/// A layer whose targets may have features of their own (bipartite graphs, as PyG's pairs of x).
/// Given one input only, the targets are the first of the sources, as many as the graph has rows:
/// all of them on a square graph.
class PairLayer : public Layer {
 public:
  using Layer::forward;
  using Layer::Layer;

  /// `sources` has the graph's columns as rows, `targets` its rows; these may be absent. Backward
  /// then returns the gradient of `sources`, and `target_gradient` has that of `targets`. If both
  /// are the same input, backward returns the sum.
  const Tensor& forward(const Input& sources, const Input& targets, const Context& context);
  /// Of the last backward pass; nullptr where the targets are the sources, absent or sparse.
  Tensor* target_gradient();
};

}  // namespace tessera::nn
