// SPDX-License-Identifier: Apache-2.0
#include "ops/plan/measured_profile.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <system_error>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "core/absent_gpu.hpp"
#include "tessera/core/error.hpp"
#include "tessera/io/device_profile.hpp"

namespace tessera::ops {
namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string named_file() { return variable("TESSERA_DEVICE_PROFILE"); }

/// GPUs of one name may have other numbers of processors: parts of a GPU, or limits.
std::string file_name_of(const DeviceTraits& traits) {
  std::string name = fmt::format("profile {} {}", traits.name, traits.processors);
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name + ".tsv";
}

/// Those of this machine that plans use.
const std::vector<DeviceProfile>& measured_profiles() {
  static const std::vector<DeviceProfile> all = [] {
    std::vector<DeviceProfile> found;
    for (int i = 0; i < num_gpus(); ++i) {
      const ExpectedProfile expected = expected_profile({DeviceKind::cuda, i});
      if (expected.measured) found.push_back(expected.profile);
    }
    return found;
  }();
  return all;
}

auto values_of(const DeviceTraits& traits) {
  return std::tie(traits.name, traits.compute_capability, traits.processors, traits.clock_mhz,
                  traits.memory_bytes_per_us, traits.l2_bytes, traits.shared_bytes_per_processor);
}

}  // namespace

void require_a_gpu(Device device) {
  if (device.kind != DeviceKind::cuda) {
    throw Error(ErrorCode::invalid_argument, "a CPU has no profile to measure", "device",
                "use cuda or cuda:N");
  }
  if (device.index < num_gpus()) return;
  throw Error(ErrorCode::backend_unavailable, "no GPU to measure that this build can use",
              to_string(device), "run it where 'tessera doctor' finds one");
}

std::string measured_profile_path(Device device) {
  require_a_gpu(device);
  const std::string given = named_file();
  if (given == "off") return {};
  if (!given.empty()) return given;
  std::filesystem::path folder = variable("XDG_DATA_HOME");
  if (folder.empty()) {
    const std::string home = variable("HOME");
    if (home.empty()) return {};
    folder = std::filesystem::path(home) / ".local" / "share";
  }
  return (folder / "tessera" / file_name_of(device_traits(device))).string();
}

ExpectedProfile read_measured_profile(const std::string& path, const DeviceProfile& expected,
                                      const std::string& driver) {
  std::error_code unreadable;
  if (path.empty()) return {expected, false, ""};
  if (!std::filesystem::is_regular_file(path, unreadable)) {
    return {expected, false, named_file().empty() ? "" : path + " is no file"};
  }
  const auto unused = [&](const std::string& why) {
    return ExpectedProfile{expected, false, path + " " + why};
  };
  DeviceProfile read;
  try {
    read = io::load_device_profile(path);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
    return unused("is of another version");
  }
  if (read.name != expected.name || read.processors != expected.processors) {
    return unused(fmt::format("is of {} with {} processors", read.name, read.processors));
  }
  if (read.driver != driver) return unused("was measured with driver " + read.driver);
  if (read.build != this_build()) return unused("was measured by build " + read.build);
  return {std::move(read), true, ""};
}

ExpectedProfile expected_profile(Device device) {
  static std::mutex mutex;
  static std::map<int, ExpectedProfile> known;
  require_a_gpu(device);
  const std::scoped_lock lock(mutex);
  if (const auto found = known.find(device.index); found != known.end()) return found->second;
  ExpectedProfile found = read_measured_profile(measured_profile_path(device),
                                                device_profile(device.index), driver_of_gpus());
  return known.emplace(device.index, std::move(found)).first->second;
}

const DeviceProfile& profile_of(const DeviceTraits& traits) {
  if (const AbsentGpu* const absent = AbsentGpu::current()) return absent->profile();
  for (const DeviceProfile& measured : measured_profiles()) {
    if (measured.name == traits.name && measured.processors == traits.processors) return measured;
  }
  thread_local DeviceTraits known;
  thread_local DeviceProfile scaled;
  if (scaled.name.empty() || values_of(known) != values_of(traits)) {
    scaled = scaled_profile(nearest_profile(traits), traits);
    known = traits;
  }
  return scaled;
}

}  // namespace tessera::ops
