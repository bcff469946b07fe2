// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tessera/core/parallel.hpp"
#include "tessera/links/ranking.hpp"
#include "tessera/links/top.hpp"
#include "tessera/ops/gemm.hpp"
#include "tessera/train/triples.hpp"

namespace tessera::train {
namespace {

/// The ends that are true of an entity and a relation.
class KnownEnds {
 public:
  void add(VertexId entity, std::int32_t relation, VertexId end) {
    ends_[key(entity, relation)].push_back(end);
  }
  void finish() {
    for (auto& [key, ends] : ends_) {
      std::sort(ends.begin(), ends.end());
      ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    }
  }
  void append(VertexId entity, std::int32_t relation, std::vector<VertexId>& to) const {
    const auto found = ends_.find(key(entity, relation));
    if (found != ends_.end()) to.insert(to.end(), found->second.begin(), found->second.end());
  }

 private:
  static std::uint64_t key(VertexId entity, std::int32_t relation) {
    return (std::uint64_t{static_cast<std::uint32_t>(relation)} << 32) |
           static_cast<std::uint32_t>(entity);
  }

  std::unordered_map<std::uint64_t, std::vector<VertexId>> ends_;
};

/// What is asked: for entity and relation the end, of which `known` has those that are true.
struct Questions {
  std::span<const VertexId> entities;
  std::span<const std::int32_t> relations;
  const KnownEnds* known = nullptr;

  std::int64_t size() const noexcept { return std::ssize(entities); }
  Questions part(std::size_t first, std::size_t count) const {
    return {entities.subspan(first, count), relations.subspan(first, count), known};
  }

  /// A row for each question.
  Graph known_ends(VertexId num_entities) const {
    std::vector<EdgeOffset> offsets{0};
    std::vector<VertexId> ends;
    for (std::size_t i = 0; i < entities.size(); ++i) {
      if (known != nullptr) known->append(entities[i], relations[i], ends);
      offsets.push_back(std::ssize(ends));
    }
    return Graph(static_cast<VertexId>(entities.size()), num_entities, std::move(offsets),
                 std::move(ends));
  }
};

/// The products of entities and relations, whose dot products with all entities are the scores.
Matrix<float> queries_of(const Questions& questions, const Matrix<float>& entities,
                         const Matrix<float>& relations) {
  Matrix<float> queries(questions.size(), entities.cols());
  for (std::int64_t i = 0; i < queries.rows(); ++i) {
    const auto k = static_cast<std::size_t>(i);
    const float* const entity = entities.row(questions.entities[k]);
    const float* const relation = relations.row(questions.relations[k]);
    std::transform(entity, entity + queries.cols(), relation, queries.row(i), std::multiplies<>());
  }
  return queries;
}

struct Ranks {
  std::vector<double> filtered, raw;
};

void append_ranks(const Questions& questions, std::span<const VertexId> truths,
                  const Matrix<float>& entities, const Matrix<float>& relations, Ranks& ranks) {
  const Matrix<float> queries = queries_of(questions, entities, relations);
  Matrix<float> scores(queries.rows(), entities.rows());
  ops::gemm(ops::Transpose::no, ops::Transpose::yes, 1, queries, entities, 0, scores);
  const MatrixView<const float> view = std::as_const(scores).view();
  const Graph known = questions.known_ends(static_cast<VertexId>(entities.rows()));
  for (const auto& [to, filter] : {std::pair(&ranks.filtered, &known),
                                   std::pair(&ranks.raw, static_cast<const Graph*>(nullptr))}) {
    const std::vector<double> some = links::ranks_of<float>(view, truths, filter);
    to->insert(to->end(), some.begin(), some.end());
  }
}

RankQuality quality_of(const std::vector<double>& ranks) {
  return {links::mean_reciprocal_rank(ranks), links::hits_within(ranks, 1),
          links::hits_within(ranks, 3), links::hits_within(ranks, 10)};
}

}  // namespace

struct TripleJudge::Known {
  KnownEnds tails, heads;
};

TripleJudge::TripleJudge(const KnowledgeGraph& graph) {
  auto known = std::make_unique<Known>();
  for (const Triples* part : {&graph.train, &graph.validation, &graph.test}) {
    for (std::size_t k = 0; k < part->heads.size(); ++k) {
      known->tails.add(part->heads[k], part->relations[k], part->tails[k]);
      known->heads.add(part->tails[k], part->relations[k], part->heads[k]);
    }
  }
  known->tails.finish();
  known->heads.finish();
  known_ = std::move(known);
}
TripleJudge::~TripleJudge() = default;

TripleQuality TripleJudge::quality(const Matrix<float>& entities, const Matrix<float>& relations,
                                   const Triples& asked, const Progress& progress) const {
  constexpr std::size_t at_once = 512;
  const std::size_t count = asked.heads.size();
  const std::pair<Questions, std::span<const VertexId>> sides[] = {
      {{asked.heads, asked.relations, &known_->tails}, asked.tails},
      {{asked.tails, asked.relations, &known_->heads}, asked.heads}};
  Ranks ranks;
  for (const auto& [questions, truths] : sides) {
    for (std::size_t first = 0; first < count; first += at_once) {
      report(progress, "ranking", std::ssize(ranks.raw), 2 * asked.size());
      const std::size_t some = std::min(at_once, count - first);
      append_ranks(questions.part(first, some), truths.subspan(first, some), entities, relations,
                   ranks);
    }
  }
  return {quality_of(ranks.filtered), quality_of(ranks.raw), std::ssize(ranks.raw)};
}

TailLists likely_tails(const Matrix<float>& entities, const Matrix<float>& relations,
                       const std::vector<VertexId>& heads,
                       const std::vector<std::int32_t>& asked_relations, std::int64_t count,
                       const Triples* known) {
  KnownEnds tails;
  if (known != nullptr) {
    for (std::size_t k = 0; k < known->heads.size(); ++k) {
      tails.add(known->heads[k], known->relations[k], known->tails[k]);
    }
  }
  tails.finish();
  const Questions questions{heads, asked_relations, &tails};
  const Graph left_out = questions.known_ends(static_cast<VertexId>(entities.rows()));
  links::TopLists lists = links::top_candidates(queries_of(questions, entities, relations),
                                                entities, {.count = count, .leave_out = &left_out});
  return {std::move(lists.candidates), std::move(lists.scores)};
}

}  // namespace tessera::train
