// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/checkpoint.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/ops/plan_store.hpp"

#include "io/dataset_arrays.hpp"
#include "io/sections.hpp"
#include "train/edge_sections.hpp"
#include "train/number_sections.hpp"
#include "train/run_position.hpp"
#include "train/settings.hpp"

namespace tessera::train {
namespace {

constexpr std::int64_t format_version = 2;

// Beginnings of the names of sections; a number and ':' follow the first three.
constexpr std::string_view curve_prefix = "curve:";
constexpr std::string_view model_prefix = "model:";
constexpr std::string_view moments_prefix = "moments:";
constexpr std::string_view weights_prefix = "weights:";
constexpr std::string_view ranges_prefix = "ranges:";
constexpr const char* lost_section = "lost";
constexpr const char* decoder_setting = "decoder";
constexpr const char* kinds_setting = "kinds";
constexpr const char* variational_setting = "variational";

constexpr std::pair<const char*, bool GraphForm::*> graph_traits[] = {
    {"graph.directed", &GraphForm::directed},
    {"graph.self_loops", &GraphForm::self_loops},
    {"graph.weighted", &GraphForm::weighted}};

std::string run_field(std::int64_t run, const char* name) {
  return fmt::format("run.{}.{}", run, name);
}

/// Everything but tensors, curves and the settings of the user.
std::vector<Setting> progress_of(const Checkpoint& c) {
  std::vector<Setting> settings;
  const auto put = [&](std::string name, std::int64_t value) {
    settings.push_back({std::move(name), fmt::format("{}", value)});
  };
  put("version", format_version);
  put("features", c.features);
  put("outputs", c.outputs);
  put("graph_task", c.graph_task ? 1 : 0);
  put("multi_label", c.multi_label ? 1 : 0);
  if (c.decoder) settings.push_back({decoder_setting, nn::to_string(*c.decoder)});
  if (c.variational) put(variational_setting, 1);
  if (c.kinds.given()) settings.push_back({kinds_setting, to_string(c.kinds)});
  put("row_normalised", c.normalisation.kind == Normalise::rows ? 1 : 0);
  if (c.input.graph) {
    for (const auto& [name, trait] : graph_traits) put(name, (*c.input.graph).*trait ? 1 : 0);
  }
  settings.push_back({"metric", to_string(c.metric)});
  put("runs", std::ssize(c.runs));
  for (std::int64_t i = 0; i < std::ssize(c.runs); ++i) {
    const RunState& run = c.runs[static_cast<std::size_t>(i)];
    put(run_field(i, "epochs"), std::ssize(run.curve));
    put(run_field(i, "steps"), run.step);
  }
  return settings;
}

/// Reads what `progress_of` wrote.
void take_progress(const SettingsReader& reader, Checkpoint& c) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  c.features = reader.integer("features", 1, most);
  c.outputs = reader.integer("outputs", 1, most);
  c.graph_task = reader.truth("graph_task");
  c.multi_label = reader.truth("multi_label");
  if (reader.has(decoder_setting)) {
    c.decoder = reader.reading(decoder_setting, nn::parse_link_decoder);
  }
  if (reader.has(variational_setting)) c.variational = reader.truth(variational_setting);
  if (reader.has(kinds_setting)) c.kinds = reader.reading(kinds_setting, parse_kinds);
  if (reader.truth("row_normalised")) c.normalisation.kind = Normalise::rows;
  if (reader.has(graph_traits[0].first)) {
    c.input.graph.emplace();
    for (const auto& [name, trait] : graph_traits) (*c.input.graph).*trait = reader.truth(name);
  }
  c.metric = reader.reading("metric", [](const std::string& text) { return parse_metric(text); });
  // Every run has fields of its own, so that a number that is too large is noticed at once.
  const std::int64_t runs = reader.integer("runs", 0, most);
  for (std::int64_t i = 0; i < runs; ++i) {
    RunState run;
    run.step = reader.integer(run_field(i, "steps"), 0, most);
    reader.integer(run_field(i, "epochs"), 1, most);
    c.runs.push_back(std::move(run));
  }
}

/// Each run's curve has as many epochs as the text says.
void require_epochs(const SettingsReader& reader, const Checkpoint& c) {
  for (std::int64_t i = 0; i < std::ssize(c.runs); ++i) {
    const std::int64_t epochs = std::ssize(c.runs[static_cast<std::size_t>(i)].curve);
    if (reader.integer(run_field(i, "epochs"), 1, std::numeric_limits<std::int64_t>::max()) !=
        epochs) {
      io::damaged(reader.where(), fmt::format("the curve of run {} has {} epochs", i + 1, epochs));
    }
  }
}

/// What has been read of a checkpoint so far: names are kept as their bytes and where each ends.
struct Parts {
  Checkpoint checkpoint;
  struct NameArrays {
    std::string bytes;
    SharedArray<std::int64_t> ends;

