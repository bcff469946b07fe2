// SPDX-License-Identifier: Apache-2.0
#include <array>

#include <fmt/format.h>

#include "core/names.hpp"
#include "tessera/ops/messages.hpp"

#include "ops/messages/kernel.hpp"
#include "ops/messages/trial.hpp"
#include "ops/plan/check.hpp"
#include "ops/plan/plan_record.hpp"
#include "ops/plan/planning_scope.hpp"
#include "tessera/detail/ops/plan_only.hpp"

namespace tessera::ops {
namespace {

constexpr std::array<tessera::Named<Message>, 3> names = {
    {{Message::sum, "sum"}, {Message::relu, "relu"}, {Message::product, "product"}}};

/// One kernel has both passes.
using MessagesRecord = KernelRecord<MessagesOptions, PreparedMessages>;

Expected rows_of(const MessagesPlan& plan, std::int64_t rows) {
  return {storage_of(plan.options().precision), rows, plan.options().features};
}

void check_inputs(const Checker& check, const MessagesPlan& plan, const MessagesInputs& inputs) {
  check.matrix(inputs.x, "x", rows_of(plan, plan.graph().num_cols()));
  // The rows may be in any order, and more than there are edges.
  const std::int64_t edges = plan.graph().num_edges();
  const bool picks = inputs.edge_rows != nullptr && inputs.edge_features.rows > edges;
  check.matrix(inputs.edge_features, "features of edges",
               rows_of(plan, picks ? inputs.edge_features.rows : edges));
}

}  // namespace

const char* to_string(Message message) noexcept { return name_of(names, message); }

Message parse_message(const std::string& text) { return parse_name(names, "message", text); }

MessagesPlan plan_messages(const Graph& graph, const MessagesOptions& options) {
  check_plan_options(options, options.precision);
  if (options.features < 0) refuse(fmt::format("{} features", options.features), "features");
  auto record = std::make_shared<MessagesRecord>();
  record->graph = graph.with_values({}).with_scales({}, {});
  record->options = options;
  const PlanningScope planning(record->graph, options, options.backward);
  record->forward = record->take(make_choice<MessagesTrial>(
      messages_kernels(), MessagesProblem{record->graph, options}, options));
  record->has_backward = options.backward;
  if (options.backward) record->decision.add_child("backward", by_same_kernel(*record));
  const WorkspaceNeed need = record->forward->workspace();
  return PlanAccess::finish(std::move(record), need);
}

void run(const MessagesPlan& plan, const MessagesInputs& inputs, Operand y, Stream stream,
         Workspace workspace) {
  const Checker check("messages", plan.options().device);
  check_inputs(check, plan, inputs);
  check.matrix(y, "y", rows_of(plan, plan.graph().num_rows()));
  check.apart(y, "y", {{inputs.x, "x"}, {inputs.edge_features, "features of edges"}});
  if (plans_only()) return;
  const OnDevice current(plan.options().device);
  const auto& record = PlanAccess::record<MessagesRecord>(plan);
  const WorkspaceUse use(*record.workspace, workspace, stream);
  record.forward->run(inputs, y, stream, use.view());
}

void run_backward(const MessagesPlan& plan, const MessagesInputs& inputs, ConstOperand grad_y,
                  const MessagesGradOutputs& gradients, Stream stream, Workspace workspace) {
  require_backward(plan);
  const Checker check("messages backward", plan.options().device);
  check_inputs(check, plan, inputs);
  check.matrix(grad_y, "gradient of y", rows_of(plan, plan.graph().num_rows()));
  check.optional_matrix(gradients.x, "gradient of x", rows_of(plan, plan.graph().num_cols()));
  check.optional_matrix(gradients.edge_features, "gradient of the features of edges",
                        rows_of(plan, inputs.edge_features.rows));
  const std::initializer_list<Named> read = {
      {inputs.x, "x"}, {inputs.edge_features, "features of edges"}, {grad_y, "gradient of y"}};
  check.apart(gradients.x, "gradient of x", read);
  check.apart(gradients.edge_features, "gradient of the features of edges", read);
  check.apart(gradients.x, "gradient of x", gradients.edge_features,
              "gradient of the features of edges");
  if (plans_only()) return;
  if (gradients.x.absent() && gradients.edge_features.absent()) return;
  const OnDevice current(plan.options().device);
  const auto& record = PlanAccess::record<MessagesRecord>(plan);
  const WorkspaceUse use(*record.workspace, workspace, stream);
  record.forward->run_backward(inputs, grad_y, gradients, stream, use.view());
}

}  // namespace tessera::ops
