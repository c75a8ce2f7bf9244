#include "cli/ckpt/output_options.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <memory>
#include <system_error>

#include "base/atomic_folder.h"
#include "report/checkpoint/values.h"
#include "stream/codec/built_in.h"

namespace postflight {
namespace {

// "5GB", "500MB", "1GiB", "4096".
Result<std::uint64_t> parse_size(const std::string& text) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  constexpr std::array kUnits = {Unit{"", 1},
                                 Unit{"B", 1},
                                 Unit{"KB", 1e3},
                                 Unit{"MB", 1e6},
                                 Unit{"GB", 1e9},
                                 Unit{"TB", 1e12},
                                 Unit{"KIB", 1024},
                                 Unit{"MIB", 1048576.},
                                 Unit{"GIB", 1073741824.},
                                 Unit{"TIB", 1099511627776.}};
  double number = 0;
  const auto read =
      std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit(read.ptr, text.data() + text.size());
  std::ranges::transform(unit, unit.begin(), [](unsigned char c) {
    return static_cast<char>(std::toupper(c));
  });
  const auto found = std::ranges::find(kUnits, unit, &Unit::name);
  constexpr double kMost = 1e18;
  if (read.ec != std::errc() || found == kUnits.end() ||
      !(number * found->bytes >= 1) || number * found->bytes > kMost)
    return fail(ErrorKind::kUsage,
                "'{}' is not a size; write it like 5GB or 500MB", text);
  return static_cast<std::uint64_t>(number * found->bytes);
}

Result<Dtype> parse_dtype(std::string_view name) {
  struct Short {
    std::string_view name;
    std::string_view dtype;
  };
  constexpr std::array kShort = {Short{"bf16", "bfloat16"},
                                 Short{"f16", "float16"},
                                 Short{"fp16", "float16"},
                                 Short{"half", "float16"},
                                 Short{"f32", "float32"},
                                 Short{"fp32", "float32"},
                                 Short{"float", "float32"},
                                 Short{"f64", "float64"},
                                 Short{"fp8_e4m3", "float8_e4m3fn"},
                                 Short{"fp8_e5m2", "float8_e5m2"}};
  const auto found = std::ranges::find(kShort, name, &Short::name);
  const std::string_view full = found == kShort.end() ? name : found->dtype;
  for (const std::string_view dtype :
       {"float64", "float32", "float16", "bfloat16", "float8_e4m3fn",
        "float8_e5m2"})
    if (dtype == full)
      return dtype_named(dtype);
  return fail(ErrorKind::kUsage,
              "'{}' is not a dtype to convert to; give float64, float32, "
              "float16, bfloat16, float8_e4m3fn or float8_e5m2",
              name);
}

Result<> write_sidecar(const Checkpoint& checkpoint, const OutputPlan& plan,
                       const std::string& file, Existing existing) {
  std::vector<std::uint32_t> leaves = plan.values;
  for (const WrittenTensor& tensor : plan.tensors)
    leaves.push_back(tensor.output.node);
  const std::string text = json_text(
      [&](JsonWriter& json) { write_values_tree(checkpoint, leaves, json); });
  AtomicFile out = TRY(AtomicFile::create(file, existing));
  TRY(out.write(as_bytes(text)));
  TRY(out.write(as_bytes(std::string_view("\n"))));
  return out.commit();
}

Result<> check_target(const Checkpoint& checkpoint,
                      const OutputCommandOptions& options, OutputFormat format,
                      Existing existing) {
  if (is_part_of(checkpoint, options.output) ||
      std::filesystem::path(options.output).lexically_normal() ==
          checkpoint.path().lexically_normal())
    return fail(ErrorKind::kUsage,
                "{} belongs to the checkpoint that is read; name another place",
                options.output);
  return is_folder(format) ? AtomicFolder::check(options.output, existing)
                           : AtomicFile::check(options.output, existing);
}

}  // namespace

