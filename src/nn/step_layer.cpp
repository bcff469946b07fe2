// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/step_layer.hpp"

#include <optional>
#include <utility>

#include "tessera/core/error.hpp"
#include "tessera/step/execution.hpp"
#include "tessera/step/rewrites.hpp"

namespace tessera::nn {
namespace {

using step::Value;

/// The value computed by a node of its own, so that it can lie in a tensor from outside.
Value own_result(step::Program& program, Value value) {
  return program.producer(value) == nullptr ? step::scaled(program, 1, value) : value;
}

}  // namespace

Value StepInputs::finish(Value x, Epilogue& epilogue) const {
  if (epilogue.bias) x = step::add_bias(program, x, parameter(*epilogue.bias));
  return finish_without_bias(x, epilogue);
}

Value StepInputs::finish_without_bias(Value x, const Epilogue& epilogue) const {
  const EpilogueOptions& options = epilogue.options();
  x = step::activate(program, x, {options.activation, options.slope, options.alpha});
  return step::dropout(program, x, training ? options.dropout : 0, number);
}

/// One way in which a layer is called, and the program for it.
struct StepRunner::Form {
  struct Key {
    bool training = false, with_gradient = false, needs_input_gradient = false;
    bool sparse_sources = false, sparse_targets = false;
    bool has_targets = false, one_input = false;
    std::uint32_t number = 0;

    friend bool operator==(const Key&, const Key&) = default;
  };

  Key key;
  Value sources, targets, output, grad_output, grad_sources, grad_targets;
  std::size_t num_forward = 0;
  std::optional<step::Execution> execution;

