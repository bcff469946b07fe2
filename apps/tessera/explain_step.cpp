// SPDX-License-Identifier: Apache-2.0
#include "explain_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

#include "numbers.hpp"
#include "table.hpp"
#include "tessera/ops/calibration.hpp"

namespace tessera::app {
namespace {

/// What a rewrite saves on a GPU: memory that is not moved, and launches. Nothing for a CPU, of
/// which there is no profile.
std::optional<double> saved_us(const step::Fired& one, Device device) {
  if (device.kind == DeviceKind::cpu) return {};
  const DeviceProfile profile = ops::expected_profile(device).profile;
  return static_cast<double>(one.saved_bytes) / profile.copy_bytes_per_us +
         static_cast<double>(one.saved_nodes) * profile.replay_us;
}

const char* summary_of(const std::string& name) {
  const std::span<const step::Rewrite> all = step::rewrites();
  const auto found = std::ranges::find_if(all, [&](const auto& one) { return one.name == name; });
  return found == all.end() ? "" : found->summary;
}

std::string signed_bytes(std::int64_t bytes) {
  return bytes < 0 ? "-" + human_bytes(-bytes) : human_bytes(bytes);
}

}  // namespace

std::string explained_step_text(const nn::StepExplanation& step, Device device) {
  Table fired("lrrrrl");
  fired.add({"rewrite", "times", "passes saved", "bytes saved",
             device.kind == DeviceKind::cpu ? "" : "about us", "what it does"});
  for (const step::Fired& one : step.fired) {
    const std::optional<double> us = saved_us(one, device);
    fired.add({one.name, std::to_string(one.times), std::to_string(one.saved_nodes),
               signed_bytes(one.saved_bytes), us ? fmt::format("{:.1f}", *us) : "",
               summary_of(one.name)});
  }
  const step::Recomputed& again = step.recomputed;
  const std::string recomputed =
      again.times == 0 ? ""
                       : fmt::format("  values computed again for gradients: {}, which saves {}\n",
                                     again.times, human_bytes(again.saved_bytes));
  return fmt::format(
      "as layers say it\n{}\nas it is run, with its gradients\n{}\nrewrites\n{}\n{}"
      "  {} are read and written; values take {}, side by side it would be {}\n",
      step.written, step.rewritten, fired.text(), recomputed, human_bytes(step.bytes_moved),
      human_bytes(step.arena_bytes), human_bytes(step.unshared_bytes));
}

Json explained_step_json(const nn::StepExplanation& step, Device device) {
  Json fired = Json::array();
  for (const step::Fired& one : step.fired) {
    Json entry = {{"rewrite", one.name},
                  {"times", one.times},
                  {"saved_passes", one.saved_nodes},
                  {"saved_bytes", one.saved_bytes}};
    if (const std::optional<double> us = saved_us(one, device)) entry["saved_us"] = *us;
    fired.push_back(std::move(entry));
  }
  return {{"written", step.written},
          {"rewritten", step.rewritten},
          {"rewrites", std::move(fired)},
          {"recomputed_values", step.recomputed.times},
          {"bytes_moved", step.bytes_moved},
          {"arena_bytes", step.arena_bytes},
          {"unshared_bytes", step.unshared_bytes}};
}

}  // namespace tessera::app
