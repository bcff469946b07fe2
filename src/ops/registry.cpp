// SPDX-License-Identifier: Apache-2.0
#include "ops/registry.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "ops/tuning.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/recording.hpp"

namespace tessera::ops {
namespace {

std::string names_of(std::span<const Offer> offers) {
  std::string names;
  for (const Offer& offer : offers) names += (names.empty() ? "" : ", ") + offer.info->name;
  return names.empty() ? "none" : names;
}

std::string usable_names(std::span<const Offer> offers, const PlanOptions& options) {
  std::vector<Offer> usable;
  for (const Offer& offer : offers) {
    if (is_admissible(offer, options)) usable.push_back(offer);
  }
  return names_of(usable);
}

[[noreturn]] void reject_name(std::span<const Offer> offers, const PlanOptions& options) {
  throw Error(ErrorCode::invalid_argument, fmt::format("unknown kernel '{}'", options.kernel),
              "kernel", "kernels of this op: " + names_of(offers));
}

std::size_t find_named(std::span<const Offer> offers, const PlanOptions& options) {
  for (std::size_t i = 0; i < offers.size(); ++i) {
    if (offers[i].info->name != options.kernel) continue;
    const std::string problem = why_excluded(offers[i], options);
    if (problem.empty()) return i;
    throw Error(ErrorCode::unsupported,
                fmt::format("kernel '{}' cannot run this: {}", options.kernel, problem), "kernel",
                "kernels that can: " + usable_names(offers, options));
  }
  reject_name(offers, options);
}

/// What an offer is judged by: the clock where a plan asked it, else the cost model.
double cost_of(const Offer& offer, bool timed) {
  if (!timed) return offer.predicted_us;
  return offer.measured_us > 0 ? offer.measured_us : std::numeric_limits<double>::infinity();
}

bool any_timed(std::span<const Offer> offers) {
  return std::any_of(offers.begin(), offers.end(),
                     [](const Offer& offer) { return offer.measured_us > 0; });
}

std::size_t find_fastest(std::span<const Offer> offers, const PlanOptions& options) {
  const auto asked_for = [&](const Offer& offer) { return is_asked_for(*offer.info, options); };
  if (std::none_of(offers.begin(), offers.end(), asked_for)) reject_name(offers, options);
  const bool timed = any_timed(offers);
  std::size_t best = offers.size();
  for (std::size_t i = 0; i < offers.size(); ++i) {
    if (!is_admissible(offers[i], options)) continue;
    if (best == offers.size() || cost_of(offers[i], timed) < cost_of(offers[best], timed)) best = i;
  }
  if (best < offers.size()) return best;
  std::string reasons;
  for (const Offer& offer : offers) {
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", offer.info->name,
                           why_excluded(offer, options));
  }
  throw Error(ErrorCode::unsupported, "no kernel supports this problem", reasons);
}

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

/// Where predictions were made with the coefficients of another GPU; empty where they were not.
std::string scaled_costs(Device device, bool predicted) {
  if (!predicted || device.kind != DeviceKind::cuda || device.index >= num_gpus()) return {};
  const std::string note = note_on_costs(device_traits(device));
  return note.empty() ? note : "; " + note;
}

/// Why an admissible offer was not taken.
std::string lost(const Offer& offer, const Offer& winner, bool timed, bool forced) {
  if (forced) return "another was asked for";
  if (!offer.why_untimed.empty()) return offer.why_untimed;
  return fmt::format("slower by {:.1f} us", cost_of(offer, timed) - cost_of(winner, timed));
}

}  // namespace

