// SPDX-License-Identifier: Apache-2.0
#include "tessera/step/execution.hpp"

#include <utility>

#include "step/binding.hpp"
#include "tessera/ops/elementwise.hpp"

namespace tessera::step {

bool Shapes::has(std::size_t input) const {
  return input < node_.in.size() && !node_.in[input].absent();
}
const Shape& Shapes::in(std::size_t input) const { return binding_.slot(node_.in[input]).shape; }
void Shapes::set(std::size_t output, Shape shape) {
  binding_.slot(node_.out[output]).shape = shape;
}
void Shapes::set(std::size_t output, std::int64_t rows, std::int64_t cols) {
  set(output, {rows, cols, binding_.placement.precision});
}
Topology& Shapes::graph(int index) const { return binding_.graph(index); }
std::int64_t Shapes::num_pairs() const { return binding_.context.pairs.cols; }
const Placement& Shapes::placement() const { return binding_.placement; }

Pass::Pass(Binding& binding, const Node& node, const Context& own_context,
           ops::CallChain* own_chain)
    : context(own_context),
      stream(own_context.stream),
      device(binding.placement.device()),
      chain(own_chain),
      binding_(binding),
      node_(node) {}

bool Pass::has(std::size_t input) const {
  return input < node_.in.size() && !node_.in[input].absent();
}

ops::ConstOperand Pass::in(std::size_t input) const {
  if (!has(input)) return {};
  const Value value = node_.in[input];
  const ValueInfo& info = binding_.program.info(value);
  if (!node_.op->reads(input)) return {};
  if (info.parameter != nullptr) return std::as_const(*info.parameter).used();
  if (info.state != nullptr) return std::as_const(*info.state);
  if (info.is_input && !info.may_be_overwritten) return given(input).dense("step");
  return binding_.place(value);
}

ops::Operand Pass::out(std::size_t output) const { return binding_.place(node_.out[output]); }
const Input& Pass::given(std::size_t input) const { return binding_.slot(node_.in[input]).given; }
Parameter* Pass::parameter(std::size_t input) const {
  return has(input) ? binding_.program.info(node_.in[input]).parameter : nullptr;
}
Parameter* Pass::gradient_of(std::size_t output) const {
  return binding_.program.info(node_.out[output]).gradient_of;
}
Tensor& Pass::state(std::size_t input) const {
  return *binding_.program.info(node_.in[input]).state;
}
Topology& Pass::graph(int index) const { return binding_.graph(index); }
const Placement& Pass::placement() const { return binding_.placement; }

Execution::Execution(Program program, Placement placement, std::shared_ptr<Arena> arena)
    : binding_(std::make_unique<Binding>(std::move(program), placement, std::move(arena))) {}
Execution::Execution(Execution&&) noexcept = default;
Execution& Execution::operator=(Execution&&) noexcept = default;
Execution::~Execution() = default;

const Program& Execution::program() const noexcept { return binding_->program; }

void Execution::bind(Value input, const Input& given) { binding_->slot(input).given = given; }

void Execution::bind_scratch(Value input, Tensor& given) { binding_->slot(input).tensor = &given; }

void Execution::keep(Value value, Tensor& result) { binding_->keep(value, result); }

void Execution::prepare(const Context& context) { binding_->prepare(context); }

namespace {

void copy_what_is_updated(const Node& node, const Pass& pass, ops::CallChain& chain) {
  const int updated = node.op->updates();
  if (updated < 0 || !pass.has(static_cast<std::size_t>(updated))) return;
  const ops::ConstOperand before = pass.in(static_cast<std::size_t>(updated));
  const ops::Operand after = pass.out(0);
  if (after.absent() || before.data == after.data) return;
  chain.run();
  ops::copy(before, after, pass.device, pass.stream);
}

}  // namespace

void Execution::run(std::size_t first, std::size_t last, const Context& context) {
  const std::vector<Node>& nodes = binding_->program.nodes();
  ops::CallChain& chain = binding_->chain;
  chain.drop();
  for (std::size_t i = first; i < last; ++i) {
    const Node& node = nodes[i];
    if (!node.is_chained) chain.run();
    const Pass pass(*binding_, node, context, node.is_chained ? &chain : nullptr);
    copy_what_is_updated(node, pass, chain);
    node.op->run(pass);
  }
  chain.run();
}

void note_shapes(Program& program, const Placement& placement, std::span<const Bound> inputs,
                 const Context& context) {
  Binding binding(program, placement, nullptr);
  for (const Bound& bound : inputs) binding.slot(bound.input).given = bound.given;
  binding.find_shapes(context);
  for (std::int32_t i = 0; i < program.num_values(); ++i) {
    program.info({i}).shape = binding.slot({i}).shape;
  }
}

std::int64_t Execution::arena_bytes() const noexcept { return binding_->arena_bytes; }
std::int64_t Execution::unshared_bytes() const noexcept { return binding_->unshared_bytes; }

}  // namespace tessera::step
