// Frameworks agree that a rank's file has the word "rank" and a number in its
// name, and on nothing else. So the numbers are what is looked for: those after
// "rank", in names that are otherwise alike.

#include "checkpoint/rank_files.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <tuple>

#include "base/ascii.h"

namespace postflight {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 6> kEndings = {
    ".pt", ".pth", ".ckpt", ".bin", ".pkl", ".safetensors"};

bool is_checkpoint_name(std::string_view name) {
  return std::ranges::any_of(kEndings, [name](std::string_view ending) {
    return name.ends_with(ending);
  });
}

bool is_separator(char c) {
  return c == '_' || c == '-' || c == '.';
}

// A name cut at its separators.
std::vector<std::string_view> words_of(std::string_view name) {
  std::vector<std::string_view> words;
  while (!name.empty()) {
    const auto end = std::ranges::find_if(name, is_separator);
    const auto length = static_cast<std::size_t>(end - name.begin());
    if (length > 0)
      words.push_back(name.substr(0, length));
    name.remove_prefix(std::min(length + 1, name.size()));
  }
  return words;
}

bool is_number(std::string_view word) {
  constexpr std::size_t kMostDigits = 9;
  return !word.empty() && word.size() <= kMostDigits &&
         std::ranges::all_of(word, is_digit);
}

std::uint32_t number_of(std::string_view word) {
  std::uint32_t number = 0;
  std::from_chars(word.data(), word.data() + word.size(), number);
  return number;
}

// What a name says of ranks: "zero_pp_rank_0_mp_rank_00_optim_states.pt" has
// the numbers 0 and 00 and the part optim_states.
struct RankName {
  std::string shape;  // the name with stars for its numbers
  std::vector<std::string_view> numbers;
  std::string part;
  std::optional<std::uint32_t> world_size;
};

// Words that say which kind of rank is meant, not what is in the file.
bool is_qualifier(std::string_view word) {
  constexpr std::array<std::string_view, 12> kWords = {
      "mp",   "tp",   "pp",   "dp",     "ep",    "cp",
      "bf16", "fp16", "zero", "global", "local", "checkpoint"};
  return std::ranges::find(kWords, word) != kWords.end();
}

RankName read_name(std::string_view name, bool is_folder) {
  RankName found;
  const std::string_view stem =
      is_folder ? name : name.substr(0, name.rfind('.'));
  const std::vector<std::string_view> words = words_of(stem);
  std::size_t copied = 0;
  const auto star = [&](std::string_view digits) {
    const auto at = static_cast<std::size_t>(digits.data() - name.data());
    found.shape += name.substr(copied, at - copied);
    found.shape += '*';
    copied = at + digits.size();
    found.numbers.push_back(digits);
  };
  const auto add_part = [&](std::string_view word) {
    found.part += found.part.empty() ? "" : "_";
    found.part += word;
  };
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const std::string_view digits =
        word.starts_with("rank") ? word.substr(4) : std::string_view();
    if (word == "world" && i + 2 < words.size() && words[i + 1] == "size" &&
        is_number(words[i + 2])) {
      found.world_size = number_of(words[i + 2]);
      i += 2;
    } else if (is_number(digits)) {  // rank3
      star(digits);
    } else if (word == "rank" && i + 1 < words.size() &&
               is_number(words[i + 1])) {
      // mp_rank_00_001: the ranks of tensor and pipeline parallelism
      for (++i; i < words.size() && is_number(words[i]); ++i)
        star(words[i]);
      --i;
    } else if (!is_qualifier(word)) {
      add_part(word);
    }
  }
  found.shape += name.substr(copied);
  return found;
}

struct Named {
  fs::path path;
  std::string name;  // which `read` has views of
  RankName read;
};

void report_missing(const RankFiles& found, const SourceContext& context) {
  constexpr std::uint32_t kMostReported = 1000;
  std::map<std::string, std::set<std::uint32_t>> ranks_of;  // by part
  std::uint32_t end = found.world_size.value_or(0);
  for (const RankFile& file : found.files)
    if (file.rank) {
      ranks_of[file.part].insert(*file.rank);
      end = std::max(end, *file.rank + 1);
    }
  std::uint32_t reported = 0;
  for (const auto& [part, ranks] : ranks_of) {
    // Some parts are those of a few ranks only, such as the model of a group
    // whose members share it.
    const bool has_last = found.world_size || ranks.contains(end - 1);
    for (std::uint32_t rank = 0; has_last && rank < end; ++rank)
      if (!ranks.contains(rank) && reported++ < kMostReported)
        context.checkpoint.report(
            "missing_rank", Severity::kError,
            found.world_size
                ? fmt::format("rank {} has no file, though names say that "
                              "there are {} ranks",
                              rank, *found.world_size)
                : fmt::format("rank {} has no file, though rank {} has one",
                              rank, end - 1),
            found.several_parts ? part : "");
  }
}

}  // namespace

