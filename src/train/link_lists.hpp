// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/core/matrix.hpp"
#include "tessera/graph/graph.hpp"
#include "tessera/links/ranking.hpp"
#include "tessera/links/split.hpp"
#include "tessera/links/top.hpp"
#include "tessera/nn/link_model.hpp"

/// Lists of the vertices that others most likely have an edge to.
namespace tessera::train {

/// Which vertices are listed: all of them, or where there are two kinds those from `first` on.
struct Candidates {
  VertexId first = 0;
  VertexId end = 0;

  VertexId count() const noexcept { return end - first; }
};

/// Embeddings of sources so that scores are dot products with those of candidates, of a decoder
/// whose scores are (`LinkDecoder::is_symmetric`).
Matrix<float> link_queries(const Matrix<float>& embeddings, std::span<const VertexId> sources,
                           const nn::LinkDecoder& decoder, Stream stream = {});

/// The first half of the columns: of what a variational encoder puts out the embeddings.
Matrix<float> means_of(const Matrix<float>& rows);

/// Row i: what the list of source i is not to have, counted from the first candidate: itself, and
/// what it has an edge to in `known`; null: nothing else.
Graph left_out_of_lists(std::span<const VertexId> sources, const Graph* known,
                        const Candidates& candidates);

/// The exact lists of such a decoder, counted from the first candidate. They are made in `place`,
/// from embeddings in this process, where lists may be so long there.
links::TopLists link_lists(const Matrix<float>& embeddings, std::span<const VertexId> sources,
                           const nn::LinkDecoder& decoder, const Candidates& candidates,
                           const Graph& left_out, std::int64_t count, const Place& place = {});

/// Judges lists by links that are held out.
class ListJudge {
 public:
  /// Each pair of `wanted` is to be found in the list of its source, where one pair stands for both
  /// directions in the lists of both. `known` is left out of lists; null: nothing is.
  ListJudge(const links::Pairs& wanted, bool both_ways, const Graph* known,
            const Candidates& candidates);

  links::ListQuality quality(const Matrix<float>& embeddings, const nn::LinkDecoder& decoder,
                             std::int64_t count, const Place& place = {}) const;

 private:
  Candidates candidates_;
  std::vector<VertexId> sources_;
  Graph wanted_, left_out_;
};

}  // namespace tessera::train
