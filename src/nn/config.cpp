// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/config.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tessera/core/error.hpp"

#include "core/names.hpp"

namespace tessera::nn {
namespace {

struct KindInfo {
  ModelKind kind;
  const char* name;
  const char* summary;
};

constexpr std::array<KindInfo, 10> kinds = {{
    {ModelKind::gcn, "gcn", "graph convolution (Kipf and Welling 2017)"},
    {ModelKind::sage, "sage", "GraphSAGE: mean, max or gcn aggregation (Hamilton et al. 2017)"},
    {ModelKind::gin, "gin", "graph isomorphism network (Xu et al. 2019)"},
    {ModelKind::gine, "gine", "gin with features of edges (Hu et al. 2020)"},
    {ModelKind::gat, "gat", "graph attention (Velickovic et al. 2018)"},
    {ModelKind::gatv2, "gatv2", "dynamic graph attention (Brody et al. 2022)"},
    {ModelKind::agnn, "agnn", "attention by cosine (Thekumparampil et al. 2018)"},
    {ModelKind::sgc, "sgc", "simplified graph convolution (Wu et al. 2019)"},
    {ModelKind::cheb, "cheb", "Chebyshev convolution (Defferrard et al. 2016)"},
    {ModelKind::lightgcn, "lightgcn", "embeddings and sums of them, for links (He et al. 2020)"},
}};

bool mentions(std::string text, const char* word) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text.find(word) != std::string::npos;
}

void set_attention_defaults(ModelConfig& config, bool pubmed) {
  config.hidden = 8;
  config.heads = 8;
  config.output_heads = pubmed ? 8 : 1;
  config.input_dropout = config.dropout = config.attention_dropout = 0.6;
  config.activation = ops::Activation::elu;
}

void set_citation_defaults(ModelConfig& config) {
  config.hidden = 16;
  config.input_dropout = config.dropout = 0.5;
}

[[noreturn]] void reject(const std::string& problem, const std::string& fix) {
  throw Error(ErrorCode::invalid_argument, problem, "model", fix);
}

/// Features that have been propagated so often are all alike.
constexpr std::int64_t most_hops = 10'000;
constexpr std::int64_t most_bits = 16;

void require_positive(const char* field, std::int64_t value) {
  if (value < 1) reject(fmt::format("{} is {}", field, value), "give at least 1");
}

void check_bits(const ModelConfig& config) {
  if (config.bits.empty()) return;
  if (config.kind != ModelKind::gcn && config.kind != ModelKind::gin) {
    reject(fmt::format("{} with {} bits", to_string(config.kind), bits_text(config.bits)),
           "use gcn or gin, or all bits");
  }
  for (const std::int64_t bits : config.bits) {
    if (bits < 1 || bits > most_bits) {
      reject(fmt::format("bits is {}", bits), fmt::format("give 1 to {}", most_bits));
    }
  }
  const auto count = static_cast<std::int64_t>(config.bits.size());
  if (count != 1 && count != config.layers) {
    reject(fmt::format("bits of {} layers for {}", count, config.layers),
           "give one number, or one for each layer");
  }
}

void require_share(const char* field, double value) {
  if (!(value >= 0 && value < 1)) {
    reject(fmt::format("{} is {}", field, value), "give a number from 0 to below 1");
  }
}

}  // namespace

const char* to_string(ModelKind kind) noexcept {
  for (const KindInfo& info : kinds) {
    if (info.kind == kind) return info.name;
  }
  return "unknown";
}

ModelKind parse_model_kind(const std::string& text) {
  return find_named(kinds, text, "model", "", "use ").kind;
}

std::vector<CatalogueEntry> model_kinds() {
  std::vector<CatalogueEntry> entries;
  for (const KindInfo& info : kinds) {
    const bool needs_more = info.kind == ModelKind::lightgcn || info.kind == ModelKind::gine;
    if (!needs_more) entries.push_back({info.name, info.summary});
  }
  return entries;
}

ModelConfig paper_defaults(ModelKind kind, const std::string& dataset, bool graph_task) {
  const bool pubmed = mentions(dataset, "pubmed");
  ModelConfig config;
  config.kind = kind;
  switch (kind) {
    case ModelKind::gcn:
    case ModelKind::cheb:
      set_citation_defaults(config);
      config.decay_first_layer_only = true;
      break;
    case ModelKind::sage:
      set_citation_defaults(config);
      config.hidden = 64;
      break;
    case ModelKind::gin:
    case ModelKind::gine:
      config.hidden = 64;
      config.layers = graph_task ? 5 : 2;
      config.batch_norm = true;
      break;
    case ModelKind::gat:
    case ModelKind::gatv2: set_attention_defaults(config, pubmed); break;
    case ModelKind::agnn:
      set_citation_defaults(config);
      config.layers = pubmed ? 4 : 2;
      config.fix_first_beta = true;
      break;
    case ModelKind::sgc: config.layers = 1; break;
    case ModelKind::lightgcn: config.layers = 3; break;
  }
  if (graph_task) {
    config.readout = ops::Reduction::sum;
    config.head_dropout = 0.5;
    config.input_dropout = 0;
  }
  return config;
}

