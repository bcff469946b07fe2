// SPDX-License-Identifier: Apache-2.0
// Operators whose result is a number for each edge and head, in the caller's order.
#include <tuple>

#include "counters.hpp"
#include "operators.hpp"
#include "tessera/ops/edge_softmax.hpp"
#include "tessera/ops/sddmm.hpp"

namespace tessera::torch_ops {
namespace {

std::shared_ptr<Planned<ops::SddmmPlan>> sddmm_plan(Structure& structure, const Tensor& u,
                                                    std::int64_t heads, std::int64_t function,
                                                    std::int64_t flags, bool backward) {
  const Place place = place_of(u);
  const Precision precision = planned_precision(u, flags);
  const PlanNumbers numbers{2,
                            static_cast<double>(precision),
                            static_cast<double>(u.size(1)),
                            static_cast<double>(heads),
                            static_cast<double>(function),
                            static_cast<double>(flags),
                            backward ? 1.0 : 0.0};
  return structure.plan<ops::SddmmPlan>(numbers, place, [&] {
    ops::SddmmOptions options;
    set_common(options, place, flags);
    if (!backward) set_kernel(options, flags);
    options.function = static_cast<ops::EdgeFunction>(function);
    options.precision = precision;
    options.features = u.size(1);
    options.heads = heads;
    options.backward = backward;
    return ops::plan_sddmm(structure.graph(Norm::none, 1), options);
  });
}

Tensor sddmm(Tensor u, Tensor v, Tensor index, std::optional<Tensor> offsets, std::int64_t targets,
             std::int64_t sources, std::int64_t layout, std::int64_t loops, std::int64_t heads,
             std::int64_t function, std::int64_t flags) {
  const DeviceScope scope(u);
  check_one_type(u, {v}, "u and v");
  const ScalarType given_type = u.scalar_type();
  if (is_widened(u)) u = in_type(u, ScalarType::Float);
  u = with_rows(u);
  v = with_rows(in_type(v, u.scalar_type()));
  const auto structure = structure_of({index, offsets, targets, sources, layout, loops});
  Tensor edges = empty_beside(u, structure->edges(), heads, u.scalar_type());
  if (structure->edges() > 0 && heads > 0) {
    const auto planned = sddmm_plan(*structure, u, heads, function, flags, false);
    const BorrowedWorkspace workspace(u, planned->plan);
    const std::scoped_lock lock(planned->mutex);
    ops::run(planned->plan, operand(u), operand(v), operand(edges), place_of(u).stream, workspace);
    note_run(planned->plan, "forward");
  }
  return in_type(structure->to_caller(edges), given_type);
}

std::tuple<Tensor, Tensor> sddmm_backward(Tensor grad, Tensor u, Tensor v, Tensor index,
                                          std::optional<Tensor> offsets, std::int64_t targets,
                                          std::int64_t sources, std::int64_t layout,
                                          std::int64_t loops, std::int64_t heads,
                                          std::int64_t function, std::int64_t flags) {
  const DeviceScope scope(u);
  const ScalarType given_type = u.scalar_type();
  if (is_widened(u)) u = in_type(u, ScalarType::Float);
  const ScalarType type = u.scalar_type();
  u = with_rows(u);
  v = with_rows(in_type(v, type));
  const auto structure = structure_of({index, offsets, targets, sources, layout, loops});
  Tensor grad_u = empty_beside(u, u.size(0), u.size(1), type);
  Tensor grad_v = empty_beside(v, v.size(0), v.size(1), type);
  if (structure->edges() == 0 || u.size(1) == 0) {
    torch::stable::zero_(grad_u);
    torch::stable::zero_(grad_v);
  } else {
    const Tensor ordered = with_rows(structure->in_rows(in_type(grad, type)));
    const auto planned = sddmm_plan(*structure, u, heads, function, flags, true);
    const BorrowedWorkspace workspace(u, planned->plan);
    const std::scoped_lock lock(planned->mutex);
    ops::run_backward(planned->plan, operand(u), operand(v), operand(ordered), operand(grad_u),
                      operand(grad_v), place_of(u).stream, workspace);
    note_run(planned->plan, "backward");
  }
  return {in_type(grad_u, given_type), in_type(grad_v, given_type)};
}

std::shared_ptr<Planned<ops::EdgeSoftmaxPlan>> softmax_plan(Structure& structure,
                                                            const Tensor& scores,
                                                            std::int64_t flags, bool backward) {
  const Place place = place_of(scores);
  const Precision precision = precision_of(scores);
  const PlanNumbers numbers{3, static_cast<double>(precision), static_cast<double>(scores.size(1)),
                            static_cast<double>(flags), backward ? 1.0 : 0.0};
  return structure.plan<ops::EdgeSoftmaxPlan>(numbers, place, [&] {
    ops::EdgeSoftmaxOptions options;
    set_common(options, place, flags);
    options.precision = precision;
    options.heads = scores.size(1);
    options.backward = backward;
    return ops::plan_edge_softmax(structure.graph(Norm::none, 1), options);
  });
}

void check_edges(const Structure& structure, const Tensor& tensor) {
  if (tensor.dim() == 2 && tensor.size(0) == structure.caller_edges()) return;
  throw Error(ErrorCode::invalid_argument,
              "scores of " + std::to_string(tensor.size(0)) + " edges for a graph of " +
                  std::to_string(structure.caller_edges()),
              "scores", "give a row for each edge");
}

Tensor edge_softmax(Tensor scores, Tensor index, std::optional<Tensor> offsets,
                    std::int64_t targets, std::int64_t sources, std::int64_t layout,
                    std::int64_t loops, std::int64_t flags) {
  const DeviceScope scope(scores);
  const ScalarType given_type = scores.scalar_type();
  if (is_widened(scores)) scores = in_type(scores, ScalarType::Float);
  const auto structure = structure_of({index, offsets, targets, sources, layout, loops});
  check_edges(*structure, scores);
  const Tensor ordered = with_rows(structure->in_rows(scores));
  Tensor weights = empty_beside(scores, structure->edges(), scores.size(1), scores.scalar_type());
  if (weights.numel() > 0) {
    const auto planned = softmax_plan(*structure, scores, flags, false);
    const BorrowedWorkspace workspace(scores, planned->plan);
    const std::scoped_lock lock(planned->mutex);
    ops::run(planned->plan, operand(ordered), operand(weights), place_of(scores).stream, workspace);
    note_run(planned->plan, "forward");
  }
  return in_type(structure->to_caller(weights), given_type);
}

Tensor edge_softmax_backward(Tensor weights, Tensor grad, Tensor index,
                             std::optional<Tensor> offsets, std::int64_t targets,
                             std::int64_t sources, std::int64_t layout, std::int64_t loops,
                             std::int64_t flags) {
  const DeviceScope scope(weights);
  const ScalarType given_type = weights.scalar_type();
  if (is_widened(weights)) weights = in_type(weights, ScalarType::Float);
  const ScalarType type = weights.scalar_type();
  const auto structure = structure_of({index, offsets, targets, sources, layout, loops});
  check_edges(*structure, weights);
  const Tensor ordered_weights = with_rows(structure->in_rows(weights));
  const Tensor ordered_grad = with_rows(structure->in_rows(in_type(grad, type)));
  Tensor result = empty_beside(weights, structure->edges(), weights.size(1), type);
  if (result.numel() > 0) {
    const auto planned = softmax_plan(*structure, weights, flags, true);
    const BorrowedWorkspace workspace(weights, planned->plan);
    const std::scoped_lock lock(planned->mutex);
    ops::run_backward(planned->plan, operand(ordered_weights), operand(ordered_grad),
                      operand(result), place_of(weights).stream, workspace);
    note_run(planned->plan, "backward");
  }
  return in_type(structure->to_caller(result), given_type);
}

}  // namespace

void register_edges(torch::stable::detail::StableLibrary& library) {
  implement(library, "sddmm", TORCH_BOX(&Guarded<&sddmm>::run));
  implement(library, "sddmm_backward", TORCH_BOX(&Guarded<&sddmm_backward>::run));
  implement(library, "edge_softmax", TORCH_BOX(&Guarded<&edge_softmax>::run));
  implement(library, "edge_softmax_backward", TORCH_BOX(&Guarded<&edge_softmax_backward>::run));
}

}  // namespace tessera::torch_ops
