// SPDX-License-Identifier: Apache-2.0
#include "nn/step_runner.hpp"

#include <optional>
#include <utility>

#include "tessera/core/error.hpp"
#include "tessera/ops/gradient_factors.hpp"
#include "tessera/step/op.hpp"
#include "tessera/step/rewrites.hpp"

namespace tessera::nn {
namespace {

using step::Value;

/// The value computed by a node of its own, so that it can lie in a tensor from outside.
Value own_result(step::Program& program, Value value) {
  return program.producer(value) == nullptr ? step::scaled(program, 1, value) : value;
}

/// What rewrites depend on of a number of rows: thresholds of ops on it.
bool has_many_rows(std::int64_t rows) { return ops::pays_as_factors(rows, 1); }

/// What programs depend on of a graph.
struct GraphClass {
  bool is_square = true, has_many_rows = false;
  bool has_values = false, has_scales = false, has_many_edges = false;
  bool has_many_rows_of_edges = false;  ///< of their features

  friend bool operator==(const GraphClass&, const GraphClass&) = default;
};

GraphClass class_of(Topology& topology) {
  constexpr EdgeOffset many = 32;  // edges of a vertex
  GraphClass found;
  found.is_square = topology.num_rows() == topology.num_cols();
  found.has_many_rows = has_many_rows(topology.num_rows());
  if (topology.sums_edges()) return found;
  const Graph& graph = topology.graph();
  found.has_values = graph.has_values();
  found.has_scales = graph.has_row_scale() || graph.has_col_scale();
  found.has_many_edges = graph.num_edges() >= many * graph.num_rows();
  const Tensor* const edges = topology.edge_features();
  found.has_many_rows_of_edges = edges != nullptr && has_many_rows(edges->rows());
  return found;
}

void find_classes(const Context& context, std::vector<GraphClass>& found) {
  found.clear();
  if (context.graph != nullptr) found.push_back(class_of(*context.graph));
  for (Topology* const graph : context.graphs) {
    found.push_back(graph == nullptr ? GraphClass() : class_of(*graph));
  }
  if (context.pooling != nullptr) found.push_back(class_of(*context.pooling));
}

}  // namespace

/// A way in which a layer is called.
struct StepRunner::Key {
  bool training = false, needs_input_gradient = false;
  Passes passes = Passes::forward;
  bool sparse_sources = false, sparse_targets = false, many_sources = false;
  bool has_own_targets = false, has_targets = false, one_input = false;
  bool lists_graphs = false, has_graph = false, pools = false;
  std::vector<GraphClass> graphs;
  std::uint32_t number = 0;

  friend bool operator==(const Key&, const Key&) = default;
};

/// The program for it.
struct StepRunner::Form {
  Key key;
  Value sources, targets, output, grad_output, grad_sources, grad_targets, kept;
  std::size_t num_forward = 0;
  std::optional<step::Execution> execution;
  std::string written;
  std::vector<step::Fired> fired;
  step::Recomputed recomputed;