void validate(const ModelConfig& config) {
  require_positive("layers", config.layers);
  require_positive("hidden", config.hidden);
  require_positive("heads", config.heads);
  require_positive("output_heads", config.output_heads);
  require_share("dropout", config.dropout);
  require_share("input_dropout", config.input_dropout);
  require_share("head_dropout", config.head_dropout);
  require_share("attention_dropout", config.attention_dropout);
  if (config.kind == ModelKind::cheb) require_positive("hops", config.hops);
  if (config.hops < 0 || config.hops > most_hops) {
    reject(fmt::format("hops is {}", config.hops), fmt::format("give 0 to {}", most_hops));
  }
  if (!std::isfinite(config.negative_slope)) {
    reject(fmt::format("negative_slope is {}", config.negative_slope), "give a finite number");
  }
  if (config.kind == ModelKind::sgc && config.layers != 1) {
    reject(fmt::format("sgc with {} layers", config.layers),
           "sgc has one layer; set hops for a wider reach");
  }
  if (config.kind == ModelKind::lightgcn && config.layers > most_hops) {
    reject(fmt::format("lightgcn with {} layers", config.layers),
           fmt::format("give 1 to {}", most_hops));
  }
  if (config.kind == ModelKind::lightgcn && config.readout) {
    reject("lightgcn with a readout", "use another model: lightgcn predicts links of one graph");
  }
  if (config.edge_features < 0) {
    reject(fmt::format("edge_features is {}", config.edge_features), "give how many an edge has");
  }
  if (config.precomputed) precomputed_hops(config);
  check_bits(config);
}

bool reads_edges(const ModelConfig& config) noexcept { return config.kind == ModelKind::gine; }

std::int64_t precomputed_hops(const ModelConfig& config) {
  if (config.input_dropout == 0) {
    if (config.kind == ModelKind::sgc) return config.hops;
    if (config.kind == ModelKind::gcn) return 1;
  }
  const bool by_dropout = config.kind == ModelKind::sgc || config.kind == ModelKind::gcn;
  throw Error(ErrorCode::unsupported,
              by_dropout ? "features with dropout cannot be propagated beforehand"
                         : fmt::format("{} does not begin with a propagation of its features",
                                       to_string(config.kind)),
              "precomputed",
              by_dropout
                  ? "set the input dropout to 0 (--input-dropout 0), or do without precomputation"
                  : "do without precomputation, or use sgc or gcn");
}

std::int64_t num_hops(const ModelConfig& config) {
  if (config.kind == ModelKind::sgc) return config.hops;
  if (config.kind == ModelKind::cheb) return config.layers * (config.hops - 1);
  return config.layers;
}

int layer_bits(const ModelConfig& config, std::int64_t layer) {
  if (config.bits.empty()) return 0;
  return static_cast<int>(config.bits.size() == 1 ? config.bits.front()
                                                  : config.bits[static_cast<std::size_t>(layer)]);
}

std::vector<std::int64_t> parse_bits(const std::string& text) {
  std::vector<std::int64_t> bits;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    std::int64_t value = 0;
    const auto [end, problem] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (problem != std::errc{} || end != part.data() + part.size()) {
      bits.clear();
      break;
    }
    bits.push_back(value);
  }
  if (bits.empty() || text.back() == ',') {
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' are no bits", text.substr(0, 64)),
                "bits", "give a number from 1 to 16, or one for each layer, such as 8,4,8");
  }
  return bits;
}

std::string bits_text(const std::vector<std::int64_t>& bits) {
  return fmt::format("{}", fmt::join(bits, ","));
}

std::string describe(const ModelConfig& config) {
  std::string text = fmt::format("{}, {} {}", to_string(config.kind), config.layers,
                                 config.layers == 1 ? "layer" : "layers");
  if (config.kind == ModelKind::lightgcn) return text;
  text += fmt::format(", {} hidden", config.hidden);
  const bool attends = config.kind == ModelKind::gat || config.kind == ModelKind::gatv2;
  if (attends) text += fmt::format(" x {} heads", config.heads);
  if (config.kind == ModelKind::sgc || config.kind == ModelKind::cheb) {
    text += fmt::format(", K {}", config.hops);
  }
  if (config.kind == ModelKind::sage) text += fmt::format(", {}", to_string(config.aggregation));
  if (config.dropout > 0) text += fmt::format(", dropout {}", config.dropout);
  if (config.batch_norm) text += ", batch norm";
  if (config.residual) text += ", residual";
  if (config.readout) text += fmt::format(", {} readout", ops::to_string(*config.readout));
  if (config.precomputed) text += ", precomputed propagation";
  if (!config.bits.empty()) text += fmt::format(", {} bits", bits_text(config.bits));
  return text;
}

}  // namespace tessera::nn
