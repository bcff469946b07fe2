// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "tessera/ops/attention_kept.hpp"
#include "tessera/step/nodes.hpp"
#include "tessera/step/op.hpp"

namespace tessera::step {
namespace {

/// What a node of attention reads, in this order.
constexpr std::size_t target = 0, source = 1, value = 2, vector = 3, num_in = 4;

/// Outputs of the forward node: the result, what its gradient needs, and as scratch the inverse
/// lengths of the values, which kernels of cosines use in both directions.
constexpr std::size_t result = 0, log_sum = 1, kept = 2, inverse_lengths = 3;

ops::AttentionPlan plan_of(const Attention& attention, Topology& graph, std::int64_t features,
                           Precision precision, bool backward) {
  ops::AttentionOptions options;
  options.backward = backward;
  options.form = attention.form;
  options.precision = precision;
  options.heads = attention.heads;
  options.features = features;
  options.negative_slope = attention.negative_slope;
  options.dropout = attention.dropout;
  return graph.attention(attention.derivation, options);
}

ops::AttentionInputs inputs_of(const Attention& attention, const Pass& pass) {
  ops::AttentionInputs inputs;
  inputs.target = pass.in(target);
  inputs.source = pass.in(source);
  inputs.value = pass.in(value);
  inputs.vector = pass.in(vector);
  inputs.random = pass.context.random(attention.number);
  inputs.clock = pass.context.clock;
  return inputs;
}

class Attend final : public Op {
 public:
  explicit Attend(const Attention& attention) : attention_(attention) {}

  std::string describe() const override {
    return fmt::format("attend {}, {} heads", to_string(attention_.form), attention_.heads);
  }
  std::size_t num_outputs() const override { return 3; }
  std::size_t num_scratch() const override { return 1; }

  void shape(Shapes& shapes) const override {
    const Shape& values = shapes.in(value);
    Topology& graph = shapes.graph(attention_.graph);
    const Precision wide = shapes.placement().wide().precision;
    shapes.set(result, {graph.num_rows(), values.cols, values.precision});
    shapes.set(log_sum, {graph.num_rows(), attention_.heads, wide});
    // Asked only where a gradient needs it: asking means planning.
    const std::int64_t numbers =
        has_gradient_ ? ops::kept_numbers(plan_of(attention_, graph, values.cols,
                                                  shapes.placement().precision, true))
                      : 0;
    shapes.set(kept, {numbers > 0 ? 1 : 0, numbers, wide});
    const bool has_lengths = attention_.form == ops::AttentionForm::cosine;
    shapes.set(inverse_lengths, has_lengths ? Shape{1, values.rows, wide} : Shape{});
  }

  void run(const Pass& pass) const override {
    const ops::AttentionInputs inputs = inputs_of(attention_, pass);
    const ops::Operand kept_row = pass.out(kept);
    const ops::AttentionPlan plan =
        plan_of(attention_, pass.graph(attention_.graph), inputs.value.cols,
                pass.placement().precision, has_gradient_);
    ops::AttentionOutputs outputs{pass.out(result), pass.out(log_sum), {}};
    if (attention_.form == ops::AttentionForm::cosine) {
      outputs.inverse_lengths = pass.out(inverse_lengths);
      return ops::run(plan, inputs, outputs, pass.stream);
    }
    ops::run_keeping(plan, inputs, outputs, kept_row.rows > 0 ? kept_row : ops::Operand(),
                     pass.stream);
  }

  void differentiate(Adjoint& adjoint) const override;

 private:
  Attention attention_;
  bool has_gradient_ = false;  ///< plans are made for both directions
};

/// In: what attention reads, what it wrote, and the gradient of its result. Out: the gradients of
/// what it reads.
class AttendGradient final : public Op {
 public:
  explicit AttendGradient(const Attention& attention) : attention_(attention) {}

  std::string describe() const override { return "attend_gradient"; }
  std::size_t num_outputs() const override { return num_in; }

  void shape(Shapes& shapes) const override {
    for (std::size_t i = 0; i < num_in; ++i) shapes.set(i, shapes.has(i) ? shapes.in(i) : Shape{});
  }

  void run(const Pass& pass) const override {
    ops::AttentionInputs inputs = inputs_of(attention_, pass);
    ops::AttentionGradOutputs gradients;
    gradients.target = pass.out(target);
    gradients.source = pass.out(source);
    gradients.value = pass.out(value);
    gradients.vector = pass.out(vector);
    const ops::AttentionPlan plan = plan_of(attention_, pass.graph(attention_.graph),
                                            inputs.value.cols, pass.placement().precision, true);
    const ops::ConstOperand output = pass.in(num_in + result), sums = pass.in(num_in + log_sum);
    const ops::ConstOperand gradient = pass.in(num_in + 4);
    if (attention_.form == ops::AttentionForm::cosine) {
      inputs.inverse_lengths = pass.in(num_in + inverse_lengths);
      return ops::run_backward(plan, inputs, output, sums, gradient, gradients, pass.stream);
    }
    const ops::ConstOperand kept_row = pass.in(num_in + kept);
    ops::run_backward_kept(plan, inputs, output, sums,
                           kept_row.rows > 0 ? kept_row : ops::ConstOperand(), gradient, gradients,
                           pass.stream);
  }

 private:
  Attention attention_;
};

void Attend::differentiate(Adjoint& adjoint) const {
  const bool is_cosine = attention_.form == ops::AttentionForm::cosine;
  std::vector<Value> in;
  for (std::size_t i = 0; i < num_in; ++i) in.push_back(adjoint.in(i));
  in.push_back(adjoint.out(result));
  in.push_back(adjoint.out(log_sum));
  in.push_back(is_cosine ? Value() : adjoint.out(kept));
  in.push_back(is_cosine ? adjoint.out(inverse_lengths) : Value());
  in.push_back(adjoint.gradient());
  const std::vector<Value> gradients =
      adjoint.program().append_all(std::make_shared<AttendGradient>(attention_), std::move(in));
  // Values that are the sources' rows as well come first, so that they are added in this order.
  for (const std::size_t i : {value, source, target, vector}) {
    if (adjoint.wants(i)) adjoint.give(i, gradients[i]);
  }
  auto both_ways = std::make_shared<Attend>(*this);
  both_ways->has_gradient_ = true;
  adjoint.replace(std::move(both_ways));
}

}  // namespace

Value attend(Program& program, const Attention& attention, const AttentionValues& values) {
  Attention own = attention;
  own.graph = program.absolute_graph(attention.graph);
  return program.append(std::make_shared<Attend>(own),
                        {values.target, values.source, values.value, values.vector});
}

}  // namespace tessera::step
