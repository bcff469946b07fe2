// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

/// What a GPU can do: its parts and its rates. Costs of kernels count work over these rates.
namespace tessera {

/// How fast rows of some length are gathered from one place.
struct GatherRate {
  double row_bytes = 0;
  double bytes_per_us = 0;
  bool operator==(const GatherRate&) const = default;
};

/// By rising length; lengths between two have a rate between theirs.
using GatherRates = std::vector<GatherRate>;
/// For rows of so many bytes.
double rate_of(const GatherRates& rates, double row_bytes);

struct DeviceProfile {
  std::string name;                ///< "NVIDIA H200"
  std::string source;              ///< where the numbers come from
  std::string driver;              ///< that they were measured with; empty: they were not, here
  std::string build;               ///< of Tessera, by which they were
  int compute_capability = 0;      ///< 90 for 9.0
  int processors = 0;              ///< streaming multiprocessors
  double clock_mhz = 0;            ///< the highest that processors reach
  double loaded_clock_mhz = 0;     ///< what they have while all of them multiply; 0: not known
  double memory_bytes_per_us = 0;  ///< as the maker states it
  double copy_bytes_per_us = 0;    ///< what a copy reads and writes
  std::int64_t l2_bytes = 0;
  std::int64_t l1_bytes_per_processor = 0;
  std::int64_t shared_bytes_per_processor = 0;
  std::int64_t registers_per_processor = 0;
  GatherRates l1_gather;      ///< of rows that the first-level caches have
  GatherRates l2_gather;      ///< of rows that the second-level cache has
  GatherRates memory_gather;  ///< of rows far larger together than the second-level cache
  double latency_us = 0;      ///< of a load from memory
  double launch_us = 0;       ///< from one kernel of a stream to the next
  double replay_us = 0;       ///< from one kernel of a captured graph to the next
  double atomics_per_us = 0;  ///< additions to scattered fp32 numbers in the second-level cache
  /// Operations of matrix units, a multiplication and an addition being two; 0: it has none.
  double mma_tf32_per_us = 0;
  double mma_bf16_per_us = 0;
  double mma_s8_per_us = 0;
  double mma_b1_per_us = 0;
  double wgmma_tf32_per_us = 0;
  double wgmma_bf16_per_us = 0;

  bool operator==(const DeviceProfile&) const = default;

  /// Throws `bad_data` for a number that is missing or cannot be; `where` is a file, say.
  void validate(const std::string& where) const;
};

/// A number of a profile, as files and reports name it.
struct ProfileField {
  using Member = std::variant<std::string DeviceProfile::*, int DeviceProfile::*,
                              std::int64_t DeviceProfile::*, double DeviceProfile::*,
                              GatherRates DeviceProfile::*>;
  const char* name;
  const char* unit;  ///< empty for words and counts
  Member member;
  bool may_be_zero = false;  ///< or empty, of a text
};
std::span<const ProfileField> profile_fields();

/// The profiles of this build: the H200 as it was measured, others by their data sheets, with what
/// those do not state scaled from the H200.
std::span<const DeviceProfile> built_in_profiles();

/// The built-in profile of this name: its first one that has the text in it, in any case ("a100").
/// Throws `invalid_argument` with the names there are.
const DeviceProfile& built_in_profile(const std::string& name);

/// The profile of a GPU of this machine as it is expected to be: the nearest built-in one, scaled
/// by what the driver tells. Throws `backend_unavailable` where there is none.
DeviceProfile device_profile(int gpu = 0);

}  // namespace tessera
