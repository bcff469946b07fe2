// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/train/relational.hpp"

#include "io/dataset_arrays.hpp"
#include "io/sections.hpp"
#include "train/relational_input.hpp"
#include "train/settings.hpp"
#include "train/stored_names.hpp"

namespace tessera::train {
namespace {

constexpr std::int64_t format_version = 1;
constexpr std::string_view weights_prefix = "weights:";
constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t most_kinds = std::numeric_limits<std::int32_t>::max();

/// "kind.3.features"
std::string field(const char* what, std::size_t number, const char* name) {
  return fmt::format("{}.{}.{}", what, number, name);
}

/// Everything but names, means and tensors.
std::vector<Setting> settings_of(const RelationalCheckpoint& c) {
  std::vector<Setting> settings;
  const auto put = [&](std::string name, const auto& value) {
    settings.push_back({std::move(name), fmt::format("{}", value)});
  };
  put("version", format_version);
  put("model.kind", nn::to_string(c.model.kind));
  put("model.layers", c.model.layers);
  put("model.hidden", c.model.hidden);
  put("model.heads", c.model.heads);
  put("model.blocks", c.model.blocks);
  put("model.bases", c.model.bases);
  put("model.dropout", c.model.dropout);
  put("labelled", c.labelled);
  put("outputs", c.outputs);
  put("multi_label", c.multi_label ? 1 : 0);
  put("metric", to_string(c.metric));
  put("fingerprint", c.fingerprint);
  put("best.run", c.best.run);
  put("best.epoch", c.best.epoch);
  put("best.validation", c.best.evaluation.validation);
  put("best.test", c.best.evaluation.test);
  put("kinds", c.kinds.size());
  for (std::size_t k = 0; k < c.kinds.size(); ++k) {
    put(field("kind", k, "features"), c.kinds[k].features);
    put(field("kind", k, "embedded"), c.kinds[k].embedded);
    put(field("kind", k, "normalise"), to_string(c.kinds[k].normalisation.kind));
  }
  put("relations", c.relations.size());
  for (std::size_t r = 0; r < c.relations.size(); ++r) {
    put(field("relation", r, "source"), c.relations[r].source);
    put(field("relation", r, "target"), c.relations[r].target);
  }
  return settings;
}

double real_of(const SettingsReader& reader, const std::string& name) {
  return reader.reading(name, [](const std::string& text) {
    double value = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
      throw Error(ErrorCode::bad_data, "'" + text.substr(0, 64) + "' is no number");
    }
    return value;
  });
}

nn::RelationalModelOptions model_of(const SettingsReader& reader) {
  nn::RelationalModelOptions model;
  model.kind = reader.reading("model.kind", nn::parse_relational_kind);
  model.layers = reader.integer("model.layers", 1, most);
  model.hidden = reader.integer("model.hidden", 1, most);
  model.heads = reader.integer("model.heads", 1, most);
  model.blocks = reader.integer("model.blocks", 1, most);
  model.bases = reader.integer("model.bases", 0, most);
  model.dropout = real_of(reader, "model.dropout");
  return model;
}

/// Reads what `settings_of` wrote. Every kind and relation has fields of its own, so that a number
/// of them that is too large is noticed at once.
RelationalCheckpoint checkpoint_from(const SettingsReader& reader) {
  RelationalCheckpoint c;
  if (reader.integer("version") != format_version) {
    throw Error(ErrorCode::unsupported,
                fmt::format("is a model of version {}; this program knows version {}",
                            reader.integer("version"), format_version),
                reader.where(), "use the program that wrote it, or train again");
  }
  c.model = model_of(reader);
  const std::int64_t kinds = reader.integer("kinds", 1, most_kinds);
  c.labelled = static_cast<std::int32_t>(reader.integer("labelled", 0, kinds - 1));
  c.outputs = reader.integer("outputs", 1, most);
  c.multi_label = reader.truth("multi_label");
  c.metric = reader.reading("metric", [](const std::string& text) { return parse_metric(text); });
  c.fingerprint = reader.text("fingerprint");
  c.best.run = reader.integer("best.run", -1, most);
  c.best.epoch = reader.integer("best.epoch", 0, most);
  c.best.evaluation.validation = real_of(reader, "best.validation");
  c.best.evaluation.test = real_of(reader, "best.test");
  for (std::size_t k = 0; std::cmp_less(k, kinds); ++k) {
    KnownKind kind;
    kind.features = reader.integer(field("kind", k, "features"), 0, most);
    kind.embedded = reader.integer(field("kind", k, "embedded"), 0, most_kinds);
    kind.normalisation.kind = reader.reading(field("kind", k, "normalise"), parse_normalise);
    c.kinds.push_back(std::move(kind));
  }
  const std::int64_t relations = reader.integer("relations", 0, most_kinds);
  for (std::size_t r = 0; std::cmp_less(r, relations); ++r) {
    const auto end = [&](const char* name) {
      return static_cast<std::int32_t>(reader.integer(field("relation", r, name), 0, kinds - 1));
    };
    c.relations.push_back({{}, end("source"), end("target")});
  }
  return c;
}

template <class T>
ExtraArray numbers(const std::vector<T>& values) {
  return io::stored(SharedArray<T>(values));
}

std::string prefix_of(std::size_t kind) { return fmt::format("kind:{}", kind); }

void add_kind(const KnownKind& kind, const std::string& prefix,
              std::vector<io::NamedArray>& arrays) {
  if (!kind.vertices.empty()) add_names(prefix + ":vertex", kind.vertices, arrays);
  if (kind.normalisation.kind == Normalise::standard) {
    arrays.emplace_back(prefix + ":means", numbers(kind.normalisation.means));
    arrays.emplace_back(prefix + ":factors", numbers(kind.normalisation.factors));
  }
  if (kind.input.feature_names.empty()) return;
  add_names(prefix + ":feature", kind.input.feature_names, arrays);
  arrays.emplace_back(prefix + ":fills", numbers(kind.input.means));
  if (kind.input.category_prefixes.empty()) return;
  arrays.emplace_back(prefix + ":categories", io::stored(kind.input.category_prefixes));
}

template <class T>
void take(io::ArrayReader& array, std::vector<T>& to) {
  const SharedArray<T> values = io::read_exact<T>(array, "is no list of such numbers");
  to.assign(values.begin(), values.end());
}

/// Gathers the arrays of a file until all have been read.
class Parts {
 public:
  explicit Parts(RelationalCheckpoint& checkpoint)
      : checkpoint_(checkpoint), kinds_(checkpoint.kinds.size()) {}

