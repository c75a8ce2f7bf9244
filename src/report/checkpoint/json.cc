#include <cmath>
#include <set>
#include <string>
#include <variant>

#include "checkpoint/model/value_repr.h"
#include "checkpoint/verification/safety.h"
#include "report/checkpoint/report.h"
#include "report/checkpoint/values.h"
#include "report/finding_text.h"

namespace postflight {
namespace {

std::string_view role_name(TensorRole role) {
  switch (role) {
    case TensorRole::kParameter:
      return "parameter";
    case TensorRole::kBuffer:
      return "buffer";
    default:
      return "tensor";
  }
}

// A key that plain JSON text cannot express: {"repr": "(1, 2)"}.
void write_marked(std::string_view name, std::string_view text,
                  JsonWriter& json) {
  json.object();
  json.key(name);
  json.value(text);
  if (!JsonWriter::keeps(text))
    json.field("escaped", true);
  json.end();
}

void write_keys(std::string_view name, const Checkpoint& checkpoint,
                std::uint32_t node, JsonWriter& json) {
  json.array(name);
  for (const Key& key : checkpoint.keys_to(node)) {
    if (key.is_number())
      json.value(key.number);
    else if (key.kind == Key::Kind::kOther)
      write_marked("repr", key.text, json);
    else if (JsonWriter::keeps(key.text))
      json.value(key.text);
    else
      write_marked("text", key.text, json);
  }
  json.end();
}

void write_tensor(const Checkpoint& checkpoint, std::uint32_t node,
                  const Tensor& tensor, std::span<const StorageUse> uses,
                  JsonWriter& json) {
  json.object();
  write_path(checkpoint, node, json);
  write_type(tensor, json);
  if (!tensor.has_parts())
    json.field("bytes", tensor.bytes());
  json.array("stride", tensor.stride);
  json.field("offset", tensor.offset);
  json.field("device", tensor.device);
  json.field("layout", tensor.layout);
  json.field("role", role_name(tensor.role));
  json.field("requires_grad", tensor.requires_grad);
  if (!tensor.type.empty())
    json.field("type", tensor.type);
  if (tensor.conjugated)
    json.field("conjugated", true);
  if (tensor.negated)
    json.field("negated", true);
  if (tensor.storage != kNoIndex) {
    json.field("storage", tensor.storage);
    const StorageUse& use = uses[tensor.storage];
    if (use.uses > 1 && use.first != node)
      write_keys("shares", checkpoint, use.first, json);
  }
  if (!tensor.problem.empty())
    json.field("problem", tensor.problem);
  json.end();
}

void write_value(const Checkpoint& checkpoint, std::uint32_t index,
                 JsonWriter& json) {
  const Node& node = checkpoint.nodes()[index];
  json.object();
  write_path(checkpoint, index, json);
  json.field("kind", node_kind_name(node.kind));
  if (node.kind == NodeKind::kReference) {
    write_keys("to", checkpoint, node.index, json);
  } else if (node.kind == NodeKind::kValue) {
    json.field("type", value_type(node.value));
    json.field("value", value_repr(node.value));
  } else {
    json.field("type",
               node.type.empty() ? node_kind_name(node.kind) : node.type);
    json.field("length", node.children);
  }
  json.end();
}

// Properties are for people: bytes that are not UTF-8 are escaped without a
// mark. Each shard of a folder may have the same ones; the first one counts.
void write_properties(const Checkpoint& checkpoint, JsonWriter& json) {
  json.object("properties");
  std::set<std::string_view> written;
  for (const auto& [key, text] : checkpoint.properties()) {
    if (!written.insert(key).second)
      continue;
    json.key(key);
    json.value(text);
  }
  json.end();
}

// Whole numbers have no fraction: the elements may be integers.
void write_number(std::string_view name, double number, JsonWriter& json) {
  constexpr double kExact = std::int64_t{1} << 53;
  if (std::abs(number) < kExact && number == std::trunc(number))
    json.field(name, static_cast<std::int64_t>(number));
  else
    json.field(name, number);
}

void write_number(std::string_view name, const Extreme& extreme,
                  JsonWriter& json) {
  if (const auto* const real = std::get_if<double>(&extreme))
    write_number(name, *real, json);
  else
    std::visit([&](auto number) { json.field(name, number); }, extreme);
}

template <class T>
void write_number(std::string_view name, const std::optional<T>& number,
                  JsonWriter& json) {
  if (number)
    write_number(name, *number, json);
  else
    json.field(name, nullptr);
}

// An array of objects, each of which may have a mark beside its key.
void write_key_list(std::string_view name, std::span<const std::string> keys,
                    JsonWriter& json) {
  json.array(name);
  for (const std::string& key : keys) {
    json.object();
    json.field("key", key);
    json.end();
  }
  json.end();
}

}  // namespace

void write_path(const Checkpoint& checkpoint, std::uint32_t node,
                JsonWriter& json) {
  write_keys("path", checkpoint, node, json);
  json.field("key", checkpoint.path_of(node));
}

void write_type(const Tensor& tensor, JsonWriter& json) {
  json.field("dtype", tensor.dtype.name);
  if (tensor.shape_known)
    json.array("shape", tensor.shape);
  else
    json.field("shape", nullptr);
}

void write_statistics(const TensorStatistics& found, JsonWriter& json) {
  json.object("statistics");
  json.field("elements", found.elements);
  json.field("nan", found.nan);
  json.field("infinite", found.infinite);
  json.field("zero", found.zero);
  json.field("denormal", found.denormal);
  write_number("min", found.minimum, json);
  write_number("max", found.maximum, json);
  write_number("mean", found.mean, json);
  write_number("std", found.deviation, json);
  json.end();
}

void write_listing_json(std::string_view name, const Checkpoint& checkpoint,
                        const ListingOptions& options, Output& out) {
  const std::vector<StorageUse> uses = storage_uses(checkpoint);
  JsonWriter json(out);
  json.begin("postflight.ckpt.ls/1");
  json.field("file", name);
  json.field("format", format_name(checkpoint.format()));
  write_properties(checkpoint, json);
  json.array("tensors");
  TensorTotals totals;
  for (const std::uint32_t node : options.nodes)
    if (const Tensor* const tensor = checkpoint.tensor_at(node)) {
      totals.add(*tensor);
      write_tensor(checkpoint, node, *tensor, uses, json);
    }
  json.end();
  if (options.all) {
    json.array("values");
    for (const std::uint32_t node : options.nodes)
      if (checkpoint.tensor_at(node) == nullptr)
        write_value(checkpoint, node, json);
    json.end();
  }
  json.object("totals");
  json.field("tensors", totals.tensors);
  json.field("elements", totals.elements);
  json.field("bytes", totals.bytes);
  json.field("parameters", parameters_of(checkpoint, options.nodes));
  json.array("dtypes");
  for (const auto& [dtype, of_dtype] :
       totals_by_dtype(checkpoint, options.nodes)) {
    json.object();
    json.field("dtype", dtype);
    json.field("tensors", of_dtype.tensors);
    json.field("elements", of_dtype.elements);
    json.field("bytes", of_dtype.bytes);
    json.end();
  }
  json.end();
  json.end();
  write_safety_json(options.safety != nullptr
                        ? *options.safety
                        : safety_of(checkpoint, /*quickly=*/true),
                    json);
  write_findings(checkpoint.findings(), json);
  json.finish();
}

void write_read_json(std::string_view name, const Checkpoint& checkpoint,
                     const ReadPlan& plan, Output& out) {
  JsonWriter json(out);
  json.begin("postflight.ckpt.read/1");
  json.field("file", name);
  json.array("tensors");
  for (const PlannedTensor& planned : plan.tensors) {
    if (!planned.has_bytes())
      continue;
    json.object();
    write_path(checkpoint, planned.node, json);
    write_type(planned.tensor(), json);
    json.field("device", planned.device);
    json.end();
  }
  json.end();
  json.array("values");
  for (const std::uint32_t node : plan.values) {
    const Node& at = checkpoint.nodes()[node];
    json.object();
    write_path(checkpoint, node, json);
    json.field("kind", node_kind_name(at.kind));
    if (at.kind == NodeKind::kReference) {
      write_keys("to", checkpoint, at.index, json);
    } else if (at.kind == NodeKind::kValue) {
      json.field("type", value_type(at.value));
      json.key("value");
      write_json_value(at, json);
    }
    json.end();
  }
  json.end();
  std::vector<std::string> unreadable;
  for (const std::uint32_t node : plan.unreadable)
    unreadable.push_back(checkpoint.path_of(node));
  write_key_list("unreadable", unreadable, json);
  write_key_list("missing", plan.selection.missing, json);
  write_key_list(
      "unexpected",
      plan.selection.unexpected(checkpoint, plan.selection.unexpected_count()),
      json);
  write_findings(checkpoint.findings(), json);
  json.finish();
}

void write_verification_json(std::string_view name,
                             const Checkpoint& checkpoint,
                             const Verification& found, Output& out) {
  JsonWriter json(out);
  json.begin("postflight.ckpt.verify/1");
  json.field("file", name);
  json.field("format", format_name(checkpoint.format()));
  json.field("verdict", verdict_of(checkpoint, found).name);
  if (!checkpoint.truncation().empty())
    json.field("truncation", checkpoint.truncation());
  write_safety_json(found.safety, json);
  json.field("tensors", found.tensors);
  json.field("unreadable", found.unreadable);
  json.field("records", found.records);
  json.object("crc");
  json.field("good", found.crc_good);
  json.field("absent", found.crc_absent);
  json.field("bad", found.crc_bad);
  json.field("bytes", found.bytes);
  json.end();
  write_findings(found.findings, json);
  json.finish();
}

}  // namespace postflight
