// SPDX-License-Identifier: Apache-2.0
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <sstream>
#include <string_view>
#include <thread>

#include <fmt/format.h>

#include "machine.hpp"

namespace tessera::app {
namespace {

// x86_64's names, then aarch64's.
constexpr std::array<std::string_view, 16> relevant_sets{
    "avx",         "avx2",        "fma",         "f16c",     "avx512f", "avx512vl",
    "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_bf16", "asimd",   "asimdhp",
    "sve",         "sve2",        "bf16",        "i8mm"};

// "key : value" lines; the first of each key, which is the first core's.
std::map<std::string, std::string> first_values(const char* path) {
  std::map<std::string, std::string> values;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string key = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
    const std::size_t start = line.find_first_not_of(" \t", colon + 1);
    values.emplace(key, start == std::string::npos ? "" : line.substr(start));
  }
  return values;
}

std::string value_or(const std::map<std::string, std::string>& values, const std::string& key,
                     const std::string& fallback) {
  const auto found = values.find(key);
  return found == values.end() ? fallback : found->second;
}

std::string machine_name() {
  utsname name{};
  return uname(&name) == 0 ? name.machine : "unknown";
}

// ARM cores have no name here, only the numbers of their maker and type. These are the servers'.
std::string model_of(const std::map<std::string, std::string>& cpu) {
  static const std::map<std::string, std::string> arm_parts{{"0xd0c", "Arm Neoverse N1"},
                                                            {"0xd40", "Arm Neoverse V1"},
                                                            {"0xd49", "Arm Neoverse N2"},
                                                            {"0xd4f", "Arm Neoverse V2"}};
  if (cpu.count("model name") > 0) return cpu.at("model name");
  const std::string maker = value_or(cpu, "CPU implementer", "unknown");
  const std::string part = value_or(cpu, "CPU part", "unknown");
  if (maker == "0x41" && arm_parts.count(part) > 0) return arm_parts.at(part);
  return fmt::format("implementer {}, part {}", maker, part);
}

int usable_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) return CPU_COUNT(&allowed);
  return static_cast<int>(std::thread::hardware_concurrency());
}

std::vector<std::string> instruction_sets_of(const std::map<std::string, std::string>& cpu) {
  std::vector<std::string> found;
  std::istringstream flags(value_or(cpu, "flags", value_or(cpu, "Features", "")));
  for (std::string flag; flags >> flag;) {
    if (std::find(relevant_sets.begin(), relevant_sets.end(), flag) != relevant_sets.end()) {
      found.push_back(flag);
    }
  }
  return found;
}

std::int64_t kibibytes(const std::map<std::string, std::string>& memory, const std::string& key) {
  std::int64_t amount = 0;
  std::istringstream(value_or(memory, key, "0")) >> amount;
  return amount * 1024;
}

}  // namespace

CpuInfo probe_cpu() {
  const auto cpu = first_values("/proc/cpuinfo");
  const auto memory = first_values("/proc/meminfo");
  CpuInfo info;
  info.model = model_of(cpu);
  info.architecture = machine_name();
  info.cores = usable_cores();
  info.instruction_sets = instruction_sets_of(cpu);
  info.memory_bytes = kibibytes(memory, "MemTotal");
  info.available_bytes = kibibytes(memory, "MemAvailable");
  return info;
}

}  // namespace tessera::app