  step::Program build(Layer& layer, const Build& build_nodes, const Input& x, const Input& own,
                      const Context& context, std::span<const std::string> off, bool recomputes);
  void differentiate(step::Program& program, std::vector<Value>& results);
};

step::Program StepRunner::Form::build(Layer& layer, const Build& build_nodes, const Input& x,
                                      const Input& own, const Context& context,
                                      std::span<const std::string> off, bool recomputes) {
  step::Program program;
  // All of them: those that play no part in this form have a gradient of 0.
  for (const auto& [path, parameter] : layer.parameters()) {
    program.info(program.parameter(*parameter)).name = path;
  }
  const auto input = [&](const char* name, bool is_sparse) {
    return is_sparse ? program.sparse_input(name) : program.input(name, key.needs_input_gradient);
  };
  sources = input("x", key.sparse_sources);
  if (key.has_targets) targets = key.one_input ? sources : input("x_targets", key.sparse_targets);
  StepInputs inputs(program, sources, &context, key.training, key.number);
  if (key.has_own_targets) inputs.own_targets = targets;
  output = build_nodes(inputs);
  if (key.passes == Passes::with_loss) {
    grad_output = step::loss_gradient(program, output);
  } else {
    output = own_result(program, output);
  }
  std::vector<Value> results = {key.passes == Passes::with_loss ? grad_output : output};
  if (!program.kept().absent()) results.push_back(kept = own_result(program, program.kept()));
  program.remove_unused(results);
  std::vector<step::Bound> bound = {{sources, x}};
  if (key.has_targets && !key.one_input) bound.push_back({targets, own});
  step::note_shapes(program, layer.placement(), bound, context);
  written = program.describe();
  fired = step::rewrite(program, {results, layer.placement(), context}, step::Side::before, off);
  num_forward = program.nodes().size();
  if (key.passes == Passes::forward) return program;
  differentiate(program, results);
  // What follows may take the loss's gradient away, but not the loss.
  if (program.num_readers(grad_output) > 0) std::erase(results, grad_output);
  step::note_shapes(program, layer.placement(), bound, context);
  for (step::Fired& one :
       step::rewrite(program, {results, layer.placement(), context}, step::Side::after, off)) {
    fired.push_back(std::move(one));
  }
  if (recomputes) {
    recomputed = step::recompute(program, num_forward, layer.placement(), bound, context, results);
  }
  return program;
}

void StepRunner::Form::differentiate(step::Program& program, std::vector<Value>& results) {
  if (grad_output.absent()) grad_output = program.scratch_input("dy", output);
  const Value inputs[] = {sources, key.one_input || !key.has_targets ? sources : targets};
  const std::vector<Value> gradients = step::differentiate(program, output, grad_output, inputs);
  const auto result = [&](Value gradient, Value of) {
    if (!program.info(of).has_gradient) return Value();
    return gradient.absent() ? step::fill(program, of, 0) : own_result(program, gradient);
  };
  grad_sources = result(gradients[0], sources);
  if (!(inputs[1] == sources)) grad_targets = result(gradients[1], targets);
  results.insert(results.end(), {grad_sources, grad_targets});
  program.remove_unused(results);
}

StepRunner::StepRunner(Layer& layer, Build build)
    : layer_(layer),
      build_(std::move(build)),
      arena_(std::make_shared<step::Arena>()),
      wanted_(std::make_unique<Key>()),
      output_(layer.placement()),
      grad_sources_(layer.placement()),
      grad_targets_(layer.placement()),
      kept_(layer.placement()) {}
StepRunner::~StepRunner() = default;

StepRunner::Form& StepRunner::form_for(Passes passes, const Context& context) {
  Key& key = *wanted_;
  key.training = context.training;
  key.passes = passes;
  key.needs_input_gradient = passes == Passes::both && layer_.needs_input_gradient();
  key.sparse_sources = sources_.is_sparse();
  key.sparse_targets = targets_.is_sparse();
  key.many_sources = has_many_rows(sources_.rows());
  key.has_own_targets = has_own_targets_;
  key.has_targets = !targets_.absent();
  key.one_input = sources_ == targets_;
  key.lists_graphs = !context.graphs.empty();
  key.has_graph = context.graph != nullptr;
  key.pools = context.pooling != nullptr;
  find_classes(context, key.graphs);
  key.number = layer_.number();
  for (const auto& form : forms_) {
    if (form->key == key) return *form;
  }
  auto form = std::make_unique<Form>();
  form->key = key;
  step::Program program =
      form->build(layer_, build_, sources_, targets_, context, rewrites_off_, recomputes_);
  step::Execution& execution =
      form->execution.emplace(std::move(program), layer_.placement(), arena_);
  if (passes != Passes::with_loss) execution.keep(form->output, output_);
  if (!form->kept.absent()) execution.keep(form->kept, kept_);
  if (!form->grad_sources.absent()) execution.keep(form->grad_sources, grad_sources_);
  if (!form->grad_targets.absent()) execution.keep(form->grad_targets, grad_targets_);
  return *forms_.emplace_back(std::move(form));
}

step::Execution& StepRunner::prepared(Form& form, const Context& context) {
  last_ = &form;
  step::Execution& execution = *form.execution;
  execution.bind(form.sources, sources_);
  if (!form.targets.absent()) execution.bind(form.targets, targets_);
  execution.prepare(context);
  return execution;
}

const Tensor& StepRunner::run_forward(Form& form, const Context& context) {
  prepared(form, context).run(0, form.num_forward, context);
  return output_;
}

void StepRunner::learn(const Input& x, const Context& context) {
  sources_ = targets_ = x;
  has_own_targets_ = false;
  step::Execution& execution = prepared(form_for(Passes::with_loss, context), context);
  execution.run(0, execution.program().nodes().size(), context);
}

const Tensor& StepRunner::forward(const Input& sources, const Input& targets, bool has_own_targets,
                                  const Context& context) {
  sources_ = sources;
  targets_ = targets;
  has_own_targets_ = has_own_targets;
  const Passes passes = context.training ? Passes::both : Passes::forward;
  return run_forward(form_for(passes, context), context);
}

// Passes outside of training keep nothing for their gradient: where it is asked for after all, they
// are run again.
Tensor* StepRunner::backward(Tensor& grad_output, const Context& context) {
  if (last_ == nullptr) {
    throw Error(ErrorCode::invalid_argument, "a backward pass before any forward pass",
                layer_.describe(), "run forward first");
  }
  if (last_->key.passes != Passes::both) run_forward(form_for(Passes::both, context), context);
  step::Execution& execution = *last_->execution;
  execution.bind_scratch(last_->grad_output, grad_output);
  execution.run(last_->num_forward, execution.program().nodes().size(), context);
  return last_->grad_sources.absent() ? nullptr : &grad_sources_;
}

Tensor* StepRunner::target_gradient() {
  return last_ == nullptr || last_->grad_targets.absent() ? nullptr : &grad_targets_;
}

const Tensor* StepRunner::kept() const {
  return last_ == nullptr || last_->kept.absent() ? nullptr : &kept_;
}

StepExplanation StepRunner::explain() const {
  if (last_ == nullptr) {
    throw Error(ErrorCode::invalid_argument, "there was no pass to explain", layer_.describe(),
                "run or prepare one first");
  }
  const step::Execution& execution = *last_->execution;
  return {last_->written,
          execution.program().describe(),
          last_->fired,
          last_->recomputed,
          step::bytes_moved(execution.program()),
          execution.arena_bytes(),
          execution.unshared_bytes()};
}

void StepRunner::leave_out_rewrites(std::vector<std::string> names) {
  rewrites_off_ = std::move(names);
  forget();
}

void StepRunner::set_recompute(bool recompute) {
  recomputes_ = recompute;
  forget();
}

void StepRunner::forget() {
  forms_.clear();
  last_ = nullptr;
}

}  // namespace tessera::nn
