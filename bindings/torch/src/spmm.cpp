// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/spmm.hpp"

#include <tuple>

#include "counters.hpp"
#include "operators.hpp"

namespace tessera::torch_ops {
namespace {

/// What an spmm is besides its tensors.
struct SpmmSettings {
  Norm norm;
  double loop_weight;
  ops::Reduction reduction;
  std::int64_t flags;

  bool picks() const {
    return reduction == ops::Reduction::max || reduction == ops::Reduction::min;
  }
};

Graph graph_for(Structure& structure, const SpmmSettings& settings, bool weighted) {
  if (!settings.picks()) return structure.graph(settings.norm, settings.loop_weight);
  const Graph graph =
      weighted ? structure.graph(settings.norm, settings.loop_weight) : structure.unique_graph();
  if (weighted && graph.has_repeated_edges()) {
    throw Error(ErrorCode::unsupported, "max or min of weighted edges, some of which are repeated",
                "edge_weight", "merge repeated edges first (torch_geometric.utils.coalesce)");
  }
  return graph;
}

std::shared_ptr<Planned<ops::SpmmPlan>> plan_for(Structure& structure, const Tensor& x,
                                                 std::int64_t features,
                                                 const SpmmSettings& settings, bool weighted,
                                                 bool bias, bool backward, bool weight_gradient) {
  const Place place = place_of(x);
  const Precision precision = planned_precision(x, settings.flags);
  const PlanNumbers numbers{1,
                            static_cast<double>(precision),
                            static_cast<double>(features),
                            static_cast<double>(settings.norm),
                            settings.loop_weight,
                            static_cast<double>(settings.reduction),
                            static_cast<double>(settings.flags),
                            weighted ? 1.0 : 0.0,
                            bias ? 1.0 : 0.0,
                            backward ? 1.0 : 0.0,
                            weight_gradient ? 1.0 : 0.0};
  return structure.plan<ops::SpmmPlan>(numbers, place, [&] {
    ops::SpmmOptions options;
    set_common(options, place, settings.flags);
    options.reduction = settings.reduction;
    options.precision = precision;
    options.features = features;
    options.edge_values_at_run = weighted;
    options.edge_values_expected = weighted;
    options.edge_value_gradient = weight_gradient;
    options.epilogue.bias = bias;
    options.backward = backward;
    return ops::plan_spmm(graph_for(structure, settings, weighted), options);
  });
}

/// The caller's weights as a column in the order of rows, of the type of the features.
Tensor weights_in_rows(const Structure& structure, const Tensor& weight, ScalarType type) {
  const Tensor ordered = structure.in_rows(torch::stable::flatten(weight, 0, -1));
  return torch::stable::view(in_type(ordered, type),
                             std::array<std::int64_t, 2>{structure.edges(), 1});
}

void check_weight(const Structure& structure, const std::optional<Tensor>& weight) {
  if (!weight || weight->numel() == structure.caller_edges()) return;
  throw Error(ErrorCode::invalid_argument,
              std::to_string(weight->numel()) + " weights for " +
                  std::to_string(structure.caller_edges()) + " edges",
              "edge_weight", "give one for each edge");
}

MatrixView<VertexId> winners_of(const Tensor& winners) {
  return {static_cast<VertexId*>(winners.data_ptr()), winners.size(0), winners.size(1),
          device_of(winners)};
}

std::tuple<Tensor, Tensor> spmm(Tensor x, Tensor index, std::optional<Tensor> offsets,
                                std::optional<Tensor> weight, std::optional<Tensor> bias,
                                std::int64_t targets, std::int64_t sources, std::int64_t layout,
                                std::int64_t loops, double loop_weight, std::int64_t norm,
                                std::int64_t reduce, std::int64_t flags) {
  const DeviceScope scope(x);
  const ScalarType given_type = x.scalar_type();
  if (is_widened(x)) x = in_type(x, ScalarType::Float);
  x = with_rows(x);
  const ScalarType type = x.scalar_type();
  const SpmmSettings settings{static_cast<Norm>(norm), loop_weight,
                              static_cast<ops::Reduction>(reduce), flags};
  const auto structure = structure_of({index, offsets, targets, sources, layout, loops});
  check_weight(*structure, weight);
  Tensor y = empty_beside(x, targets, x.size(1), type);
  Tensor winners = settings.picks() ? empty_beside(x, targets, x.size(1), ScalarType::Int)
                                    : empty_beside(x, 0, 0, ScalarType::Int);
  if (y.numel() == 0) return {in_type(y, given_type), winners};

  const auto planned = plan_for(*structure, x, x.size(1), settings, weight.has_value(),
                                bias.has_value(), false, false);
  ops::SpmmInputs inputs;
  inputs.x = operand(x);
  std::optional<Tensor> values;
  if (weight) {
    values = weights_in_rows(*structure, *weight, type);
    if (structure->edges() > 0) inputs.edge_values = operand(*values);
  }
  std::optional<Tensor> row;
  if (bias) {
    row = torch::stable::view(torch::stable::contiguous(in_type(*bias, type)),
                              std::array<std::int64_t, 2>{1, x.size(1)});
    inputs.bias = operand(*row);
  }
  ops::SpmmOutputs outputs{operand(y)};
  if (settings.picks()) outputs.winners = winners_of(winners);
  const BorrowedWorkspace workspace(x, planned->plan);
  {
    const std::scoped_lock lock(planned->mutex);
    ops::run(planned->plan, inputs, outputs, place_of(x).stream, workspace);
  }
  note_run(planned->plan, "forward");
  return {in_type(y, given_type), winners};
}

std::tuple<Tensor, Tensor> spmm_backward(
    Tensor grad, std::optional<Tensor> x, std::optional<Tensor> winners, Tensor index,
    std::optional<Tensor> offsets, std::optional<Tensor> weight, std::int64_t targets,
    std::int64_t sources, std::int64_t layout, std::int64_t loops, double loop_weight,
    std::int64_t norm, std::int64_t reduce, std::int64_t flags, bool need_x, bool need_weight) {
  const DeviceScope scope(grad);
  const ScalarType given_type = grad.scalar_type();
  if (is_widened(grad)) grad = in_type(grad, ScalarType::Float);
  grad = with_rows(grad);
  const ScalarType type = grad.scalar_type();
  const SpmmSettings settings{static_cast<Norm>(norm), loop_weight,
                              static_cast<ops::Reduction>(reduce), flags};
  const auto structure = structure_of({index, offsets, targets, sources, layout, loops});
  check_weight(*structure, weight);
  const ScalarType weight_type = weight ? weight->scalar_type() : given_type;
  Tensor grad_x = empty_beside(grad, need_x ? sources : 0, need_x ? grad.size(1) : 0, type);
  Tensor grad_weight = empty_beside(grad, need_weight ? structure->edges() : 0, 1, type);
  const bool nothing = targets == 0 || sources == 0 || grad.size(1) == 0;
  if (nothing || structure->edges() == 0) {
    torch::stable::zero_(grad_x);
    torch::stable::zero_(grad_weight);
  } else if (need_x || need_weight) {
    const auto planned = plan_for(*structure, grad, grad.size(1), settings, weight.has_value(),
                                  false, true, need_weight);
    ops::SpmmGradInputs inputs;
    inputs.grad_y = operand(grad);
    std::optional<Tensor> values;
    std::optional<Tensor> features;
    if (weight) {
      values = weights_in_rows(*structure, *weight, type);
      inputs.edge_values = operand(*values);
    }
    if (x) {
      features = with_rows(in_type(*x, type));
      inputs.x = operand(*features);
    }
    if (settings.picks() && winners) inputs.winners = winners_of(*winners);
    ops::SpmmGradOutputs outputs;
    if (need_x) outputs.grad_x = operand(grad_x);
    if (need_weight) outputs.grad_edge_values = operand(grad_weight);
    const BorrowedWorkspace workspace(grad, planned->plan);
    const std::scoped_lock lock(planned->mutex);
    ops::run_backward(planned->plan, inputs, outputs, place_of(grad).stream, workspace);
    note_run(planned->plan, "backward");
  }
  if (need_weight) {
    grad_weight = torch::stable::flatten(structure->to_caller(grad_weight), 0, -1);
  } else {
    grad_weight = torch::stable::flatten(grad_weight, 0, -1);
  }
  return {in_type(grad_x, given_type), in_type(grad_weight, weight_type)};
}

}  // namespace

void register_spmm(torch::stable::detail::StableLibrary& library) {
  library.impl("spmm", TORCH_BOX(&Guarded<&spmm>::run));
  library.impl("spmm_backward", TORCH_BOX(&Guarded<&spmm_backward>::run));
}

}  // namespace tessera::torch_ops
