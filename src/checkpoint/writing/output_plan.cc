#include "checkpoint/writing/output_plan.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/pattern.h"
#include "checkpoint/model/data_file.h"
#include "checkpoint/tensor/digest.h"
#include "checkpoint/writing/rounding.h"
#include "json/writer.h"

namespace postflight {
namespace {

Result<> check_safetensors(const OutputTensor& output) {
  if (output.name == "__metadata__" || output.name.empty())
    return fail(ErrorKind::kUnsupported,
                "safetensors cannot have a tensor called '{}'; give it another "
                "name by --rename",
                output.name);
  if (safetensors_name(output.dtype).empty())
    return fail(ErrorKind::kUnsupported,
                "{}: safetensors has no dtype {}; leave it out by --keys, or "
                "write another format",
                output.name, output.dtype.name);
  if (!JsonWriter::keeps(output.name))
    return fail(ErrorKind::kUnsupported,
                "a key is not UTF-8, which safetensors requires");
  return {};
}

struct FormatRow {
  OutputFormat format;
  std::string_view name;
};
constexpr std::array kFormats = {
    FormatRow{OutputFormat::kTorch, "torch"},
    FormatRow{OutputFormat::kSafetensors, "safetensors"},
    FormatRow{OutputFormat::kShards, "hf"},
    FormatRow{OutputFormat::kDistributed, "dcp"},
};

bool is_flat(OutputFormat format) {
  return format == OutputFormat::kSafetensors ||
         format == OutputFormat::kShards;
}

class OutputPlanner {
 public:
  OutputPlanner(const Checkpoint& checkpoint, OutputRequest request)
      : checkpoint_(checkpoint), nodes_(checkpoint.nodes()) {
    plan_.request = std::move(request);
  }

  Result<OutputPlan> plan() && {
    const OutputRequest& request = plan_.request;
    for (const Renaming& renaming : request.renamings)
      patterns_.push_back(TRY(Pattern::compile(renaming.expression)));
    const bool changes = !request.filter.picks_all() || !patterns_.empty() ||
                         request.dtype.has_value() || request.part.has_value();
    plan_.as_it_is = request.format == OutputFormat::kTorch && !changes &&
                     checkpoint_.format() == Format::kTorchZip &&
                     checkpoint_.truncation().empty() &&
                     !request.skip_unreadable && !request.anew &&
                     checkpoint_.files().size() == 1 &&
                     checkpoint_.files()[0]->zip.has_value();
    plan_.is_flat = postflight::is_flat(request.format) || !patterns_.empty();
    const std::vector<std::uint32_t> selected =
        TRY(select_nodes(checkpoint_, request.filter, NodeKinds::kAll));
    if (!request.filter.picks_all())
      keep(selected);
    for (const std::uint32_t node : selected)
      TRY(add(node));
    if (request.skip_unreadable)
      TRY(lose_damaged());
    TRY(check_values());
    return std::move(plan_);
  }

 private:
  void keep(std::span<const std::uint32_t> selected) {
    plan_.kept.assign(nodes_.size(), false);
    for (std::uint32_t node : selected)
      if (nodes_[node].children == 0 || nodes_[node].kind == NodeKind::kTensor)
        for (; !plan_.kept[node]; node = nodes_[node].parent)
          plan_.kept[node] = true;
  }

  Result<> add(std::uint32_t node) {
    const Node& at = nodes_[node];
    if (at.kind == NodeKind::kTensor)
      return add_tensor(node);
    // A list without tensors is one value of a distributed checkpoint.
    if (at.children == 0 && node != 0 && !is_module_version(node))
      plan_.values.push_back(node);
    return {};
  }

