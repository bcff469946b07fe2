// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/device_profile.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "core/device_rates.hpp"
#include "tessera/core/error.hpp"

namespace tessera {
namespace {

constexpr const char* rate = "bytes/us";
constexpr const char* operations = "operations/us";
using P = DeviceProfile;

constexpr std::array<ProfileField, 27> fields = {
    {{"name", "", &P::name},
     {"source", "", &P::source},
     {"driver", "", &P::driver, true},
     {"build", "", &P::build, true},
     {"compute_capability", "", &P::compute_capability},
     {"processors", "", &P::processors},
     {"clock_mhz", "MHz", &P::clock_mhz},
     {"loaded_clock_mhz", "MHz", &P::loaded_clock_mhz, true},
     {"memory_bytes_per_us", rate, &P::memory_bytes_per_us},
     {"copy_bytes_per_us", rate, &P::copy_bytes_per_us},
     {"l2_bytes", "bytes", &P::l2_bytes},
     {"l1_bytes_per_processor", "bytes", &P::l1_bytes_per_processor},
     {"shared_bytes_per_processor", "bytes", &P::shared_bytes_per_processor},
     {"registers_per_processor", "", &P::registers_per_processor},
     {"l1_gather", rate, &P::l1_gather},
     {"l2_gather", rate, &P::l2_gather},
     {"memory_gather", rate, &P::memory_gather},
     {"latency_us", "us", &P::latency_us},
     {"launch_us", "us", &P::launch_us},
     {"replay_us", "us", &P::replay_us},
     {"atomics_per_us", "additions/us", &P::atomics_per_us},
     {"mma_tf32_per_us", operations, &P::mma_tf32_per_us, true},
     {"mma_bf16_per_us", operations, &P::mma_bf16_per_us, true},
     {"mma_s8_per_us", operations, &P::mma_s8_per_us, true},
     {"mma_b1_per_us", operations, &P::mma_b1_per_us, true},
     {"wgmma_tf32_per_us", operations, &P::wgmma_tf32_per_us, true},
     {"wgmma_bf16_per_us", operations, &P::wgmma_bf16_per_us, true}}};

/// Why a number cannot be; empty where it can.
struct Problem {
  const ProfileField& field;

