// SPDX-License-Identifier: Apache-2.0
#include "ops/plan/registry.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

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
  throw Error(ErrorCode::unsupported, "no kernel supports this problem: " + reasons, "",
              "use another precision, another device, or fewer demands on kernels");
}

}  // namespace

std::size_t choose_offer(std::span<const Offer> offers, const PlanOptions& options) {
  return is_forced(options) ? find_named(offers, options) : find_fastest(offers, options);
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

std::size_t choose_stored(std::span<const Offer> offers, const PlanOptions& options,
                          const StoredChoice& stored) {
  PlanOptions named = options;
  named.kernel = stored.kernel;
  try {
    return find_named(offers, named);
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