  Result<> add_tensor(std::uint32_t node) {
    const Tensor& tensor = checkpoint_.tensors()[nodes_[node].index];
    const auto refuse = [&](std::string_view why) -> Result<> {
      if (plan_.request.skip_unreadable)
        return lose(node, std::string(why));
      return fail(ErrorKind::kUnsupported, "{}: {}", checkpoint_.path_of(node),
                  why);
    };
    const bool readable = tensor.readable() && !tensor.has_parts();
    if (plan_.as_it_is && !readable && tensor.problem.empty())
      return {};  // its parts, or its shape, are in the pickle
    if (tensor.has_parts())
      return refuse(fmt::format(
          "a tensor of layout {} consists of parts, which this format cannot "
          "join again; leave it out by --keys",
          tensor.layout));
    if (tensor.storage == kNoIndex)
      return refuse(fmt::format(
          "it is on device {} and has no bytes; leave it out by --keys",
          tensor.device));
    if (!tensor.problem.empty() && plan_.request.skip_unreadable)
      return lose(node, std::string(tensor.problem));
    if (!tensor.problem.empty())
      return fail(ErrorKind::kCorrupt,
                  "{}: {}; postflight ckpt salvage writes what is intact",
                  checkpoint_.path_of(node), tensor.problem);
    WrittenTensor written{{node, &tensor, tensor.dtype, {}}, {}};
    OutputTensor& output = written.output;
    if (plan_.request.dtype && can_convert(tensor.dtype, *plan_.request.dtype))
      output.dtype = *plan_.request.dtype;
    if (plan_.request.part)
      output.tensor = part_of(tensor, *plan_.request.part);
    name(node, output.name, written.path);
    const auto [at, fresh] = names_.emplace(output.name, node);
    if (!fresh && (plan_.is_flat || is_distributed()))
      return fail(ErrorKind::kUnsupported,
                  "{} and {} would both be called {}; give one another name by "
                  "--rename",
                  checkpoint_.path_of(at->second), checkpoint_.path_of(node),
                  output.name);
    if (postflight::is_flat(plan_.request.format))
      TRY(check_safetensors(output));
    else if (!plan_.as_it_is &&
             (output.dtype.packed > 1 || !is_torch_dtype(output.dtype)))
      return refuse(fmt::format("torch has no dtype {}; leave it out by --keys",
                                output.dtype.name));
    plan_.bytes += output.bytes();
    plan_.tensors.push_back(std::move(written));
    return {};
  }

  // What state_dict() attaches to its result: the versions of modules. It goes
  // with the dict where that is written as one, and nobody misses it elsewhere.
  bool is_module_version(std::uint32_t node) const {
    for (; node != 0; node = nodes_[node].parent)
      if (nodes_[node].key == Key::attribute("_metadata"))
        return true;
    return false;
  }

  Result<> lose(std::uint32_t node, std::string why) {
    plan_.lost.emplace_back(node, std::move(why));
    if (plan_.kept.empty())
      plan_.kept.assign(nodes_.size(), true);
    for (std::uint32_t i = node; i < nodes_[node].end; ++i)
      plan_.kept[i] = false;
    return {};
  }

  // Whether the bytes of a tensor are those that were written is only known
  // once they have been read.
  Result<> lose_damaged() {
    std::vector<std::uint32_t> nodes;
    for (const WrittenTensor& tensor : plan_.tensors)
      nodes.push_back(tensor.output.node);
    std::set<std::uint32_t> damaged;
    Result<> done;
    TRY(digest_tensors(
        checkpoint_, nodes,
        [&](std::uint32_t node, const Result<std::string>& digest) {
          if (!digest && damaged.insert(node).second)
            done = lose(node, std::string(digest.error().message()));
        }));
    std::erase_if(plan_.tensors, [&](const WrittenTensor& tensor) {
      return damaged.contains(tensor.output.node);
    });
    plan_.bytes = 0;
    for (const WrittenTensor& tensor : plan_.tensors)
      plan_.bytes += tensor.output.bytes();
    return done;
  }

  const Tensor* part_of(const Tensor& tensor, std::uint32_t rank) {
    const std::uint32_t dimension = plan_.request.dimension;
    if (dimension >= tensor.shape.size())
      return &tensor;
    std::vector<SliceRange> ranges;
    for (std::size_t i = 0; i < tensor.shape.size(); ++i)
      ranges.push_back(
          i == dimension
              ? share_of(tensor.shape[i], rank, plan_.request.ranks)
              : SliceRange{0, static_cast<std::uint64_t>(tensor.shape[i])});
    return &plan_.slices.emplace_back(slice_tensor(tensor, ranges)).tensor;
  }

  bool is_distributed() const {
    return plan_.request.format == OutputFormat::kDistributed;
  }

  // Its name in a flat format, and the keys that lead to it in the output.
  void name(std::uint32_t node, std::string& text, std::vector<Key>& path) {
    path = checkpoint_.keys_to(node);
    text = plain_path(checkpoint_, node);
    if (text.empty())
      text = "tensor";
    std::size_t i = 0;
    for (const Renaming& renaming : plan_.request.renamings)
      text = patterns_[i++].replaced_in(text, renaming.replacement);
    if (is_distributed() && patterns_.empty() && !path.empty()) {
      // torch's planner makes texts of the keys of dicts.
      text.clear();
      for (Key& key : path) {
        if (key.kind != Key::Kind::kIndex) {
          const std::string name = key.is_number() ? std::to_string(key.number)
                                                   : std::string(key.text);
          key = Key::string(keep_text(name));
        }
        text += text.empty() ? "" : ".";
        text += key.is_number() ? std::to_string(key.number)
                                : std::string(key.text);
      }
    } else if (plan_.is_flat || is_distributed()) {
      path = {Key::string(keep_text(text))};
    }
  }

