// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <fmt/format.h>

#include "tessera/ops/optimiser.hpp"

#include "ops/dense/dense_ops.hpp"
#include "ops/plan/check.hpp"

namespace tessera::ops {
namespace {

void check_options(const Checker& check, const OptimiserOptions& options) {
  const auto not_negative = [&](const char* name, double value) {
    check.that(std::isfinite(value) && value >= 0,
               fmt::format("{} is {}, expected a number from 0", name, value));
  };
  const auto below_one = [&](const char* name, double value) {
    check.that(value >= 0 && value < 1,
               fmt::format("{} is {}, expected a number from 0 to below 1", name, value));
  };
  not_negative("learning_rate", options.learning_rate);
  not_negative("weight_decay", options.weight_decay);
  if (options.kind == OptimiserKind::sgd) {
    not_negative("momentum", options.momentum);
  } else {
    below_one("beta1", options.beta1);
    below_one("beta2", options.beta2);
    not_negative("epsilon", options.epsilon);
  }
}

bool needs_first(const OptimiserOptions& options) {
  return options.kind != OptimiserKind::sgd || options.momentum != 0;
}

bool needs_second(const OptimiserOptions& options) { return options.kind != OptimiserKind::sgd; }

void check_target(const Checker& check, const OptimiserOptions& options,
                  const OptimiserTarget& target) {
  const Operand& parameter = target.parameter;
  check.floating(parameter, "parameter");
  check.that(parameter.type == ElementType::fp32 || parameter.type == ElementType::fp64,
             fmt::format("parameter is {}, expected fp32", to_string(parameter.type)),
             "keep parameters in fp32 and have them rounded to bf16 (OptimiserTarget::rounded)");
  check.that(std::isfinite(target.decay) && target.decay >= 0,
             fmt::format("decay is {}, expected a number from 0", target.decay));
  // bf16 beside an fp32 parameter, or as the parameter is.
  const auto type_beside = [&](ElementType type) {
    const bool is_narrow = type == ElementType::bf16 && parameter.type == ElementType::fp32;
    return is_narrow ? type : parameter.type;
  };
  const bool turned = target.gradient_is_turned;
  check.matrix(target.gradient, turned ? "gradient (transposed)" : "gradient",
               {type_beside(target.gradient.type), turned ? parameter.cols : parameter.rows,
                turned ? parameter.rows : parameter.cols});
  const Named of_parameter{parameter, "parameter"}, gradient{target.gradient, "gradient"};
  check.apart(parameter, "parameter", {gradient});
  check.optional_matrix(target.rounded, "rounded",
                        {ElementType::bf16, parameter.rows, parameter.cols});
  check.apart(target.rounded, "rounded", {of_parameter, gradient});
  const Operand& copied = target.rounded.absent() ? parameter : target.rounded;
  check.optional_matrix(target.turned, "turned", {copied.type, parameter.cols, parameter.rows});
  check.apart(target.turned, "turned", {of_parameter, {target.rounded, "rounded"}, gradient});
  const Expected like_parameter{parameter.type, parameter.rows, parameter.cols};
  if (needs_first(options)) {
    check.matrix(target.first, "first", like_parameter);
    check.apart(parameter, "parameter", target.first, "first");
    check.apart(target.first, "first", {gradient});
  }
  if (needs_second(options)) {
    check.matrix(target.second, "second", like_parameter);
    check.apart(parameter, "parameter", target.second, "second");
    check.apart(target.second, "second", {gradient, {target.first, "first"}});
  }
}

void run(const Checker& check, const OptimiserCall& call, Device device, Stream stream) {
  check_options(check, call.options);
  for (const OptimiserTarget& target : call.targets) check_target(check, call.options, target);
  dense_ops(device).run(call, stream);
}

}  // namespace

void optimiser_step(const OptimiserOptions& options, std::int64_t step, ConstOperand gradient,
                    Operand parameter, Operand first, Operand second, Device device,
                    Stream stream) {
  const Checker check("optimiser_step", device);
  check.that(step >= 1, fmt::format("step is {}, steps count from 1", step));
  const OptimiserTarget target{gradient, parameter, first, second};
  run(check, {options, step, nullptr, {&target, 1}}, device, stream);
}

void optimiser_step(const OptimiserOptions& options, const StepClock* clock,
                    std::span<const OptimiserTarget> targets, Device device, Stream stream) {
  const Checker check("optimiser_step", device);
  check.that(clock != nullptr, "there is no clock");
  run(check, {options, 1, clock, targets}, device, stream);
}

void step_and_advance(const OptimiserOptions& options, StepClock* clock, std::uint32_t* counter,
                      std::span<const OptimiserTarget> targets, Device device, Stream stream,
                      const double* gradient_factor) {
  const Checker check("step_and_advance", device);
  check.that(clock != nullptr && counter != nullptr, "there is no clock");
  run(check, {options, 1, clock, targets, clock, counter, gradient_factor}, device, stream);
}

void clip_gradients(double most, double* factor, std::span<const OptimiserTarget> targets,
                    Device device, Stream stream, const DenseWorkspace* workspace) {
  const Checker check("clip_gradients", device);
  check.that(std::isfinite(most) && most > 0,
             fmt::format("the norm is {}, expected a number above 0", most));
  check.that(factor != nullptr, "there is no memory for the factor");
  for (const OptimiserTarget& target : targets) {
    check.floating(target.gradient, "gradient");
    const ElementType type = target.gradient.type;
    const bool fits = type == ElementType::fp32 || type == ElementType::bf16;
    check.that(fits || device.kind == DeviceKind::cpu,
               fmt::format("gradients in {} on a GPU", to_string(type)), "use fp32 or bf16");
  }
  dense_ops(device).run(ClipCall{most, factor, targets}, stream, workspace);
}

void average(double decay, const StepClock* clock, ConstOperand values, Operand mean, Device device,
             Stream stream) {
  const Checker check("average", device);
  check.that(decay > 0 && decay <= 1,
             fmt::format("decay is {}, expected a number above 0 and at most 1", decay));
  check.that(clock != nullptr, "there is no clock");
  check.floating(values, "values");
  check.matrix(mean, "mean", {values.type, values.rows, values.cols});
  check.apart(mean, "mean", values, "values");
  dense_ops(device).run(AverageCall{decay, clock, values, mean}, stream);
}

void advance(StepClock* clock, Device device, Stream stream) {
  Checker("advance", device).that(clock != nullptr, "there is no clock");
  dense_ops(device).run(AdvanceCall{clock}, stream);
}

}  // namespace tessera::ops
