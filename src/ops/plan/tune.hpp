// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "tessera/core/parallel.hpp"
#include "tessera/graph/graph.hpp"
#include "tessera/ops/kernels.hpp"
#include "tessera/ops/plan_store.hpp"

/// Choosing kernels by the clock, and remembering what was chosen.
namespace tessera::ops {

/// A kernel as the choice sees it.
struct Offer {
  const KernelInfo* info = nullptr;
  std::string why_not = {};
  double predicted_us = 0;
  double measured_us = 0;        ///< 0 where it was not timed
  std::string why_untimed = {};  ///< by a plan that timed others
};

/// True where the options name one kernel, not a group of them.
bool is_forced(const PlanOptions& options);

/// True where the options ask for this kernel, by its name or with its group, or for any.
bool is_asked_for(const KernelInfo& info, const PlanOptions& options);

/// Why the options rule this offer out; empty if they do not.
std::string why_excluded(const Offer& offer, const PlanOptions& options);

/// The same without the words.
bool is_admissible(const Offer& offer, const PlanOptions& options);

/// The verdict on a kernel that was preferred and did not fit.
inline constexpr const char* out_of_memory_verdict = "out of memory";

/// Whether a plan asked the clock.
bool any_timed(std::span<const Offer> offers);

/// What an offer is judged by: the clock where a plan asked it, else the cost model.
double cost_of(const Offer& offer, bool timed);

/// True where the options leave one to choose.
bool any_admissible(std::span<const Offer> offers, const PlanOptions& options);

/// How much time measuring plans may take, and which candidates they pass over.
struct TuneEffort {
  double hopeless = 4;  ///< times the fastest: what is predicted to be slower is not timed
  double timing_seconds = 2;
  /// With preparing, which may translate the whole graph; what it makes is kept for later plans.
  double budget_seconds = 15;
  /// While a candidate is prepared a GPU is idle, and then takes milliseconds to come to speed,
  /// which must not count against the candidate.
  double warm_seconds = 0.004;
  double wanted_us = 2000;  ///< of all timed runs of a candidate
  /// Far beyond what the fastest of them take: a time with the launch in it cannot be held against
  /// one without.
  double chain_below_us = 150;
};

/// Of this process; records of all candidates are made with another.
TuneEffort& tune_effort();

/// What is known when a candidate's turn comes.
struct TimeLimit {
  double best_us = std::numeric_limits<double>::infinity();  ///< of the fastest so far
  double spent_seconds = 0;                                  ///< in timing
};

/// Times admissible offers in the order of their predictions and fills in `measured_us`. Those that
/// are predicted to take four times as long as the fastest so far are passed over, and what is left
/// when a few seconds are gone. `time` prepares one and times it. Returns the fastest, of equals
/// the one that was timed first: the last for which `time` returned less than `best_us`.
std::size_t tune_offers(std::span<Offer> offers, const PlanOptions& options,
                        FunctionRef<double(std::size_t index, TimeLimit& limit)> time);

/// A few runs after a few warm-ups; one run only where that is far slower than the best. What a GPU
/// does in less time than its launch varies by is timed in a captured chain of runs.
double time_candidate(Device device, FunctionRef<void(Stream)> run, TimeLimit& limit);

/// Under which name a problem's choice is stored.
PlanKey plan_key(std::string op, const Graph& graph, const std::string& details,
                 const PlanOptions& options);

/// What the store has for a key; `required`: or an error.
std::optional<StoredChoice> recall(const PlanStore& store, const PlanKey& key, bool required);

/// How a graph's entries are given: "pattern", "values", "row scale, column scale".
std::string weights_text(const Graph& graph);

}  // namespace tessera::ops
