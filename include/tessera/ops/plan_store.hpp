// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/ops/kernels.hpp"

namespace tessera::ops {

/// What a plan was made for.
struct PlanKey {
  std::string op;       ///< "spmm", "spmm_backward"
  std::string graph;    ///< fingerprint of the structure (graph/fingerprint.hpp)
  std::string details;  ///< "features 128, bf16, sum, pattern"
  std::string device;   ///< its name: "NVIDIA H200", or "cpu, 16 threads"

  friend bool operator==(const PlanKey&, const PlanKey&) = default;
};

/// Which kernel a plan chose, and what it knew of all candidates.
struct StoredChoice {
  PlanKey key;
  std::string kernel;
  std::vector<Candidate> candidates;
};

/// The choices of plans, in memory and in a file. Plans made with one (`PlanOptions::store`) run
/// the kernel found in it, so that a measured plan can be made again without measuring, to the same
/// bits. Any number of threads may use it.
///
///     auto store = std::make_shared<PlanStore>(PlanStore::load("reddit.plans"));
///     options.store = store;
///     SpmmPlan plan = plan_spmm(graph, options);
///     store->save("reddit.plans");
///
/// The file is text, with the number of its format in the first line (docs/formats.md).
class PlanStore {
 public:
  PlanStore();
  PlanStore(PlanStore&&) noexcept;
  PlanStore& operator=(PlanStore&&) noexcept;
  ~PlanStore();

  /// Throws `io` where there is no such file, `bad_data` where it is not one of these or of another
  /// format.
  static PlanStore load(const std::string& path);
  void save(const std::string& path) const;

  /// The text of such a file. `parse` throws as `load` does, naming `where`.
  static PlanStore parse(std::string_view text, const std::string& where);
  std::string to_text() const;

  std::size_t size() const;
  std::optional<StoredChoice> find(const PlanKey& key) const;

  /// Throws `bad_data` that says what the store has instead: another graph, device or problem.
  StoredChoice require(const PlanKey& key) const;

  /// Replaces what it had for the same key.
  void remember(StoredChoice choice);
  /// Every choice of another store.
  void remember_all(const PlanStore& other);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::ops