std::vector<const RankFile*> RankFiles::of(std::uint32_t rank) const {
  std::vector<const RankFile*> its;
  for (const RankFile& file : files)
    if (file.rank == rank)
      its.push_back(&file);
  return its;
}

RankFiles find_rank_files(std::span<const fs::path> files,
                          std::span<const fs::path> folders) {
  std::vector<std::unique_ptr<Named>> named;
  const auto add = [&named](const fs::path& path, const std::string& text,
                            bool is_folder) {
    auto one = std::make_unique<Named>(Named{path, text, {}});
    one->read = read_name(one->name, is_folder);
    if (!one->read.numbers.empty())
      named.push_back(std::move(one));
  };
  for (const fs::path& file : files)
    if (is_checkpoint_name(file.filename().string()))
      add(file, file.filename().string(), false);
  for (const fs::path& folder : folders) {
    RankName read = read_name(folder.filename().string(), true);
    if (read.numbers.empty())
      continue;
    std::error_code error;
    for (fs::directory_iterator it(folder, error);
         !error && it != fs::directory_iterator(); it.increment(error)) {
      const std::string inner = it->path().filename().string();
      std::error_code none;
      if (is_checkpoint_name(inner) && it->is_regular_file(none))
        // As if it were one name: mp_rank_00.model_optim_rng.pt
        add(it->path(), folder.filename().string() + "." + inner, false);
    }
  }

  // Of several numbers in a name, those count that differ between names.
  std::map<std::string_view, std::vector<const Named*>> by_shape;
  for (const auto& one : named)
    by_shape[one->read.shape].push_back(one.get());
  RankFiles found;
  std::set<std::string> parts;
  for (const auto& family : by_shape) {
    const std::string_view shape = family.first;
    const std::vector<const Named*>& members = family.second;
    const std::size_t count = members.front()->read.numbers.size();
    std::vector<std::size_t> differ;
    for (std::size_t i = 0; i < count; ++i)
      if (std::ranges::any_of(members, [&](const Named* member) {
            return member->read.numbers[i] != members[0]->read.numbers[i];
          }))
        differ.push_back(i);
    if (differ.empty())
      differ.push_back(0);
    // Of two shapes with the same part the second keeps its whole shape.
    std::string part = members.front()->read.part;
    if (part.empty())
      part = "state";
    if (!parts.insert(part).second) {
      part = std::string(shape);
      parts.insert(part);
    }
    for (const Named* const member : members) {
      RankFile file{
          .path = member->path, .rank = {}, .numbers = {}, .part = part};
      for (const std::size_t i : differ) {
        file.numbers += file.numbers.empty() ? "" : "_";
        file.numbers += member->read.numbers[i];
      }
      if (differ.size() == 1)
        file.rank = number_of(member->read.numbers[differ[0]]);
      if (member->read.world_size)
        found.world_size = member->read.world_size;
      found.files.push_back(std::move(file));
    }
  }
  constexpr std::uint32_t kMostRanks = 1 << 24;
  if (found.world_size && *found.world_size > kMostRanks)
    found.world_size.reset();
  found.several_parts = parts.size() > 1;
  std::ranges::sort(found.files, {}, [](const RankFile& file) {
    return std::tuple(file.rank, file.numbers, file.part, file.path);
  });
  return found;
}

Result<> add_rank_files(const RankFiles& found, const SourceContext& context) {
  Tree& tree = context.checkpoint.tree;
  const std::uint32_t root =
      tree.add(context.parent, context.key, NodeKind::kDict);
  std::size_t readable = 0;
  for (std::size_t i = 0; i < found.files.size();) {
    const RankFile& first = found.files[i];
    const Key key = first.rank ? Key::integer(*first.rank)
                               : Key::string(tree.keep(first.numbers));
    std::uint32_t below = root;
    if (found.several_parts)
      below = tree.add(root, key, NodeKind::kDict);
    for (; i < found.files.size() && found.files[i].rank == first.rank &&
           found.files[i].numbers == first.numbers;
         ++i) {
      const RankFile& file = found.files[i];
      const Key step =
          found.several_parts ? Key::string(tree.keep(file.part)) : key;
      std::string before = std::exchange(context.checkpoint.truncation, {});
      const Result<Format> format =
          context.add_file(file.path, context.at(below, step));
      std::string& truncation = context.checkpoint.truncation;
      if (!before.empty())
        truncation = std::move(before);
      else if (!truncation.empty())
        truncation =
            fmt::format("{}: {}", file.path.filename().string(), truncation);
      if (format)
        ++readable;
      else
        context.checkpoint.report("unreadable_rank", Severity::kError,
                                  std::string(format.error().message()),
                                  file.path.filename().string());
    }
    if (found.several_parts)
      tree.close(below);
  }
  tree.close(root);
  if (readable == 0)
    return fail(ErrorKind::kCorrupt, "{}",
                context.checkpoint.findings.back().message);
  report_missing(found, context);
  return {};
}

}  // namespace postflight
