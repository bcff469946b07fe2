// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/device_traits.hpp"
#include "tessera/core/dtype.hpp"
#include "tessera/ops/kernels.hpp"

/// Entries of an op's table (plan/registry.hpp) that run on the GPU.
namespace tessera::ops {

inline KernelInfo cuda_info(const std::string& op, const std::string& name,
                            std::string description) {
  return {.name = op + "/cuda/" + name,
          .description = std::move(description),
          .op = op,
          .device = DeviceKind::cuda};
}

/// The same for windows on matrix units, which hold every edge once.
inline KernelInfo windows_info(const std::string& op, const std::string& name,
                               std::string description, bool exact_nonfinite = false) {
  KernelInfo info = cuda_info(op, name, std::move(description));
  info.strict = false;
  info.exact_nonfinite = exact_nonfinite;
  info.repeated_edges = false;
  return info;
}

/// How a plan comes to a `Prepared` that is made of the problem and the settings.
template <class Prepared>
inline constexpr auto prepared = [](const auto& problem, const auto&... settings) {
  return std::make_unique<const Prepared>(problem, settings...);
};

/// What a problem says of its precision and device: its options, where it has some.
template <class Problem>
const auto& options_of(const Problem& problem) {
  if constexpr (requires { problem.options; }) {
    return problem.options;
  } else {
    return problem;
  }
}

template <class Problem>
bool is_fp64(const Problem& problem) {
  if constexpr (requires { options_of(problem).precision; }) {
    return options_of(problem).precision == Precision::fp64;
  }
  return false;
}

/// A kernel with `settings`: a policy, say, or a table of compiled kernels. Its functions take the
/// problem, then the settings where they want them; `predict` takes the device's traits at last.
/// None is asked about fp64, which exists on the CPU only.
template <class Kernel, auto why_not, auto predict, auto prepare, const auto&... settings>
Kernel cuda_kernel(KernelInfo info) {
  using Problem = typename Kernel::Problem;
  return {std::move(info),
          [](const Problem& problem) -> std::string {
            if (is_fp64(problem)) return "fp64 exists on the CPU only";
            if constexpr (std::is_invocable_v<decltype(why_not), const Problem&>) {
              return why_not(problem);
            } else {
              return why_not(problem, settings...);
            }
          },
          [](const Problem& problem) -> double {
            if constexpr (std::is_invocable_v<decltype(predict), const Problem&, DeviceTraits>) {
              return predict(problem, device_traits(options_of(problem).device));
            } else {
              return predict(problem, settings..., device_traits(options_of(problem).device));
            }
          },
          [](const Problem& problem) -> std::unique_ptr<const typename Kernel::Prepared> {
            return prepare(problem, settings...);
          }};
}

/// One for each of the first `count` of `policies`, of which `info_of(policy)` says what it is.
template <auto why_not, auto predict, auto prepare, const auto& policies,
          std::size_t count = std::size(policies), class Kernel, class InfoOf>
void append_kernels(std::vector<Kernel>& table, InfoOf&& info_of) {
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    (table.push_back(
         cuda_kernel<Kernel, why_not, predict, prepare, policies[i]>(info_of(policies[i]))),
     ...);
  }
  (std::make_index_sequence<count>{});
}

}  // namespace tessera::ops
