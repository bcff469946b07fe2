// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cluster_model.hpp"
#include "json.hpp"

namespace tessera::app {

/// What training takes with each part on a GPU of its own, by a model of memory, links and time.
struct PartitionReport {
  ClusterModel model;
  std::vector<PartLoad> loads;
  std::vector<PartCost> costs;
  PartCost one_gpu;
  std::int64_t sent_bytes = 0;    ///< by all parts, for a step
  std::int64_t memory_bytes = 0;  ///< of the part that takes the most
  double seconds = 0;             ///< of a step: of the slowest part, and adding gradients up
};

PartitionReport report_on(const Graph& graph, const Partition& partition,
                          const ClusterModel& model);
std::string to_text(const PartitionReport& report);
Json to_json(const PartitionReport& report);

}  // namespace tessera::app
