// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "tessera/core/device.hpp"
#include "tessera/core/memory.hpp"
#include "tessera/core/types.hpp"
#include "tessera/graph/graph.hpp"
#include "tessera/ops/dense_workspace.hpp"
#include "tessera/ops/operand.hpp"
#include "tessera/ops/step_clock.hpp"

/// Pairs of vertices that a model is asked for: how they are chosen and drawn, scored and judged,
/// all in memory of the device, so that a step of training on them can be recorded and replayed.
///
/// A list of pairs is a matrix of int32 with two rows, the sources above the targets (as PyG's
/// edge_label_index); pair k is its column k. That all ends are rows of the matrices is only
/// checked on the CPU. Numbers are fp64, fp32 or bf16 on the CPU; fp32, bf16 or fp16 on a GPU.
/// Results are the same bits at every run and for any number of threads.
namespace tessera::ops {

/// Which of all pairs, again and again, make the steps of training: of each epoch's own order of
/// `n` pairs, `size` behind one another. The order is a permutation that needs no memory; what is
/// left of it when no whole batch remains is not used in this epoch.
struct PairBatches {
  std::int64_t size = 0;
  std::uint64_t seed = 0;
  std::int64_t step = 0;             ///< from 0 on, over all epochs
  const StepClock* clock = nullptr;  ///< if there is one, on the device: its step counts instead
  /// Each pair is also asked for the other way: twice as many, the turned ones behind the others.
  bool both_ways = false;
};

/// How many whole batches n pairs make.
std::int64_t batches_of(std::int64_t n, std::int64_t size);

/// chosen = those of one step, 2 x `size` (twice that with `both_ways`).
void choose_pairs(ConstOperand pairs, const PairBatches& batches, Operand chosen,
                  Device device = {}, Stream stream = {});

/// How pairs that are no edges are drawn.
enum class NegativeKind {
  uniform,    ///< any pair, all equally likely
  by_source,  ///< the source of a positive pair, any target
  by_degree,  ///< the source of a positive pair, a target as often as it has edges
};

/// The pairs of vertices that are no edges of a graph, kept where they are drawn. In a square graph
/// a vertex is none with itself. Whether the graph lists an edge twice is not asked: it must not.
/// Row 0 of the graph stands for target `first_target` of the pairs.
class NonEdges {
 public:
  explicit NonEdges(const Graph& known, const Place& place = {}, VertexId first_target = 0);

  std::int64_t count() const noexcept;
  std::int64_t count_of(VertexId source) const noexcept;
  Device device() const noexcept;

  struct State;
  const State& state() const noexcept { return *state_; }

 private:
  std::shared_ptr<const State> state_;
};

struct NegativeDraw {
  NegativeKind kind = NegativeKind::uniform;
  std::int64_t per_positive = 1;
  std::uint64_t seed = 0;
  std::uint32_t step = 0;            ///< of training: another step draws other pairs
  const StepClock* clock = nullptr;  ///< if there is one, on the device: its step counts instead
  bool both_ways = false;            ///< as `PairBatches::both_ways`
};

/// negatives = pairs that are no edges: number j of positive i in column i * per_positive + j. Any
/// device draws the same for a seed and a step. There must be some, and unless they are uniform
/// some of every source.
void draw_negatives(ConstOperand positives, const NonEdges& known, const NegativeDraw& draw,
                    Operand negatives, Stream stream = {});

/// scores[k][h] = source . target over the numbers of head h, of the rows of both matrices that
/// pair k names. `scores` has a column for each head.
void pair_dot(ConstOperand sources, ConstOperand targets, ConstOperand pairs, Operand scores,
              Device device = {}, Stream stream = {});

/// y[k] = source + target.
void pair_sum(ConstOperand sources, ConstOperand targets, ConstOperand pairs, Operand y,
              Device device = {}, Stream stream = {});

/// Which pairs each row is an end of: what gradients are summed by. Takes all of its memory when it
/// is made; `list` may be called again and again.
class PairEnds {
 public:
  /// Of so many pairs between so many rows.
  PairEnds(std::int64_t num_rows, std::int64_t num_pairs, const Place& place = {});

  void list(ConstOperand pairs, Stream stream = {});

  std::int64_t num_rows() const noexcept;
  std::int64_t num_pairs() const noexcept;
  Device device() const noexcept;

  struct State;
  const State& state() const noexcept { return *state_; }

 private:
  std::shared_ptr<State> state_;
};

/// Gradients of `pair_dot`; each may be absent. If both are the same matrix it gets their sum, for
/// sources and targets that are the same vertices. A matrix may have fewer rows than there are
/// lists.
void pair_dot_backward(ConstOperand sources, ConstOperand targets, const PairEnds& ends,
                       ConstOperand grad_scores, Operand grad_sources, Operand grad_targets,
                       Stream stream = {}, const DenseWorkspace* workspace = nullptr);

/// The same of `pair_sum`.
void pair_sum_backward(const PairEnds& ends, ConstOperand grad_y, Operand grad_sources,
                       Operand grad_targets, Stream stream = {},
                       const DenseWorkspace* workspace = nullptr);

enum class PairLossKind {
  bce,     ///< the mean over all pairs of log(1 + exp(-score)), or log(1 + exp(score)) of negatives
  bpr,     ///< the mean over negatives of log(1 + exp(negative - positive))
  margin,  ///< the mean over negatives of max(0, margin + negative - positive)
};

struct PairLossOptions {
  PairLossKind kind = PairLossKind::bce;
  std::int64_t positives = 0;  ///< the first scores; as many negatives of each follow, in order
  double margin = 1;
  /// Half of this share is wanted of the other answer: bce and bpr.
  double smoothing = 0;
};

/// The loss of a column of scores goes to `value`, in memory of the device. `grad_scores` may be
/// absent, or the memory of the scores; `grad_sum`, 1 x 1, if there is one, gets the sum of the
/// gradient. No pairs give 0.
void pair_loss(ConstOperand scores, const PairLossOptions& options, Operand grad_scores,
               double* value, Device device = {}, Stream stream = {},
               const DenseWorkspace* workspace = nullptr, Operand grad_sum = {});

}  // namespace tessera::ops
