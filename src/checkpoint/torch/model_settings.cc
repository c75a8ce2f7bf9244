// Settings beside weights that name code: what Keras imports, what Hydra and
// NeMo call (_target_), what transformers imports from the folder of the model
// (auto_map), and chat templates.

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/ascii.h"
#include "checkpoint/torch/chat_template.h"
#include "checkpoint/torch/known_formats.h"
#include "json/json_value.h"
#include "pickle/audit/trust.h"
#include "pickle/builder.h"

namespace postflight {
namespace {

constexpr std::size_t kShown = 200;
constexpr std::size_t kMostDoubts = 100;

// A dotted name that is imported and called with the settings beside it.
void judge_target(std::string_view target, std::vector<Reason>& doubts) {
  target = trimmed(target, " \t\r'\"");
  const std::size_t dot = target.rfind('.');
  if (dot == target.npos || doubts.size() >= kMostDoubts)
    return;
  // Which part of it is the module is known only to who imports it.
  Judgement known;
  for (std::size_t at = dot; at != target.npos && at > 0;
       at = target.rfind('.', at - 1)) {
    const Judgement one =
        judge({.module = target.substr(0, at), .name = target.substr(at + 1)});
    if (one.trust == Trust::kDangerous || at == dot)
      known = one;
    if (known.trust == Trust::kDangerous)
      break;
  }
  if (known.trust <= Trust::kTorch && known.rule == Rule::kNone)
    return;
  const bool dangerous = known.trust == Trust::kDangerous;
  doubts.push_back(
      {dangerous ? Safety::kDangerous : Safety::kRunsCode, "settings_target",
       fmt::format("loading it with Hydra would call {}{}{}",
                   target.substr(0, kShown), dangerous ? ", which " : "",
                   dangerous ? known.reason : ""),
       ""});
}

// Names of any package of theirs are what a configuration is for.
bool is_of_framework(std::string_view target) {
  target = trimmed(target, " \t\r'\"");
  constexpr std::array<std::string_view, 6> kFrameworks = {
      "nemo.collections.",  "torch.optim.", "torch.nn.",
      "pytorch_lightning.", "lightning.",   "torchmetrics."};
  for (const std::string_view framework : kFrameworks)
    if (target.starts_with(framework))
      return true;
  return false;
}

// YAML is not parsed: each line that may set the key is looked at.
std::optional<KnownFormat> targets_in_yaml(Bytes bytes) {
  constexpr std::string_view kKey = "_target_";
  const std::string_view text = as_text(bytes);
  KnownFormat format{"settings in YAML", {}};
  bool any = false;
  for (std::size_t at = text.find(kKey); at != text.npos;
       at = text.find(kKey, at + kKey.size())) {
    std::size_t next = text.find_first_not_of(" \t'\"", at + kKey.size());
    if (next == text.npos || text[next] != ':')
      continue;
    any = true;
    next = text.find_first_not_of(kSpaces, next + 1);
    if (next == text.npos)
      break;
    const std::size_t end = text.find_first_of("\n,}#", next);
    const std::string_view target =
        text.substr(next, end == text.npos ? end : end - next);
    if (!is_of_framework(target))
      judge_target(target, format.doubts);
  }
  return any ? std::optional(std::move(format)) : std::nullopt;
}

void judge_templates(const Value& value, std::vector<Reason>& doubts) {
  const auto judge_one = [&doubts](const Value& one) {
    if (!one.is(Kind::kString))
      return;
    if (const auto reach = reach_of_template(one.text()))
      doubts.push_back(template_reaches(*reach));
  };
  judge_one(value);
  if (value.is(Kind::kDict))
    for (const Pair& pair : value.pairs())
      judge_one(pair.value);
  if (!value.is(Kind::kList))
    return;
  for (const Value& item : value.items()) {
    judge_one(item);
    if (item.is(Kind::kDict) && item.find("template") != nullptr)
      judge_one(*item.find("template"));
  }
}

void judge_auto_map(const Value& map, std::vector<Reason>& doubts) {
  std::string_view name = "a module of its folder";
  if (map.is(Kind::kDict) && !map.pairs().empty() &&
      map.pairs()[0].value.is(Kind::kString))
    name = map.pairs()[0].value.text();
  doubts.push_back(doubt(
      "remote_code",
      fmt::format("loading it with trust_remote_code would import {}, which is "
                  "not looked into",
                  name.substr(0, kShown))));
}

bool is_layer(const Value& value) {
  const Value* const name =
      value.is(Kind::kDict) ? value.find("class_name") : nullptr;
  return name != nullptr && name->is(Kind::kString) &&
         (value.find("config") != nullptr || value.find("module") != nullptr ||
          has_code_of_its_own(name->text()));
}

}  // namespace

std::optional<KnownFormat> settings_in_json(Bytes bytes) {
  const std::string_view text = as_text(bytes);
  constexpr std::array<std::string_view, 5> kKeys = {
      "class_name", "chat_template", "auto_map", "_target_", "\\u"};
  bool worth = false;
  for (const std::string_view key : kKeys)
    worth = worth || text.find(key) != text.npos;
  if (!worth)
    return std::nullopt;
  Builder builder;
  const Result<Value> root = parse_json(bytes, builder);
  if (!root)
    return KnownFormat{"damaged JSON",
                       {doubt("settings_damaged", "its JSON is damaged")}};
  std::optional<KnownFormat> format;
  const auto found = [&format](std::string_view title) -> KnownFormat& {
    if (!format)
      format = KnownFormat{title, {}};
    return *format;
  };
  std::vector<const Value*> left = {&*root};
  while (!left.empty()) {
    const Value& value = *left.back();
    left.pop_back();
    if (value.is(Kind::kList))
      for (const Value& item : value.items())
        left.push_back(&item);
    if (!value.is(Kind::kDict))
      continue;
    if (is_layer(value)) {
      KnownFormat keras = keras_configuration(value);
      KnownFormat& all = found(keras.title);
      for (Reason& reason : keras.doubts)
        all.doubts.push_back(std::move(reason));
      if (all.doubts.size() >= kMostDoubts)
        break;
      continue;
    }
    for (const Pair& pair : value.pairs()) {
      left.push_back(&pair.value);
      if (pair.key.text() == "chat_template")
        judge_templates(pair.value,
                        found("the configuration of a tokenizer").doubts);
      else if (pair.key.text() == "auto_map")
        judge_auto_map(pair.value,
                       found("the configuration of a model").doubts);
      else if (pair.key.text() == "_target_" && pair.value.is(Kind::kString) &&
               !is_of_framework(pair.value.text()))
        judge_target(pair.value.text(), found("settings in JSON").doubts);
    }
  }
  return format;
}

std::optional<KnownFormat> settings_by_name(Bytes bytes,
                                            std::string_view name) {
  const std::string lower = lowered(name);
  if (lower.ends_with(".yaml") || lower.ends_with(".yml"))
    return targets_in_yaml(bytes);
  if (!lower.ends_with(".jinja") && !lower.ends_with(".jinja2"))
    return std::nullopt;
  KnownFormat format{"a template", {}};
  if (const auto reach = reach_of_template(as_text(bytes)))
    format.doubts.push_back(template_reaches(*reach));
  return format;
}

}  // namespace postflight