  void build(Layer& layer, Build build_nodes, const std::shared_ptr<step::Arena>& arena);
};

void StepRunner::Form::build(Layer& layer, Build build_nodes,
                             const std::shared_ptr<step::Arena>& arena) {
  step::Program program;
  // All of them: those that play no part in this form have a gradient of 0.
  for (const auto& [path, parameter] : layer.parameters()) program.parameter(*parameter);
  const auto input = [&](const char* name, bool is_sparse) {
    return is_sparse ? program.sparse_input(name) : program.input(name, key.needs_input_gradient);
  };
  sources = input("x", key.sparse_sources);
  if (key.has_targets) targets = key.one_input ? sources : input("x_targets", key.sparse_targets);
  output = own_result(program,
                      build_nodes(layer, {program, sources, targets, key.training, key.number}));
  const Value results[] = {output};
  program.remove_unused(results);
  step::rewrite(program, results, false);
  num_forward = program.nodes().size();
  std::vector<Value> kept = {output};
  if (key.with_gradient) {
    grad_output = program.scratch_input("dy", output);
    const Value inputs[] = {sources, key.one_input || !key.has_targets ? sources : targets};
    const std::vector<Value> gradients = step::differentiate(program, output, grad_output, inputs);
    const auto result = [&](Value gradient, Value of) {
      if (!program.info(of).has_gradient) return Value();
      return gradient.absent() ? step::fill(program, of, 0) : own_result(program, gradient);
    };
    grad_sources = result(gradients[0], sources);
    if (!(inputs[1] == sources)) grad_targets = result(gradients[1], targets);
    kept.insert(kept.end(), {grad_sources, grad_targets});
    program.remove_unused(kept);
    step::rewrite(program, kept, true);
  }
  execution.emplace(std::move(program), layer.placement(), arena);
}

StepRunner::StepRunner(Layer& layer, Build build)
    : layer_(layer),
      build_(build),
      arena_(std::make_shared<step::Arena>()),
      output_(layer.placement()),
      grad_sources_(layer.placement()),
      grad_targets_(layer.placement()) {}
StepRunner::~StepRunner() = default;

StepRunner::Form& StepRunner::form_for(const Input& sources, const Input& targets,
                                       bool with_gradient, const Context& context) {
  Form::Key key;
  key.training = context.training;
  key.with_gradient = with_gradient;
  key.needs_input_gradient = with_gradient && layer_.needs_input_gradient();
  key.sparse_sources = sources.is_sparse();
  key.sparse_targets = targets.is_sparse();
  key.has_targets = !targets.absent();
  key.one_input = sources == targets;
  key.number = layer_.number();
  for (const auto& form : forms_) {
    if (form->key == key) return *form;
  }
  forms_.push_back(std::make_unique<Form>());
  Form& form = *forms_.back();
  form.key = key;
  form.build(layer_, build_, arena_);
  step::Execution& execution = *form.execution;
  execution.keep(form.output, output_);
  if (!form.grad_sources.absent()) execution.keep(form.grad_sources, grad_sources_);
  if (!form.grad_targets.absent()) execution.keep(form.grad_targets, grad_targets_);
  return form;
}

const Tensor& StepRunner::run_forward(Form& form, const Context& context) {
  last_ = &form;
  step::Execution& execution = *form.execution;
  execution.bind(form.sources, sources_);
  if (!targets_.absent()) execution.bind(form.targets, targets_);
  Topology* const graphs[] = {graph_};
  execution.prepare(graphs);
  execution.run(0, form.num_forward, context);
  return output_;
}

const Tensor& StepRunner::forward(const Input& sources, const Input& targets, Topology* graph,
                                  const Context& context) {
  sources_ = sources;
  targets_ = targets;
  graph_ = graph;
  return run_forward(form_for(sources, targets, context.training, context), context);
}

// Passes outside of training keep nothing for their gradient: where it is asked for after all, they
// are run again.
Tensor* StepRunner::backward(Tensor& grad_output, const Context& context) {
  if (last_ == nullptr) {
    throw Error(ErrorCode::invalid_argument, "a backward pass before any forward pass",
                layer_.describe(), "run forward first");
  }
  if (!last_->key.with_gradient) run_forward(form_for(sources_, targets_, true, context), context);
  step::Execution& execution = *last_->execution;
  execution.bind_scratch(last_->grad_output, grad_output);
  execution.leave_out(std::exchange(left_out_, nullptr));
  execution.run(last_->num_forward, execution.program().nodes().size(), context);
  return last_->grad_sources.absent() ? nullptr : &grad_sources_;
}

Tensor* StepRunner::target_gradient() {
  return last_ == nullptr || last_->grad_targets.absent() ? nullptr : &grad_targets_;
}

StepLayer::StepLayer(Placement placement)
    : Layer(placement), runner_(*this, [](Layer& layer, const StepInputs& inputs) {
        return static_cast<StepLayer&>(layer).build(inputs);
      }) {}

Topology* StepLayer::graph(const Context& context) const {
  if (num_graphs() == 0) return nullptr;
  const bool has_graph = context.graph != nullptr || !context.graphs.empty();
  return &context.required_graph(has_graph ? "" : describe().c_str());
}

const Tensor& StepLayer::forward(const Input& input, const Context& context) {
  return runner_.forward(input, input, graph(context), context);
}

Tensor* StepLayer::backward(Tensor& grad_output, const Context& context) {
  return runner_.backward(grad_output, context);
}

Parameter* StepLayer::leave_sum(const Context& context) {
  Parameter* const bias = epilogue() == nullptr ? nullptr : epilogue()->only_bias(context);
  runner_.leave_out(bias);
  return bias;
}

PairStepLayer::PairStepLayer(Placement placement)
    : PairLayer(placement), runner_(*this, [](Layer& layer, const StepInputs& inputs) {
        return static_cast<PairStepLayer&>(layer).build(inputs);
      }) {}

const Tensor& PairStepLayer::forward_pair(const Input& sources, const Input& targets,
                                          const Context& context) {
  return runner_.forward(sources, targets, &context.required_graph(""), context);
}

Tensor* PairStepLayer::backward_pair(Tensor& grad_output, const Context& context) {
  return runner_.backward(grad_output, context);
}

Parameter* PairStepLayer::leave_sum(const Context& context) {
  Parameter* const bias = epilogue() == nullptr ? nullptr : epilogue()->only_bias(context);
  runner_.leave_out(bias);
  return bias;
}

}  // namespace tessera::nn
