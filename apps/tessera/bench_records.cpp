// SPDX-License-Identifier: Apache-2.0
#include "bench_records.hpp"

#include <chrono>
#include <ctime>
#include <fstream>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "machine.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/core/version.hpp"

namespace tessera::app {
namespace {

Measurement parse_record(const Json& json) {
  Measurement record;
  record.op = json.at("op").get<std::string>();
  record.graph = json.at("graph").get<std::string>();
  record.features = json.at("features").get<std::int64_t>();
  record.precision = json.at("precision").get<std::string>();
  record.device = json.at("device").get<std::string>();
  record.threads = json.at("threads").get<int>();
  record.kernel = json.at("kernel").get<std::string>();
  record.median_us = json.at("median_us").get<double>();
  record.min_us = json.at("min_us").get<double>();
  record.worst_us = json.at("worst_us").get<double>();
  // Baselines have no floor, error or plan of their own to tell.
  const auto number = [&](const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_number() ? found->get<double>() : 0.0;
  };
  record.floor_us = number("floor_us");
  record.chain_us = number("chain_us");
  record.max_error = number("max_error");
  record.plan = json.value("plan", std::string());
  if (!(record.median_us > 0)) throw Error(ErrorCode::bad_data, "median_us is not above 0");
  return record;
}

Json read_json(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    throw Error(ErrorCode::io, "cannot read", path, "give a file that tessera bench --json wrote");
  }
  try {
    return Json::parse(file);
  } catch (const Json::exception&) {
    throw Error(ErrorCode::bad_data, "is not JSON", path,
                "give a file that tessera bench --json wrote");
  }
}

}  // namespace

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

std::vector<Measurement> read_records(const std::string& path) {
  const Json json = read_json(path);
  const auto found = json.is_object() ? json.find("records") : json.end();
  if (found == json.end() || !found->is_array()) {
    throw Error(ErrorCode::bad_data, "no list of records", path,
                "give a file that tessera bench --json wrote");
  }
  std::vector<Measurement> records;
  for (const Json& entry : *found) {
    if (entry.is_object() && entry.value("baseline", false)) continue;
    const std::string where = fmt::format("{}, record {}", path, records.size());
    try {
      records.push_back(parse_record(entry));
    } catch (const Json::exception& problem) {
      throw Error(ErrorCode::bad_data, problem.what(), where);
    } catch (const Error& problem) {
      throw Error(ErrorCode::bad_data, problem.what(), where);
    }
  }
  return records;
}

}  // namespace tessera::app