    Names names() const { return {ends, std::vector<std::uint8_t>(bytes.begin(), bytes.end())}; }
  };
  NameArrays class_names, feature_names;
};

using Given = std::optional<ExtraArray>;

template <class T>
void take(io::ArrayReader& array, std::vector<T>& to) {
  const SharedArray<T> values = io::read_vector<T>(array);
  to.assign(values.begin(), values.end());
}

/// Only features that were brought to mean 0 and deviation 1 have these sections.
void take_normalisation(io::ArrayReader& array, std::vector<double>& to, Normalisation& whole) {
  const auto numbers =
      io::read_exact<double>(array, "must be numbers of double precision in one dimension");
  to.assign(numbers.begin(), numbers.end());
  if (whole.kind == Normalise::rows) array.reject("contradicts 'row_normalised'");
  whole.kind = Normalise::standard;
}

template <class T>
ExtraArray numbers(const std::vector<T>& values) {
  return io::stored(SharedArray<T>(values));
}

Given only_if(bool is_there, ExtraArray array) {
  return is_there ? Given(std::move(array)) : std::nullopt;
}

bool has_names(const Checkpoint& c) { return !c.input.feature_names.empty(); }
bool is_standard(const Checkpoint& c) { return c.normalisation.kind == Normalise::standard; }

/// A section that every checkpoint may have, read and written.
struct KnownSection {
  std::string_view name;
  void (*take)(Parts&, io::ArrayReader&);
  Given (*give)(const Checkpoint&);
};

/// In the order in which they are written.
const KnownSection known_sections[] = {
    {"settings",
     [](Parts& p, io::ArrayReader& a) {
       const SettingsReader reader(parse_settings(io::read_text(a), a.where()));
       p.checkpoint.settings = reader.settings();
       p.checkpoint.model = model_config_from(reader);
     },
     [](const Checkpoint& c) -> Given { return io::stored_text(to_text(c.settings)); }},
    {"class_values", [](Parts& p, io::ArrayReader& a) { take(a, p.checkpoint.class_values); },
     [](const Checkpoint& c) -> Given { return numbers(c.class_values); }},
    {"class_names", [](Parts& p, io::ArrayReader& a) { p.class_names.bytes = io::read_text(a); },
     [](const Checkpoint& c) {
       return only_if(!c.class_names.empty(), io::stored(c.class_names.bytes()));
     }},
    {"class_name_ends",
     [](Parts& p, io::ArrayReader& a) { p.class_names.ends = io::read_vector<std::int64_t>(a); },
     [](const Checkpoint& c) {
       return only_if(!c.class_names.empty(), io::stored(c.class_names.ends()));
     }},
    {"feature_names",
     [](Parts& p, io::ArrayReader& a) { p.feature_names.bytes = io::read_text(a); },
     [](const Checkpoint& c) {
       return only_if(has_names(c), io::stored(c.input.feature_names.bytes()));
     }},
    {"feature_name_ends",
     [](Parts& p, io::ArrayReader& a) { p.feature_names.ends = io::read_vector<std::int64_t>(a); },
     [](const Checkpoint& c) {
       return only_if(has_names(c), io::stored(c.input.feature_names.ends()));
     }},
    {"category_prefixes",
     [](Parts& p, io::ArrayReader& a) {
       p.checkpoint.input.category_prefixes = io::read_vector<std::int32_t>(a);
     },
     [](const Checkpoint& c) {
       return only_if(has_names(c) && !c.input.category_prefixes.empty(),
                      io::stored(c.input.category_prefixes));
     }},
    {"feature_fills", [](Parts& p, io::ArrayReader& a) { take(a, p.checkpoint.input.means); },
     [](const Checkpoint& c) { return only_if(has_names(c), numbers(c.input.means)); }},
    {"split:train", [](Parts& p, io::ArrayReader& a) { take(a, p.checkpoint.split.train); },
     [](const Checkpoint& c) -> Given { return numbers(c.split.train); }},
    {"split:validation",
     [](Parts& p, io::ArrayReader& a) { take(a, p.checkpoint.split.validation); },
     [](const Checkpoint& c) -> Given { return numbers(c.split.validation); }},
    {"split:test", [](Parts& p, io::ArrayReader& a) { take(a, p.checkpoint.split.test); },
     [](const Checkpoint& c) -> Given { return numbers(c.split.test); }},
    {"feature_means",
     [](Parts& p, io::ArrayReader& a) {
       Normalisation& whole = p.checkpoint.normalisation;
       take_normalisation(a, whole.means, whole);
     },
     [](const Checkpoint& c) { return only_if(is_standard(c), numbers(c.normalisation.means)); }},
    {"feature_factors",
     [](Parts& p, io::ArrayReader& a) {
       Normalisation& whole = p.checkpoint.normalisation;
       take_normalisation(a, whole.factors, whole);
     },
     [](const Checkpoint& c) { return only_if(is_standard(c), numbers(c.normalisation.factors)); }},
    {"plans",
     [](Parts& p, io::ArrayReader& a) {
       p.checkpoint.plans = io::read_text(a);
       if (!p.checkpoint.plans.empty()) ops::PlanStore::parse(p.checkpoint.plans, a.where());
     },
     [](const Checkpoint& c) -> Given { return io::stored_text(c.plans); }},
};

/// Numbers of an epoch. Links have one more.
std::int64_t curve_width(const Checkpoint& c) { return c.decoder ? 6 : 5; }

ExtraArray stored_curve(const std::vector<EpochRecord>& curve, const Checkpoint& c) {
  std::vector<double> values;
  for (const EpochRecord& record : curve) {
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    const Evaluation e =
        record.evaluated ? record.evaluation : Evaluation{none, none, none, none, none};
    values.insert(values.end(), {record.loss, e.train, e.validation, e.test, e.validation_loss});
    if (c.decoder) values.push_back(e.test_other);
  }
  return io::stored(SharedArray<double>(std::move(values)));
}

std::vector<EpochRecord> curve_in(io::ArrayReader& array, std::int64_t run, const Checkpoint& c) {
  const std::int64_t width = curve_width(c);
  if (array.type() != io::type_name<double>() || array.num_elements() % width != 0) {
    array.reject("is not a training curve");
  }
  const SharedArray<std::byte> bytes = array.bytes();
  const auto* const values = reinterpret_cast<const double*>(bytes.data());
  const bool of_numbers = is_of_numbers(c.metric);
  const auto is_share = [of_numbers](double value) {
    return of_numbers ? std::isfinite(value) : value >= 0 && value <= 1;
  };
  std::vector<EpochRecord> curve;
  for (std::int64_t i = 0; i < array.num_elements(); i += width) {
    const Evaluation stored{values[i + 1], values[i + 2], values[i + 3], values[i + 4],
                            c.decoder ? values[i + 5] : 0};
    const bool evaluated = !(std::isnan(stored.train) && std::isnan(stored.validation) &&
                             std::isnan(stored.test) && std::isnan(stored.validation_loss));
    const Evaluation evaluation = evaluated ? stored : Evaluation{};
    if (!std::isfinite(values[i]) || !is_share(evaluation.train) ||
        !is_share(evaluation.validation) || !is_share(evaluation.test) ||
        !is_share(evaluation.test_other)) {
      array.reject(fmt::format("epoch {} is out of range", i / width + 1));
    }
    curve.push_back({run, i / width + 1, values[i], evaluation, evaluated});
  }
  return curve;
}

/// Cuts "12:" off the front of a name: the run that a section belongs to.
std::size_t run_of(std::string_view& rest, const io::ArrayReader& array, const Checkpoint& c) {
  std::uint64_t run = 0;
  const auto [stop, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), run);
  const auto length = static_cast<std::size_t>(stop - rest.data());
  if (problem != std::errc() || run >= c.runs.size()) array.reject("belongs to no run");
  rest.remove_prefix(length);
  if (rest.starts_with(':')) rest.remove_prefix(1);
  return static_cast<std::size_t>(run);
}