ChosenOffer choose_offer(std::span<const Offer> offers, const PlanOptions& options) {
  const bool forced = is_forced(options);
  const bool timed = any_timed(offers);
  const std::size_t index = forced ? find_named(offers, options) : find_fastest(offers, options);
  const Offer& winner = offers[index];
  ChosenOffer chosen{index, {summary_of(winner, offers, forced), {}}};
  chosen.explanation.summary += scaled_costs(options.device, !forced && !timed);
  for (const Offer& offer : offers) {
    if (offer.why_not != out_of_memory_verdict) continue;
    chosen.explanation.summary += fmt::format("; {} did not fit into memory", offer.info->name);
  }
  chosen.explanation.candidates.reserve(offers.size());
  for (std::size_t i = 0; i < offers.size(); ++i) {
    const Offer& offer = offers[i];
    std::string verdict = why_excluded(offer, options);
    if (i == index) verdict = "chosen";
    if (verdict.empty()) verdict = lost(offer, winner, timed, forced);
    chosen.explanation.candidates.push_back(
        {offer.info->name, std::move(verdict), offer.predicted_us, offer.measured_us});
  }
  return chosen;
}

std::string timing_note(std::span<const Offer> offers, std::size_t winner, double seconds,
                        const PlanOptions& options) {
  std::size_t predicted = winner;
  for (std::size_t i = 0; i < offers.size(); ++i) {
    if (offers[i].measured_us <= 0) continue;
    if (offers[i].predicted_us < offers[predicted].predicted_us) predicted = i;
  }
  const double saved_us = offers[predicted].measured_us - offers[winner].measured_us;
  if (saved_us <= 0) {
    return fmt::format("; timing took {:.2g} s and confirmed the cost model", seconds);
  }
  const double epochs = std::ceil(seconds * 1e6 / saved_us);
  return fmt::format("; timing took {:.2g} s, which {} epochs make up for; {} are planned", seconds,
                     epochs, options.epochs);
}

void refuse_while_recording() {
  if (!is_recording()) return;
  throw Error(ErrorCode::invalid_argument, "a plan is missing that cannot be made while recording",
              "plan", "plan before: Layer::prepare makes all plans and buffers of a model");
}

PlanOptions fallback_options(const PlanOptions& options) {
  PlanOptions any = options;
  any.tune = Tune::predicted;
  if (options.kernel.empty()) return any;
  any.kernel.clear();
  any.store = nullptr;
  any.stored_only = false;
  return any;
}

ChosenOffer choose_stored(std::span<const Offer> offers, const PlanOptions& options,
                          const StoredChoice& stored) {
  PlanOptions named = options;
  named.kernel = stored.kernel;
  try {
    ChosenOffer chosen = choose_offer(offers, named);
    chosen.explanation.summary = fmt::format("{}: stored choice", stored.kernel);
    chosen.explanation.candidates = stored.candidates;
    return chosen;
  } catch (const Error& error) {
    throw Error(ErrorCode::bad_data,
                fmt::format("the stored plan cannot be used: {}", error.what()), "plan store",
                "make the plan again and save it");
  }
}

namespace {

void append_lines(std::string& text, const Explanation& explanation, const std::string& indent) {
  text += explanation.summary;
  for (const Candidate& candidate : explanation.candidates) {
    text += fmt::format("\n{}  {}: {}", indent, candidate.kernel, candidate.verdict);
    if (candidate.measured_us > 0) {
      text += fmt::format(" ({:.1f} us measured, {:.1f} predicted)", candidate.measured_us,
                          candidate.predicted_us);
    } else if (candidate.predicted_us > 0) {
      text += fmt::format(" ({:.1f} us)", candidate.predicted_us);
    }
  }
  for (const Explanation& child : explanation.children) {
    text += fmt::format("\n{}  {}: ", indent, child.name);
    append_lines(text, child, indent + "  ");
  }
}

}  // namespace

const Explanation* find_child(const Explanation& explanation, const std::string& name) {
  for (const Explanation& child : explanation.children) {
    if (child.name == name) return &child;
  }
  return nullptr;
}

std::string to_string(const Explanation& explanation) {
  std::string text;
  append_lines(text, explanation, "");
  return text;
}

}  // namespace tessera::ops
