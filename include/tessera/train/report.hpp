// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/train/metrics.hpp"

namespace tessera::train {

/// Where the time of training goes. Work of a GPU is only queued in its phase; the time until it is
/// done is that of the phase `device`.
enum class Phase { batches, passes, optimiser, device, evaluation, checkpoint };
inline constexpr std::size_t num_phases = 6;

const char* to_string(Phase phase) noexcept;

/// Seconds spent in each phase.
struct PhaseTimes {
  std::array<double, num_phases> seconds{};

  double& operator[](Phase phase) { return seconds[static_cast<std::size_t>(phase)]; }
  double operator[](Phase phase) const { return seconds[static_cast<std::size_t>(phase)]; }
  double total() const;
  PhaseTimes& operator+=(const PhaseTimes& other);
};

/// What the first step took beside what every step takes, in seconds.
struct FirstStep {
  double start = 0;    ///< getting the device ready, where nobody had before
  double upload = 0;   ///< features, graph and what plans made of it, to the device
  double build = 0;    ///< the model, and the adjacencies that its layers derive
  double plan = 0;     ///< choosing kernels and making what they read: schedules, tiles
  double step = 0;     ///< the step itself
  double capture = 0;  ///< recording it, to be replayed
  /// Kernels, copies and fills of a recorded step; 0: it was not recorded.
  std::int64_t launches = 0;

  double total() const { return start + upload + build + plan + step + capture; }
};

/// The metric (for numbers in the units of the data) on the three parts of the split, and the loss
/// on the validation part. A part without items has 0.
struct Evaluation {
  double train = 0;
  double validation = 0;
  double test = 0;
  double validation_loss = 0;
  /// Of links: what of AUROC and average precision, or of recall and NDCG of lists, is not the
  /// metric, on the test part.
  double test_other = 0;

  friend bool operator==(const Evaluation&, const Evaluation&) = default;
};

/// What of the validation items the best epoch is chosen by, and what early stopping and plateaus
/// take for progress.
enum class StopBy {
  either,  ///< chosen by the metric; progress of the metric or of the loss, or as good as before
  metric,
  loss,
};

const char* to_string(StopBy choice) noexcept;
StopBy parse_stop_by(const std::string& text);

/// True if `a` is to be preferred: a better metric on the validation part, or the same with less
/// loss there; by the loss, the other way round.
bool better(const Evaluation& a, const Evaluation& b, StopBy by = StopBy::either,
            Metric metric = Metric::accuracy);

struct EpochRecord {
  std::int64_t run = 0;
  std::int64_t epoch = 0;  ///< from 1
  double loss = 0;         ///< mean over the training items
  Evaluation evaluation;   ///< zeros where it was not evaluated
  bool evaluated = true;   ///< false in the epochs that `TrainOptions::evaluate_every` leaves out
};

struct RunReport {
  std::uint64_t seed = 0;
  std::int64_t epochs = 0;
  std::int64_t best_epoch = 0;
  Evaluation best;  ///< at the epoch that is best on the validation items
  bool stopped_early = false;
  std::optional<std::int64_t> split = {};  ///< its number, of data with several
  std::optional<std::int64_t> fold = {};   ///< the one it was tested on, in cross-validation
  std::vector<EpochRecord> curve;          ///< every epoch
};

/// How well a model of links tells the edges of the test part from as many pairs that are none, and
/// where each ranks among pairs of the same source that are none (links/ranking.hpp).
struct LinkQuality {
  static constexpr std::array<std::int64_t, 3> hits_at = {10, 50, 100};
  static constexpr std::int64_t ranked_among = 100;  ///< so many

  double roc_auc = 0;
  double average_precision = 0;
  std::array<std::optional<double>, hits_at.size()> hits;  ///< absent: there are fewer pairs
  std::optional<double> mean_reciprocal_rank;  ///< absent: a source has edges to all vertices
  /// Of lists of the `LinkOptions::top` best vertices of each, without edges that are known; absent
  /// where the decoder is a perceptron.
  std::optional<double> recall, ndcg;
  std::int64_t top = 0;    ///< the length of these lists
  std::int64_t lists = 0;  ///< of vertices that have something to find
  std::int64_t pairs = 0;  ///< edges that were asked for
  std::int64_t run = 0;    ///< whose weights these are
};

/// The mean over runs and their standard deviation (of a sample: n - 1; 0 for a single run).
struct Summary {
  double mean = 0;
  double deviation = 0;
};

struct TrainReport {
  std::string model;  ///< its layers in words
  std::int64_t parameters = 0;
  Metric metric = Metric::accuracy;
  std::vector<RunReport> runs;
  bool tested = true;  ///< false: the split has no test part, and all that is said of a test is 0
  Summary test;
  Summary validation;
  Summary test_other;  ///< of links: see `Evaluation`
  /// Of links: what the best weights of all runs reach; absent where nothing is tested, or where
  /// runs side by side keep no weights.
  std::optional<LinkQuality> links;
  double step_ms = 0;       ///< median: the batches, forward, backward and optimiser of a step
  double epoch_ms = 0;      ///< median: all steps of an evaluated epoch and its evaluation
  std::int64_t epochs = 0;  ///< those trained here, in all runs
  FirstStep first_step;     ///< of the first run trained here
  PhaseTimes times;
  std::int64_t peak_memory_bytes = 0;
  /// Of the metric on the test items, by the best epoch of all runs against
  /// `CheckpointOptions::full_test`, where that is given.
  std::optional<double> lost;
  std::vector<std::string> notes;  ///< what was decided for the user, in words
};

Summary summarise_test(const std::vector<RunReport>& runs);
Summary summarise_test_other(const std::vector<RunReport>& runs);
Summary summarise_validation(const std::vector<RunReport>& runs);

}  // namespace tessera::train