void take_run_part(io::ArrayReader& array, Checkpoint& c) {
  const std::string& name = array.name();
  for (const std::string_view prefix : {curve_prefix, model_prefix, moments_prefix}) {
    if (!name.starts_with(prefix)) continue;
    std::string_view rest(name);
    rest.remove_prefix(prefix.size());
    const std::size_t number = run_of(rest, array, c);
    RunState& run = c.runs[number];
    if (prefix == curve_prefix) {
      run.curve = curve_in(array, static_cast<std::int64_t>(number), c);
    } else {
      auto& tensors = prefix == model_prefix ? run.model : run.moments;
      tensors.push_back({std::string(rest), io::read_as_is(array)});
    }
    return;
  }
  throw Error(ErrorCode::unsupported, "is not known to this program", array.where(),
              "use a newer tessera");
}

void require_version(const SettingsReader& reader, const std::string& path) {
  const std::int64_t version = reader.integer("version");
  if (version != format_version) {
    throw Error(ErrorCode::unsupported,
                fmt::format("is a checkpoint of version {}; this program knows version {}", version,
                            format_version),
                path, "use the program that wrote it, or train again");
  }
}

}  // namespace

void save(const Checkpoint& checkpoint, const std::string& path) {
  std::vector<io::NamedArray> arrays;
  const auto add_tensors = [&](const std::string& prefix, const std::vector<StoredTensor>& group) {
    for (const StoredTensor& tensor : group)
      arrays.emplace_back(prefix + tensor.path, tensor.array);
  };
  arrays.emplace_back(io::checkpoint_section, io::stored_text(to_text(progress_of(checkpoint))));
  for (const KnownSection& section : known_sections) {
    if (Given array = section.give(checkpoint)) {
      arrays.emplace_back(std::string(section.name), *std::move(array));
    }
  }
  add_number_sections(checkpoint, arrays);
  add_edge_sections(checkpoint, arrays);
  for (std::size_t i = 0; i < checkpoint.runs.size(); ++i) {
    const RunState& run = checkpoint.runs[i];
    arrays.emplace_back(fmt::format("{}{}", curve_prefix, i), stored_curve(run.curve, checkpoint));
    add_tensors(fmt::format("{}{}:", model_prefix, i), run.model);
    add_tensors(fmt::format("{}{}:", moments_prefix, i), run.moments);
  }
  add_tensors(std::string(weights_prefix), checkpoint.weights);
  add_tensors(std::string(ranges_prefix), checkpoint.ranges);
  if (checkpoint.lost) {
    arrays.emplace_back(lost_section,
                        io::stored(SharedArray<double>(std::vector<double>{*checkpoint.lost})));
  }
  io::write_sections(path, arrays);
}

