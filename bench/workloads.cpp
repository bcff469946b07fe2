// SPDX-License-Identifier: Apache-2.0
#include "bench/workloads.hpp"

#include <cstdlib>
#include <filesystem>

namespace tessera::bench {
namespace {

/// Appends those of the named graphs that the folder TESSERA_DATA has.
void add_data_folder(const std::vector<std::string>& names, std::vector<std::string>& sources) {
  const char* const folder = std::getenv("TESSERA_DATA");
  if (folder == nullptr || *folder == '\0') return;
  for (const std::string& name : names) {
    const auto path = std::filesystem::path(folder) / name / (name + ".npz");
    if (std::filesystem::exists(path)) sources.push_back(path.string());
  }
}

}  // namespace

Workload quick_workload() {
  Workload workload;
  workload.sources = {"embedded:karate", "embedded:citation",
                      "generate:rmat?scale=13&edges=100000&seed=1"};
  add_data_folder({"cora", "pubmed", "amazon-computers"}, workload.sources);
  workload.features = {16, 64};
  workload.timing.warmups = 1;
  workload.timing.repeats = 5;
  workload.timing.min_seconds = 0.02;
  workload.timing.max_seconds = 1;
  return workload;
}

MeasureOptions gpu_timing(bool quick) {
  MeasureOptions timing;
  timing.warmups = quick ? 3 : 10;
  timing.repeats = quick ? 10 : 50;
  timing.min_seconds = 0;
  timing.max_seconds = quick ? 0.2 : 0.6;
  timing.chain = 20;
  // Vendor kernels that ours are compared with launch several kernels at once.
  timing.chain_below_us = 150;
  return timing;
}

Workload full_workload() {
  Workload workload;
  workload.sources = {"embedded:citation", "generate:rmat?scale=13&edges=100000&seed=1",
                      "generate:rmat?scale=17&edges=2000000&seed=1"};
  add_data_folder({"cora", "pubmed", "amazon-computers", "ego-twitter", "COLLAB"},
                  workload.sources);
  workload.features = {16, 32, 64, 128, 256};
  workload.timing.repeats = 10;
  workload.timing.min_seconds = 0.5;
  workload.timing.max_seconds = 20;
  return workload;
}

}  // namespace tessera::bench
