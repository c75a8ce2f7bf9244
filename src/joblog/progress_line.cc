#include "joblog/progress_line.h"

#include "base/ascii.h"
#include "joblog/line.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace postflight {
namespace {

constexpr std::string_view::size_type kNowhere = std::string_view::npos;

std::optional<std::int64_t> integer_at(std::string_view text, std::size_t at) {
  std::int64_t value = 0;
  if (at >= text.size())
    return std::nullopt;
  const auto [last, error] =
      std::from_chars(text.data() + at, text.data() + text.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

std::optional<std::int64_t> integer_behind(std::string_view text,
                                           std::string_view part) {
  const std::size_t at = text.find(part);
  return at == kNowhere ? std::nullopt : integer_at(text, at + part.size());
}

// Nothing where the line was cut off inside the word.
std::string_view word_behind(std::string_view text, std::string_view part,
                             std::string_view ends = ",) ") {
  const std::size_t at = text.find(part);
  if (at == kNowhere)
    return {};
  const std::string_view rest = text.substr(at + part.size());
  const std::size_t end = rest.find_first_of(ends);
  return end == kNowhere ? std::string_view() : rest.substr(0, end);
}

// Likewise for a number. A line may end with `part` and its number only if
// nothing else ever follows.
std::optional<std::int64_t> whole_integer_behind(std::string_view text,
                                                 std::string_view part,
                                                 std::string_view ends) {
  const std::string_view word = word_behind(text, part, ends);
  const std::optional<std::int64_t> number = integer_at(word, 0);
  return word.empty() ? std::nullopt : number;
}

// "[PG ID 2 PG GUID 5(mesh_tp) Rank 1]", "[PG 0 (default_pg) Rank 1]",
// "[PG 3 Rank 5]", "[Rank 1]"
bool take_group(std::string_view text, ProgressLine& line) {
  for (std::size_t open = text.find('['); open != kNowhere;
       open = text.find('[', open + 1)) {
    const std::size_t close = text.find(']', open);
    if (close == kNowhere)
      return false;
    std::string_view inside = text.substr(open + 1, close - open - 1);
    const std::size_t rank = inside.rfind("Rank ");
    if (rank == kNowhere)
      continue;
    const std::optional<Rank> place = leading_rank(inside.substr(rank + 5));
    if (!place || inside.find_first_not_of("0123456789", rank + 5) != kNowhere)
      continue;
    const bool named = inside.starts_with("PG ");
    if (!named && rank != 0)
      continue;
    line.place = place;
    line.named = named;
    if (!named)
      return true;
    inside = trimmed(inside.substr(0, rank), kBlanks);
    const std::size_t guid = inside.find("PG GUID ");
    inside.remove_prefix(guid == kNowhere ? 3 : guid + 8);
    const std::size_t bracket = inside.find('(');
    line.group = trimmed(inside.substr(0, bracket), kBlanks);
    if (bracket != kNowhere && inside.ends_with(')'))
      line.description =
          inside.substr(bracket + 1, inside.size() - bracket - 2);
    if (line.description == "undefined")
      line.description = {};
    return true;
  }
  return false;
}

// "WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=6)"
std::optional<LoggedOperation> work_in(std::string_view text) {
  const std::size_t at = text.find("CCL(SeqNum=");
  if (at == kNowhere || at < 5 || text.substr(at - 5, 4) != "Work")
    return std::nullopt;
  const std::string_view work = text.substr(at);
  const std::optional<std::int64_t> sequence =
      whole_integer_behind(work, "SeqNum=", ",");
  const std::string_view type = word_behind(work, "OpType=");
  if (!sequence || *sequence < 0 || type.empty())
    return std::nullopt;
  const std::optional<std::int64_t> outputs =
      whole_integer_behind(work, "NumelOut=", ",)");
  return LoggedOperation{
      .sequence = *sequence,
      .type = type,
      .inputs = outputs
                    ? whole_integer_behind(work, "NumelIn=", ",").value_or(-1)
                    : -1,
      .outputs = outputs.value_or(-1),
      .dtype = {},
      .timeout_ms = integer_behind(work, "Timeout(ms)=").value_or(0)};
}

// "[19008, 4]": how many elements; -1 if it is not a list of sizes.
std::int64_t elements_of(std::string_view shape) {
  if (!shape.starts_with('['))
    return -1;
  std::int64_t product = 1;
  std::size_t at = 1;
  while (at < shape.size() && shape[at] != ']') {
    const std::optional<std::int64_t> size = integer_at(shape, at);
    if (!size || *size < 0 || __builtin_mul_overflow(product, *size, &product))
      return -1;
    at = shape.find_first_of(",]", at);
    if (at == kNowhere)
      return -1;
    at = shape.find_first_not_of(", ", at);
  }
  return at == kNowhere ? -1 : product;
}

// "3" or "1, 3" up to `end`
std::vector<Rank> rank_list(std::string_view text) {
  constexpr std::size_t kMost = 100'000;
  std::vector<Rank> ranks;
  while (!text.empty() && ranks.size() < kMost) {
    const std::string_view item =
        trimmed(text.substr(0, text.find(',')), kBlanks);
    const std::optional<Rank> rank = leading_rank(item);
    if (!rank || item.find_first_not_of("0123456789") != kNowhere)
      return {};
    ranks.push_back(*rank);
    const std::size_t comma = text.find(',');
    text = comma == kNowhere ? "" : text.substr(comma + 1);
  }
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

}  // namespace

std::optional<ProgressLine> read_progress_line(std::string_view text) {
  if (text.find("Rank ") == kNowhere)
    return std::nullopt;
  ProgressLine line;
  line.timed_out = work_in(text);
  // What is printed periodically is not the state at the end.
  const bool state = text.find(" update periodically") == kNowhere &&
                     text.find("ast enqueued") != kNowhere;
  if (state) {
    for (const std::string_view words :
         {"ast enqueued NCCL work: ", "ast enqueued work: "})
      if (!line.enqueued)
        line.enqueued = whole_integer_behind(text, words, ",");
    for (const std::string_view words :
         {"ast started NCCL work: ", "ast started work: "})
      if (!line.started)
        line.started = whole_integer_behind(text, words, ",");
    line.completed =
        whole_integer_behind(text, "ast completed NCCL work: ", ".");
    // Here the line ends.
    if (!line.completed)
      line.completed = integer_behind(text, "ast completed work: ");
    for (const std::string_view words :
         {"watchdog at work: ", "Timeout at NCCL work: ",
          "at work sequence id: "})
      if (!line.failed)
        line.failed = integer_behind(text, words);
  }
  if (text.find("rocessGroupNCCL init") != kNowhere) {
    line.members = integer_behind(text, "options: size: ");
    if (const auto rank = integer_behind(text, "global rank: ");
        rank && *rank >= 0 && *rank <= INT32_MAX)
      line.rank = Rank{static_cast<std::int32_t>(*rank)};
  }
  if (!line.timed_out && !line.enqueued && !line.members)
    return std::nullopt;
  if (!take_group(text, line))
    return std::nullopt;
  return line;
}

// "Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=7,
// OpType=ALLREDUCE, TensorShape=[25], TensorDtypes=Float, ...), but Rank 0 is
// running collective: ..." The second may lack all but its operation.
std::vector<LoggedCall> read_fingerprints(std::string_view text) {
  constexpr std::string_view kWords = " is running collective: ";
  constexpr std::size_t kMost = 8;
  std::vector<LoggedCall> calls;
  for (std::size_t at = text.find(kWords);
       at != kNowhere && calls.size() < kMost; at = text.find(kWords, at + 1)) {
    const std::size_t start = text.rfind("Rank ", at);
    if (start == kNowhere)
      return {};
    const std::string_view number = text.substr(start + 5, at - start - 5);
    const std::optional<Rank> place = leading_rank(number);
    if (!place || number.find_first_not_of("0123456789") != kNowhere)
      return {};
    const std::string_view rest = text.substr(at + kWords.size());
    const std::string_view own = rest.substr(0, rest.find(kWords));
    LoggedCall call{.place = *place, .operation = {}};
    if (own.starts_with("CollectiveFingerPrint(")) {
      call.operation.type = word_behind(own, "OpType=");
      const std::size_t shape = own.find("TensorShape=");
      if (shape != kNowhere) {
        call.operation.sequence =
            integer_behind(own, "SequenceNumber=").value_or(0);
        call.operation.inputs = elements_of(own.substr(shape + 12));
        call.operation.dtype = word_behind(own, "TensorDtypes=");
      }
    } else {
      call.operation.type = own.substr(0, own.find_first_of("., ") == kNowhere
                                              ? 0
                                              : own.find_first_of("., "));
    }
    if (call.operation.type.empty())
      return {};
    calls.push_back(call);
  }
  return calls.size() < 2 ? std::vector<LoggedCall>{} : calls;
}

namespace {

// "[0, 3]" before `end`
std::vector<Rank> list_before(std::string_view text, std::size_t end) {
  const std::size_t open = text.rfind('[', end);
  return open == kNowhere ? std::vector<Rank>()
                          : rank_list(text.substr(open + 1, end - open - 1));
}

}  // namespace

std::optional<LoggedClaim> read_claim(std::string_view text) {
  using enum LoggedClaim::Kind;
  struct Phrase {
    std::string_view words;
    LoggedClaim::Kind kind;
    std::string_view number;  // what is before the sequence number
  };
  constexpr std::array<Phrase, 6> kPhrases = {{
      {"] finished collective #", kDesync, "didn't join collective #"},
      {"] are the lagging ranks that caused", kDesync, ""},
      {"] joined but didn't finish collective #", kUnfinished,
       "didn't finish collective #"},
      {"] Timeout at collective: ", kReporter, "#"},
      {"] started ", kSnapshot, ""},
      {"] finished ", kSnapshot, ""},
  }};
  if (text.find(']') == kNowhere && text.find("monitoredBarrier") == kNowhere)
    return std::nullopt;
  LoggedClaim claim;
  if (const std::size_t at = text.find(" failed to pass monitoredBarrier");
      at != kNowhere) {
    const std::string_view before = text.substr(0, at);
    const std::size_t word = before.rfind("Rank");
    if (word == kNowhere)
      return std::nullopt;
    const std::size_t space = before.find(' ', word);
    if (space == kNowhere)
      return std::nullopt;
    claim.places = rank_list(before.substr(space + 1));
  } else if (const std::size_t reached =
                 text.find(" successfully reached monitoredBarrier");
             reached != kNowhere) {
    const std::size_t word = text.rfind("Rank ", reached);
    if (word == kNowhere)
      return std::nullopt;
    claim.kind = kReached;
    claim.places = rank_list(text.substr(word + 5, reached - word - 5));
  } else {
    const auto phrase =
        std::ranges::find_if(kPhrases, [&](const Phrase& known) {
          return text.find(known.words) != kNowhere;
        });
    if (phrase == kPhrases.end())
      return std::nullopt;
    claim.kind = phrase->kind;
    claim.places = list_before(text, text.find(phrase->words));
    if (!phrase->number.empty())
      claim.sequence = integer_behind(text, phrase->number);
    if (claim.kind == kDesync && !phrase->number.empty() && !claim.sequence)
      return std::nullopt;
    // Words that others use, too.
    if (claim.kind == kSnapshot && trimmed(text, kBlanks).front() != '[')
      return std::nullopt;
  }
  return claim.places.empty() ? std::nullopt : std::optional(std::move(claim));
}

std::optional<std::int64_t> read_world_size(std::string_view text) {
  constexpr std::int64_t kMost = 1 << 20;
  constexpr std::array<std::string_view, 5> kWords = {
      " nranks ", "WORLD_SIZE=", "world_size=", "world size: ", "world_size: "};
  std::optional<std::int64_t> size;
  for (const std::string_view words : kWords)
    if (!size)
      size = integer_behind(text, words);
  if (const std::size_t member = text.find("MEMBER: ");
      !size && member != kNowhere) {
    const std::string_view rest = text.substr(member + 8);
    const std::size_t slash = rest.find('/');
    if (slash != kNowhere && slash < 8)
      size = integer_at(rest, slash + 1);
  }
  return size && *size > 0 && *size <= kMost ? size : std::nullopt;
}

}  // namespace postflight
