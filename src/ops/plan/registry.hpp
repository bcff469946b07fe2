// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/on_device.hpp"
#include "core/parts_clock.hpp"
#include "ops/plan/decision.hpp"
#include "ops/plan/tune.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/measure.hpp"
#include "tessera/detail/ops/plan_only.hpp"
#include "tessera/ops/kernels.hpp"
#include "tessera/ops/plan_store.hpp"

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

/// Which of the offers that the options admit is the fastest. Throws `backend_unavailable` for an
/// absent device, `invalid_argument` for an unknown kernel name, `unsupported` where no kernel
/// fits, or not the one asked for.
std::size_t choose_offer(std::span<const Offer> offers, const PlanOptions& options);

/// Which offer a store names. Throws `bad_data` where it cannot run the problem after all.
std::size_t choose_stored(std::span<const Offer> offers, const PlanOptions& options,
                          const StoredChoice& stored);

/// Whether a problem is about a graph some of whose edges occur more than once.
template <class Problem>
bool repeats_edges(const Problem& problem) {
  if constexpr (requires { problem.graph; }) {
    return problem.graph.has_repeated_edges();
  } else {
    return false;
  }
}

/// What each kernel of a table has to say about a problem. Kernels of other devices, and those that
/// lose to a name, are not asked: some look at the whole graph for an answer.
template <class KernelType>
std::vector<Offer> offers_of(std::span<const KernelType> table,
                             const typename KernelType::Problem& problem,
                             const PlanOptions& options) {
  const TimedPart part("predicting");
  require_available(options.device);
  std::vector<Offer> offers;
  offers.reserve(table.size());
  for (const KernelType& kernel : table) {
    Offer& offer = offers.emplace_back();
    offer.info = &kernel.info;
    if (kernel.info.device != options.device.kind) continue;
    offer.why_not = repeats_edges(problem) && !kernel.info.repeated_edges
                        ? "its tiles hold each edge once, and the graph repeats some"
                        : kernel.why_not(problem);
    const bool competes = offer.why_not.empty() && is_asked_for(kernel.info, options);
    if (competes) offer.predicted_us = kernel.predicted_us(problem);
  }
  return offers;
}

/// What the cost model expects of the kernel that a plan with these options would choose: for
/// kernels that are made of those of other ops.
template <class KernelType>
double fastest_us(std::span<const KernelType> table, const typename KernelType::Problem& problem,
                  const PlanOptions& options) {
  double best = std::numeric_limits<double>::infinity();
  for (const Offer& offer : offers_of(table, problem, options)) {
    if (why_excluded(offer, options).empty()) best = std::min(best, offer.predicted_us);
  }
  return best;
}

template <class KernelType>
struct Choice {
  const KernelType* kernel = nullptr;
  Decision decision;
  std::unique_ptr<const typename KernelType::Prepared> prepared;
};

/// The kernel of `table` that the cost model prefers for `problem`; not yet prepared.
template <class KernelType>
Choice<KernelType> choose_kernel(std::span<const KernelType> table,
                                 const typename KernelType::Problem& problem,
                                 const PlanOptions& options) {
  std::vector<Offer> offers = offers_of(table, problem, options);
  const std::size_t chosen = choose_offer(offers, options);
  return {&table[chosen], Decision(std::move(offers), chosen, options), nullptr};
}

/// Times the kernels that may be the fastest; returns which is, and what was prepared of it, or
/// nothing where there is no choice.
template <class Trial, class KernelType>
std::pair<std::size_t, std::unique_ptr<const typename KernelType::Prepared>> measure_offers(
    std::span<const KernelType> table, const typename KernelType::Problem& problem,
    const PlanOptions& options, std::span<Offer> offers) {
  std::unique_ptr<const typename KernelType::Prepared> best;
  std::optional<Trial> trial;
  const auto time = [&](std::size_t index, TimeLimit& limit) {
    if (!trial) trial.emplace(problem, options.place());
    auto prepared = table[index].prepare(problem);
    if constexpr (requires { trial->prepare(*prepared); }) trial->prepare(*prepared);
    synchronise(options.device, options.stream);  // runs are timed on other streams
    const double us = time_candidate(
        options.device, [&](Stream stream) { trial->run(*prepared, stream); }, limit);
    if (us < limit.best_us) best = std::move(prepared);
    return us;
  };
  const std::size_t fastest = tune_offers(offers, options, time);
  return {fastest, std::move(best)};
}

/// When the seconds that timing took pay, in words: by what the winner saves in each run against
/// the kernel that the cost model would have chosen.
std::string timing_note(std::span<const Offer> offers, std::size_t winner, double seconds,
                        const PlanOptions& options);

