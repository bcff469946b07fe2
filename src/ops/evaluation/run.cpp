// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "tessera/ops/evaluation.hpp"

#include "ops/dense/dense_ops.hpp"
#include "ops/evaluation/targets.hpp"
#include "ops/loss/targets.hpp"
#include "ops/plan/check.hpp"

namespace tessera::ops {
namespace {

/// What `make` makes of each part: targets of a loss in memory of this process, which have been
/// checked and say how often each row was chosen.
template <class Make>
std::shared_ptr<EvaluationTargets::State> state_of(const EvaluatedRows& rows, const Place& place,
                                                   Make&& make) {
  require_available(place.device);
  auto state = std::make_shared<EvaluationTargets::State>();
  LossTargets validation = make(rows.validation);
  const LossTargets train = make(rows.train), test = make(rows.test);
  const LossTargets::State& chosen = validation.state();
  state->is_binary = chosen.form == LossForm::binary;
  state->device = place.device;
  state->rows = chosen.rows;
  state->cols = chosen.cols;
  state->validation_count = chosen.count;
  Buffer<EvaluatedRow> choices(chosen.rows);
  for (std::int64_t i = 0; i < chosen.rows; ++i) {
    const auto times = [&](const LossTargets& part) {
      return static_cast<std::int32_t>(part.state().weights[i]);
    };
    choices[i] = {times(train), times(validation), times(test),
                  state->is_binary ? 0 : chosen.labels[i]};
  }
  state->choices = placed(std::move(choices), place);
  if (place.device.kind == DeviceKind::cpu) state->validation = std::move(validation);
  return state;
}

}  // namespace

EvaluationTargets EvaluationTargets::classes(std::span<const std::int64_t> labels,
                                             const EvaluatedRows& rows, std::int64_t num_classes,
                                             const Place& place) {
  return EvaluationTargets(state_of(rows, place, [&](std::span<const std::int64_t> part) {
    return LossTargets::classes(labels, part, num_classes);
  }));
}

EvaluationTargets EvaluationTargets::binary(MatrixView<const float> targets,
                                            const EvaluatedRows& rows, const Place& place) {
  auto state = state_of(rows, place, [&](std::span<const std::int64_t> part) {
    return LossTargets::binary(targets, part);
  });
  state->targets = placed(without_gaps(targets), place);
  return EvaluationTargets(std::move(state));
}

EvaluationTargets EvaluationTargets::numbers(MatrixView<const float> targets,
                                             const EvaluatedRows& rows, NumberLoss kind,
                                             const Place& place, double huber_delta) {
  auto state = std::make_shared<State>();
  state->device = place.device;
  state->rows = targets.rows;
  state->cols = targets.cols;
  state->is_loss_alone = true;
  state->validation = LossTargets::numbers(targets, rows.validation, kind, place, huber_delta);
  return EvaluationTargets(std::move(state));
}

void evaluate(ConstOperand logits, const EvaluationTargets& targets, EvaluationNumbers* numbers,
              Stream stream, const DenseWorkspace* workspace) {
  const EvaluationTargets::State& state = targets.state();
  const Checker check("evaluate", state.device);
  check.floating(logits, "logits");
  check.matrix(logits, "logits", {logits.type, state.rows, state.cols});
  check.that(numbers != nullptr, "there is no memory for the numbers");
  if (state.is_loss_alone) {
    return loss(logits, *state.validation, {}, &numbers->validation_loss, stream, workspace);
  }
  dense_ops(state.device).run(EvaluationCall{logits, &state, numbers}, stream, workspace);
}

}  // namespace tessera::ops
