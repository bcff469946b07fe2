// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/calibration.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "core/device_traits.hpp"
#include "io/file.hpp"
#include "io/text.hpp"
#include "ops/plan/calibration.hpp"
#include "ops/plan/tab_fields.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/core/version.hpp"
#include "tessera/io/writing.hpp"

namespace tessera::ops {
namespace {

constexpr std::string_view title = "tessera calibration";
constexpr int format_number = 2;

constexpr const char* again_or_remove = "make it again with 'tessera calibrate', or remove it";

[[noreturn]] void reject(const std::string& problem, const std::string& where) {
  throw Error(ErrorCode::bad_data, problem, where, again_or_remove);
}

double number_in(const std::string& text, const std::string& where) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc() || stop != end || !std::isfinite(value)) {
    reject(fmt::format("'{}' is no number", text.substr(0, 40)), where);
  }
  return value;
}

std::int64_t count_in(const std::string& text, const std::string& where) {
  const double value = number_in(text, where);
  if (value < 0 || value > 1e15 || value != std::floor(value)) {
    reject(fmt::format("'{}' is no count", text.substr(0, 40)), where);
  }
  return static_cast<std::int64_t>(value);
}

ChoiceQuality quality_in(const std::vector<std::string>& fields, const std::string& where) {
  return {number_in(fields[1], where), number_in(fields[2], where), count_in(fields[3], where),
          count_in(fields[4], where), number_in(fields[5], where)};
}

