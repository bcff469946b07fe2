// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tessera/nn/epilogue.hpp"
#include "tessera/nn/layer.hpp"
#include "tessera/step/execution.hpp"
#include "tessera/step/nodes.hpp"

namespace tessera::nn {

/// What a layer appends its nodes to, and what they read.
struct StepInputs {
  step::Program& program;
  step::Value sources;
  step::Value
      targets;  ///< the same value where sources and targets are the same rows; may be absent
  bool training = false;
  std::uint32_t number = 0;  ///< of the layer: the first of its four (`Layer::assign_numbers`)

  step::Value parameter(Parameter& parameter) const { return program.parameter(parameter); }
  /// Bias, activation and, in training, dropout.
  step::Value finish(step::Value x, Epilogue& epilogue) const;
  /// The same but the bias.
  step::Value finish_without_bias(step::Value x, const Epilogue& epilogue) const;
};

/// Keeps the programs of a layer, one for each way in which it is called, and runs them.
class StepRunner {
 public:
  using Build = step::Value (*)(Layer& layer, const StepInputs& inputs);

  StepRunner(Layer& layer, Build build);
  ~StepRunner();

  const Tensor& forward(const Input& sources, const Input& targets, Topology* graph,
                        const Context& context);
  Tensor* backward(Tensor& grad_output, const Context& context);
  /// Of the last backward pass; null where the targets are the sources, absent or sparse.
  Tensor* target_gradient();
  /// Leaves the gradient of a parameter out of the next backward pass; null: none.
  void leave_out(const Parameter* parameter) noexcept { left_out_ = parameter; }

 private:
  struct Form;
  Form& form_for(const Input& sources, const Input& targets, bool with_gradient,
                 const Context& context);
  const Tensor& run_forward(Form& form, const Context& context);

  Layer& layer_;
  Build build_;
  std::shared_ptr<step::Arena> arena_;
  Input sources_, targets_;  ///< of the last forward pass, and its graph
  Topology* graph_ = nullptr;
  std::vector<std::unique_ptr<Form>> forms_;
  Form* last_ = nullptr;
  const Parameter* left_out_ = nullptr;
  Tensor output_;
  Tensor grad_sources_;
  Tensor grad_targets_;
};

/// A layer that says what it computes as nodes of a step (step/nodes.hpp): its gradients, what is
/// fused, and its memory follow from them.
///
///     step::Value build(const nn::StepInputs& in) override {
///       const step::Value x = step::linear(in.program, in.sources, in.parameter(weight_));
///       return in.finish(step::aggregate(in.program, x, {nn::gcn_adjacency}), epilogue_);
///     }
class StepLayer : public Layer {
 public:
  explicit StepLayer(Placement placement);

  const Tensor& forward(const Input& input, const Context& context) final;
  Tensor* backward(Tensor& grad_output, const Context& context) final;
  std::int64_t num_graphs() const override { return 1; }
  Parameter* leave_sum(const Context& context) override;

 protected:
  /// Appends what the layer computes and returns its result.
  virtual step::Value build(const StepInputs& inputs) = 0;
  /// What ends the layer; null: nothing of its own.
  virtual Epilogue* epilogue() { return nullptr; }
  /// The graph that its nodes name as number 0; null where they name none.
  virtual Topology* graph(const Context& context) const;

 private:
  StepRunner runner_;
};

/// The same for layers whose targets may have features of their own.
class PairStepLayer : public PairLayer {
 public:
  explicit PairStepLayer(Placement placement);

  Tensor* target_gradient() final { return runner_.target_gradient(); }
  Parameter* leave_sum(const Context& context) override;

 protected:
  virtual step::Value build(const StepInputs& inputs) = 0;
  virtual Epilogue* epilogue() { return nullptr; }

 private:
  const Tensor& forward_pair(const Input& sources, const Input& targets,
                             const Context& context) final;
  Tensor* backward_pair(Tensor& grad_output, const Context& context) final;

  StepRunner runner_;
};

}  // namespace tessera::nn
