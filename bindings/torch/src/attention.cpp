// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/attention.hpp"

#include <tuple>

#include "counters.hpp"
#include "operators.hpp"

namespace tessera::torch_ops {
namespace {

/// What an attention is besides its tensors.
struct AttentionSettings {
  ops::AttentionForm form;
  std::int64_t heads;
  double scale;
  double slope;
  double dropout;
  std::int64_t flags;
};

std::shared_ptr<Planned<ops::AttentionPlan>> plan_for(Structure& structure, const Tensor& value,
                                                      const AttentionSettings& settings,
                                                      bool backward) {
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
                            backward ? 1.0 : 0.0};
  return structure.plan<ops::AttentionPlan>(numbers, place, [&] {
    ops::AttentionOptions options;
    set_common(options, place, settings.flags);
    options.form = settings.form;
    options.precision = precision;
    options.heads = settings.heads;
    options.features = value.size(1);
    options.negative_slope = settings.slope;
    options.dropout = settings.dropout;
    options.backward = backward;
    return ops::plan_attention(structure.graph(Norm::none, 1), options);
  });
}

/// The tensors of one run, in the layout and type that kernels take.
struct AttentionTensors {
  Tensor target;
  Tensor source;
  Tensor value;
  std::optional<Tensor> vector;
  std::optional<Tensor> seed;

  AttentionTensors(const Tensor& of_target, const Tensor& of_source, const Tensor& of_value,
                   const std::optional<Tensor>& of_vector, const std::optional<Tensor>& of_seed)
      : target(of_target), source(of_source), value(of_value), seed(of_seed) {
    if (is_widened(value)) value = in_type(value, ScalarType::Float);
    value = with_rows(value);
    target = with_rows(in_type(target, value.scalar_type()));
    source = with_rows(in_type(source, value.scalar_type()));
    if (of_vector) {
      vector =
          torch::stable::view(torch::stable::contiguous(in_type(*of_vector, value.scalar_type())),
                              std::array<std::int64_t, 2>{1, of_vector->numel()});
    }
  }

  /// The seed lies on the device: its first number takes the place of a step's.
  ops::AttentionInputs inputs(const AttentionSettings& settings) const {
    ops::AttentionInputs in;
    in.target = operand(target);
    in.source = operand(source);
    in.value = operand(value);
    if (vector) in.vector = operand(*vector);
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
};

ScalarType sum_type(const Tensor& value) {
  return value.scalar_type() == ScalarType::Double ? ScalarType::Double : ScalarType::Float;
}

std::tuple<Tensor, Tensor> attention(Tensor target, Tensor source, Tensor value,
                                     std::optional<Tensor> vector, std::optional<Tensor> seed,
                                     Tensor index, std::optional<Tensor> offsets,
                                     std::int64_t targets, std::int64_t sources,
                                     std::int64_t layout, std::int64_t loops, std::int64_t form,
                                     std::int64_t heads, double scale, double slope, double dropout,
                                     std::int64_t flags) {
  const DeviceScope scope(value);
  const ScalarType given_type = value.scalar_type();
  const AttentionSettings settings{
      static_cast<ops::AttentionForm>(form), heads, scale, slope, dropout, flags};
  const AttentionTensors tensors(target, source, value, vector, seed);
  const auto structure = structure_of({index, offsets, targets, sources, layout, loops});
  const Tensor& v = tensors.value;
  Tensor output = empty_beside(v, targets, v.size(1), v.scalar_type());
  Tensor log_sum = empty_beside(v, targets, heads, sum_type(v));
  if (output.numel() > 0) {
    const auto planned = plan_for(*structure, v, settings, false);
    const BorrowedWorkspace workspace(v, planned->plan);
    const std::scoped_lock lock(planned->mutex);
    ops::run(planned->plan, tensors.inputs(settings), {operand(output), operand(log_sum)},
             place_of(v).stream, workspace);
    note_run(planned->plan, "forward");
  }
  return {in_type(output, given_type), log_sum};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> attention_backward(
    Tensor grad, Tensor output, Tensor log_sum, Tensor target, Tensor source, Tensor value,
    std::optional<Tensor> vector, std::optional<Tensor> seed, Tensor index,
    std::optional<Tensor> offsets, std::int64_t targets, std::int64_t sources, std::int64_t layout,
    std::int64_t loops, std::int64_t form, std::int64_t heads, double scale, double slope,
    double dropout, std::int64_t flags) {
  const DeviceScope scope(value);
  const ScalarType given_type = value.scalar_type();
  const AttentionSettings settings{
      static_cast<ops::AttentionForm>(form), heads, scale, slope, dropout, flags};
  const AttentionTensors tensors(target, source, value, vector, seed);
  const ScalarType type = tensors.value.scalar_type();
  const auto structure = structure_of({index, offsets, targets, sources, layout, loops});
  const auto like = [&](const Tensor& other) {
    return empty_beside(other, other.size(0), other.size(1), type);
  };
  Tensor grad_target = like(tensors.target);
  Tensor grad_source = like(tensors.source);
  Tensor grad_value = like(tensors.value);
  Tensor grad_vector =
      empty_beside(tensors.value, vector ? 1 : 0, vector ? vector->numel() : 0, type);
  if (output.numel() == 0 || structure->edges() == 0) {
    for (Tensor* tensor : {&grad_target, &grad_source, &grad_value, &grad_vector}) {
      torch::stable::zero_(*tensor);
    }
  } else {
    const auto planned = plan_for(*structure, tensors.value, settings, true);
    const Tensor out = with_rows(in_type(output, type));
    const Tensor grad_out = with_rows(in_type(grad, type));
    const Tensor sums = with_rows(log_sum);
    ops::AttentionGradOutputs gradients;
    gradients.target = operand(grad_target);
    gradients.source = operand(grad_source);
    gradients.value = operand(grad_value);
    if (vector) gradients.vector = operand(grad_vector);
    const BorrowedWorkspace workspace(tensors.value, planned->plan);
    const std::scoped_lock lock(planned->mutex);
    ops::run_backward(planned->plan, tensors.inputs(settings), operand(out), operand(sums),
                      operand(grad_out), gradients, place_of(tensors.value).stream, workspace);
    note_run(planned->plan, "backward");
  }
  return {in_type(grad_target, given_type), in_type(grad_source, given_type),
          in_type(grad_value, given_type),
          in_type(torch::stable::flatten(grad_vector, 0, -1), given_type)};
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
    const auto planned = plan_for(*structure, tensors.value, settings, false);
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
  library.impl("attention", TORCH_BOX(&Guarded<&attention>::run));
  library.impl("attention_backward", TORCH_BOX(&Guarded<&attention_backward>::run));
  library.impl("attention_weights", TORCH_BOX(&Guarded<&attention_weights>::run));
}

}  // namespace tessera::torch_ops