bool holds_checkpoint(const std::string& path) {
  return io::holds_section(path, io::checkpoint_section);
}

Checkpoint load_checkpoint(const std::string& path) {
  const io::InputFile file(path);
  Parts parts;
  Checkpoint& checkpoint = parts.checkpoint;
  std::optional<SettingsReader> progress;
  NumberSections numbers;
  EdgeSections edges;
  for (const io::Section& section : io::read_container_header(file)) {
    io::SectionReader array(file, section);
    const auto* const known = std::ranges::find(known_sections, section.name, &KnownSection::name);
    if (section.name == io::checkpoint_section) {
      progress = parse_settings(io::read_text(array), array.where());
      require_version(*progress, path);
      take_progress(*progress, checkpoint);
    } else if (!progress) {
      break;
    } else if (known != std::end(known_sections)) {
      known->take(parts, array);
    } else if (section.name.starts_with(weights_prefix)) {
      checkpoint.weights.push_back(
          {section.name.substr(weights_prefix.size()), io::read_as_is(array)});
    } else if (section.name.starts_with(ranges_prefix)) {
      checkpoint.ranges.push_back(
          {section.name.substr(ranges_prefix.size()), io::read_as_is(array)});
    } else if (section.name == lost_section) {
      if (array.type() != io::type_name<double>() || array.num_elements() != 1) {
        array.reject("must be one number of double precision");
      }
      array.copy_to(reinterpret_cast<std::byte*>(&checkpoint.lost.emplace()));
    } else if (!numbers.take(array) && !edges.take(array)) {
      take_run_part(array, checkpoint);
    }
  }
  if (!progress) {
    throw Error(ErrorCode::bad_data, "is a data set, not a checkpoint", path,
                "give the file that training wrote");
  }
  require_epochs(*progress, checkpoint);
  io::naming_file(path, [&] {
    checkpoint.class_names = parts.class_names.names();
    checkpoint.input.feature_names = parts.feature_names.names();
  });
  numbers.give(path, checkpoint);
  edges.give(path, checkpoint);
  validate(checkpoint, path);
  return std::move(parts.checkpoint);
}

std::int64_t embedding_width(const Checkpoint& checkpoint) {
  return checkpoint.variational ? checkpoint.outputs / 2 : checkpoint.outputs;
}

BestEpoch best_epoch(const Checkpoint& checkpoint) {
  BestEpoch best;
  const SettingsReader settings(checkpoint.settings, "checkpoint");
  const StopBy by = settings.reading("training.stop_by", parse_stop_by);
  for (std::int64_t i = 0; i < std::ssize(checkpoint.runs); ++i) {
    const RunPosition run = position_after(checkpoint.runs[static_cast<std::size_t>(i)].curve,
                                           RunPosition(by, 0, checkpoint.metric));
    if (run.best_epoch == 0 ||
        (best.run >= 0 && !better(run.best, best.evaluation, by, checkpoint.metric)))
      continue;
    best = {i, run.best_epoch, run.best};
  }
  return best;
}

}  // namespace tessera::train
