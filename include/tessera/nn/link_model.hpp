// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tessera/nn/input.hpp"
#include "tessera/nn/link_decoder.hpp"

namespace tessera::nn {

struct LinkModelOptions {
  LinkDecoderKind decoder = LinkDecoderKind::dot;
  /// In training the result is what the last graph, which comes with its values, makes of the
  /// scores: of each row with 1 and -1 the score of one pair less that of another.
  bool compares = false;
  /// On the features, in training: an encoder that is a part leaves its own out.
  double input_dropout = 0;
};

/// A model that predicts links: an encoder, whose outputs are embeddings of the vertices, and a
/// decoder of pairs. Of a list of graphs (`Context::graphs`) the encoder takes the first, and the
/// decoder those of the pairs; the result has a row for each of these (`PairGraphs::row_of`).
/// Outside of training the graph that compares may be null.
///
/// In its state the encoder's tensors are called "encoder.…", the decoder's "decoder.…".
class LinkModel final : public Layer {
 public:
  LinkModel(std::unique_ptr<Layer> encoder, const LinkModelOptions& options);

  Layer& encoder() noexcept { return *encoder_; }
  LinkDecoder& decoder() noexcept { return decoder_; }

  void learn(const Input& input, const Context& context) override;

  std::int64_t num_graphs() const override {
    return encoder_->num_graphs() + decoder_.num_graphs() + (compares_ ? 1 : 0);
  }
  std::int64_t input_width() const override { return encoder_->input_width(); }
  std::int64_t output_width() const override { return 1; }
  std::string describe() const override;
  bool accepts_sparse() const override { return encoder_->accepts_sparse(); }

 private:
  step::Value build(const StepInputs& in) override;

  std::unique_ptr<Layer> encoder_;
  LinkDecoder decoder_;
  bool compares_;
  InputDropout input_dropout_;
};

}  // namespace tessera::nn
