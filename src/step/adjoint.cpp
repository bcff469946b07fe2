// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>

#include "tessera/core/error.hpp"
#include "tessera/step/nodes.hpp"
#include "tessera/step/op.hpp"

namespace tessera::step {

struct Adjoint::State {
  Program& program;
  std::vector<bool> is_wanted;   ///< of each value, whether something below it wants a gradient
  std::vector<Value> gradients;  ///< of each value, what it has so far

  std::size_t index(Value value) const { return static_cast<std::size_t>(value.id); }
  bool wants(Value value) const {
    return !value.absent() && index(value) < is_wanted.size() && is_wanted[index(value)];
  }
  Value& gradient(Value value) { return gradients[index(value)]; }
};

Program& Adjoint::program() const { return state_.program; }
bool Adjoint::has(std::size_t input) const {
  return input < node_.in.size() && !node_.in[input].absent();
}
Value Adjoint::gradient(std::size_t output) const { return state_.gradient(node_.out[output]); }
bool Adjoint::wants(std::size_t input) const { return has(input) && state_.wants(node_.in[input]); }

void Adjoint::give(std::size_t input, Value gradient) {
  Value& known = state_.gradient(node_.in[input]);
  known = known.absent() ? gradient : add(program(), known, gradient);
}

void Adjoint::replace(std::shared_ptr<const Op> op) {
  program().nodes()[index_].op = std::move(op);
}

Value Adjoint::take(std::size_t input) {
  return std::exchange(state_.gradient(node_.in[input]), {});
}

void Op::differentiate(Adjoint&) const {
  throw Error(ErrorCode::unsupported, "an op without a gradient is part of what is trained",
              describe(), "give it an adjoint rule (Op::differentiate)");
}

namespace {

/// A value has one place: where a gradient is that of two parameters, or something else as well,
/// the parameter has a copy.
Value own_gradient(Program& program, Value gradient, Value parameter) {
  if (gradient.absent()) return fill(program, parameter, 0);
  const ValueInfo& info = program.info(gradient);
  const bool is_free = !info.is_input && info.parameter == nullptr && info.gradient_of == nullptr;
  return is_free && program.num_readers(gradient) == 0 ? gradient : scaled(program, 1, gradient);
}

}  // namespace

std::vector<Value> differentiate(Program& program, Value output, Value output_gradient,
                                 std::span<const Value> of) {
  Adjoint::State state{program, program.wanted_values(),
                       std::vector<Value>(static_cast<std::size_t>(program.num_values()))};
  state.gradient(output) = output_gradient;
  const std::vector<Node> forward = program.nodes();
  for (std::size_t i = forward.size(); i-- > 0;) {
    bool is_reached = false;
    for (const Value value : forward[i].out) {
      is_reached = is_reached || (!state.gradient(value).absent() && state.wants(value));
    }
    if (!is_reached) continue;
    Adjoint adjoint(state, forward[i], i);
    forward[i].op->differentiate(adjoint);
  }
  const auto num_forward = static_cast<std::int32_t>(state.gradients.size());
  for (std::int32_t i = 0; i < num_forward; ++i) {
    Parameter* const parameter = program.info({i}).parameter;
    if (parameter == nullptr || !parameter->trainable) continue;
    const Value gradient = own_gradient(program, state.gradient({i}), {i});
    program.info(gradient).gradient_of = parameter;
  }
  std::vector<Value> found;
  for (const Value value : of) found.push_back(state.gradient(value));
  return found;
}

}  // namespace tessera::step
