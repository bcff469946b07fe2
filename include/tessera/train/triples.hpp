// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tessera/core/matrix.hpp"
#include "tessera/core/progress.hpp"
#include "tessera/data/knowledge_graph.hpp"
#include "tessera/nn/triple_model.hpp"
#include "tessera/ops/optimiser.hpp"

/// Learning which facts (head, relation, tail) are true.
namespace tessera::train {

struct TripleOptions {
  /// Entities and relations are those of the data.
  nn::TripleModelOptions model = {};
  ops::OptimiserOptions optimiser = {};
  std::int64_t epochs = 50;
  std::int64_t evaluate_every = 5;
  /// So many epochs without a better one end the training; 0: none do.
  std::int64_t patience = 0;
  /// Most triples that a step asks for; each with so many others that have another head or tail.
  std::int64_t triples_per_step = 10000;
  std::int64_t negatives = 10;
  /// Share of the training triples that carry no messages in a step, other ones in each.
  double edge_dropout = 0.5;
  /// Most validation triples that the best epoch is chosen by: the first in an order of their own.
  std::int64_t validation_most = 2000;
  std::uint64_t seed = 1;
  step::Placement placement = {};
  Progress progress = {};
};

/// Means over ranks among all entities, where ties give the mean of the ranks that they allow.
struct RankQuality {
  double mean_reciprocal_rank = 0;
  double hits_at_1 = 0, hits_at_3 = 0, hits_at_10 = 0;
};

/// Of the tail of each triple, asked by head and relation, and of the head by tail and relation.
struct TripleQuality {
  RankQuality filtered;  ///< other entities that are true in any part of the data do not count
  RankQuality raw;
  std::int64_t ranks = 0;
};

/// Ranks by DistMult's scores.
class TripleJudge {
 public:
  explicit TripleJudge(const KnowledgeGraph& graph);
  ~TripleJudge();

  /// `entities` and `relations` have a row of numbers for each.
  TripleQuality quality(const Matrix<float>& entities, const Matrix<float>& relations,
                        const Triples& asked, const Progress& progress = {}) const;

 private:
  struct Known;
  std::unique_ptr<const Known> known_;
};

/// The entities that most likely end a fact that begins with a head and a relation, best first,
/// -1 where there are no more. `known` facts are left out; null: none.
struct TailLists {
  Matrix<VertexId> tails;
  Matrix<float> scores;
};
TailLists likely_tails(const Matrix<float>& entities, const Matrix<float>& relations,
                       const std::vector<VertexId>& heads,
                       const std::vector<std::int32_t>& asked_relations, std::int64_t count,
                       const Triples* known);

/// A model of triples being trained: in each step on some of them, with others that are drawn, and
/// with messages over others again. The same options give the same bits for any number of threads.
class TripleTrainer {
 public:
  /// `graph` must outlive it.
  TripleTrainer(const KnowledgeGraph& graph, const TripleOptions& options);
  ~TripleTrainer();

  /// On every training triple but a rest of less than a step. Returns the mean loss, without the
  /// penalty; throws where it is no longer a number.
  double train_epoch();
  std::int64_t epoch() const noexcept;
  nn::TripleModel& model() noexcept;

  /// With messages over all training triples.
  Matrix<float> entities();
  Matrix<float> relations();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct TripleEpoch {
  std::int64_t epoch = 0;
  double loss = 0;
  double seconds = 0;
  bool evaluated = false;
  double validation = 0;  ///< filtered mean reciprocal rank
};

struct TripleReport {
  std::string model;
  std::int64_t parameters = 0;
  std::vector<TripleEpoch> curve;
  std::int64_t best_epoch = 0;
  TripleQuality validation, test;  ///< of the best epoch, on all of their triples
  double seconds = 0;
  std::vector<std::string> notes;
};

/// What the best epoch has learned: enough to answer questions.
struct TripleResult {
  TripleReport report;
  Matrix<float> entities, relations;
};

/// Trains, chooses the epoch by validation, and tests it. Throws `bad_data` where there are no
/// validation triples. `on_epoch` is told of each epoch.
TripleResult fit_triples(const KnowledgeGraph& graph, const TripleOptions& options,
                         const std::function<void(const TripleEpoch&)>& on_epoch = {});

/// What training has learned, with the names that questions are asked by.
struct TripleKnowledge {
  std::string model;  ///< in words
  Names entities, relations;
  std::shared_ptr<const Matrix<float>> entity_rows, relation_rows;  ///< a row for each name
};

/// The file appears whole or not at all; every part has a checksum.
void save(const TripleKnowledge& knowledge, const std::string& path);
/// A file that is damaged, or no such one, is a `bad_data` error.
TripleKnowledge load_triple_knowledge(const std::string& path);
/// Whether a file, whatever its name, says of itself that it is one.
bool holds_triple_knowledge(const std::string& path);

}  // namespace tessera::train
