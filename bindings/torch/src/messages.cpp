// SPDX-License-Identifier: Apache-2.0
// Sums of what sources and edges say, with features of edges in the caller's order.
#include "tessera/ops/messages.hpp"

#include <vector>

#include "counters.hpp"
#include "operators.hpp"

namespace tessera::torch_ops {
namespace {

std::shared_ptr<Planned<ops::MessagesPlan>> plan_for(Structure& structure, const Tensor& x,
                                                     std::int64_t message, std::int64_t flags,
                                                     bool backward) {
  const Place place = place_of(x);
  const Precision precision = precision_of(x);
  const PlanNumbers numbers{8,
                            static_cast<double>(precision),
                            static_cast<double>(x.size(1)),
                            static_cast<double>(message),
                            static_cast<double>(flags),
                            backward ? 1.0 : 0.0};
  return structure.plan<ops::MessagesPlan>(numbers, place, [&] {
    ops::MessagesOptions options;
    set_common(options, place, flags);
    if (!backward) set_kernel(options, flags);
    options.message = static_cast<ops::Message>(message);
    options.precision = precision;
    options.features = x.size(1);
    options.backward = backward;
    return ops::plan_messages(structure.graph(Norm::none, 1), options);
  });
}

void check_edges(const Structure& structure, const Tensor& x, const Tensor& edge_features) {
  const bool fits = edge_features.dim() == 2 && x.dim() == 2 &&
                    edge_features.size(0) == structure.caller_edges() &&
                    edge_features.size(1) == x.size(1);
  if (fits) return;
  throw Error(ErrorCode::invalid_argument,
              "features that do not fit the edges, or those of vertices", "edge_features",
              "give " + std::to_string(structure.caller_edges()) + " rows of as many as x has");
}

/// Features in the type that kernels compute in, with rows as they take them.
struct Given {
  Tensor x;
  Tensor edges;

  Given(const Tensor& of_x, const Tensor& of_edges)
      : x(with_rows(is_widened(of_x) ? in_type(of_x, ScalarType::Float) : of_x)),
        edges(with_rows(in_type(of_edges, x.scalar_type()))) {}

  ops::MessagesInputs inputs(const Structure& structure) const {
    const auto& order = structure.order();
    return {operand(x), operand(edges),
            order ? static_cast<const EdgeOffset*>(order->const_data_ptr()) : nullptr};
  }
};

Tensor messages(Tensor x, Tensor edge_features, Tensor index, std::optional<Tensor> offsets,
                std::int64_t targets, std::int64_t sources, std::int64_t layout, std::int64_t loops,
                std::int64_t message, std::int64_t flags) {
  const DeviceScope scope(x);
  check_one_type(x, {edge_features}, "x and edge_features");
  const auto structure = structure_of({index, offsets, targets, sources, layout, loops});
  check_rows(x, sources);
  check_edges(*structure, x, edge_features);
  const Given given(x, edge_features);
  Tensor y = empty_beside(given.x, targets, x.size(1), given.x.scalar_type());
  if (structure->edges() == 0) {
    torch::stable::zero_(y);
  } else if (y.numel() > 0) {
    const auto planned = plan_for(*structure, given.x, message, flags, false);
    const BorrowedWorkspace workspace(x, planned->plan);
    const std::scoped_lock lock(planned->mutex);
    ops::run(planned->plan, given.inputs(*structure), operand(y), place_of(x).stream, workspace);
    note_run(planned->plan, "forward");
  }
  return in_type(y, x.scalar_type());
}

/// The gradients that are needed: of x, then of the features of edges.
std::vector<Tensor> messages_backward(Tensor grad, Tensor x, Tensor edge_features, Tensor index,
                                      std::optional<Tensor> offsets, std::int64_t targets,
                                      std::int64_t sources, std::int64_t layout, std::int64_t loops,
                                      std::int64_t message, std::int64_t flags, bool need_x,
                                      bool need_edges) {
  const DeviceScope scope(x);
  const auto structure = structure_of({index, offsets, targets, sources, layout, loops});
  check_edges(*structure, x, edge_features);
  const ScalarType type = x.scalar_type();
  const Given given(x, edge_features);
  const ScalarType computed = given.x.scalar_type();
  std::vector<Tensor> gradients;
  ops::MessagesGradOutputs outputs;
  const bool empty = structure->edges() == 0 || x.size(1) == 0;
  if (need_x) {
    gradients.push_back(empty_beside(x, x.size(0), x.size(1), computed));
    if (empty) torch::stable::zero_(gradients.back());
    outputs.x = operand(gradients.back());
  }
  if (need_edges) {
    // Edges that were dropped have none.
    const bool all = structure->edges() == structure->caller_edges() && !empty;
    const std::int64_t rows = edge_features.size(0), cols = edge_features.size(1);
    gradients.push_back(all ? empty_beside(x, rows, cols, computed)
                            : zeros_beside(x, rows, cols, computed));
    outputs.edge_features = operand(gradients.back());
  }
  if (!empty) {
    const Tensor from = with_rows(in_type(grad, computed));
    const auto planned = plan_for(*structure, given.x, message, flags, true);
    const BorrowedWorkspace workspace(x, planned->plan);
    const std::scoped_lock lock(planned->mutex);
    ops::run_backward(planned->plan, given.inputs(*structure), operand(from), outputs,
                      place_of(x).stream, workspace);
    note_run(planned->plan, "backward");
  }
  for (Tensor& gradient : gradients) gradient = in_type(gradient, type);
  return gradients;
}

}  // namespace

void register_messages(torch::stable::detail::StableLibrary& library) {
  implement(library, "messages", TORCH_BOX(&Guarded<&messages>::run));
  implement(library, "messages_backward", TORCH_BOX(&Guarded<&messages_backward>::run));
}

}  // namespace tessera::torch_ops
