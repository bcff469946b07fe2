// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/messages.hpp"

#include <fmt/format.h>

#include <memory>

#include "step/ops/aggregate.hpp"
#include "tessera/core/error.hpp"
#include "tessera/ops/elementwise.hpp"
#include "tessera/step/nodes.hpp"
#include "tessera/step/op.hpp"

namespace tessera::step {
namespace {

/// What a node of messages reads, in this order; the last two may be absent.
constexpr std::size_t x = 0, edges = 1, own = 2, scale = 3;

ops::MessagesPlan plan_of(const Pass& pass, const Messages& messages, std::int64_t features,
                          bool backward) {
  ops::MessagesOptions options;
  options.message = messages.message;
  options.precision = pass.placement().precision;
  options.features = features;
  options.backward = backward;
  return pass.graph(messages.graph).messages(std::move(options));
}

/// In: x, the features of edges, and the gradient of the sums. Out: both gradients.
class MessagesGradient final : public Op {
 public:
  explicit MessagesGradient(const Messages& messages) : messages_(messages) {}

  std::string describe() const override { return "messages_gradient"; }
  std::size_t num_outputs() const override { return 2; }
  void shape(Shapes& shapes) const override {
    for (std::size_t i = 0; i < 2; ++i) shapes.set(i, shapes.in(i));
  }
  void run(const Pass& pass) const override {
    const ops::ConstOperand sources = pass.in(x);
    ops::run_backward(plan_of(pass, messages_, sources.cols, true), {sources, pass.in(edges)},
                      pass.in(2), {pass.out(x), pass.out(edges)}, pass.stream);
  }

 private:
  Messages messages_;
};

class SumMessages final : public Op {
 public:
  explicit SumMessages(const Messages& messages) : messages_(messages) {}

  std::string describe() const override {
    return fmt::format("messages {}", to_string(messages_.message));
  }

  void shape(Shapes& shapes) const override {
    const Shape& features = shapes.in(x);
    Topology& graph = shapes.graph(messages_.graph);
    require_rows(features, graph);
    const EdgeOffset num_edges = graph.graph().num_edges();
    const Shape& of_edges = shapes.in(edges);
    if (of_edges.rows != num_edges || of_edges.cols != features.cols) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("features of edges are {} x {}, but there are {} edges and {} "
                              "features of vertices",
                              of_edges.rows, of_edges.cols, num_edges, features.cols),
                  "messages", "give a row for each edge, as wide as those of vertices");
    }
    shapes.set(0, {graph.num_rows(), features.cols, features.precision});
  }

  void run(const Pass& pass) const override {
    const ops::ConstOperand sources = pass.in(x);
    const ops::Operand y = pass.out(0);
    ops::run(plan_of(pass, messages_, sources.cols, pass.context.training && has_gradient_),
             {sources, pass.in(edges)}, y, pass.stream);
    if (!pass.has(own)) return;
    ops::add_scaled_by(pass.in(scale), 1, pass.in(own), 1, y, pass.device, pass.stream);
  }

  void differentiate(Adjoint& adjoint) const override {
    Program& program = adjoint.program();
    const Value gradient = adjoint.gradient();
    if (adjoint.wants(scale)) {
      adjoint.give(scale, program.append(std::make_shared<Dot>(), {gradient, adjoint.in(own)}));
    }
    if (adjoint.wants(own)) {
      adjoint.give(
          own, program.append(std::make_shared<ScaleByNumber>(), {gradient, adjoint.in(scale)}));
    }
    if (!adjoint.wants(x) && !adjoint.wants(edges)) return;
    const std::vector<Value> gradients =
        program.append_all(std::make_shared<MessagesGradient>(messages_),
                           {adjoint.in(x), adjoint.in(edges), gradient});
    for (const std::size_t i : {x, edges}) {
      if (adjoint.wants(i)) adjoint.give(i, gradients[i]);
    }
    auto both_ways = std::make_shared<SumMessages>(*this);
    both_ways->has_gradient_ = true;
    adjoint.replace(std::move(both_ways));
  }

  bool may_repeat() const override { return true; }

 private:
  Messages messages_;
  bool has_gradient_ = false;  ///< plans are made for both directions
};

Value append(Program& program, const Messages& options, std::vector<Value> in) {
  Messages of_step = options;
  of_step.graph = program.absolute_graph(options.graph);
  return program.append(std::make_shared<SumMessages>(of_step), std::move(in));
}

}  // namespace

Value messages(Program& program, Value features, Value of_edges, const Messages& options) {
  return append(program, options, {features, of_edges, {}, {}});
}

Value messages_with_own(Program& program, Value features, Value of_edges, Value own_rows,
                        Value own_scale, const Messages& options) {
  return append(program, options, {features, of_edges, own_rows, own_scale});
}

}  // namespace tessera::step
