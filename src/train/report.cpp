// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/report.hpp"

#include <cmath>
#include <numeric>

#include "core/names.hpp"

namespace tessera::train {
namespace {

constexpr std::array<Named<Phase>, num_phases> phase_names = {{{Phase::batches, "batches"},
                                                               {Phase::passes, "passes"},
                                                               {Phase::optimiser, "optimiser"},
                                                               {Phase::device, "device"},
                                                               {Phase::evaluation, "evaluation"},
                                                               {Phase::checkpoint, "checkpoint"}}};

constexpr std::array<Named<StopBy>, 3> stop_by_names = {
    {{StopBy::either, "either"}, {StopBy::metric, "metric"}, {StopBy::loss, "loss"}}};

Summary summarise(const std::vector<RunReport>& runs, double Evaluation::*member) {
  Summary summary;
  if (runs.empty()) return summary;
  const auto count = static_cast<double>(runs.size());
  for (const RunReport& run : runs) summary.mean += run.best.*member / count;
  if (runs.size() < 2) return summary;
  double squares = 0;
  for (const RunReport& run : runs) squares += std::pow(run.best.*member - summary.mean, 2);
  summary.deviation = std::sqrt(squares / (count - 1));
  return summary;
}

}  // namespace

const char* to_string(StopBy choice) noexcept { return name_of(stop_by_names, choice); }
StopBy parse_stop_by(const std::string& text) {
  return parse_name(stop_by_names, "way to stop", text);
}

const char* to_string(Phase phase) noexcept { return name_of(phase_names, phase); }

double PhaseTimes::total() const { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }

PhaseTimes& PhaseTimes::operator+=(const PhaseTimes& other) {
  for (std::size_t i = 0; i < num_phases; ++i) seconds[i] += other.seconds[i];
  return *this;
}

bool better(const Evaluation& a, const Evaluation& b, StopBy by, Metric metric) {
  const bool same_loss = a.validation_loss == b.validation_loss;
  if (by == StopBy::loss && !same_loss) return a.validation_loss < b.validation_loss;
  if (a.validation != b.validation) {
    return lower_is_better(metric) == (a.validation < b.validation);
  }
  return a.validation_loss < b.validation_loss;
}

Summary summarise_test(const std::vector<RunReport>& runs) {
  return summarise(runs, &Evaluation::test);
}

Summary summarise_test_other(const std::vector<RunReport>& runs) {
  return summarise(runs, &Evaluation::test_other);
}

Summary summarise_validation(const std::vector<RunReport>& runs) {
  return summarise(runs, &Evaluation::validation);
}

}  // namespace tessera::train