  void take(io::ArrayReader& array) {
    const std::string& name = array.name();
    if (name.starts_with(weights_prefix)) {
      checkpoint_.weights.push_back({name.substr(weights_prefix.size()), io::read_as_is(array)});
    } else if (name == "class_values") {
      train::take(array, checkpoint_.class_values);
    } else if (name == "split:train") {
      train::take(array, checkpoint_.split.train);
    } else if (name == "split:validation") {
      train::take(array, checkpoint_.split.validation);
    } else if (name == "split:test") {
      train::take(array, checkpoint_.split.test);
    } else if (!class_.take("class", array) && !kind_.take("kind", array) &&
               !relation_.take("relation", array) && !take_of_kind(array)) {
      array.reject("is no part of a model of relations");
    }
  }

  void give(const std::string& path) {
    io::naming_file(path, [&] {
      checkpoint_.class_names = class_.names();
      const Names kinds = kind_.names(), relations = relation_.names();
      if (kinds.size() != std::ssize(checkpoint_.kinds) ||
          relations.size() != std::ssize(checkpoint_.relations)) {
        io::damaged(path, "has other numbers of kinds or relations than names of them");
      }
      for (std::size_t k = 0; k < kinds_.size(); ++k) {
        KnownKind& kind = checkpoint_.kinds[k];
        kind.name = kinds[static_cast<std::int64_t>(k)];
        kind.vertices = kinds_[k].vertices.names();
        kind.input.feature_names = kinds_[k].features.names();
      }
      for (std::size_t r = 0; r < checkpoint_.relations.size(); ++r) {
        checkpoint_.relations[r].name = relations[static_cast<std::int64_t>(r)];
      }
    });
  }

 private:
  struct KindNames {
    StoredNames vertices, features;
  };

  bool take_of_kind(io::ArrayReader& array) {
    for (std::size_t k = 0; k < kinds_.size(); ++k) {
      const std::string prefix = prefix_of(k);
      if (!array.name().starts_with(prefix + ":")) continue;
      KnownKind& kind = checkpoint_.kinds[k];
      const std::string rest = array.name().substr(prefix.size() + 1);
      if (rest == "means") return train::take(array, kind.normalisation.means), true;
      if (rest == "factors") return train::take(array, kind.normalisation.factors), true;
      if (rest == "fills") return train::take(array, kind.input.means), true;
      if (rest == "categories") {
        kind.input.category_prefixes = io::read_vector<std::int32_t>(array);
        return true;
      }
      return kinds_[k].vertices.take(prefix + ":vertex", array) ||
             kinds_[k].features.take(prefix + ":feature", array);
    }
    return false;
  }

