// TorchScript is a language of its own that only calls operators of torch. A
// few of these reach beyond tensors: they read and write files. Loading an
// archive runs the methods called __setstate__.

#include "checkpoint/torch/script_code.h"

#include <array>
#include <string>

#include <fmt/format.h>

#include "base/ascii.h"
#include "pickle/names/known_names.h"

namespace postflight {
namespace {

bool is_dotted(char c) {
  return is_letter(c) || is_digit(c) || c == '_' || c == '.';
}

// Operators of torch itself, and of libraries that only compute.
constexpr std::string_view kComputes =
    "aten prim prims quantized quantized_decomposed _quantized prepacked "
    "mkldnn mkldnn_prepacked onednn xnnpack metal metal_prepack vulkan_prepack "
    "static_runtime c10d_functional _c10d_functional inductor rand sparse "
    "torchvision torchaudio torchtext detectron2 fbgemm sparsity torch_sparse "
    "torch_scatter torch_cluster torch_spline_conv";

constexpr std::array<std::string_view, 8> kFiles = {
    "torch.save(",    "torch.load(",    "torch.from_file(",
    "ops.aten.save(", "ops.aten.load(", "ops.aten.from_file(",
    "ops.caffe2.",    "ops.rpc."};
constexpr std::array<std::string_view, 3> kBytecode = {
    "aten::save", "aten::load", "aten::from_file"};

Reason touches_files(std::string_view what) {
  if (what.ends_with('(') || what.ends_with('.'))
    what.remove_suffix(1);
  return {Safety::kDangerous, "script_files",
          fmt::format("its TorchScript calls {}, which reads or writes files",
                      what),
          ""};
}

}  // namespace

bool is_script_code(std::string_view name) {
  if (name.ends_with("bytecode.pkl"))
    return true;
  return name.ends_with(".py") &&
         (name.starts_with("code/") || name.find("/code/") != name.npos);
}

std::optional<Reason> harm_of_script(Bytes code) {
  const std::string_view text = as_text(code);
  for (const std::string_view name : kFiles)
    for (std::size_t at = text.find(name); at != text.npos;
         at = text.find(name, at + 1))
      if (at == 0 || !is_dotted(text[at - 1]))
        return touches_files(name);
  for (const std::string_view name : kBytecode)
    if (text.find(name) != text.npos)
      return touches_files(name);
  constexpr std::string_view kOperators = "ops.";
  for (std::size_t at = text.find(kOperators); at != text.npos;
       at = text.find(kOperators, at + 1)) {
    if (at > 0 && is_dotted(text[at - 1]))
      continue;
    const std::size_t begin = at + kOperators.size();
    const std::size_t end = text.find('.', begin);
    const std::string_view library =
        text.substr(begin, end == text.npos ? end : end - begin);
    constexpr std::size_t kLongest = 64;
    if (end != text.npos && library.size() < kLongest && !library.empty() &&
        library.find_first_not_of("abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
            library.npos &&
        !has_word(kComputes, library))
      return Reason{Safety::kUnknown, "script_operators",
                    fmt::format("its TorchScript calls operators of {}, which "
                                "another library brings along",
                                library),
                    ""};
  }
  return std::nullopt;
}

}  // namespace postflight
