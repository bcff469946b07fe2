// SPDX-License-Identifier: Apache-2.0
#include "train/schedule.hpp"

#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "core/names.hpp"

namespace tessera::train {
namespace {

constexpr std::array<Named<Schedule>, 4> schedule_names = {{{Schedule::constant, "constant"},
                                                            {Schedule::steps, "steps"},
                                                            {Schedule::cosine, "cosine"},
                                                            {Schedule::plateau, "plateau"}}};

[[noreturn]] void reject(const std::string& problem, const char* fix) {
  throw Error(ErrorCode::invalid_argument, problem, "training", fix);
}

}  // namespace

const char* to_string(Schedule schedule) noexcept { return name_of(schedule_names, schedule); }
Schedule parse_schedule(const std::string& text) {
  return parse_name(schedule_names, "schedule", text);
}

double rate_factor(const TrainOptions& options, std::int64_t epoch, std::int64_t plateaus) {
  if (epoch < options.warm_up) {
    return static_cast<double>(epoch + 1) / static_cast<double>(options.warm_up + 1);
  }
  switch (options.schedule) {
    case Schedule::constant: break;
    case Schedule::steps:
      return std::pow(options.rate_decay, static_cast<double>(epoch / options.rate_decay_every));
    case Schedule::plateau: return std::pow(options.rate_decay, static_cast<double>(plateaus));
    case Schedule::cosine: {
      const auto done = static_cast<double>(epoch - options.warm_up);
      const auto all = static_cast<double>(options.epochs - options.warm_up);
      return 0.5 * (1 + std::cos(std::numbers::pi * done / all));
    }
  }
  return 1;
}

void validate_schedule(const TrainOptions& options) {
  const bool decays = options.schedule == Schedule::steps || options.schedule == Schedule::plateau;
  if (decays && options.rate_decay_every < 1) {
    reject(fmt::format("rate_decay_every is {}", options.rate_decay_every), "give at least 1");
  }
  if (!decays && options.rate_decay_every != 0) {
    reject(fmt::format("rate_decay_every is {}, but the schedule is {}", options.rate_decay_every,
                       to_string(options.schedule)),
           "leave it out, or use the schedule steps or plateau");
  }
  if (options.warm_up < 0 || options.warm_up >= options.epochs) {
    reject(fmt::format("warm_up is {}, but there are {} epochs", options.warm_up, options.epochs),
           "give at least 0, and fewer than there are epochs");
  }
}

}  // namespace tessera::train