  RelationalCheckpoint& checkpoint_;
  std::vector<KindNames> kinds_;
  StoredNames class_, kind_, relation_;
};

void require_consistent(const KnownKind& kind, const std::string& path) {
  const auto features = static_cast<std::size_t>(kind.features);
  const Normalisation& n = kind.normalisation;
  const std::size_t scaled = n.kind == Normalise::standard ? features : 0;
  const bool has_names = !kind.input.feature_names.empty();
  const auto fits = [](std::int64_t size, std::int64_t wanted) {
    return size == 0 || size == wanted;
  };
  const bool right = n.kind != Normalise::automatic && n.means.size() == scaled &&
                     n.factors.size() == scaled && (kind.features == 0 || kind.embedded == 0) &&
                     fits(kind.input.feature_names.size(), kind.features) &&
                     kind.input.means.size() == (has_names ? features : 0) &&
                     fits(kind.input.category_prefixes.size(), has_names ? kind.features : 0) &&
                     fits(kind.vertices.size(), kind.embedded);
  if (!right) io::damaged(path, fmt::format("the kind '{}' contradicts itself", kind.name));
}

/// Before a model is made, whose memory goes with these numbers: the tensors must have them.
void require_sizes(const RelationalCheckpoint& c, const std::string& path) {
  double stored = 0;
  for (const StoredTensor& tensor : c.weights) {
    stored += static_cast<double>(tensor.array.bytes.size()) / sizeof(float);
  }
  const nn::RelationalShape shape = shape_of(c.kinds, c.relations.size(), c.outputs);
  const auto hidden = static_cast<double>(c.model.hidden);
  const double first =
      static_cast<double>(shape.featured_kinds) * static_cast<double>(shape.features) * hidden;
  const double embedded = static_cast<double>(shape.embedded) * hidden;
  const bool is_rgcn = c.model.kind == nn::RelationalKind::rgcn;
  const double groups = is_rgcn ? 1 : static_cast<double>(shape.relations);
  const double last = groups * hidden * static_cast<double>(c.outputs);
  const double between = c.model.layers > 1 ? groups * hidden * hidden : 0;
  const double bases =
      is_rgcn ? hidden * static_cast<double>(c.outputs) * static_cast<double>(c.model.bases) : 0;
  const bool fits = first + embedded <= stored && last <= stored && between <= stored &&
                    bases <= stored && c.model.layers <= std::ssize(c.weights) &&
                    shape.features + shape.embedded > 0;
  if (!fits) io::damaged(path, "its tensors are not those of its model");
}

void require_classes(const RelationalCheckpoint& c, const std::string& path) {
  const auto values = std::ssize(c.class_values);
  if (values != 0 && values != c.outputs) {
    io::damaged(path, fmt::format("names {} classes for {} outputs", values, c.outputs));
  }
  for (const auto* part : {&c.split.train, &c.split.validation, &c.split.test}) {
    for (const std::int64_t item : *part) {
      if (item < 0) io::damaged(path, "the split has a negative number");
    }
  }
}

}  // namespace

void save(const RelationalCheckpoint& checkpoint, const std::string& path) {
  std::vector<io::NamedArray> arrays;
  arrays.emplace_back(std::string(io::relational_model_section),
                      io::stored_text(to_text(settings_of(checkpoint))));
  std::vector<std::string> kinds, relations;
  for (const KnownKind& kind : checkpoint.kinds) kinds.push_back(kind.name);
  for (const Relation& relation : checkpoint.relations) relations.push_back(relation.name);
  add_names("kind", Names(kinds), arrays);
  add_names("relation", Names(relations), arrays);
  arrays.emplace_back("class_values", numbers(checkpoint.class_values));
  add_names("class", checkpoint.class_names, arrays);
  arrays.emplace_back("split:train", numbers(checkpoint.split.train));
  arrays.emplace_back("split:validation", numbers(checkpoint.split.validation));
  arrays.emplace_back("split:test", numbers(checkpoint.split.test));
  for (std::size_t k = 0; k < checkpoint.kinds.size(); ++k) {
    add_kind(checkpoint.kinds[k], prefix_of(k), arrays);
  }
  for (const StoredTensor& tensor : checkpoint.weights) {
    arrays.emplace_back(std::string(weights_prefix) + tensor.path, tensor.array);
  }
  io::write_sections(path, arrays);
}

bool holds_relational_checkpoint(const std::string& path) {
  return io::holds_section(path, io::relational_model_section);
}

RelationalCheckpoint load_relational_checkpoint(const std::string& path) {
  const io::InputFile file(path);
  RelationalCheckpoint checkpoint;
  std::optional<Parts> parts;
  for (const io::Section& section : io::read_container_header(file)) {
    io::SectionReader array(file, section);
    if (section.name == io::relational_model_section) {
      checkpoint = checkpoint_from(parse_settings(io::read_text(array), array.where()));
      parts.emplace(checkpoint);
    } else if (!parts) {
      break;
    } else {
      parts->take(array);
    }
  }
  if (!parts) {
    throw Error(ErrorCode::bad_data, "is no model of kinds and relations", path,
                "give the file that 'tessera train' wrote of a folder of kinds of vertices");
  }
  parts->give(path);
  for (const KnownKind& kind : checkpoint.kinds) require_consistent(kind, path);
  require_classes(checkpoint, path);
  require_sizes(checkpoint, path);
  const nn::RelationalShape shape =
      shape_of(checkpoint.kinds, checkpoint.relations.size(), checkpoint.outputs);
  io::naming_file(path, [&] {
    nn::RelationalModel model(checkpoint.model, shape);
    require_same_tensors(checkpoint.weights, model.state(), path);
  });
  return checkpoint;
}

}  // namespace tessera::train
