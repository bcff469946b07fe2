// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "files.hpp"
#include "json.hpp"
#include "numbers.hpp"
#include "options.hpp"
#include "table.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/measure.hpp"
#include "tessera/core/printable.hpp"
#include "tessera/ops/calibration.hpp"
#include "verb.hpp"

namespace tessera::app {
namespace {

struct CalibrateArguments {
  std::string device = "cpu";
  std::int64_t windows = 10000;
  std::vector<std::string> ops;
  std::vector<std::int64_t> features;
  std::vector<std::string> precisions;
  bool quick = false;
  std::string commit;
  std::string output;
};

std::string commit_of(const CalibrateArguments& arguments) {
  if (!arguments.commit.empty()) return arguments.commit;
  const char* const commit = std::getenv("TESSERA_COMMIT");
  return commit == nullptr ? "" : commit;
}

ops::CalibrationOptions options_of(const Session& session, const CalibrateArguments& arguments) {
  ops::CalibrationOptions options;
  options.device = parse_device(arguments.device);
  options.windows = arguments.windows;
  options.quick = arguments.quick;
  if (!arguments.ops.empty()) options.ops = arguments.ops;
  if (!arguments.features.empty()) options.features = arguments.features;
  if (!arguments.precisions.empty()) {
    options.precisions.clear();
    for (const std::string& name : arguments.precisions) {
      options.precisions.push_back(parse_precision(name));
    }
  }
  options.seed = session.seed();
  options.date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
  options.commit = commit_of(arguments);
  options.progress = session.progress();
  return options;
}

/// The file that is written: the one asked for, or where plans look.
std::string target_of(const CalibrateArguments& arguments) {
  if (!arguments.output.empty()) return arguments.output;
  const std::string path = ops::calibration_path(parse_device(arguments.device));
  if (!path.empty()) return path;
  throw Error(
      ErrorCode::invalid_argument,
      "there is no file to write to: TESSERA_CALIBRATION is off, or there is no user's data "
      "folder",
      "-o", "name a file with -o, and set TESSERA_CALIBRATION to it");
}

/// Before the work rather than after it: where plans look, a folder may have to be made first.
void check_default_place(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code ignored;  // the check says what is wrong
  if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
  check_files({{"-o", path, FileRole::state}}, false);
  std::ifstream file(path);
  std::string head;
  if (!std::getline(file, head) || head.starts_with("tessera calibration")) return;
  throw Error(ErrorCode::invalid_argument, "already exists, and is no calibration", path,
              "remove it, or name another file with -o");
}

std::string right_text(const ops::ChoiceQuality& quality) {
  if (quality.clear == 0) return "";
  const double right = quality.right * static_cast<double>(quality.clear);
  return fmt::format("{:.0f} of {}", right, quality.clear);
}

std::string to_text(const ops::Calibration& found, const std::string& path, double seconds) {
  Table kernels("lrrrr");
  kernels.add({"kernel", "bytes", "cases", "off by, before", "after"});
  const auto off = [](double error) {
    return fmt::format("{:.0f} %", 100 * (std::exp2(error) - 1));
  };
  for (const ops::KernelCorrection& kernel : found.kernels) {
    kernels.add({kernel.kernel, std::to_string(kernel.element_bytes), std::to_string(kernel.cases),
                 off(kernel.error_before), off(kernel.error_after)});
  }
  Table choices("lrrr");
  choices.add({"choices on what was held out", "mean loss", "worst", "right where clear"});
  const auto add = [&](const char* name, const ops::ChoiceQuality& quality) {
    choices.add({name, fmt::format("{:.1f} %", 100 * (quality.mean_regret - 1)),
                 fmt::format("{:.1f} %", 100 * (quality.worst_regret - 1)), right_text(quality)});
  };
  add("built-in costs", found.built_in);
  add("calibrated costs", found.fitted);
  add("most frequent winner", found.majority);
  std::string text = fmt::format("{}: {} batches of {} windows, {} held out, {}\n", found.device,
                                 found.batches + found.held_out, grouped(found.windows),
                                 found.held_out, human_seconds(seconds));
  if (!found.kernels.empty()) text += kernels.text();
  text += choices.text();
  if (found.kernels.empty()) text += "the built-in costs choose as well: nothing is corrected\n";
  return text + "written to " + printable(path) + "\n";
}

Json to_json(const ops::Calibration& found, const std::string& path, double seconds) {
  const auto quality = [](const ops::ChoiceQuality& of) {
    return Json{{"mean_regret", of.mean_regret},
                {"worst_regret", of.worst_regret},
                {"cases", of.cases},
                {"clear", of.clear},
                {"right", of.clear == 0 ? Json() : Json(of.right)}};
  };
  std::vector<Json> kernels;
  for (const ops::KernelCorrection& kernel : found.kernels) {
    kernels.push_back(Json{{"kernel", kernel.kernel},
                           {"element_bytes", kernel.element_bytes},
                           {"cases", kernel.cases},
                           {"error_before", kernel.error_before},
                           {"error_after", kernel.error_after}});
  }
  return Json{{"verb", "calibrate"},
              {"device", found.device},
              {"date", found.date},
              {"commit", found.commit},
              {"version", found.version},
              {"windows", found.windows},
              {"batches", found.batches},
              {"held_out", found.held_out},
              {"built_in", quality(found.built_in)},
              {"fitted", quality(found.fitted)},
              {"majority", quality(found.majority)},
              {"kernels", kernels},
              {"calibrate_seconds", seconds},
              {"output", path}};
}

ExitCode run_calibrate(Session& session, const CalibrateArguments& arguments) {
  const std::string path = target_of(arguments);
  if (arguments.output.empty()) check_default_place(path);
  const Stopwatch watch;
  const ops::Calibration found = ops::calibrate(options_of(session, arguments));
  const double seconds = watch.seconds();
  session.stage("writing");
  found.save(path);
  session.deliver(to_text(found, path, seconds), to_json(found, path, seconds));
  return ExitCode::ok;
}

Action setup(Arguments& app) {
  auto arguments = std::make_shared<CalibrateArguments>();
  app.add_option("--device", arguments->device, "cpu, cuda or cuda:N (default cpu)")
      ->type_name("DEVICE")
      ->check(offers({"cpu", "cuda"}));
  app.add_option("--op", arguments->ops, "spmm, sddmm or attention, or several (default all)")
      ->type_name("NAMES")
      ->check(offers({"spmm", "sddmm", "attention"}))
      ->delimiter(',');
  app.add_option("--windows", arguments->windows, "windows of 16 rows in each batch")
      ->type_name("N")
      ->check(between(std::int64_t{1}, std::int64_t{1} << 24))
      ->capture_default_str();
  app.add_option("--features", arguments->features, "widths of the features (default 32,128)")
      ->type_name("LIST")
      ->delimiter(',')
      ->check(between(std::int64_t{1}, std::int64_t{1} << 20));
  app.add_option("--precision", arguments->precisions,
                 "fp32, fp64, bf16 or, on a GPU, fp16, or several (default fp32,bf16)")
      ->type_name("NAMES")
      ->check(offers({"fp32", "fp64", "bf16", "fp16"}))
      ->delimiter(',');
  app.add_flag("--quick", arguments->quick, "fewer kinds of windows");
  app.add_option("--commit", arguments->commit,
                 "name of the version to note (default: TESSERA_COMMIT in the environment)")
      ->type_name("ID");
  app.add_option("-o,--output", arguments->output,
                 "file to write (default: where plans look, in the user's data folder)")
      ->type_name("FILE");
  return {[arguments](Session& session) { return run_calibrate(session, *arguments); },
          [arguments] {
            return std::vector<FileUse>{{"-o", arguments->output, FileRole::output}};
          }};
}

}  // namespace

const Verb calibrate_verb{"calibrate", "fit what plans expect of kernels to this machine",
                          "[options]",
                          "tessera calibrate --device cuda\n"
                          "tessera calibrate --quick --windows 2000 -o costs.tsv",
                          setup};

}  // namespace tessera::app
