// SPDX-License-Identifier: Apache-2.0
#include "spmm.hpp"

#include <vector>

#include "counters.hpp"
#include "operators.hpp"

namespace tessera::torch_ops {
namespace {

Graph graph_for(Structure& structure, const SpmmSettings& settings, bool weighted) {
  if (!settings.picks()) return structure.graph(settings.norm, settings.loop_weight);
  if (settings.norm != Norm::none) {
    throw Error(ErrorCode::invalid_argument, "max or min of edges that are scaled", "norm",
                "scale the features, or give weights of edges");
  }
  if (!weighted && settings.loop_weight != 1 && structure.added_loops() > 0) {
    throw Error(ErrorCode::invalid_argument, "max or min with loops of another weight than edges",
                "loop_weight", "give weights of all edges and loops");
  }
  const Graph graph =
      weighted ? structure.graph(settings.norm, settings.loop_weight) : structure.unique_graph();
  if (weighted && graph.has_repeated_edges()) {
    throw Error(ErrorCode::unsupported, "max or min of weighted edges, some of which are repeated",
                "edge_weight", "merge repeated edges first (torch_geometric.utils.coalesce)");
  }
  return graph;
}

/// What of a plan depends on which tensors a run brings.
struct Brought {
  bool weight = false;
  std::int64_t heads = 1;
  ops::SpmmEpilogue epilogue = {};
  bool backward = false;
  bool weight_gradient = false;

  int number() const {
    return (weight ? 1 : 0) + (epilogue.bias ? 2 : 0) + (epilogue.residual ? 4 : 0) +
           (epilogue.residual_scale ? 8 : 0) + (backward ? 16 : 0) + (weight_gradient ? 32 : 0) +
           (epilogue.activation == ops::Activation::relu ? 64 : 0) + (epilogue.output ? 128 : 0);
  }
};

std::shared_ptr<Planned<ops::SpmmPlan>> plan_for(Structure& structure, const Tensor& x,
                                                 const SpmmSettings& settings,
                                                 const Brought& brought) {
  const Place place = place_of(x);
  const Precision precision = planned_precision(x, settings.flags);
  const PlanNumbers numbers{1,
                            static_cast<double>(precision),
                            static_cast<double>(x.size(1)),
                            static_cast<double>(settings.norm),
                            settings.loop_weight,
                            static_cast<double>(settings.reduction),
                            static_cast<double>(settings.flags),
                            static_cast<double>(brought.number()),
                            static_cast<double>(brought.heads)};
  return structure.plan<ops::SpmmPlan>(numbers, place, [&] {
    ops::SpmmOptions options;
    set_common(options, place, settings.flags);
    if (!brought.backward) set_kernel(options, settings.flags);
    options.reduction = settings.reduction;
    options.precision = precision;
    options.features = x.size(1);
    options.heads = brought.heads;
    options.edge_values_at_run = brought.weight;
    options.edge_values_expected = brought.weight;
    options.edge_value_gradient = brought.weight_gradient;
    options.backward = brought.backward;
    (brought.backward ? options.backward_epilogue : options.epilogue) = brought.epilogue;
    return ops::plan_spmm(graph_for(structure, settings, brought.weight), options);
  });
}

/// How many numbers the caller has for each edge.
std::int64_t heads_of(const std::optional<Tensor>& weight) {
  return weight && weight->dim() == 2 ? weight->size(1) : 1;
}

/// The caller's weights in the order of rows, a column for each head, of the type of the features.
Tensor weights_in_rows(const Structure& structure, const Tensor& weight, ScalarType type) {
  const std::array<std::int64_t, 2> given{structure.caller_edges(), heads_of(weight)};
  const Tensor columns = torch::stable::view(in_one_piece(weight), given);
  return in_type(structure.in_rows(columns), type);
}

/// The values of edges that a run brings, and what is left of the settings beside them. A graph's
/// scales are of single precision: in double precision they are brought as values instead.
class EdgeValues {
 public:
  EdgeValues(Structure& structure, const SpmmSettings& given, const std::optional<Tensor>& weight,
             const Tensor& features)
      : settings(given) {
    const ScalarType type = features.scalar_type();
    const bool scaled = given.norm != Norm::none || given.loop_weight != 1;
    if (weight) {
      values_ = weights_in_rows(structure, *weight, type);
    } else if (scaled && type == ScalarType::Double && features.is_cpu() && !given.picks()) {
      values_ = structure.entries(given.norm, given.loop_weight);
      settings.norm = Norm::none;
      settings.loop_weight = 1;
    }
  }