/// A kernel chosen among offers as the options say and made ready: stored choices first, then by
/// measuring or by the cost model.
template <class Trial, class KernelType>
Choice<KernelType> choose_among(std::span<const KernelType> table,
                                const typename KernelType::Problem& problem,
                                const PlanOptions& options, std::vector<Offer> offers) {
  const TimedPart part("choosing");
  Choice<KernelType> choice;
  double timing_seconds = 0;
  const bool uses_store = options.store != nullptr && options.kernel.empty();
  const PlanKey key =
      uses_store ? plan_key(Trial::op(problem), problem.graph, Trial::details(problem), options)
                 : PlanKey{};
  const std::optional<StoredChoice> stored =
      uses_store ? recall(*options.store, key, options.stored_only) : std::nullopt;
  std::size_t chosen = offers.size();
  if (!stored && options.tune == Tune::measured && !is_forced(options)) {
    const Stopwatch watch;
    std::tie(chosen, choice.prepared) =
        measure_offers<Trial>(table, problem, options, std::span<Offer>(offers));
    timing_seconds = watch.seconds();
  }
  if (!choice.prepared) {
    chosen = stored ? choose_stored(offers, options, *stored) : choose_offer(offers, options);
  }
  const std::string note =
      choice.prepared ? timing_note(offers, chosen, timing_seconds, options) : std::string();
  while (!choice.prepared) {
    try {
      const TimedPart preparing("preparing");
      choice.prepared = table[chosen].prepare(problem);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::out_of_memory || stored || is_forced(options)) throw;
      // Another may need less.
      offers[chosen].why_not = out_of_memory_verdict;
      if (!any_admissible(offers, options)) throw;
      chosen = choose_offer(offers, options);
    }
  }
  choice.kernel = &table[chosen];
  if (stored) {
    choice.decision = Decision({stored->kernel + ": stored choice", stored->candidates});
  } else {
    choice.decision = Decision(std::move(offers), chosen, options);
    choice.decision.add_note(note);
  }
  if constexpr (requires { choice.prepared->note(); }) {
    choice.decision.add_note(choice.prepared->note());
  }
  if (uses_store && !stored) {
    options.store->remember({key, choice.kernel->info.name, choice.decision.explain().candidates});
  }
  return choice;
}

/// Runs that a plan admits besides those that its kernel is chosen for. Kinds of runs are numbered
/// by each op, below 32.
template <class Problem>
struct OtherRuns {
  unsigned kind = 0;
  std::string name;  ///< "edge values"; empty where other kinds say it
  Problem problem;   ///< the same problem, of such runs
};

/// Throws `invalid_argument` inside a recording: planning allocates and waits.
void refuse_while_recording();

/// How the kernel for runs that the chosen one does not take is found: by the cost model, whoever
/// was asked for by name.
PlanOptions fallback_options(const PlanOptions& options);

/// Where the chosen kernel does not take every kind of run that the plan admits, another is chosen
/// for all the rest, once, and is a child of the explanation.
template <class Trial, class KernelType>
void add_fallback(std::span<const KernelType> table, const typename KernelType::Problem& problem,
                  const PlanOptions& options, Choice<KernelType>& choice) {
  using Problem = typename KernelType::Problem;
  std::vector<OtherRuns<Problem>> rest = Trial::other_runs(problem);
  std::erase_if(rest,
                [&](const auto& other) { return choice.kernel->why_not(other.problem).empty(); });
  if (rest.empty()) return;
  std::uint32_t kinds = 0;
  std::string name;
  for (OtherRuns<Problem>& other : rest) {
    kinds |= std::uint32_t{1} << other.kind;
    other.problem.occasional = true;
    if (!other.name.empty()) name += (name.empty() ? "runs with " : " or ") + other.name;
  }
  const PlanOptions how = fallback_options(options);
  std::vector<Offer> offers = offers_of(table, rest.front().problem, how);
  for (std::size_t i = 0; i < offers.size(); ++i) {
    if (table[i].info.device != how.device.kind) continue;
    for (const OtherRuns<Problem>& other : rest) {
      if (offers[i].why_not.empty()) offers[i].why_not = table[i].why_not(other.problem);
    }
  }
  Choice<KernelType> fallback =
      choose_among<Trial>(table, rest.front().problem, how, std::move(offers));
  choice.decision.add_child(std::move(name), std::move(fallback.decision));
  choice.prepared =
      Trial::with_fallback(std::move(choice.prepared), kinds, std::move(fallback.prepared));
}

/// The choice for a problem, with a fallback where it needs one. `Trial` describes the op's
/// problems and has operands to time its kernels with: see spmm/trial.hpp.
template <class Trial, class KernelType>
Choice<KernelType> make_choice(std::span<const KernelType> table,
                               const typename KernelType::Problem& problem,
                               const PlanOptions& options) {
  require_available(options.device);
  refuse_while_recording();
  const PlanOnly work_is_done(false);
  const OnDevice current(options.device);
  Choice<KernelType> choice =
      choose_among<Trial>(table, problem, options, offers_of(table, problem, options));
  if constexpr (requires { Trial::other_runs(problem); }) {
    add_fallback<Trial>(table, problem, options, choice);
  }
  return choice;
}

/// Adds what a table's kernels say of themselves to a list.
template <class KernelType>
void append_infos(std::vector<KernelInfo>& infos, std::span<const KernelType> table) {
  for (const KernelType& kernel : table) infos.push_back(kernel.info);
}

}  // namespace tessera::ops
