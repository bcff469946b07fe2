// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/checkpoint.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "io/sections.hpp"
#include "train/settings.hpp"

namespace tessera::train {
namespace {

constexpr std::int64_t format_version = 1;

/// Which of the checkpoint's lists a section belongs to, by the beginning of its name.
struct TensorGroup {
  std::string_view prefix;
  std::vector<StoredTensor> Checkpoint::*tensors;
};

constexpr TensorGroup tensor_groups[] = {{"current:", &Checkpoint::current},
                                         {"moments:", &Checkpoint::moments},
                                         {"weights:", &Checkpoint::weights}};

void put(std::vector<Setting>& settings, std::string name, std::int64_t value) {
  settings.push_back({std::move(name), fmt::format("{}", value)});
}

void put(std::vector<Setting>& settings, const std::string& name, const Evaluation& value) {
  settings.push_back({name + ".train", exact_text(value.train)});
  settings.push_back({name + ".validation", exact_text(value.validation)});
  settings.push_back({name + ".test", exact_text(value.test)});
  settings.push_back({name + ".validation_loss", exact_text(value.validation_loss)});
}

/// Everything but tensors, curve and the settings of the user.
std::vector<Setting> progress_of(const Checkpoint& c) {
  std::vector<Setting> s;
  put(s, "version", format_version);
  put(s, "features", c.features);
  put(s, "outputs", c.outputs);
  put(s, "graph_task", c.graph_task ? 1 : 0);
  put(s, "multi_label", c.multi_label ? 1 : 0);
  put(s, "row_normalised", c.row_normalised ? 1 : 0);
  s.push_back({"metric", to_string(c.metric)});
  put(s, "run", c.position.run);
  put(s, "epoch", c.position.epoch);
  put(s, "step", c.position.step);
  put(s, "run_best_epoch", c.position.best_epoch);
  put(s, "run_best", c.position.best);
  s.push_back({"highest_metric", exact_text(c.position.highest_metric)});
  s.push_back({"lowest_loss", exact_text(c.position.lowest_loss)});
  put(s, "waited", c.position.waited);
  put(s, "best_run", c.best_run);
  put(s, "best_epoch", c.best_epoch);
  put(s, "best", c.best);
  put(s, "finished", std::ssize(c.finished));
  for (std::size_t i = 0; i < c.finished.size(); ++i) {
    const RunReport& run = c.finished[i];
    const std::string name = fmt::format("finished.{}", i);
    s.push_back({name + ".seed", fmt::format("{}", run.seed)});
    put(s, name + ".epochs", run.epochs);
    put(s, name + ".best_epoch", run.best_epoch);
    put(s, name + ".stopped_early", run.stopped_early ? 1 : 0);
    put(s, name, run.best);
  }
  return s;
}

/// Reads what `progress_of` wrote.
class ProgressReader {
 public:
  ProgressReader(std::vector<Setting> settings, std::string where)
      : settings_(std::move(settings)), where_(std::move(where)) {}

  std::int64_t integer(const std::string& name) const {
    return integer_setting(settings_, name, where_);
  }
  bool truth(const std::string& name) const { return integer(name) != 0; }
  double real(const std::string& name) const { return real_setting(settings_, name, where_); }
  const std::string& text(const std::string& name) const {
    return setting(settings_, name, where_);
  }
  Evaluation evaluation(const std::string& name) const {
    return {real(name + ".train"), real(name + ".validation"), real(name + ".test"),
            real(name + ".validation_loss")};
  }
  RunReport finished(std::int64_t i) const {
    const std::string name = fmt::format("finished.{}", i);
    RunReport run;
    run.seed = std::stoull(text(name + ".seed"));
    run.epochs = integer(name + ".epochs");
    run.best_epoch = integer(name + ".best_epoch");
    run.stopped_early = truth(name + ".stopped_early");
    run.best = evaluation(name);
    return run;
  }

