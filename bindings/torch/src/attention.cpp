// SPDX-License-Identifier: Apache-2.0
#include "attention.hpp"

#include <limits>
#include <tuple>
#include <vector>

#include "counters.hpp"
#include "operators.hpp"
#include "tessera/ops/attention_kept.hpp"

namespace tessera::torch_ops {
namespace {

std::shared_ptr<Planned<ops::AttentionPlan>> plan_for(Structure& structure, const Tensor& value,
                                                      const AttentionSettings& settings,
                                                      bool has_terms, bool backward) {
  const Place place = place_of(value);
  const Precision precision = planned_precision(value, settings.flags);
  const PlanNumbers numbers{4,
                            static_cast<double>(precision),
                            static_cast<double>(value.size(1)),
                            static_cast<double>(settings.form),
                            static_cast<double>(settings.heads),
                            settings.slope,
                            settings.dropout,
                            static_cast<double>(settings.flags),
                            (backward ? 1.0 : 0.0) + (has_terms ? 2.0 : 0.0)};
  return structure.plan<ops::AttentionPlan>(numbers, place, [&] {
    ops::AttentionOptions options;
    set_common(options, place, settings.flags);
    if (!backward) set_kernel(options, settings.flags);
    options.form = settings.form;
    options.precision = precision;
    options.heads = settings.heads;
    options.features = value.size(1);
    options.negative_slope = settings.slope;
    options.dropout = settings.dropout;
    options.edge_terms = has_terms;
    options.backward = backward;
    return ops::plan_attention(structure.graph(Norm::none, 1), options);
  });
}

}  // namespace

AttentionTensors::AttentionTensors(const Tensor& of_target, const Tensor& of_source,
                                   const Tensor& of_value, const std::optional<Tensor>& of_vector,
                                   const std::optional<Tensor>& of_seed, bool has_terms)
    : target(of_target), source(of_source), value(of_value), seed(of_seed) {
  check_one_type(value, {target, source, of_vector.value_or(value)},
                 "value, target, source and vector");
  const ScalarType type = value.scalar_type();
  const bool narrow = type == ScalarType::BFloat16 || type == ScalarType::Half;
  if (is_widened(value) || (has_terms && narrow)) value = in_type(value, ScalarType::Float);
  value = with_rows(value);
  target = with_rows(in_type(target, value.scalar_type()));
  source = with_rows(in_type(source, value.scalar_type()));
  if (of_vector) vector = in_one_piece(in_type(*of_vector, value.scalar_type()));
}

/// The seed lies on the device: its first number takes the place of a step's.
ops::AttentionInputs AttentionTensors::inputs(const AttentionSettings& settings) const {
  ops::AttentionInputs in;
  if (settings.form != ops::AttentionForm::cosine) {
    in.target = operand(target);
    in.source = operand(source);
  }
  in.value = operand(value);
  if (vector) in.vector = row_operand(*vector);
  if (edge_term) in.edge_term = operand(*edge_term);
  in.scale = settings.scale;
  if (settings.dropout > 0) {
    if (!seed || seed->scalar_type() != ScalarType::Long || seed->numel() != 2) {
      throw Error(ErrorCode::invalid_argument, "dropout without two random numbers", "seed",
                  "give an int64 tensor of two");
    }
    static_assert(sizeof(ops::StepClock) == 2 * sizeof(std::int64_t));
    in.clock = static_cast<const ops::StepClock*>(seed->const_data_ptr());
  }
  return in;
}

ScalarType sum_type(const Tensor& value) {
  return value.scalar_type() == ScalarType::Double ? ScalarType::Double : ScalarType::Float;
}

void attend(Structure& structure, const AttentionSettings& settings,
            const AttentionTensors& tensors, Tensor& output, Tensor& log_sum,
            std::optional<Tensor>* kept) {
  if (output.numel() == 0) return;
  if (structure.edges() == 0) {
    torch::stable::zero_(output);
    torch::stable::fill_(log_sum, -std::numeric_limits<double>::infinity());
    return;
  }
  const auto plan = [&](bool backward) {
    return plan_for(structure, tensors.value, settings, tensors.edge_term.has_value(), backward);
  };
  auto planned = plan(kept != nullptr);
  ops::Operand sums;
  if (const std::int64_t numbers = kept != nullptr ? ops::kept_numbers(planned->plan) : 0) {
    *kept = empty_beside(tensors.value, 1, numbers, log_sum.scalar_type());
    sums = operand(**kept);
  } else if (kept != nullptr) {
    planned = plan(false);
  }
  const BorrowedWorkspace workspace(tensors.value, planned->plan);
  const std::scoped_lock lock(planned->mutex);
  ops::run_keeping(planned->plan, tensors.inputs(settings), {operand(output), operand(log_sum)},
                   sums, place_of(tensors.value).stream, workspace);
  note_run(planned->plan, "forward");
}

void attend_backward(Structure& structure, const AttentionSettings& settings,
                     const AttentionTensors& tensors, const Tensor& output, const Tensor& log_sum,
                     const Tensor& grad, AttentionGradients& gradients,
                     const std::optional<Tensor>& kept) {
  if (output.numel() == 0 || structure.edges() == 0) {
    for (Tensor* tensor : {&gradients.target, &gradients.source, &gradients.value}) {
      torch::stable::zero_(*tensor);
    }
    if (gradients.vector) torch::stable::zero_(*gradients.vector);
    if (gradients.edge_term) torch::stable::zero_(*gradients.edge_term);
    return;
  }
  const ScalarType type = tensors.value.scalar_type();
  const auto planned =
      plan_for(structure, tensors.value, settings, tensors.edge_term.has_value(), true);
  const Tensor out = with_rows(in_type(output, type));
  const Tensor grad_out = with_rows(in_type(grad, type));
  const Tensor sums = with_rows(log_sum);
  ops::AttentionGradOutputs outputs;
  if (settings.form != ops::AttentionForm::cosine) {
    outputs.target = operand(gradients.target);
    outputs.source = operand(gradients.source);
  }
  outputs.value = operand(gradients.value);
  if (gradients.vector) outputs.vector = row_operand(*gradients.vector);
  if (gradients.edge_term) outputs.edge_term = operand(*gradients.edge_term);
  const BorrowedWorkspace workspace(tensors.value, planned->plan);
  const std::scoped_lock lock(planned->mutex);
  ops::run_backward_kept(planned->plan, tensors.inputs(settings), operand(out), operand(sums),
                         kept ? ops::ConstOperand(operand(*kept)) : ops::ConstOperand{},
                         operand(grad_out), outputs, place_of(tensors.value).stream, workspace);
  note_run(planned->plan, "backward");
}

namespace {

/// Numbers that a term of an edge has.
std::int64_t term_numbers(const AttentionSettings& settings, const Tensor& value) {
  return settings.form == ops::AttentionForm::gatv2 ? value.size(1) : settings.heads;
}

/// The caller's terms of edges in the order of rows, in the type of the values.
Tensor terms_in_rows(const Structure& structure, const Tensor& term,
                     const AttentionSettings& settings, const Tensor& value) {
  const std::int64_t numbers = term_numbers(settings, value);
  if (term.dim() != 2 || term.size(0) != structure.caller_edges() || term.size(1) != numbers) {
    throw Error(
        ErrorCode::invalid_argument, "terms that do not fit the edges", "edge_term",
        "use " + std::to_string(structure.caller_edges()) + " x " + std::to_string(numbers));
  }
  return with_rows(structure.in_rows(in_type(term, value.scalar_type())));
}

std::tuple<Tensor, Tensor> attention(Tensor target, Tensor source, Tensor value,
                                     std::optional<Tensor> vector, std::optional<Tensor> edge_term,
                                     std::optional<Tensor> seed, Tensor index,
                                     std::optional<Tensor> offsets, std::int64_t targets,
                                     std::int64_t sources, std::int64_t layout, std::int64_t loops,
                                     std::int64_t form, std::int64_t heads, double scale,
                                     double slope, double dropout, std::int64_t flags) {
  const DeviceScope scope(value);
  const ScalarType given_type = value.scalar_type();
  const AttentionSettings settings{
      static_cast<ops::AttentionForm>(form), heads, scale, slope, dropout, flags};
  AttentionTensors tensors(target, source, value, vector, seed, edge_term.has_value());
  const auto structure = structure_of({index, offsets, targets, sources, layout, loops});
  const Tensor& v = tensors.value;
  if (edge_term) tensors.edge_term = terms_in_rows(*structure, *edge_term, settings, v);
  Tensor output = empty_beside(v, targets, v.size(1), v.scalar_type());
  Tensor log_sum = empty_beside(v, targets, heads, sum_type(v));
  attend(*structure, settings, tensors, output, log_sum);
  return {in_type(output, given_type), log_sum};
}

/// The gradients of target, source and value, then of the vector and the terms where there are any.
std::vector<Tensor> attention_backward(Tensor grad, Tensor output, Tensor log_sum, Tensor target,
                                       Tensor source, Tensor value, std::optional<Tensor> vector,
                                       std::optional<Tensor> edge_term, std::optional<Tensor> seed,
                                       Tensor index, std::optional<Tensor> offsets,
                                       std::int64_t targets, std::int64_t sources,
                                       std::int64_t layout, std::int64_t loops, std::int64_t form,
                                       std::int64_t heads, double scale, double slope,
                                       double dropout, std::int64_t flags) {
  const DeviceScope scope(value);
  const ScalarType given_type = value.scalar_type();
  const AttentionSettings settings{
      static_cast<ops::AttentionForm>(form), heads, scale, slope, dropout, flags};
  AttentionTensors tensors(target, source, value, vector, seed, edge_term.has_value());
  const ScalarType type = tensors.value.scalar_type();
  const auto structure = structure_of({index, offsets, targets, sources, layout, loops});
  const auto like = [&](const Tensor& other) {
    return empty_beside(other, other.size(0), other.size(1), type);
  };
  AttentionGradients found{like(tensors.target), like(tensors.source), like(tensors.value)};
  if (vector) found.vector = empty_beside(tensors.value, vector->numel(), type);
  if (edge_term) {
    tensors.edge_term = terms_in_rows(*structure, *edge_term, settings, tensors.value);
    found.edge_term = empty_beside(tensors.value, structure->edges(),
                                   term_numbers(settings, tensors.value), type);
  }
  attend_backward(*structure, settings, tensors, output, log_sum, grad, found);
  std::vector<Tensor> gradients{in_type(found.target, given_type),
                                in_type(found.source, given_type),
                                in_type(found.value, given_type)};
  if (found.vector) gradients.push_back(in_type(*found.vector, given_type));
  if (found.edge_term) {
    gradients.push_back(in_type(structure->to_caller(*found.edge_term), given_type));
  }
  return gradients;
}

/// The weights before dropout, for those who want to look at them.
Tensor attention_weights(Tensor target, Tensor source, Tensor value, Tensor log_sum,
                         std::optional<Tensor> vector, Tensor index, std::optional<Tensor> offsets,
                         std::int64_t targets, std::int64_t sources, std::int64_t layout,
                         std::int64_t loops, std::int64_t form, std::int64_t heads, double scale,
                         double slope, std::int64_t flags) {
  const DeviceScope scope(value);
  const ScalarType given_type = value.scalar_type();
  const AttentionSettings settings{
      static_cast<ops::AttentionForm>(form), heads, scale, slope, 0, flags};
  const AttentionTensors tensors(target, source, value, vector, std::nullopt);
  const auto structure = structure_of({index, offsets, targets, sources, layout, loops});
  Tensor weights =
      empty_beside(tensors.value, structure->edges(), heads, tensors.value.scalar_type());
  if (weights.numel() > 0) {
    const auto planned = plan_for(*structure, tensors.value, settings, false, false);
    const Tensor sums = with_rows(log_sum);
    const BorrowedWorkspace workspace(tensors.value, planned->plan);
    const std::scoped_lock lock(planned->mutex);
    ops::attention_weights(planned->plan, tensors.inputs(settings), operand(sums), operand(weights),
                           place_of(tensors.value).stream, workspace);
    note_run(planned->plan, "weights");
  }
  return in_type(structure->to_caller(weights), given_type);
}

}  // namespace

void register_attention(torch::stable::detail::StableLibrary& library) {
  implement(library, "attention", TORCH_BOX(&Guarded<&attention>::run));
  implement(library, "attention_backward", TORCH_BOX(&Guarded<&attention_backward>::run));
  implement(library, "attention_weights", TORCH_BOX(&Guarded<&attention_weights>::run));
}

}  // namespace tessera::torch_ops
