// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "tessera/ops/sddmm.hpp"
#include "tessera/step/nodes.hpp"
#include "tessera/step/op.hpp"

namespace tessera::step {
namespace {

constexpr std::size_t target = 0, source = 1, num_in = 2;

/// What the plan of a node depends on.
struct EdgeDots {
  std::int64_t heads = 1;
  Derivation derivation = nullptr;
  int graph = 0;

  ops::SddmmPlan plan(const Pass& pass, bool backward) const {
    ops::SddmmOptions options;
    options.backward = backward;
    options.precision = pass.placement().precision;
    options.features = pass.in(target).cols;
    options.heads = heads;
    return pass.graph(graph).sddmm(derivation, options);
  }
};

/// In: both ends, and the gradient of the dots. Out: the gradients of both ends.
class EdgeDotGradient final : public Op {
 public:
  explicit EdgeDotGradient(const EdgeDots& dots) : dots_(dots) {}

  std::string describe() const override { return "edge_dot_gradient"; }
  std::size_t num_outputs() const override { return num_in; }
  void shape(Shapes& shapes) const override {
    for (std::size_t i = 0; i < num_in; ++i) shapes.set(i, shapes.in(i));
  }
  void run(const Pass& pass) const override {
    ops::run_backward(dots_.plan(pass, true), pass.in(target), pass.in(source), pass.in(num_in),
                      pass.out(target), pass.out(source), pass.stream);
  }

 private:
  EdgeDots dots_;
};

class EdgeDot final : public Op {
 public:
  explicit EdgeDot(const EdgeDots& dots) : dots_(dots) {}

  std::string describe() const override { return fmt::format("edge_dot, {} heads", dots_.heads); }
  void shape(Shapes& shapes) const override {
    const Graph& graph = shapes.graph(dots_.graph).derived(dots_.derivation);
    shapes.set(0, graph.num_edges(), dots_.heads);
  }
  void run(const Pass& pass) const override {
    ops::run(dots_.plan(pass, has_gradient_), pass.in(target), pass.in(source), pass.out(0),
             pass.stream);
  }
  void differentiate(Adjoint& adjoint) const override {
    const std::vector<Value> gradients =
        adjoint.program().append_all(std::make_shared<EdgeDotGradient>(dots_),
                                     {adjoint.in(target), adjoint.in(source), adjoint.gradient()});
    for (std::size_t i = 0; i < num_in; ++i) {
      if (adjoint.wants(i)) adjoint.give(i, gradients[i]);
    }
    auto planned = std::make_shared<EdgeDot>(*this);
    planned->has_gradient_ = true;
    adjoint.replace(std::move(planned));
  }
  bool may_repeat() const override { return true; }

 private:
  EdgeDots dots_;
  bool has_gradient_ = false;  ///< plans are made for both directions
};

}  // namespace

Value edge_dot(Program& program, Value target_rows, Value source_rows, std::int64_t heads,
               Derivation derivation, int graph) {
  const EdgeDots dots{heads, derivation, program.absolute_graph(graph)};
  return program.append(std::make_shared<EdgeDot>(dots), {target_rows, source_rows});
}

}  // namespace tessera::step
