// SPDX-License-Identifier: Apache-2.0
#include "ops/plan/decision.hpp"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "core/absent_gpu.hpp"
#include "ops/plan/measured_profile.hpp"
#include "ops/plan/tuning.hpp"

namespace tessera::ops {
namespace {

std::string summary_of(const Offer& winner, std::span<const Offer> offers, bool forced) {
  if (forced) return fmt::format("{}: asked for by name", winner.info->name);
  if (!any_timed(offers)) {
    return fmt::format("{}: {:.1f} us predicted", winner.info->name, winner.predicted_us);
  }
  const auto timed = std::count_if(offers.begin(), offers.end(),
                                   [](const Offer& offer) { return offer.measured_us > 0; });
  return fmt::format("{}: {:.1f} us measured, the fastest of {} timed", winner.info->name,
                     winner.measured_us, timed);
}

/// Where predictions were made by another profile than that of the GPU that coefficients were
/// fitted on; empty where nothing of this is so.
std::string source_of_costs(Device device, bool predicted) {
  if (!predicted || device.kind != DeviceKind::cuda) return {};
  if (const AbsentGpu* const absent = AbsentGpu::current()) {
    return fmt::format("; on {}, which need not be here ({})", absent->profile().name,
                       absent->profile().source);
  }
  if (device.index >= num_gpus()) return {};
  const ExpectedProfile expected = expected_profile(device);
  if (expected.measured) return "; costs by the profile " + expected.profile.source;
  std::string text;
  if (!expected.why_not.empty()) text = "; no measured profile: " + expected.why_not;
  const std::string note = note_on_costs(device_traits(device));
  return note.empty() ? text : text + "; " + note;
}

/// Why an admissible offer was not taken.
std::string lost(const Offer& offer, const Offer& winner, bool timed, bool forced) {
  if (forced) return "another was asked for";
  if (!offer.why_untimed.empty()) return offer.why_untimed;
  return fmt::format("slower by {:.1f} us", cost_of(offer, timed) - cost_of(winner, timed));
}

Explanation explain_choice(std::span<const Offer> offers, std::size_t chosen,
                           const PlanOptions& options) {
  const bool forced = is_forced(options);
  const bool timed = any_timed(offers);
  const Offer& winner = offers[chosen];
  Explanation explanation;
  explanation.summary =
      summary_of(winner, offers, forced) + source_of_costs(options.device, !forced && !timed);
  for (const Offer& offer : offers) {
    if (offer.why_not != out_of_memory_verdict) continue;
    explanation.summary += fmt::format("; {} did not fit into memory", offer.info->name);
  }
  explanation.candidates.reserve(offers.size());
  for (std::size_t i = 0; i < offers.size(); ++i) {
    const Offer& offer = offers[i];
    std::string verdict = why_excluded(offer, options);
    if (i == chosen) verdict = "chosen";
    if (verdict.empty()) verdict = lost(offer, winner, timed, forced);
    explanation.candidates.push_back(
        {offer.info->name, std::move(verdict), offer.predicted_us, offer.measured_us});
  }
  return explanation;
}

}  // namespace

Explanation Decision::explain() const {
  Explanation explanation;
  if (said_) {
    explanation = *said_;
  } else if (!offers_.empty()) {
    explanation = explain_choice(offers_, chosen_, options_);
  }
  explanation.summary += note_;
  explanation.name = name_;
  for (const Decision& child : children_) explanation.children.push_back(child.explain());
  return explanation;
}

}  // namespace tessera::ops
