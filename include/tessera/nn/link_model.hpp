// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "tessera/nn/input.hpp"
#include "tessera/nn/layer.hpp"

namespace tessera::nn {

/// How the score of a pair comes from the embeddings of its ends.
enum class LinkDecoderKind {
  dot,       ///< source . target
  distmult,  ///< the sum over k of source[k] relation[k] target[k], with a learned relation
  mlp,       ///< w . relu(U source + V target + b) + c, which tells the two directions apart
};

const char* to_string(LinkDecoderKind kind) noexcept;
LinkDecoderKind parse_link_decoder(const std::string& text);

/// Scores of the pairs of a step (`Context::pairs`), a row each, of embeddings.
class LinkDecoder final : public Layer {
 public:
  LinkDecoder(LinkDecoderKind kind, std::int64_t width, Placement placement = {});

  LinkDecoderKind kind() const noexcept { return kind_; }
  /// Whether both directions of a pair always have one score.
  bool is_symmetric() const noexcept { return kind_ != LinkDecoderKind::mlp; }
  /// 1 x width, by which DistMult weighs products; null for others.
  const Parameter* relation() const noexcept { return relation_ ? &*relation_ : nullptr; }

  std::int64_t num_graphs() const override { return 0; }
  std::int64_t input_width() const override { return width_; }
  std::int64_t output_width() const override { return 1; }
  std::string describe() const override;
  bool accepts_sparse() const override { return false; }

 private:
  /// What the perceptron learns.
  struct Perceptron {
    Perceptron(std::int64_t width, Placement placement);
    Parameter of_source, of_target, bias, weight, constant;
  };

  step::Value build(const StepInputs& in) override;
  step::Value perceive(const StepInputs& in, Perceptron& learned) const;

  LinkDecoderKind kind_;
  std::int64_t width_;
  std::optional<Parameter> relation_;
  std::optional<Perceptron> perceptron_;
};

struct LinkModelOptions {
  LinkDecoderKind decoder = LinkDecoderKind::dot;
  /// On the features, in training: an encoder that is a part leaves its own out.
  double input_dropout = 0;
  /// The encoder puts out means and logarithms of deviations, twice as many numbers as embeddings
  /// have; these are drawn in training, and the means otherwise (Kipf and Welling 2016; PyG's
  /// VGAE). The divergence from the standard normal distribution, over the number of vertices, is a
  /// part of the loss.
  bool variational = false;
};

/// A model that predicts links: an encoder, whose outputs are embeddings of the vertices, and a
/// decoder of pairs (`Context::pairs`), of which each has a row of the result.
///
/// In its state the encoder's tensors are called "encoder.…", the decoder's "decoder.…".
class LinkModel final : public Layer {
 public:
  LinkModel(std::unique_ptr<Layer> encoder, const LinkModelOptions& options);

  Layer& encoder() noexcept { return *encoder_; }
  LinkDecoder& decoder() noexcept { return decoder_; }

  void learn(const Input& input, const Context& context) override;

  std::int64_t num_graphs() const override { return encoder_->num_graphs(); }
  std::int64_t input_width() const override { return encoder_->input_width(); }
  std::int64_t output_width() const override { return 1; }
  std::string describe() const override;
  bool accepts_sparse() const override { return encoder_->accepts_sparse(); }

 private:
  step::Value build(const StepInputs& in) override;

  std::unique_ptr<Layer> encoder_;
  LinkDecoder decoder_;
  bool is_variational_;
  InputDropout input_dropout_;
};

}  // namespace tessera::nn