  std::string operator()(const std::string& text) const {
    return text.empty() && !field.may_be_zero ? "is empty" : std::string();
  }
  std::string operator()(const GatherRates& rates) const {
    if (rates.empty()) return "has no rate";
    double before = 0;
    for (const GatherRate& each : rates) {
      const bool rises = std::isfinite(each.row_bytes) && each.row_bytes > before;
      if (!rises)
        return fmt::format("has a row of {} bytes after one of {}", each.row_bytes, before);
      if (!(std::isfinite(each.bytes_per_us) && each.bytes_per_us > 0)) {
        return fmt::format("has a rate of {} for rows of {} bytes", each.bytes_per_us,
                           each.row_bytes);
      }
      before = each.row_bytes;
    }
    return {};
  }
  template <class Number>
  std::string operator()(Number number) const {
    const auto value = static_cast<double>(number);
    const bool least = field.may_be_zero ? value >= 0 : value > 0;
    return std::isfinite(value) && least ? std::string() : fmt::format("is {}", number);
  }
};

}  // namespace

std::span<const ProfileField> profile_fields() { return fields; }

void DeviceProfile::validate(const std::string& where) const {
  for (const ProfileField& field : fields) {
    const std::string problem =
        std::visit([&](auto member) { return Problem{field}(this->*member); }, field.member);
    if (problem.empty()) continue;
    throw Error(ErrorCode::bad_data, fmt::format("{} {}", field.name, problem), where,
                field.may_be_zero ? "give a number that is not negative"
                                  : "give what the GPU has; 'tessera doctor --device-profile h200' "
                                    "shows a profile that is complete");
  }
}

double rate_of(const GatherRates& rates, double row_bytes) {
  const auto next = std::find_if(rates.begin(), rates.end(), [&](const GatherRate& each) {
    return each.row_bytes >= row_bytes;
  });
  if (next == rates.begin()) return next->bytes_per_us;
  const GatherRate& before = next[-1];
  if (next == rates.end()) return before.bytes_per_us;
  const double share = (row_bytes - before.row_bytes) / (next->row_bytes - before.row_bytes);
  return before.bytes_per_us + share * (next->bytes_per_us - before.bytes_per_us);
}

DeviceTraits traits_of(const DeviceProfile& profile) {
  return {profile.name,
          profile.compute_capability,
          profile.processors,
          profile.clock_mhz,
          profile.memory_bytes_per_us,
          profile.l2_bytes,
          profile.shared_bytes_per_processor};
}

DeviceProfile scaled_profile(const DeviceProfile& known, const DeviceTraits& traits) {
  const auto told = [](auto number, auto otherwise) { return number > 0 ? number : otherwise; };
  DeviceProfile scaled = known;
  scaled.name = traits.name;
  scaled.compute_capability = told(traits.compute_capability, known.compute_capability);
  scaled.processors = told(traits.processors, known.processors);
  scaled.clock_mhz = told(traits.clock_mhz, known.clock_mhz);
  scaled.memory_bytes_per_us = told(traits.memory_bytes_per_us, known.memory_bytes_per_us);
  scaled.l2_bytes = told(traits.l2_bytes, known.l2_bytes);
  scaled.shared_bytes_per_processor =
      told(traits.shared_bytes_per_processor, known.shared_bytes_per_processor);
  const double processors = static_cast<double>(scaled.processors) / known.processors *
                            (scaled.clock_mhz / known.clock_mhz);
  const double memory = scaled.memory_bytes_per_us / known.memory_bytes_per_us;
  if (processors == 1 && memory == 1 && scaled.l2_bytes == known.l2_bytes) return scaled;
  scaled.source = fmt::format("scaled from {}: {}", known.name, known.source);
  for (GatherRates* rates : {&scaled.l1_gather, &scaled.l2_gather}) {
    for (GatherRate& each : *rates) each.bytes_per_us *= processors;
  }
  for (GatherRate& each : scaled.memory_gather) each.bytes_per_us *= memory;
  scaled.copy_bytes_per_us *= memory;
  scaled.atomics_per_us *= processors;
  for (double* per_us :
       {&scaled.mma_tf32_per_us, &scaled.mma_bf16_per_us, &scaled.mma_s8_per_us,
        &scaled.mma_b1_per_us, &scaled.wgmma_tf32_per_us, &scaled.wgmma_bf16_per_us}) {
    *per_us *= processors;
  }
  return scaled;
}

const DeviceProfile& nearest_profile(const DeviceTraits& traits) {
  const std::span<const DeviceProfile> all = built_in_profiles();
  const DeviceProfile* nearest = nullptr;
  for (const DeviceProfile& each : all) {
    const bool named =
        each.compute_capability == traits.compute_capability && traits.name.starts_with(each.name);
    if (named) return each;
    if (each.compute_capability > traits.compute_capability) continue;
    if (nearest == nullptr || each.compute_capability > nearest->compute_capability) {
      nearest = &each;
    }
  }
  return nearest == nullptr ? all.front() : *nearest;
}

const DeviceProfile& built_in_profile(const std::string& name) {
  const auto lower = [](std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return text;
  };
  std::string names;
  for (const DeviceProfile& each : built_in_profiles()) {
    if (!name.empty() && lower(each.name).find(lower(name)) != std::string::npos) return each;
    names += (names.empty() ? "" : ", ") + each.name;
  }
  throw Error(ErrorCode::invalid_argument, "no built-in profile of a GPU '" + name + "'", "",
              "use one of: " + names + "; or name a file");
}

DeviceProfile device_profile(int gpu) {
  const DeviceTraits& traits = device_traits({DeviceKind::cuda, gpu});
  return scaled_profile(nearest_profile(traits), traits);
}

}  // namespace tessera