KernelCorrection correction_in(const std::vector<std::string>& fields, const std::string& where) {
  KernelCorrection correction;
  correction.kernel = fields[1];
  correction.element_bytes = static_cast<int>(count_in(fields[2], where));
  for (std::size_t i = 0; i < correction.coefficients.size(); ++i) {
    correction.coefficients[i] = number_in(fields[3 + i], where);
  }
  correction.cases = count_in(fields[7], where);
  correction.error_before = number_in(fields[8], where);
  correction.error_after = number_in(fields[9], where);
  return correction;
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

thread_local int built_in_scopes = 0;

std::string named_file() { return variable("TESSERA_CALIBRATION"); }

/// In the names of files.
std::string plain_name(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

}  // namespace

std::string calibrated_device(Device device) {
  if (device.kind == DeviceKind::cuda) return device_traits(device).name;
  return fmt::format("CPU, {} threads", num_threads());
}

double KernelCorrection::factor(const CostShape& shape, double predicted_us) const {
  const auto terms = cost_terms(shape, predicted_us);
  double sum = 0;
  for (std::size_t i = 0; i < terms.size(); ++i) sum += coefficients[i] * terms[i];
  return std::exp2(std::clamp(sum, -2.0, 2.0));
}

const KernelCorrection* Calibration::find(const std::string& kernel, int element_bytes) const {
  for (const KernelCorrection& correction : kernels) {
    if (correction.element_bytes == element_bytes && correction.kernel == kernel) {
      return &correction;
    }
  }
  return nullptr;
}

Calibration Calibration::parse(std::string_view text, const std::string& where) {
  const std::vector<std::string> head = fields_of(io::take_line(text));
  if (head.size() != 2 || head[0] != title) reject("not a calibration", where);
  if (head[1] != std::to_string(format_number)) {
    throw Error(ErrorCode::unsupported,
                fmt::format("a calibration of format {}, this version reads format {}",
                            head[1].substr(0, 20), format_number),
                where, again_or_remove);
  }
  Calibration read;
  bool ended = false;
  for (std::int64_t number = 2; !text.empty(); ++number) {
    const std::string_view line = io::take_line(text);
    if (line.empty()) continue;
    const std::string place = fmt::format("{}, line {}", where, number);
    const std::vector<std::string> fields = fields_of(line);
    const auto is = [&](std::string_view name, std::size_t size) {
      return fields[0] == name && fields.size() == size;
    };
    if (ended) reject("something after its end", place);
    if (is("device", 2)) {
      read.device = fields[1];
    } else if (is("made", 4)) {
      read.date = fields[1];
      read.commit = fields[2];
      read.version = fields[3];
    } else if (is("drawn", 4)) {
      read.windows = count_in(fields[1], place);
      read.batches = count_in(fields[2], place);
      read.held_out = count_in(fields[3], place);
    } else if (is("built_in", 6)) {
      read.built_in = quality_in(fields, place);
    } else if (is("fitted", 6)) {
      read.fitted = quality_in(fields, place);
    } else if (is("majority", 6)) {
      read.majority = quality_in(fields, place);
    } else if (is("kernel", 10)) {
      read.kernels.push_back(correction_in(fields, place));
    } else if (is("kernels", 2)) {
      ended = count_in(fields[1], place) == std::ssize(read.kernels);
      if (!ended) reject("another number of kernels than it says", place);
    } else {
      reject("a line that has no meaning", place);
    }
  }
  if (!ended) reject("it breaks off", where);
  if (read.device.empty()) reject("it does not say of which device it is", where);
  return read;
}

Calibration Calibration::load(const std::string& path) {
  const Buffer<std::byte> bytes = io::InputFile(path).read_all();
  return parse(io::text_of(bytes), path);
}

std::string Calibration::to_text() const {
  const auto quality = [](const char* name, const ChoiceQuality& of) {
    return fmt::format("{}\t{:.6g}\t{:.6g}\t{}\t{}\t{:.6g}\n", name, of.mean_regret,
                       of.worst_regret, of.cases, of.clear, of.right);
  };
  std::string text = fmt::format("{}\t{}\ndevice\t{}\nmade\t{}\t{}\t{}\ndrawn\t{}\t{}\t{}\n", title,
                                 format_number, field(device), field(date), field(commit),
                                 field(version), windows, batches, held_out);
  text += quality("built_in", built_in) + quality("fitted", fitted) + quality("majority", majority);
  for (const KernelCorrection& one : kernels) {
    const auto& c = one.coefficients;
    text += fmt::format("kernel\t{}\t{}\t{:.6g}\t{:.6g}\t{:.6g}\t{:.6g}\t{}\t{:.4g}\t{:.4g}\n",
                        field(one.kernel), one.element_bytes, c[0], c[1], c[2], c[3], one.cases,
                        one.error_before, one.error_after);
  }
  text += fmt::format("kernels\t{}\n", kernels.size());  // what a file that is cut off lacks
  return text;
}

void Calibration::save(const std::string& path) const {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code ignored;  // writing says what is wrong
  if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
  io::write_text_file(path, to_text());
}

std::string calibration_path(Device device) {
  const std::string given = named_file();
  if (given == "off") return {};
  if (!given.empty()) return given;
  std::filesystem::path folder = variable("XDG_DATA_HOME");
  if (folder.empty()) {
    const std::string home = variable("HOME");
    if (home.empty()) return {};
    folder = std::filesystem::path(home) / ".local" / "share";
  }
  return (folder / "tessera" / ("calibration_" + plain_name(calibrated_device(device)) + ".tsv"))
      .string();
}

FoundCalibration read_calibration(const std::string& path, const std::string& device) {
  std::error_code unreadable;
  if (!std::filesystem::is_regular_file(path, unreadable)) {
    return {nullptr, named_file().empty() ? "" : path + " is no file"};
  }
  std::shared_ptr<const Calibration> read;
  try {
    read = std::make_shared<const Calibration>(Calibration::load(path));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
    return {nullptr, path + " was made by another version"};
  }
  if (read->device != device) return {nullptr, fmt::format("{} is of {}", path, read->device)};
  if (read->version != version()) {
    return {nullptr, fmt::format("{} was made by version {}", path, read->version)};
  }
  return {read, {}};
}

FoundCalibration find_calibration(Device device) {
  static std::mutex mutex;
  static std::map<std::pair<DeviceKind, int>, FoundCalibration> known;
  const std::scoped_lock lock(mutex);
  const auto key = std::make_pair(device.kind, device.index);
  if (const auto found = known.find(key); found != known.end()) return found->second;
  const std::string path = calibration_path(device);
  const FoundCalibration found =
      path.empty() ? FoundCalibration{} : read_calibration(path, calibrated_device(device));
  known.emplace(key, found);
  return found;
}

BuiltInCosts::BuiltInCosts() { ++built_in_scopes; }
BuiltInCosts::~BuiltInCosts() { --built_in_scopes; }
bool BuiltInCosts::active() noexcept { return built_in_scopes > 0; }

double corrected_us(const Calibration* calibration, const std::string& kernel,
                    const CostShape& shape, double predicted_us) {
  if (calibration == nullptr) return predicted_us;
  const KernelCorrection* const found = calibration->find(kernel, shape.element_bytes);
  return found == nullptr ? predicted_us : predicted_us * found->factor(shape, predicted_us);
}

std::string note_on_unused_calibration(Device device) {
  if (BuiltInCosts::active()) return {};
  const FoundCalibration found = find_calibration(device);
  return found.why_not.empty() ? "" : "no calibration: " + found.why_not;
}

std::string note_on_calibration(Device device, const std::string& kernel) {
  const auto calibration = calibration_for(device);
  if (calibration == nullptr) return {};
  if (calibration->find(kernel, 4) == nullptr && calibration->find(kernel, 2) == nullptr &&
      calibration->find(kernel, 8) == nullptr) {
    return {};
  }
  return fmt::format("costs calibrated on {} ({}; choices lose {:.1f} % in the mean)",
                     calibration->device, calibration->date,
                     100 * (calibration->fitted.mean_regret - 1));
}

std::shared_ptr<const Calibration> calibration_for(Device device) {
  return BuiltInCosts::active() ? nullptr : find_calibration(device).used;
}

}  // namespace tessera::ops
