// SPDX-License-Identifier: Apache-2.0
#include "ops/registry.hpp"

#include <fmt/format.h>

#include "tessera/core/error.hpp"

namespace tessera::ops {
namespace {

/// Why the options rule this offer out; empty if they do not.
std::string objection(const Offer& offer, const PlanOptions& options) {
  if (offer.info->device != options.device.kind) {
    return fmt::format("runs on another device than {}", to_string(options.device));
  }
  if (!offer.why_not.empty()) return offer.why_not;
  // Who names a kernel has accepted what it does.
  if (options.kernel.empty() && !offer.info->deterministic && !options.allow_nondeterministic) {
    return "not deterministic";
  }
  return {};
}

std::string names_of(std::span<const Offer> offers) {
  std::string names;
  for (const Offer& offer : offers) names += (names.empty() ? "" : ", ") + offer.info->name;
  return names.empty() ? "none" : names;
}

std::string usable_names(std::span<const Offer> offers, const PlanOptions& options) {
  std::vector<Offer> usable;
  for (const Offer& offer : offers) {
    if (objection(offer, options).empty()) usable.push_back(offer);
  }
  return names_of(usable);
}

std::size_t find_named(std::span<const Offer> offers, const PlanOptions& options) {
  for (std::size_t i = 0; i < offers.size(); ++i) {
    if (offers[i].info->name != options.kernel) continue;
    const std::string problem = objection(offers[i], options);
    if (problem.empty()) return i;
    throw Error(ErrorCode::unsupported,
                fmt::format("kernel '{}' cannot run this: {}", options.kernel, problem), "kernel",
                "kernels that can: " + usable_names(offers, options));
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("unknown kernel '{}'", options.kernel),
              "kernel", "kernels of this op: " + names_of(offers));
}

std::size_t find_fastest(std::span<const Offer> offers, const PlanOptions& options) {
  std::size_t best = offers.size();
  for (std::size_t i = 0; i < offers.size(); ++i) {
    if (!objection(offers[i], options).empty()) continue;
    if (best == offers.size() || offers[i].predicted_us < offers[best].predicted_us) best = i;
  }
  if (best < offers.size()) return best;
  std::string reasons;
  for (const Offer& offer : offers) {
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", offer.info->name,
                           objection(offer, options));
  }
  throw Error(ErrorCode::unsupported, "no kernel supports this problem", reasons);
}

}  // namespace

ChosenOffer choose_offer(std::span<const Offer> offers, const PlanOptions& options) {
  require_available(options.device);
  const bool forced = !options.kernel.empty();
  const std::size_t index = forced ? find_named(offers, options) : find_fastest(offers, options);
  ChosenOffer chosen{index, {}};
  const Offer& winner = offers[index];
  chosen.explanation.summary =
      forced ? fmt::format("{}: asked for by name", winner.info->name)
             : fmt::format("{}: {:.1f} us predicted", winner.info->name, winner.predicted_us);
  for (std::size_t i = 0; i < offers.size(); ++i) {
    std::string verdict = objection(offers[i], options);
    if (verdict.empty()) {
      verdict =
          forced ? "another was asked for"
                 : fmt::format("slower by {:.1f} us", offers[i].predicted_us - winner.predicted_us);
    }
    chosen.explanation.candidates.push_back(
        {offers[i].info->name, i == index ? "chosen" : verdict, offers[i].predicted_us});
  }
  return chosen;
}

std::string to_string(const Explanation& explanation) {
  std::string text = explanation.summary;
  for (const Candidate& candidate : explanation.candidates) {
    text += fmt::format("\n  {}: {}", candidate.kernel, candidate.verdict);
    if (candidate.predicted_us > 0) text += fmt::format(" ({:.1f} us)", candidate.predicted_us);
  }
  return text;
}

}  // namespace tessera::ops