 private:
  std::vector<Setting> settings_;
  std::string where_;
};

void take_progress(const ProgressReader& reader, Checkpoint& c) {
  c.features = reader.integer("features");
  c.outputs = reader.integer("outputs");
  c.graph_task = reader.truth("graph_task");
  c.multi_label = reader.truth("multi_label");
  c.row_normalised = reader.truth("row_normalised");
  c.metric = parse_metric(reader.text("metric"));
  c.position.run = reader.integer("run");
  c.position.epoch = reader.integer("epoch");
  c.position.step = reader.integer("step");
  c.position.best_epoch = reader.integer("run_best_epoch");
  c.position.best = reader.evaluation("run_best");
  c.position.highest_metric = reader.real("highest_metric");
  c.position.lowest_loss = reader.real("lowest_loss");
  c.position.waited = reader.integer("waited");
  c.best_run = reader.integer("best_run");
  c.best_epoch = reader.integer("best_epoch");
  c.best = reader.evaluation("best");
  const std::int64_t finished = reader.integer("finished");
  for (std::int64_t i = 0; i < finished; ++i) c.finished.push_back(reader.finished(i));
}

constexpr std::int64_t curve_width = 5;

ExtraArray stored_curve(const std::vector<EpochRecord>& curve) {
  std::vector<double> values;
  for (const EpochRecord& record : curve) {
    const Evaluation& e = record.evaluation;
    values.insert(values.end(), {record.loss, e.train, e.validation, e.test, e.validation_loss});
  }
  return io::stored(SharedArray<double>(std::move(values)));
}

void take_curve(io::ArrayReader& array, Checkpoint& c) {
  const SharedArray<std::byte> bytes = array.bytes();
  if (array.type() != io::type_name<double>() || array.num_elements() % curve_width != 0) {
    array.reject("is not a training curve");
  }
  const auto* const values = reinterpret_cast<const double*>(bytes.data());
  for (std::int64_t i = 0; i < array.num_elements(); i += curve_width) {
    const Evaluation evaluation{values[i + 1], values[i + 2], values[i + 3], values[i + 4]};
    c.curve.push_back({0, i / curve_width + 1, values[i], evaluation});
  }
}

void take_tensor(io::ArrayReader& array, Checkpoint& c) {
  for (const TensorGroup& group : tensor_groups) {
    if (!array.name().starts_with(group.prefix)) continue;
    (c.*group.tensors).push_back({array.name().substr(group.prefix.size()), io::read_as_is(array)});
    return;
  }
  throw Error(ErrorCode::unsupported, "is not known to this program", array.where(),
              "use a newer tessera");
}

void require_version(const ProgressReader& reader, const std::string& path) {
  const std::int64_t version = reader.integer("version");
  if (version != format_version) {
    throw Error(ErrorCode::unsupported,
                fmt::format("is a checkpoint of version {}; this program knows version {}", version,
                            format_version),
                path, "use the program that wrote it, or train again");
  }
}

std::string type_of(const nn::Tensor& tensor) {
  return tensor.precision() == Precision::fp64 ? "<f8" : "<f4";
}

}  // namespace

void save(const Checkpoint& checkpoint, const std::string& path) {
  std::vector<io::NamedArray> arrays;
  arrays.emplace_back(io::checkpoint_section, io::stored_text(to_text(progress_of(checkpoint))));
  arrays.emplace_back("settings", io::stored_text(to_text(checkpoint.settings)));
  arrays.emplace_back("class_values",
                      io::stored(SharedArray<std::int64_t>(checkpoint.class_values)));
  arrays.emplace_back("curve", stored_curve(checkpoint.curve));
  for (const TensorGroup& group : tensor_groups) {
    for (const StoredTensor& tensor : checkpoint.*group.tensors) {
      arrays.emplace_back(std::string(group.prefix) + tensor.path, tensor.array);
    }
  }
  io::write_sections(path, arrays);
}

Checkpoint load_checkpoint(const std::string& path) {
  const io::InputFile file(path);
  Checkpoint checkpoint;
  bool is_checkpoint = false;
  for (const io::Section& section : io::read_container_header(file)) {
    io::SectionReader array(file, section);
    if (section.name == io::checkpoint_section) {
      const ProgressReader reader(parse_settings(io::read_text(array), array.where()),
                                  array.where());
      require_version(reader, path);
      take_progress(reader, checkpoint);
      is_checkpoint = true;
    } else if (!is_checkpoint) {
      break;
    } else if (section.name == "settings") {
      checkpoint.settings = parse_settings(io::read_text(array), array.where());
      checkpoint.model = model_config_from(checkpoint.settings, array.where());
    } else if (section.name == "class_values") {
      const auto values = io::read_vector<std::int64_t>(array);
      checkpoint.class_values.assign(values.begin(), values.end());
    } else if (section.name == "curve") {
      take_curve(array, checkpoint);
    } else {
      take_tensor(array, checkpoint);
    }
  }
  if (!is_checkpoint) {
    throw Error(ErrorCode::bad_data, "is a data set, not a checkpoint", path,
                "give the file that training wrote");
  }
  return checkpoint;
}

std::vector<StoredTensor> store(const std::vector<nn::NamedTensor>& tensors) {
  std::vector<StoredTensor> stored;
  for (const auto& [path, tensor] : tensors) {
    Buffer<std::byte> bytes(tensor->num_bytes());
    copy_bytes(bytes.data(), tensor->bytes(), static_cast<std::size_t>(bytes.size()),
               tensor->device());
    stored.push_back(
        {path, {type_of(*tensor), {tensor->rows(), tensor->cols()}, std::move(bytes)}});
  }
  return stored;
}

void restore(const std::vector<StoredTensor>& stored, const std::vector<nn::NamedTensor>& tensors,
             const std::string& where) {
  const auto mismatch = [&](const std::string& problem) {
    throw Error(ErrorCode::invalid_argument, "the checkpoint is of another model: " + problem,
                where, "use it with the model and data it was made with");
  };
  if (stored.size() != tensors.size()) {
    mismatch(fmt::format("{} tensors instead of {}", stored.size(), tensors.size()));
  }
  for (const auto& [path, tensor] : tensors) {
    const auto found = std::find_if(stored.begin(), stored.end(),
                                    [&](const StoredTensor& s) { return s.path == path; });
    if (found == stored.end()) mismatch("it has no '" + path + "'");
    const ExtraArray& array = found->array;
    const std::vector<std::int64_t> shape{tensor->rows(), tensor->cols()};
    if (array.shape != shape || array.type != type_of(*tensor)) {
      mismatch("'" + path + "' has another shape or precision");
    }
    copy_bytes(tensor->bytes(), array.bytes.data(), static_cast<std::size_t>(array.bytes.size()),
               tensor->device());
  }
}

}  // namespace tessera::train
