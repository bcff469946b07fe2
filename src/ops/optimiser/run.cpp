// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <fmt/format.h>

#include "tessera/ops/optimiser.hpp"

#include "ops/check.hpp"
#include "ops/dense_ops.hpp"

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
  const auto like_parameter = [&](const ConstOperand& operand, const char* name) {
    check.matrix(operand, name, {parameter.type, parameter.rows, parameter.cols});
    check.apart(parameter, "parameter", operand, name);
  };
  // bf16 beside an fp32 parameter, or as the parameter is.
  const auto type_beside = [&](ElementType type) {
    const bool is_narrow = type == ElementType::bf16 && parameter.type == ElementType::fp32;
    return is_narrow ? type : parameter.type;
  };
  const bool turned = target.gradient_is_turned;
  check.matrix(target.gradient, turned ? "gradient (transposed)" : "gradient",
               {type_beside(target.gradient.type), turned ? parameter.cols : parameter.rows,
                turned ? parameter.rows : parameter.cols});
  check.apart(parameter, "parameter", target.gradient, "gradient");
  check.optional_matrix(target.rounded, "rounded",
                        {ElementType::bf16, parameter.rows, parameter.cols});
  check.apart(target.rounded, "rounded", parameter, "parameter");
  check.apart(target.rounded, "rounded", target.gradient, "gradient");
  const Operand& copied = target.rounded.absent() ? parameter : target.rounded;
  check.optional_matrix(target.turned, "turned", {copied.type, parameter.cols, parameter.rows});
  check.apart(target.turned, "turned", parameter, "parameter");
  check.apart(target.turned, "turned", target.rounded, "rounded");
  check.apart(target.turned, "turned", target.gradient, "gradient");
  if (needs_first(options)) {
    like_parameter(target.first, "first");
    check.apart(target.first, "first", target.gradient, "gradient");
  }
  if (needs_second(options)) {
    like_parameter(target.second, "second");
    check.apart(target.second, "second", target.gradient, "gradient");
    check.apart(target.second, "second", target.first, "first");
  }
}

}  // namespace

void optimiser_step(const OptimiserOptions& options, std::int64_t step, ConstOperand gradient,
                    Operand parameter, Operand first, Operand second, Device device,
                    Stream stream) {
  const Checker check("optimiser_step", device);
  check.that(step >= 1, fmt::format("step is {}, steps count from 1", step));
  check_options(check, options);
  const OptimiserTarget target{gradient, parameter, first, second};
  check_target(check, options, target);
  dense_ops(device).optimiser_step({options, step, nullptr, {&target, 1}}, stream);
}

void optimiser_step(const OptimiserOptions& options, const StepClock* clock,
                    std::span<const OptimiserTarget> targets, Device device, Stream stream) {
  const Checker check("optimiser_step", device);
  check.that(clock != nullptr, "there is no clock");
  check_options(check, options);
  for (const OptimiserTarget& target : targets) check_target(check, options, target);
  dense_ops(device).optimiser_step({options, 1, clock, targets}, stream);
}

void step_and_advance(const OptimiserOptions& options, StepClock* clock, std::uint32_t* counter,
                      std::span<const OptimiserTarget> targets, Device device, Stream stream) {
  const Checker check("step_and_advance", device);
  check.that(clock != nullptr && counter != nullptr, "there is no clock");
  check_options(check, options);
  for (const OptimiserTarget& target : targets) check_target(check, options, target);
  dense_ops(device).optimiser_step({options, 1, clock, targets, clock, counter}, stream);
}

void advance(StepClock* clock, Device device, Stream stream) {
  Checker("advance", device).that(clock != nullptr, "there is no clock");
  dense_ops(device).advance(clock, stream);
}

}  // namespace tessera::ops
