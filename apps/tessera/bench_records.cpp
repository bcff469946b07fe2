// SPDX-License-Identifier: Apache-2.0
#include "bench_records.hpp"

#include <chrono>
#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "machine.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/core/version.hpp"

namespace tessera::app {
Json bench_header(const std::string& commit) {
  const CpuInfo cpu = probe_cpu();
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  Json gpus = Json::array();
  const GpuInfo gpu_info = probe_gpu();
  for (const GpuDevice& gpu : gpu_info.devices) gpus.push_back(gpu.name);
  return {
      {"verb", "bench"},
      {"version", version()},
      {"commit", commit.empty() ? Json() : Json(commit)},
      {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now))},
      {"machine",
       {{"cpu", cpu.model},
        {"architecture", cpu.architecture},
        {"cores", cpu.cores},
        {"memory_bytes", cpu.memory_bytes},
        {"gpus", gpus}}},
  };
}

Json bandwidth_json(const std::vector<int>& thread_counts, Device device) {
  Json json = Json::object();
  if (device.kind != DeviceKind::cpu) {
    json[to_string(device)] = copy_bandwidth(device);
    return json;
  }
  const int before = num_threads();
  for (const int threads : thread_counts) {
    set_num_threads(threads);
    json[std::to_string(num_threads())] = copy_bandwidth();
  }
  set_num_threads(before);
  return json;
}

Json to_json(const bench::Result& result, std::int64_t heads) {
  const Measurement& record = result.record;
  Json json{
      {"op", record.op},
      {"graph", record.graph},
      {"features", record.features},
      {"precision", record.precision},
      {"device", record.device},
      {"threads", record.threads},
      {"kernel", record.kernel},
      {"median_us", record.median_us},
      {"min_us", record.min_us},
      {"worst_us", record.worst_us},
      {"floor_us", record.floor_us > 0 ? Json(record.floor_us) : Json()},
      {"max_error", record.max_error},
      {"plan", record.plan},
      {"bytes", result.bytes},
      {"repeats", result.repeats},
      {"heads", heads},
      {"rows_checked", result.gate.rows_checked},
  };
  if (record.chain_us > 0) json["chain_us"] = record.chain_us;
  for (const bench::Figure& figure : result.figures) json["figures"][figure.name] = figure.value;
  return json;
}

}  // namespace tessera::app
