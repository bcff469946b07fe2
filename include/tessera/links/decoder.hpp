// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "tessera/core/dtype.hpp"
#include "tessera/core/matrix.hpp"
#include "tessera/core/types.hpp"
#include "tessera/links/split.hpp"

/// Scores of lists of pairs, from embeddings of their ends, and gradients. A list of pairs is a
/// graph whose edges have scores: `sddmm` computes them, in fp32 or fp64 on the CPU, with the same
/// bits for any number of threads. Pairs may be listed several times.
namespace tessera::links {

struct DecoderOptions {
  std::int64_t features = 0;  ///< width of embeddings
  Precision precision = Precision::fp32;
  bool backward = false;  ///< whether `backward` will be called
};

/// score = source . target.
///
/// Made for a list of pairs, used as often as embeddings change, by one thread at a time.
/// Embeddings are float or double as the precision says, sources x features and targets x features;
/// where both are the same vertices they may be one matrix, whose gradient is the sum of both. What
/// does not fit, and a pair of vertices that there are not, is an `invalid_argument` error.
class DotDecoder {
 public:
  DotDecoder(const Pairs& pairs, VertexId num_sources, VertexId num_targets,
             const DecoderOptions& options);
  ~DotDecoder();
  DotDecoder(DotDecoder&&) noexcept;
  DotDecoder& operator=(DotDecoder&&) noexcept;

  /// Score k is that of pair k.
  template <class T>
  void score(MatrixView<const T> sources, MatrixView<const T> targets, std::span<T> scores);

  /// Gradients of what `grad_scores` is the gradient of.
  template <class T>
  void backward(MatrixView<const T> sources, MatrixView<const T> targets,
                std::span<const T> grad_scores, MatrixView<T> grad_sources,
                MatrixView<T> grad_targets);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// score = sum over k of source[k] * relation[k] * target[k] (DistMult): a dot product of the
/// target and of source times relation, which is made once for each source and relation that occur
/// together. Pair k has relation `relations[k]`; where the list is empty, all have relation 0.
class DistMultDecoder {
 public:
  DistMultDecoder(const Pairs& pairs, std::span<const VertexId> relations, VertexId num_sources,
                  VertexId num_targets, VertexId num_relations, const DecoderOptions& options);
  ~DistMultDecoder();
  DistMultDecoder(DistMultDecoder&&) noexcept;
  DistMultDecoder& operator=(DistMultDecoder&&) noexcept;

  /// `relations` has a row for each relation.
  template <class T>
  void score(MatrixView<const T> sources, MatrixView<const T> relations,
             MatrixView<const T> targets, std::span<T> scores);

  template <class T>
  void backward(MatrixView<const T> sources, MatrixView<const T> relations,
                MatrixView<const T> targets, std::span<const T> grad_scores,
                MatrixView<T> grad_sources, MatrixView<T> grad_relations,
                MatrixView<T> grad_targets);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::links
