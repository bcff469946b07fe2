// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tessera/ops/kernels.hpp"

/// How a plan finds its kernel. Each op has a `Problem` (what to compute, on which graph), a
/// `Kernel` as below, and a function that returns the table of its kernels. `kernels.cpp` lists
/// those functions: a table that registers itself by static initialisation would be dropped from a
/// static library.
namespace tessera::ops {

/// One way to solve the problems of an op. `Prepared` is what a plan keeps of it: the schedule and
/// workspace for one problem, with a virtual function that runs.
template <class ProblemType, class PreparedType>
struct Kernel {
  using Problem = ProblemType;
  using Prepared = PreparedType;

  KernelInfo info;
  /// Why the kernel cannot solve this problem, in words; empty if it can.
  std::string (*why_not)(const Problem&);
  /// What the cost model expects one run to take.
  double (*predicted_us)(const Problem&);
  std::unique_ptr<const Prepared> (*prepare)(const Problem&);
};

/// A kernel as the choice sees it.
struct Offer {
  const KernelInfo* info = nullptr;
  std::string why_not;
  double predicted_us = 0;
};

struct ChosenOffer {
  std::size_t index = 0;
  Explanation explanation;
};

/// The fastest offer that the options admit. Throws `backend_unavailable` for an absent device,
/// `invalid_argument` for an unknown kernel name, `unsupported` where no kernel fits, or not the
/// one asked for.
ChosenOffer choose_offer(std::span<const Offer> offers, const PlanOptions& options);

template <class KernelType>
struct Choice {
  const KernelType* kernel = nullptr;
  Explanation explanation;
};

/// The kernel of `table` that a plan with these options runs for `problem`.
template <class KernelType>
Choice<KernelType> choose_kernel(std::span<const KernelType> table,
                                 const typename KernelType::Problem& problem,
                                 const PlanOptions& options) {
  std::vector<Offer> offers;
  offers.reserve(table.size());
  for (const KernelType& kernel : table) {
    Offer offer{&kernel.info, kernel.why_not(problem), 0};
    if (offer.why_not.empty()) offer.predicted_us = kernel.predicted_us(problem);
    offers.push_back(std::move(offer));
  }
  ChosenOffer chosen = choose_offer(offers, options);
  return {&table[chosen.index], std::move(chosen.explanation)};
}

/// Adds what a table's kernels say of themselves to a list.
template <class KernelType>
void append_infos(std::vector<KernelInfo>& infos, std::span<const KernelType> table) {
  for (const KernelType& kernel : table) infos.push_back(kernel.info);
}

}  // namespace tessera::ops
