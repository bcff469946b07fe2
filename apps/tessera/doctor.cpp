// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "device_profile_file.hpp"
#include "machine.hpp"
#include "numbers.hpp"
#include "table.hpp"
#include "tessera/core/device.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/core/version.hpp"
#include "tessera/data/embedded.hpp"
#include "tessera/graph/partition.hpp"
#include "tessera/graph/stats.hpp"
#include "tessera/io/device_profile.hpp"
#include "tessera/io/writing.hpp"
#include "tessera/ops/blas.hpp"
#include "tessera/ops/calibration.hpp"
#include "verb.hpp"

namespace tessera::app {
namespace {

/// One thing looked at. `missing` costs a feature; `broken` means that results cannot be trusted.
struct Check {
  std::string name;
  std::string status;  ///< ok, missing or broken
  std::string detail;
  std::string fix;
};

const char* compiler() {
#if defined(__clang__)
  return "Clang " __clang_version__;
#else
  return "GCC " __VERSION__;
#endif
}

Check check_library() {
  const Dataset karate = embedded_dataset("karate");
  const GraphStats stats = compute_stats(karate.graph);
  const bool right = stats.num_rows == 34 && stats.num_edges == 156 && stats.num_components == 1;
  return right ? Check{"library", "ok", "the embedded karate graph is read correctly", ""}
               : Check{"library", "broken", "the embedded karate graph is not as it should be",
                       "rebuild from a clean checkout"};
}

Check check_threads() {
  constexpr std::int64_t count = 1 << 20;
  const auto sum = parallel_reduce(
      count, std::int64_t{1} << 12, std::int64_t{0},
      [](std::int64_t begin, std::int64_t end) { return (begin + end - 1) * (end - begin) / 2; },
      std::plus<>());
  return sum == count * (count - 1) / 2
             ? Check{"threads", "ok", fmt::format("{} in use", num_threads()), ""}
             : Check{"threads", "broken", "a parallel sum came out wrong",
                     "try --threads 1; rebuild"};
}

Check check_metis() {
  return built_with_metis() ? Check{"METIS", "ok", "built in", ""}
                            : Check{"METIS", "missing", "'partition' uses the built-in method",
                                    "install libmetis-dev and rebuild"};
}

/// Loads it, as no other verb does before it multiplies.
Check check_blas() {
  try {
    return {"BLAS", "ok", ops::describe_blas(), ""};
  } catch (const Error& error) {
    const std::string line = error.what();  // ends with the fix
    return {"BLAS", "missing", line.substr(0, line.size() - error.fix().size() - 2), error.fix()};
  }
}

std::string cuda_version(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

Check check_gpu(const GpuInfo& gpu) {
  if (!gpu.devices.empty() && built_with_cuda()) {
    return {"GPU", "ok", fmt::format("{} found", gpu.devices.size()), ""};
  }
  if (!gpu.devices.empty()) {
    return {"GPU", "missing", "found, but this build has no CUDA", "rebuild with the cuda preset"};
  }
  if (!gpu.problem.empty()) {
    return {"GPU", built_with_cuda() ? "broken" : "missing", gpu.problem,
            "check the driver with nvidia-smi"};
  }
  if (gpu.hardware_seen) {
    return {"GPU", "missing", "on the bus, but there is no driver", "install the NVIDIA driver"};
  }
  return {"GPU", "missing", "none found; everything runs on the CPU",
          "use a machine with an NVIDIA GPU, and the cuda preset"};
}

/// Whether the profile by which plans expect was measured here.
Check check_profile() {
  const char* const name = "GPU's profile";
  const char* const fix = "run 'tessera calibrate'";
  try {
    const ops::ExpectedProfile expected = ops::expected_profile({DeviceKind::cuda, 0});
    if (expected.measured) return {name, "ok", expected.profile.source, ""};
    if (!expected.why_not.empty()) return {name, "missing", "built in: " + expected.why_not, fix};
    return {name, "ok", "built in: " + expected.profile.source, ""};
  } catch (const Error& error) {
    return {name, "broken", error.what(), ""};
  }
}

Json to_json(const CpuInfo& cpu) {
  return {{"model", cpu.model},
          {"architecture", cpu.architecture},
          {"cores", cpu.cores},
          {"instruction_sets", cpu.instruction_sets},
          {"memory_bytes", cpu.memory_bytes},
          {"available_bytes", cpu.available_bytes}};
}

Json to_json(const GpuInfo& gpu) {
  Json devices = Json::array();
  for (const GpuDevice& device : gpu.devices) {
    devices.push_back(
        {{"name", device.name},
         {"memory_bytes", device.memory_bytes},
         {"compute_capability", fmt::format("{}.{}", device.compute_major, device.compute_minor)},
         {"multiprocessors", device.multiprocessors}});
  }
  const bool has_version = gpu.driver_version > 0;
  return {{"hardware_seen", gpu.hardware_seen},
          {"driver_library", gpu.driver_library},
          {"driver_cuda_version", has_version ? Json(cuda_version(gpu.driver_version)) : Json()},
          {"problem", gpu.problem.empty() ? Json() : Json(gpu.problem)},
          {"devices", devices}};
}

Json to_json(const std::vector<Check>& checks) {
  Json list = Json::array();
  for (const Check& check : checks) {
    list.push_back({{"name", check.name},
                    {"status", check.status},
                    {"detail", check.detail},
                    {"fix", check.fix.empty() ? Json() : Json(check.fix)}});
  }
  return list;
}

Json build_json() {
  return {{"compiler", compiler()},       {"type", TESSERA_BUILD_TYPE},
          {"flags", TESSERA_BUILD_FLAGS}, {"sanitizers", TESSERA_BUILD_SANITIZE != 0},
          {"metis", built_with_metis()},  {"cuda", built_with_cuda()}};
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string describe_machine(const CpuInfo& cpu, const GpuInfo& gpu) {
  Table table("ll");
  table.add(
      {"build", fmt::format("{}, {}, METIS {}, CUDA {}", compiler(), TESSERA_BUILD_TYPE,
                            built_with_metis() ? "yes" : "no", built_with_cuda() ? "yes" : "no")});
  table.add({"CPU", fmt::format("{}, {}, {} cores", cpu.model, cpu.architecture, cpu.cores)});
  table.add({"instructions", joined(cpu.instruction_sets)});
  table.add({"memory", fmt::format("{}, {} available", human_bytes(cpu.memory_bytes),
                                   human_bytes(cpu.available_bytes))});
  for (const GpuDevice& device : gpu.devices) {
    table.add({"GPU", fmt::format("{}, {}, compute {}.{}, {} multiprocessors", device.name,
                                  human_bytes(device.memory_bytes), device.compute_major,
                                  device.compute_minor, device.multiprocessors)});
  }
  if (gpu.driver_version > 0) {
    table.add({"driver", "serves CUDA up to " + cuda_version(gpu.driver_version)});
  }
  return table.text();
}

std::string describe_checks(const std::vector<Check>& checks) {
  Table table("lll");
  for (const Check& check : checks) {
    table.add({check.name, check.status, check.detail});
    if (!check.fix.empty()) table.add({"", "", "to fix: " + check.fix});
  }
  return table.text();
}

struct DoctorArguments {
  std::string profile;
  std::string output;
};

/// The profile asked for, else that of the first GPU, unless its file is damaged, which a check
/// says.
std::optional<DeviceProfile> profile_to_show(const DoctorArguments& arguments) {
  if (!arguments.profile.empty()) return device_profile_of(arguments.profile);
  if (num_gpus() > 0) {
    try {
      return ops::expected_profile({DeviceKind::cuda, 0}).profile;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::bad_data) throw;
    }
  }
  if (arguments.output.empty()) return std::nullopt;
  throw Error(ErrorCode::backend_unavailable, "there is no profile to write", arguments.output,
              "name one with --device-profile");
}

ExitCode run_doctor(Session& session, const DoctorArguments& arguments) {
  const std::optional<DeviceProfile> profile = profile_to_show(arguments);
  session.stage("looking around");
  const CpuInfo cpu = probe_cpu();
  const GpuInfo gpu = probe_gpu();
  session.stage("checking");
  std::vector<Check> checks{check_library(), check_threads(), check_metis(), check_blas(),
                            check_gpu(gpu)};
  if (num_gpus() > 0) checks.push_back(check_profile());

  Json json{{"verb", "doctor"},         {"version", version()},     {"build", build_json()},
            {"cpu", to_json(cpu)},      {"threads", num_threads()}, {"gpu", to_json(gpu)},
            {"checks", to_json(checks)}};
  if (profile) json["device_profile"] = profile_json(*profile);
  if (!arguments.output.empty()) {
    io::write_text_file(arguments.output, io::device_profile_text(*profile));
  }
  session.deliver(fmt::format("tessera {}\n", version()) + describe_machine(cpu, gpu) + "\n" +
                      describe_checks(checks) +
                      (profile ? "\nby which plans expect, " + profile_text(*profile) : ""),
                  json);
  const bool broken = std::any_of(checks.begin(), checks.end(),
                                  [](const Check& check) { return check.status == "broken"; });
  return broken ? ExitCode::check_failed : ExitCode::ok;
}

Action setup(Arguments& app) {
  auto arguments = std::make_shared<DoctorArguments>();
  app.add_option("--device-profile", arguments->profile,
                 "show the profile of another GPU than the one here: a file, or a built-in one "
                 "(h200, h100, a100, l40s, 4090, b200)")
      ->type_name("FILE|NAME");
  app.add_option("-o,--output", arguments->output, "write the profile shown to this file")
      ->type_name("FILE");
  return {[arguments](Session& session) { return run_doctor(session, *arguments); },
          [arguments] {
            const std::string& profile = arguments->profile;
            return std::vector<FileUse>{
                {"--device-profile", names_profile_file(profile) ? profile : "", FileRole::input},
                {"-o", arguments->output, FileRole::output}};
          }};
}

}  // namespace

const Verb doctor_verb{"doctor", "report what this build and machine can do and what is missing",
                       "[options]",
                       "tessera doctor\n"
                       "tessera doctor --json -\n"
                       "tessera doctor --device-profile a100 -o mine.profile",
                       setup};

}  // namespace tessera::app
