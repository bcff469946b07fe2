// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tessera/nn/layer.hpp"
#include "tessera/step/execution.hpp"

namespace tessera::nn {

/// Keeps the programs of a layer, one for each way in which it is called, and runs them.
class StepRunner {
 public:
  using Build = std::function<step::Value(const StepInputs& inputs)>;

  StepRunner(Layer& layer, Build build);
  ~StepRunner();

  /// `has_own_targets`: targets are given, though they may be absent.
  const Tensor& forward(const Input& sources, const Input& targets, bool has_own_targets,
                        const Context& context);
  Tensor* backward(Tensor& grad_output, const Context& context);
  /// Both, with the loss between them.
  void learn(const Input& x, const Context& context);
  /// Of the last backward pass; null where the targets are the sources, absent or sparse.
  Tensor* target_gradient();
  /// What the last program was asked to keep (`step::Program::keep`); null: nothing.
  const Tensor* kept() const;
  const Input& last_sources() const noexcept { return sources_; }
  StepExplanation explain() const;
  void leave_out_rewrites(std::vector<std::string> names);
  void set_recompute(bool recompute);
  /// Programs are made anew, since the layer computes something else from now on.
  void forget();

 private:
  struct Key;
  struct Form;
  enum class Passes { forward, both, with_loss };
  Form& form_for(Passes passes, const Context& context);
  step::Execution& prepared(Form& form, const Context& context);
  const Tensor& run_forward(Form& form, const Context& context);

  Layer& layer_;
  std::vector<std::string> rewrites_off_;
  bool recomputes_ = false;
  Build build_;
  std::shared_ptr<step::Arena> arena_;
  Input sources_, targets_;  ///< of the last forward pass
  bool has_own_targets_ = false;
  std::unique_ptr<Key> wanted_;  ///< by the last pass
  std::vector<std::unique_ptr<Form>> forms_;
  Form* last_ = nullptr;
  Tensor output_;
  Tensor grad_sources_;
  Tensor grad_targets_;
  Tensor kept_;
};

}  // namespace tessera::nn
