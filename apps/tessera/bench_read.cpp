// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench_records.hpp"
#include "tessera/core/error.hpp"

namespace tessera::app {
namespace {

Measurement parse_record(const nlohmann::json& json) {
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

nlohmann::json read_json(const std::string& path) {
  constexpr const char* fix = "give a file that tessera bench --json wrote";
  std::error_code ignored;
  const auto kind = std::filesystem::status(path, ignored).type();
  // Opening a pipe would wait for something to be written to it.
  if (kind != std::filesystem::file_type::regular &&
      kind != std::filesystem::file_type::not_found) {
    throw Error(ErrorCode::io, "is not a regular file", path, fix);
  }
  std::ifstream file(path);
  if (!file) throw Error(ErrorCode::io, "cannot read", path, fix);
  try {
    return nlohmann::json::parse(file);
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorCode::bad_data, "is not JSON", path, fix);
  }
}

}  // namespace

std::vector<Measurement> read_records(const std::string& path) {
  const nlohmann::json json = read_json(path);
  const auto found = json.is_object() ? json.find("records") : json.end();
  if (found == json.end() || !found->is_array()) {
    throw Error(ErrorCode::bad_data, "no list of records", path,
                "give a file that tessera bench --json wrote");
  }
  std::vector<Measurement> records;
  for (const nlohmann::json& entry : *found) {
    if (entry.is_object() && entry.value("baseline", false)) continue;
    const std::string where = fmt::format("{}, record {}", path, records.size());
    try {
      records.push_back(parse_record(entry));
    } catch (const nlohmann::json::exception& problem) {
      throw Error(ErrorCode::bad_data, problem.what(), where);
    } catch (const Error& problem) {
      throw Error(ErrorCode::bad_data, problem.what(), where);
    }
  }
  return records;
}

}  // namespace tessera::app
