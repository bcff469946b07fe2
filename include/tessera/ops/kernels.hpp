// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tessera/core/device.hpp"
#include "tessera/core/memory.hpp"

namespace tessera::ops {

/// What the registry knows of a kernel. Its name is "op/device/strategy", such as "spmm/cpu/rows".
struct KernelInfo {
  std::string name;
  std::string description;
  std::string op;
  DeviceKind device = DeviceKind::cpu;
  bool deterministic = true;  ///< same bits twice
  /// Its error is that of sums in fp32: 2e-6 of |A| |X|. Tensor cores may make up to 1e-5.
  bool strict = true;
  /// A number that is not finite reaches the rows that use it and no other. On tiles, other rows of
  /// the same window may turn into NaN, but never into a wrong number.
  bool exact_nonfinite = true;
  /// Takes graphs that keep repeated edges. Tiles hold each edge once.
  bool repeated_edges = true;
};

/// Every kernel of this build, of all ops, sorted by name.
std::vector<KernelInfo> kernels();

/// Those of one op.
std::vector<KernelInfo> kernels(const std::string& op);

/// How a plan finds the fastest kernel.
enum class Tune {
  predicted,  ///< by the cost model
  measured,   ///< by timing, once, each that may be the fastest, on scratch operands
};

const char* to_string(Tune tune) noexcept;
Tune parse_tune(const std::string& text);

class PlanStore;

/// How a plan may be made. The default chooses by a cost model among the deterministic kernels that
/// support the problem.
struct PlanOptions {
  Device device = {};
  /// Run this kernel and no other; an unknown name, or one that does not support the problem, is an
  /// error that says why and lists those that do. With a * at its end, the fastest of those whose
  /// names begin so: "spmm/cuda/rows*".
  std::string kernel;
  /// Admit kernels whose sums depend on timing.
  bool allow_nondeterministic = false;
  Tune tune = Tune::predicted;
  /// Choices made before (plan_store.hpp): a problem found there gets the kernel that it got then,
  /// any other is added.
  std::shared_ptr<PlanStore> store = {};
  /// A problem that `store` does not have is an error.
  bool stored_only = false;
  /// Only kernels whose error is that of sums in fp32.
  bool strict = false;
  /// Only kernels that keep what is not finite to the rows that use it.
  bool exact_nonfinite = false;
  /// Where all memory of the plan on its device comes from. Null: `default_memory(device)`.
  MemoryResource* memory = nullptr;
  /// Planning queues its work here, and waits for it at most once. The plan is then complete, and
  /// runs on any stream. The stream must outlive the plan.
  Stream stream = {};
  /// Whether the plan has a workspace of its own. Otherwise every run on a GPU brings one of
  /// `workspace_bytes()`. On the CPU a plan always has its own.
  bool own_workspace = true;
  /// How often the plan will be used: an epoch is one forward and one backward pass.
  std::int64_t epochs = 100;
  /// Whether `run_backward` will be called. What it needs is planned together with the rest.
  bool backward = false;

  Place place() const { return {device, memory, stream}; }

  friend bool operator==(const PlanOptions& a, const PlanOptions& b) {
    return a.device == b.device && a.kernel == b.kernel &&
           a.allow_nondeterministic == b.allow_nondeterministic && a.tune == b.tune &&
           a.store == b.store && a.stored_only == b.stored_only && a.strict == b.strict &&
           a.exact_nonfinite == b.exact_nonfinite && a.memory == b.memory &&
           a.stream.handle == b.stream.handle && a.own_workspace == b.own_workspace &&
           a.epochs == b.epochs && a.backward == b.backward;
  }
};

/// One kernel considered by a plan, and what became of it.
struct Candidate {
  std::string kernel;
  std::string verdict;      ///< "chosen", or why not, in words
  double predicted_us = 0;  ///< by the cost model; 0 where it does not apply
  double measured_us = 0;   ///< of a run, or of one in a chain; 0 where it was not timed
};

/// Why a plan is what it is.
struct Explanation {
  std::string summary;  ///< one line
  std::vector<Candidate> candidates;
  /// What else was decided for the plan: its backward pass, its stages, and which kernel serves the
  /// kinds of runs that the chosen one does not.
  std::vector<Explanation> children = {};
  std::string name = {};  ///< of a child: "backward", "runs with edge values"
};

/// The child of this name, or null.
const Explanation* find_child(const Explanation& explanation, const std::string& name);

/// The summary and the candidates, a line each, then the children, each indented below its name.
std::string to_string(const Explanation& explanation);

}  // namespace tessera::ops
