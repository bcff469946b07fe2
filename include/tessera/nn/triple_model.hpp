// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tessera/nn/layer.hpp"
#include "tessera/nn/rgcn.hpp"

/// Models of facts (head, relation, tail) about entities that have no features.
namespace tessera::nn {

struct TripleModelOptions {
  std::int64_t entities = 0;
  std::int64_t relations = 0;
  std::int64_t width = 500;  ///< of embeddings, and of every layer
  /// Layers of R-GCN, over every relation and its inverse; 0: what is learned for an entity is its
  /// embedding, and the model DistMult (Yang et al. 2015).
  std::int64_t layers = 2;
  std::int64_t blocks = 100;  ///< of the weights of layers; 1: they are whole
  std::int64_t bases = 0;     ///< see `RgcnOptions`
  double dropout = 0.2;       ///< behind every layer but the last
  /// Of the mean squares of embeddings and relations, in the loss.
  double penalty = 0.01;
};

/// A row for each entity: learned, and put through the layers. The input has a row for each entity,
/// and its numbers are not read. Layers take three graphs each, as `Rgcn` does.
class EntityEncoder final : public Layer {
 public:
  EntityEncoder(const TripleModelOptions& options, Placement placement);

  std::int64_t num_graphs() const override;
  std::int64_t input_width() const override { return 1; }
  std::int64_t output_width() const override { return embedding_.value.cols(); }
  std::string describe() const override;
  bool accepts_sparse() const override { return false; }

 private:
  step::Value build(const StepInputs& inputs) override;

  Parameter embedding_;
  std::vector<std::unique_ptr<Rgcn>> layers_;
};

/// DistMult: the score of a triple is the sum over k of head[k] relation[k] tail[k]. Heads and
/// tails are the pairs of the step; a graph says the relation of each pair, pairs x relations.
class DistMult final : public Layer {
 public:
  DistMult(std::int64_t relations, std::int64_t width, double penalty, Placement placement);

  /// Relations x width.
  const Parameter& relations() const noexcept { return relations_; }

  std::int64_t input_width() const override { return relations_.value.cols(); }
  std::int64_t output_width() const override { return 1; }
  std::string describe() const override;
  bool accepts_sparse() const override { return false; }

 private:
  step::Value build(const StepInputs& inputs) override;

  Parameter relations_;
  double penalty_;
};

/// Both: a score for each triple that the step asks for. In its state the encoder's tensors are
/// called "encoder.…", the decoder's "decoder.…".
class TripleModel final : public Layer {
 public:
  explicit TripleModel(const TripleModelOptions& options, Placement placement = {});

  EntityEncoder& encoder() noexcept { return encoder_; }
  DistMult& decoder() noexcept { return decoder_; }

  std::int64_t num_graphs() const override { return encoder_.num_graphs() + 1; }
  std::int64_t input_width() const override { return encoder_.input_width(); }
  std::int64_t output_width() const override { return 1; }
  std::string describe() const override;
  bool accepts_sparse() const override { return false; }

 private:
  step::Value build(const StepInputs& inputs) override;

  EntityEncoder encoder_;
  DistMult decoder_;
};

}  // namespace tessera::nn
