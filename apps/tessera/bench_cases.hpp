// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/suite.hpp"
#include "planning.hpp"
#include "tessera/data/dataset.hpp"

/// What `tessera bench` is asked to measure.
namespace tessera::app {

struct BenchArguments {
  std::vector<std::string> words;  ///< ops, or "compare" and two files
  std::vector<std::string> sources;
  std::string nonfinite = "reject";
  std::vector<std::int64_t> features;
  std::vector<std::string> precisions = {"fp32"};
  std::vector<int> threads = {0};
  std::int64_t heads = 0;
  std::int32_t parts = 0;
  std::string partition_file;
  bench::ModelShape shape;  ///< `heads` belongs to it, too
  std::string device = "cpu";
  std::string kernel;
  std::string baseline;
  PlanningOptions planning;
  std::int64_t epochs = ops::PlanOptions{}.epochs;
  std::string commit;
  bool quick = false;
  bool full = false;
  double fail_under = 0;
  bool by_position = false;
};

/// A problem of a suite, with the names that tell it from others.
struct Case {
  const bench::Suite* suite = nullptr;
  bench::Problem problem;
  bool baseline = false;  ///< something to compare with, not a result of ours
};

/// Moves words that name data to the sources, as other verbs take it: "my.mtx", "twin:reddit".
void take_data(BenchArguments& arguments);

/// The suites that were named; all that need not be, if none was.
std::vector<const bench::Suite*> chosen_suites(const BenchArguments& arguments);

/// Throws `invalid_argument` where an option has no meaning.
void check_arguments(const BenchArguments& arguments);

/// Every combination of suite, precision, width and kernel on one data set.
std::vector<Case> cases_on(const BenchArguments& arguments, const Dataset& dataset,
                           const std::vector<std::int64_t>& widths, std::uint64_t seed);

}  // namespace tessera::app