void add_output_options(CommandArguments& arguments,
                        OutputCommandOptions& options) {
  arguments.positional("OUT", options.output, "The file or folder to write")
      .required();
  arguments
      .option("--to", options.to, "torch|safetensors|hf|dcp",
              "The format (default: by the extension of OUT)")
      .one_of({"torch", "safetensors", "hf", "dcp"});
  add_key_options(arguments, options);
  arguments.option("--rename", options.renamings, "RE2=TEXT",
                   "Replace matches in keys; \\1 is a group. May be repeated");
  arguments.option("--dtype", options.dtype, "DTYPE",
                   "Convert floating-point tensors: bf16, f16, f32, ...");
  arguments.option("--shard-size", options.shard_size, "SIZE",
                   "The most bytes of tensors in a file of --to hf (5GB)");
  arguments.option("--with", options.transforms, "TRANSFORMS",
                   "Stream transforms for the items of --to dcp");
  arguments.option("--sidecar", options.sidecar, "FILE",
                   "Write values that OUT cannot hold to FILE, as JSON");
  arguments.flag("--drop-values", options.drop_values,
                 "Write the tensors only");
  arguments.flag("--no-verify", options.no_verify,
                 "Do not read back and compare what was written");
  arguments.flag("--no-crc", options.no_crc,
                 "Do not compare records with their CRC");
  arguments.flag("--dry-run", options.dry_run,
                 "Show what would be written, and write nothing");
  arguments.force();
  add_threads_option(arguments);
}

Result<OutputRequest> output_request(const OutputCommandOptions& options,
                                     std::optional<OutputFormat> format) {
  if (!options.to.empty())
    format = output_format_named(options.to);
  else if (const auto by_name = output_format_of(options.output))
    format = by_name;
  if (!format)
    return fail(ErrorKind::kUsage,
                "the name {} does not say its format; give --to torch, "
                "safetensors, hf or dcp",
                options.output);
  OutputRequest request{.format = *format};
  request.filter = TRY(options.filter());
  for (const std::string& text : options.renamings) {
    const std::size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0)
      return fail(ErrorKind::kUsage,
                  "'{}' is not a renaming; write it like '^module\\.='", text);
    request.renamings.push_back(
        {text.substr(0, equals), text.substr(equals + 1)});
  }
  if (!options.dtype.empty())
    request.dtype = TRY(parse_dtype(options.dtype));
  if (!options.shard_size.empty())
    request.shard_bytes = TRY(parse_size(options.shard_size));
  if (!options.transforms.empty() && *format != OutputFormat::kDistributed)
    return fail(ErrorKind::kUsage,
                "--with is for distributed checkpoints only; add --to dcp");
  request.drop_values = options.drop_values || !options.sidecar.empty();
  return request;
}

Result<Exit> write_checkpoint(const Checkpoint& checkpoint,
                              OutputRequest request,
                              const OutputCommandOptions& options,
                              std::string_view schema, Session& session,
                              std::map<std::uint32_t, std::string> expected) {
  TRY(check_target(checkpoint, options, request.format, session.existing()));
  if (!options.sidecar.empty())
    TRY(AtomicFile::check(options.sidecar, session.existing()));
  const ExtensionRegistry registry = built_in_registry();
  std::vector<TransformRequest> transforms;
  for (const std::string& text : options.transforms)
    for (TransformRequest& one : TRY(parse_transforms(text)))
      transforms.push_back(std::move(one));
  std::optional<TransformChain> chain;
  if (!transforms.empty()) {
    const auto key = TRY(options.key());
    chain.emplace(TRY(TransformChain::make(
        registry, transforms,
        {.key = key ? &*key : nullptr, .limits = checkpoint.limits()})));
    request.transforms = &*chain;
  }
  const OutputPlan plan = TRY(plan_output(checkpoint, std::move(request)));
  Output out([&session](std::string_view piece) { session.print(piece); });
  OutputReport report{.input = options.path,
                      .output = options.output,
                      .sidecar = options.sidecar,
                      .schema = schema,
                      .dry_run = options.dry_run};
  if (!options.dry_run) {
    const std::unique_ptr<Progress> progress = session.progress(
        {.label = options.no_verify ? "Writing" : "Writing and comparing",
         .total_bytes = plan.bytes * (options.no_verify ? 1 : 2)});
    if (!options.sidecar.empty())
      TRY(write_sidecar(checkpoint, plan, options.sidecar, session.existing()));
    report.written = TRY(write_output(
        checkpoint, plan, options.output,
        {.existing = session.existing(),
         .reading = {.crc =
                         options.no_crc ? CrcCheck::kNever : CrcCheck::kWhole},
         .verify = !options.no_verify,
         .expected = std::move(expected),
         .progress = [&](std::uint64_t bytes) { progress->advance(bytes); }}));
    progress->finish();
  }
  if (session.options().json)
    write_output_json(checkpoint, plan, report, out);
  else
    write_output_report(checkpoint, plan, report, session.terminal(), out);
  return plan.lost.empty() ? exit_for(checkpoint.findings()) : Exit::kFound;
}

}  // namespace postflight