  std::string_view keep_text(const std::string& text) {
    return *plan_.texts.insert(text).first;
  }

  Result<> check_values() {
    if (plan_.values.empty() || plan_.as_it_is)
      return {};
    if (plan_.request.drop_values) {
      drop_values();
      return {};
    }
    if (!plan_.is_flat) {
      plan_.writes_values = true;
      if (is_distributed())
        TRY(name_values());
      return {};
    }
    constexpr std::size_t kNamed = 3;
    std::string names;
    for (const std::uint32_t node :
         std::span(plan_.values).first(std::min(plan_.values.size(), kNamed)))
      names += (names.empty() ? "" : ", ") + checkpoint_.path_of(node);
    return fail(ErrorKind::kUnsupported,
                "{} value{} ({}{}) cannot be in this format; write them beside "
                "it with --sidecar FILE, or leave them out with --drop-values",
                plan_.values.size(), plan_.values.size() == 1 ? "" : "s", names,
                plan_.values.size() > kNamed ? ", ..." : "");
  }

  void drop_values() {
    if (plan_.kept.empty())
      plan_.kept.assign(nodes_.size(), true);
    for (const std::uint32_t node : plan_.values)
      plan_.kept[node] = false;
  }

  bool has_tensor_or_dict(std::uint32_t node) const {
    for (std::uint32_t i = node + 1; i < nodes_[node].end; ++i)
      if (nodes_[i].kind == NodeKind::kTensor ||
          nodes_[i].kind == NodeKind::kDict)
        return true;
    return false;
  }

  // A list without tensors and dicts is a value as a whole, as for torch; so
  // is what a tuple, set or object without tensors consists of.
  std::uint32_t whole_value(std::uint32_t node) const {
    std::uint32_t whole = node;
    for (std::uint32_t at = nodes_[node].parent; at != 0;
         at = nodes_[at].parent)
      if (nodes_[at].kind != NodeKind::kDict && !has_tensor_or_dict(at) &&
          !nodes_[at].value.is(Kind::kNone))
        whole = at;
    return whole;
  }

  Result<> name_values() {
    std::uint32_t last = 0;
    for (const std::uint32_t node : plan_.values) {
      const std::uint32_t whole = whole_value(node);
      if (whole == last)
        continue;
      last = whole;
      if (nodes_[whole].kind == NodeKind::kReference)
        return fail(ErrorKind::kUnsupported,
                    "{}: a container that is shared cannot be a value of its "
                    "own; leave it out by --keys",
                    checkpoint_.path_of(whole));
      WrittenValue value{whole, {}, {}};
      name(whole, value.name, value.path);
      const auto [at, fresh] = names_.emplace(value.name, whole);
      if (!fresh)
        return fail(ErrorKind::kUnsupported,
                    "{} and {} would both be called {}; give one another name "
                    "by --rename",
                    checkpoint_.path_of(at->second), checkpoint_.path_of(whole),
                    value.name);
      plan_.written_values.push_back(std::move(value));
    }
    return {};
  }

  const Checkpoint& checkpoint_;
  const std::span<const Node> nodes_;
  OutputPlan plan_;
  std::vector<Pattern> patterns_;
  std::map<std::string, std::uint32_t> names_;
};

}  // namespace

std::optional<OutputFormat> output_format_named(std::string_view name) {
  const auto found = std::ranges::find(kFormats, name, &FormatRow::name);
  return found == kFormats.end() ? std::nullopt : std::optional(found->format);
}

std::string_view output_format_name(OutputFormat format) {
  return std::ranges::find(kFormats, format, &FormatRow::format)->name;
}

std::optional<OutputFormat> output_format_of(
    const std::filesystem::path& name) {
  const std::string extension = name.extension().string();
  if (extension == ".safetensors")
    return OutputFormat::kSafetensors;
  if (extension == ".pt" || extension == ".pth" || extension == ".bin" ||
      extension == ".ckpt")
    return OutputFormat::kTorch;
  return std::nullopt;
}

SliceRange share_of(std::int64_t size, std::uint32_t rank,
                    std::uint32_t ranks) {
  const auto whole = static_cast<std::uint64_t>(size);
  const std::uint64_t length = (whole + ranks - 1) / ranks;
  const std::uint64_t begin = std::min(whole, length * rank);
  return {begin, std::min(length, whole - begin), 1, false};
}

Result<OutputPlan> plan_output(const Checkpoint& checkpoint,
                               OutputRequest request) {
  return OutputPlanner(checkpoint, std::move(request)).plan();
}

}  // namespace postflight
