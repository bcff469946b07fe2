// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tessera/core/matrix.hpp"
#include "tessera/data/dataset.hpp"
#include "tessera/links/split.hpp"
#include "tessera/links/top.hpp"
#include "tessera/train/checkpoint.hpp"
#include "tessera/train/predict.hpp"

namespace tessera::train {

/// A checkpoint of a model of links made ready for a data set, whose edges carry the messages: the
/// embeddings of its vertices, scores of pairs, and the best candidates of a vertex. Features are
/// found by their names, as `aligned` does.
///
/// A score above 0 says that an edge is more likely than not among as many pairs that are none; its
/// sigmoid is that probability. One thread at a time.
class LinkPredictor {
 public:
  LinkPredictor(const Checkpoint& checkpoint, const Dataset& dataset,
                const PredictOptions& options = {});
  LinkPredictor(LinkPredictor&&) noexcept;
  LinkPredictor& operator=(LinkPredictor&&) noexcept;
  ~LinkPredictor();

  /// A row for each vertex.
  const Matrix<float>& embeddings() const noexcept;
  const std::vector<std::string>& notes() const noexcept;

  /// Score k is that of pair k. A pair of vertices that there are not is an `invalid_argument`
  /// error.
  std::vector<float> scores(const links::Pairs& pairs);

  /// Row i: the vertices that most likely have an edge from `sources[i]`, best first, of all but
  /// itself and, unless `keeps_known`, those that it has an edge to. Exact, the lower vertex first
  /// among ties; -1 and -infinity where there are no more. Of a model of links between two kinds of
  /// vertices those of the second alone are listed.
  links::TopLists top(std::span<const VertexId> sources, std::int64_t count,
                      bool keeps_known = false);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Pairs of a data set with their scores, under the names of its vertices. Where these have kinds
/// the ends are called by them in files, and go by their names within their kinds.
struct LinkPrediction {
  Names names;                    ///< of the vertices; empty: by number
  std::int64_t first_number = 0;  ///< of the first vertex, where they go by number
  links::Pairs pairs;
  std::vector<float> scores;
  Kinds kinds = {};
};

/// The pairs of top lists, list after list.
LinkPrediction listed_links(const Dataset& dataset, std::span<const VertexId> sources,
                            const links::TopLists& lists);

/// Writes by the file's ending: source, target, score and probability as a table (.csv), objects
/// (.json) or arrays (.npz). Another ending is an `invalid_argument` error, which
/// `require_link_ending` gives beforehand.
void save(const LinkPrediction& prediction, const std::string& path);
void require_link_ending(const std::string& path);

}  // namespace tessera::train
