// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ops/plan/calibrate/calibrate.hpp"
#include "ops/plan/calibration.hpp"

namespace tessera::ops {
namespace {

constexpr std::size_t num_terms = 4;
constexpr double clearly = 1.1;  ///< from which ratio of times on a choice is right or wrong
using Terms = std::array<double, num_terms>;

/// One measurement of a kernel: what its coefficients are multiplied by, and what they should give.
struct Sample {
  Terms terms;
  double logarithm = 0;  ///< of measured over predicted, base 2
};

/// Least squares, drawn towards no correction at all as if there were a few more samples of that: a
/// kernel that was seen rarely is hardly corrected.
Terms regression(const std::vector<Sample>& samples) {
  constexpr double pull = 2;
  std::array<std::array<double, num_terms + 1>, num_terms> rows = {};
  for (std::size_t i = 0; i < num_terms; ++i) rows[i][i] = pull;
  for (const Sample& sample : samples) {
    for (std::size_t i = 0; i < num_terms; ++i) {
      for (std::size_t j = 0; j < num_terms; ++j) rows[i][j] += sample.terms[i] * sample.terms[j];
      rows[i][num_terms] += sample.terms[i] * sample.logarithm;
    }
  }
  // Positive definite: no row has to be exchanged.
  for (std::size_t k = 0; k < num_terms; ++k) {
    for (std::size_t i = k + 1; i < num_terms; ++i) {
      const double share = rows[i][k] / rows[k][k];
      for (std::size_t j = k; j <= num_terms; ++j) rows[i][j] -= share * rows[k][j];
    }
  }
  Terms result = {};
  for (std::size_t k = num_terms; k-- > 0;) {
    double rest = rows[k][num_terms];
    for (std::size_t j = k + 1; j < num_terms; ++j) rest -= rows[k][j] * result[j];
    result[k] = rest / rows[k][k];
  }
  return result;
}

KernelCorrection correction_of(const std::string& kernel, int element_bytes,
                               const std::vector<Sample>& samples) {
  KernelCorrection correction;
  correction.kernel = kernel;
  correction.element_bytes = element_bytes;
  correction.coefficients = regression(samples);
  correction.cases = static_cast<std::int64_t>(samples.size());
  double before = 0, after = 0;
  for (const Sample& sample : samples) {
    double rest = sample.logarithm;
    for (std::size_t i = 0; i < num_terms; ++i) {
      rest -= correction.coefficients[i] * sample.terms[i];
    }
    before += sample.logarithm * sample.logarithm;
    after += rest * rest;
  }
  const double count = std::max<double>(1, static_cast<double>(samples.size()));
  correction.error_before = std::sqrt(before / count);
  correction.error_after = std::sqrt(after / count);
  return correction;
}

/// Goes over cases with the kernel that each of them gets; null: none of those timed.
template <class Choose>
ChoiceQuality judged(std::span<const TimedCase> cases, Choose&& choose) {
  ChoiceQuality quality;
  double logarithms = 0, right = 0;
  for (const TimedCase& timed : cases) {
    std::vector<double> times;
    for (const TimedKernel& kernel : timed.kernels) times.push_back(kernel.measured_us);
    if (times.size() < 2) continue;
    std::sort(times.begin(), times.end());
    const TimedKernel* const chosen = choose(timed);
    if (chosen == nullptr) continue;
    const double regret = chosen->measured_us / times[0];
    logarithms += std::log(regret);
    ++quality.cases;
    quality.worst_regret = std::max(quality.worst_regret, regret);
    if (times.back() <= clearly * times[0]) continue;
    ++quality.clear;
    if (regret <= clearly) ++right;
  }
  if (quality.cases > 0) {
    quality.mean_regret = std::exp(logarithms / static_cast<double>(quality.cases));
  }
  if (quality.clear > 0) quality.right = right / static_cast<double>(quality.clear);
  return quality;
}

/// Always the kernel that is the fastest in most cases of the fit, where it was timed, and the
/// slowest where it was not.
ChoiceQuality majority_of(std::span<const TimedCase> fitted, std::span<const TimedCase> held_out) {
  std::map<std::pair<std::string, int>, int> wins;
  const auto by_time = [](const TimedKernel& a, const TimedKernel& b) {
    return a.measured_us < b.measured_us;
  };
  for (const TimedCase& timed : fitted) {
    const auto best = std::min_element(timed.kernels.begin(), timed.kernels.end(), by_time);
    if (best != timed.kernels.end()) ++wins[{best->kernel, timed.shape.element_bytes}];
  }
  return judged(held_out, [&](const TimedCase& timed) -> const TimedKernel* {
    const TimedKernel* chosen = nullptr;
    int most = 0;
    for (const TimedKernel& kernel : timed.kernels) {
      const auto found = wins.find({kernel.kernel, timed.shape.element_bytes});
      if (found != wins.end() && found->second > most) {
        most = found->second;
        chosen = &kernel;
      }
    }
    if (chosen != nullptr) return chosen;
    return &*std::max_element(timed.kernels.begin(), timed.kernels.end(), by_time);
  });
}

}  // namespace

ChoiceQuality quality_of(std::span<const TimedCase> cases, const Calibration* corrections) {
  return judged(cases, [&](const TimedCase& timed) -> const TimedKernel* {
    const auto expected_us = [&](const TimedKernel& kernel) {
      return corrected_us(corrections, kernel.kernel, timed.shape, kernel.predicted_us);
    };
    return &*std::min_element(timed.kernels.begin(), timed.kernels.end(),
                              [&](const TimedKernel& a, const TimedKernel& b) {
                                return expected_us(a) < expected_us(b);
                              });
  });
}

namespace {

/// "spmm" of a case whose kernels are "spmm/cuda/...".
std::string op_of(const TimedCase& timed) {
  return timed.kernels.empty()
             ? ""
             : timed.kernels.front().kernel.substr(0, timed.kernels.front().kernel.find('/'));
}

std::vector<TimedCase> of_op(std::span<const TimedCase> cases, const std::string& op) {
  std::vector<TimedCase> own;
  for (const TimedCase& timed : cases) {
    if (op_of(timed) == op) own.push_back(timed);
  }
  return own;
}

/// Of one op: none where choices would lose more than with the built-in costs.
std::vector<KernelCorrection> corrections_of(std::span<const TimedCase> fitted,
                                             std::span<const TimedCase> held_out) {
  std::map<std::pair<std::string, int>, std::vector<Sample>> samples;
  for (const TimedCase& timed : fitted) {
    for (const TimedKernel& kernel : timed.kernels) {
      samples[{kernel.kernel, timed.shape.element_bytes}].push_back(
          {cost_terms(timed.shape, kernel.predicted_us),
           std::log2(kernel.measured_us / kernel.predicted_us)});
    }
  }
  Calibration own;
  for (const auto& [key, of_kernel] : samples) {
    own.kernels.push_back(correction_of(key.first, key.second, of_kernel));
  }
  const double built_in = quality_of(held_out, nullptr).mean_regret;
  if (quality_of(held_out, &own).mean_regret > built_in) return {};
  return own.kernels;
}

}  // namespace

void fit_corrections(std::span<const TimedCase> fitted, std::span<const TimedCase> held_out,
                     Calibration& calibration) {
  std::set<std::string> ops;
  for (const TimedCase& timed : fitted) ops.insert(op_of(timed));
  for (const std::string& op : ops) {
    for (KernelCorrection& each : corrections_of(of_op(fitted, op), of_op(held_out, op))) {
      calibration.kernels.push_back(std::move(each));
    }
  }
  calibration.built_in = quality_of(held_out, nullptr);
  calibration.fitted = quality_of(held_out, &calibration);
  calibration.majority = majority_of(fitted, held_out);
}

}  // namespace tessera::ops