  bool present() const { return values_.has_value(); }
  operator ops::ConstOperand() const {
    return values_ && values_->numel() > 0 ? operand(*values_) : ops::ConstOperand{};
  }

  SpmmSettings settings;

 private:
  std::optional<Tensor> values_;
};

MatrixView<VertexId> winners_of(const Tensor& winners) {
  return {static_cast<VertexId*>(winners.data_ptr()), winners.size(0), winners.size(1),
          device_of(winners)};
}

/// A vector in the type of the features, as an operand of one row.
class Row {
 public:
  Row(const std::optional<Tensor>& vector, ScalarType type) {
    if (vector) kept_ = in_one_piece(in_type(*vector, type));
  }
  operator ops::ConstOperand() const { return kept_ ? row_operand(*kept_) : ops::ConstOperand{}; }

 private:
  std::optional<Tensor> kept_;
};

/// A matrix in the type of the features, with rows as kernels take them.
class Matrix {
 public:
  Matrix(const std::optional<Tensor>& matrix, ScalarType type) {
    if (matrix) kept_ = with_rows(in_type(*matrix, type));
  }
  operator ops::ConstOperand() const { return kept_ ? operand(*kept_) : ops::ConstOperand{}; }

 private:
  std::optional<Tensor> kept_;
};

}  // namespace

void check_weight(const Structure& structure, const std::optional<Tensor>& weight) {
  if (!weight) return;
  const bool fits = weight->dim() == 2 ? weight->size(0) == structure.caller_edges()
                                       : weight->numel() == structure.caller_edges();
  if (fits) return;
  throw Error(ErrorCode::invalid_argument,
              std::to_string(weight->dim() == 2 ? weight->size(0) : weight->numel()) +
                  " weights for " + std::to_string(structure.caller_edges()) + " edges",
              "edge_weight", "give one for each edge, or one for each edge and head");
}

Tensor summed(Structure& structure, const SpmmSettings& settings, Tensor x,
              const std::optional<Tensor>& weight, const Added& added, Tensor* winners) {
  check_weight(structure, weight);
  const ScalarType returned = added.results.value_or(x.scalar_type());
  if (is_widened(x)) x = in_type(x, ScalarType::Float);
  x = with_rows(x);
  const ScalarType type = x.scalar_type();
  const bool widens = returned == ScalarType::Float && type != returned;
  Tensor y = empty_beside(x, structure.targets(), x.size(1), widens ? returned : type);
  if (y.numel() == 0) return in_type(y, returned);

  const EdgeValues values(structure, settings, weight, x);
  Brought brought{.weight = values.present(), .heads = heads_of(weight)};
  brought.epilogue.bias = added.bias.has_value();
  brought.epilogue.residual = added.residual.has_value();
  brought.epilogue.residual_scale = added.residual_scale.has_value();
  if (added.relu) brought.epilogue.activation = ops::Activation::relu;
  if (widens) brought.epilogue.output = Precision::fp32;
  const auto planned = plan_for(structure, x, values.settings, brought);
  ops::SpmmInputs inputs;
  inputs.x = operand(x);
  inputs.edge_values = values;
  const Row bias(added.bias, type);
  const Matrix residual(added.residual, type);
  const Row scale(added.residual_scale, type);
  inputs.bias = bias;
  inputs.residual = residual;
  inputs.residual_scale = scale;
  ops::SpmmOutputs outputs{operand(y)};
  if (settings.picks() && winners != nullptr) outputs.winners = winners_of(*winners);
  const BorrowedWorkspace workspace(x, planned->plan);
  {
    const std::scoped_lock lock(planned->mutex);
    ops::run(planned->plan, inputs, outputs, place_of(x).stream, workspace);
  }
  note_run(planned->plan, "forward");
  return in_type(y, returned);
}

FoundGradients summed_backward(Structure& structure, const SpmmSettings& settings, Tensor grad,
                               const std::optional<Tensor>& weight, const WantedGradients& wanted) {
  check_weight(structure, weight);
  const ScalarType given_type = grad.scalar_type();
  if (is_widened(grad)) grad = in_type(grad, ScalarType::Float);
  grad = with_rows(grad);
  const ScalarType type = grad.scalar_type();
  FoundGradients found;
  const bool in_place = wanted.into && wanted.into->scalar_type() == type;
  if (wanted.need_x) {
    found.x = in_place ? *wanted.into : empty_beside(grad, structure.sources(), grad.size(1), type);
  }
  if (wanted.need_weight) {
    found.weight = empty_beside(grad, structure.edges(), heads_of(weight), type);
  }
  const bool nothing = grad.numel() == 0 || (structure.edges() == 0 && !wanted.residual);
  if (nothing || structure.sources() == 0) {
    if (found.x) torch::stable::zero_(*found.x);
    if (found.weight) torch::stable::zero_(*found.weight);
  } else if (wanted.need_x || wanted.need_weight) {
    const EdgeValues values(structure, settings, weight, grad);
    Brought brought{.weight = values.present(), .heads = heads_of(weight), .backward = true};
    brought.epilogue.residual = wanted.residual.has_value();
    brought.epilogue.residual_scale = wanted.residual_scale.has_value();
    brought.weight_gradient = wanted.need_weight;
    const auto planned = plan_for(structure, grad, values.settings, brought);
    ops::SpmmGradInputs inputs;
    inputs.grad_y = operand(grad);
    inputs.edge_values = values;
    const Matrix features(wanted.x, type);
    const Matrix residual(wanted.residual, type);
    const Row scale(wanted.residual_scale, type);
    inputs.x = features;
    inputs.residual = residual;
    inputs.residual_scale = scale;
    if (settings.picks() && wanted.winners) inputs.winners = winners_of(*wanted.winners);
    ops::SpmmGradOutputs outputs;
    if (wanted.need_x) outputs.grad_x = operand(*found.x);
    if (wanted.need_weight) outputs.grad_edge_values = operand(*found.weight);
    const BorrowedWorkspace workspace(grad, planned->plan);
    const std::scoped_lock lock(planned->mutex);
    ops::run_backward(planned->plan, inputs, outputs, place_of(grad).stream, workspace);
    note_run(planned->plan, "backward");
  }
  if (wanted.into && !in_place) {
    copy(*wanted.into, *found.x);
    found.x = wanted.into;
  }
  if (found.x) found.x = in_type(*found.x, given_type);
  return found;
}

namespace {

/// The sums; for max and min also who won.
std::vector<Tensor> spmm(Tensor x, Tensor index, std::optional<Tensor> offsets,
                         std::optional<Tensor> weight, std::optional<Tensor> bias,
                         std::int64_t targets, std::int64_t sources, std::int64_t layout,
                         std::int64_t loops, double loop_weight, std::int64_t norm,
                         std::int64_t reduce, std::int64_t flags) {
  const DeviceScope scope(x);
  const SpmmSettings settings(loop_weight, norm, reduce, flags & ~each_edge_once);
  const auto structure = structure_of({index, offsets, targets, sources, layout, loops});
  if ((flags & each_edge_once) != 0) structure->require_each_edge_once();
  x = with_rows(x);
  check_vector(x.size(1), x, bias, false, "bias");
  if (!settings.picks()) return {summed(*structure, settings, x, weight, {.bias = bias})};
  Tensor winners = empty_beside(x, targets, x.size(1), ScalarType::Int);
  const Tensor y = summed(*structure, settings, x, weight, {.bias = bias}, &winners);
  return {y, winners};
}

/// The gradients that are needed: of x, then of the weights.
std::vector<Tensor> spmm_backward(Tensor grad, std::optional<Tensor> x,
                                  std::optional<Tensor> winners, Tensor index,
                                  std::optional<Tensor> offsets, std::optional<Tensor> weight,
                                  std::int64_t targets, std::int64_t sources, std::int64_t layout,
                                  std::int64_t loops, double loop_weight, std::int64_t norm,
                                  std::int64_t reduce, std::int64_t flags, bool need_x,
                                  bool need_weight) {
  const DeviceScope scope(grad);
  const SpmmSettings settings(loop_weight, norm, reduce, flags & ~each_edge_once);
  const auto structure = structure_of({index, offsets, targets, sources, layout, loops});
  const FoundGradients found =
      summed_backward(*structure, settings, grad, weight,
                      {.x = x, .winners = winners, .need_x = need_x, .need_weight = need_weight});
  std::vector<Tensor> gradients;
  if (found.x) gradients.push_back(*found.x);
  if (found.weight) {
    const Tensor in_order = structure->to_caller(*found.weight);
    gradients.push_back(in_type(torch::stable::flatten(in_order, 0, -1), weight->scalar_type()));
  }
  return gradients;
}

}  // namespace

void register_spmm(torch::stable::detail::StableLibrary& library) {
  implement(library, "spmm", TORCH_BOX(&Guarded<&spmm>::run));
  implement(library, "spmm_backward", TORCH_BOX(&Guarded<&spmm_backward>::run));
}

}  // namespace tessera::torch_ops
