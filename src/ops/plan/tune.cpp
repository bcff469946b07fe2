// SPDX-License-Identifier: Apache-2.0
#include "ops/plan/tune.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/measure.hpp"
#include "tessera/graph/fingerprint.hpp"

namespace tessera::ops {
namespace {

std::vector<std::size_t> in_order_of_prediction(std::span<const Offer> offers,
                                                const PlanOptions& options) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < offers.size(); ++i) {
    if (is_admissible(offers[i], options)) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return offers[a].predicted_us < offers[b].predicted_us;
  });
  return order;
}

}  // namespace

TuneEffort& tune_effort() {
  static TuneEffort effort;
  return effort;
}

const char* to_string(Tune tune) noexcept {
  return tune == Tune::measured ? "measured" : "predicted";
}

Tune parse_tune(const std::string& text) {
  for (const Tune tune : {Tune::predicted, Tune::measured}) {
    if (text == to_string(tune)) return tune;
  }
  throw Error(ErrorCode::invalid_argument, "unknown way to tune '" + text + "'", "",
              "use predicted or measured");
}

bool is_forced(const PlanOptions& options) {
  return !options.kernel.empty() && !options.kernel.ends_with('*');
}

bool is_asked_for(const KernelInfo& info, const PlanOptions& options) {
  if (options.kernel.empty()) return true;
  if (is_forced(options)) return info.name == options.kernel;
  return info.name.starts_with(options.kernel.substr(0, options.kernel.size() - 1));
}

namespace {

/// Why the options rule out an offer that can run on their device; null if they do not.
const char* why_refused(const Offer& offer, const PlanOptions& options) {
  if (!offer.why_not.empty()) return offer.why_not.c_str();
  if (!is_forced(options) && !is_asked_for(*offer.info, options)) return "others were asked for";
  // Who names a kernel has accepted what it does.
  if (options.kernel.empty() && !offer.info->deterministic && !options.allow_nondeterministic) {
    return "not deterministic";
  }
  if (options.strict && !offer.info->strict) return "not as exact as sums in fp32";
  if (options.exact_nonfinite && !offer.info->exact_nonfinite) {
    return "a number that is not finite may reach other rows";
  }
  return nullptr;
}

}  // namespace

std::string why_excluded(const Offer& offer, const PlanOptions& options) {
  if (offer.info->device != options.device.kind) {
    return "runs on another device than " + to_string(options.device);
  }
  const char* const reason = why_refused(offer, options);
  return reason == nullptr ? std::string() : std::string(reason);
}

bool is_admissible(const Offer& offer, const PlanOptions& options) {
  return offer.info->device == options.device.kind && why_refused(offer, options) == nullptr;
}

bool any_timed(std::span<const Offer> offers) {
  return std::any_of(offers.begin(), offers.end(),
                     [](const Offer& offer) { return offer.measured_us > 0; });
}

double cost_of(const Offer& offer, bool timed) {
  if (!timed) return offer.predicted_us;
  return offer.measured_us > 0 ? offer.measured_us : std::numeric_limits<double>::infinity();
}

bool any_admissible(std::span<const Offer> offers, const PlanOptions& options) {
  return std::any_of(offers.begin(), offers.end(),
                     [&](const Offer& offer) { return is_admissible(offer, options); });
}

std::size_t tune_offers(std::span<Offer> offers, const PlanOptions& options,
                        FunctionRef<double(std::size_t index, TimeLimit& limit)> time) {
  const std::vector<std::size_t> order = in_order_of_prediction(offers, options);
  std::size_t fastest = offers.size();
  if (order.size() < 2) return fastest;
  const TuneEffort& effort = tune_effort();
  const Stopwatch watch;
  TimeLimit limit;
  double best_predicted_us = 0;
  for (const std::size_t index : order) {
    Offer& offer = offers[index];
    // Predictions rank better than they measure, so one is held against
    // whichever is longer.
    const double yardstick_us = std::max(limit.best_us, best_predicted_us);
    if (offer.predicted_us > effort.hopeless * yardstick_us) {
      offer.why_untimed = fmt::format("predicted to take over {} times as long", effort.hopeless);
      continue;
    }
    if (limit.spent_seconds > effort.timing_seconds || watch.seconds() > effort.budget_seconds) {
      offer.why_untimed = "not timed: the time for timing was over";
      continue;
    }
    try {
      offer.measured_us = time(index, limit);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::out_of_memory) throw;
      offer.why_untimed = "not timed: out of memory";
      continue;
    }
    if (offer.measured_us < limit.best_us) {
      limit.best_us = offer.measured_us;
      best_predicted_us = offer.predicted_us;
      fastest = index;
    }
  }
  return fastest;
}

double time_candidate(Device device, FunctionRef<void(Stream)> run, TimeLimit& limit) {
  const TuneEffort& effort = tune_effort();
  constexpr double launch_us = 20;  ///< of a single run, at most; a chain has less
  const Stopwatch watch;
  const auto done = [&](double us) {
    limit.spent_seconds += watch.seconds();
    return us;
  };
  MeasureOptions options;
  options.warmups = 1;
  options.repeats = 1;
  options.min_seconds = device.kind == DeviceKind::cuda ? effort.warm_seconds : 0;
  const double first_us = measure_on(device, run, options).min_us;
  if (first_us > 2 * limit.best_us + launch_us) return done(first_us);
  options.min_seconds = 0;
  options.repeats =
      static_cast<int>(std::clamp(effort.wanted_us / std::max(first_us, 1.0), 5.0, 50.0));
  options.max_seconds = 0.5;
  options.chain = 20;
  options.chain_below_us = effort.chain_below_us;
  const Timing timing = measure_on(device, run, options);
  return done(timing.chain_us > 0 ? timing.chain_us : timing.median_us);
}

PlanKey plan_key(std::string op, const Graph& graph, const std::string& details,
                 const PlanOptions& options) {
  std::string all = details;
  if (options.allow_nondeterministic) all += ", nondeterministic";
  if (options.strict) all += ", strict";
  if (options.exact_nonfinite) all += ", exact where not finite";
  return {std::move(op), fingerprint_text(graph), std::move(all), device_name(options.device)};
}

std::optional<StoredChoice> recall(const PlanStore& store, const PlanKey& key, bool required) {
  std::optional<StoredChoice> choice = required ? store.require(key) : store.find(key);
  if (choice && std::none_of(choice->candidates.begin(), choice->candidates.end(),
                             [](const Candidate& one) { return one.verdict == "chosen"; })) {
    choice->candidates.push_back({choice->kernel, "chosen", 0, 0});
  }
  return choice;
}

std::string weights_text(const Graph& graph) {
  std::string text;
  const auto add = [&](bool has, const char* what) {
    if (has) text += (text.empty() ? "" : " and ") + std::string(what);
  };
  add(graph.has_values(), "values");
  add(graph.has_row_scale(), "row scale");
  add(graph.has_col_scale(), "column scale");
  return text.empty() ? "pattern" : text;
}

}  // namespace tessera::ops
