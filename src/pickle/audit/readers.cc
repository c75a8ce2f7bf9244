// All readers run the same machine; what tells them apart is which bytes they
// see and where they stop. So each reading is the machine's, over the bytes
// that the reader would get, up to the opcode that it refuses.

#include "pickle/audit/readers.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "pickle/audit/effect.h"
#include "pickle/audit/scrutiny.h"
#include "pickle/machine.h"
#include "pickle/names/renaming.h"
#include "pickle/text/disassembler.h"

namespace postflight {
namespace {

constexpr std::string_view kInPython = "python";

struct Refusal {
  std::uint64_t at = 0;
  std::string why;
};

// Goes through the opcodes and asks `refuse` about each; what it cannot decode
// ends the walk, and the machine says why.
template <class Refuse>
std::optional<Refusal> first_refusal(Bytes pickle, const Limits& limits,
                                     const Refuse& refuse) {
  Disassembler disassembler(pickle, limits);
  for (;;) {
    const Result<std::optional<Instruction>> next = disassembler.next();
    if (!next || !*next)
      return std::nullopt;
    if (std::optional<std::string> why = refuse(**next))
      return Refusal{(*next)->offset, std::move(*why)};
  }
}

// The frames of protocol 4: where the current one ends.
class Frames {
 public:
  // Why the reader in Python refuses this instruction, if it does.
  std::optional<std::string> refusal(const Instruction& instruction) {
    const std::uint64_t at = instruction.offset;
    const std::uint64_t end = at + instruction.size;
    if (at < end_ && end > end_)
      return "the frame ends inside this opcode";
    if (instruction.info->code != Opcode::kFrame)
      return std::nullopt;
    if (end < end_)
      return "a frame begins before the last one ended";
    end_ = end + static_cast<std::uint64_t>(instruction.number);
    return std::nullopt;
  }

 private:
  std::uint64_t end_ = 0;
};

}  // namespace

std::string bytes_behind_frames(Bytes pickle) {
  const std::string_view text = as_text(pickle);
  constexpr std::size_t kFrameHeader = 9;
  std::string seen;
  std::size_t at = 0;     // the next byte
  std::size_t limit = 0;  // the end of the buffer that holds it, if any
  // Takes `size` bytes as one read.
  const auto take = [&](std::uint64_t size) -> std::optional<std::string_view> {
    if (at < limit && size > limit - at)
      at = limit;
    if (size > text.size() - at)
      return std::nullopt;
    const std::string_view taken = text.substr(at, size);
    at += size;
    seen += taken;
    return taken;
  };
  const auto take_line = [&]() -> bool {
    std::size_t end = text.find('\n', at);
    if (at < limit && (end == text.npos || end >= limit)) {
      at = limit;
      end = text.find('\n', at);
    }
    if (end == text.npos)
      return false;
    seen += text.substr(at, end + 1 - at);
    at = end + 1;
    return true;
  };
  const auto little_endian = [](std::string_view bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = bytes.size(); i-- > 0;)
      value = value << 8 | static_cast<unsigned char>(bytes[i]);
    return value;
  };
  for (;;) {
    const auto code = take(1);
    if (!code)
      return seen;
    const OpcodeInfo* const info =
        opcode_info(static_cast<std::uint8_t>((*code)[0]));
    if (info == nullptr || info->code == Opcode::kStop)
      return seen;
    if (info->code == Opcode::kFrame) {
      const auto size = take(8);
      if (!size)
        return seen;
      const std::uint64_t wanted = little_endian(*size);
      if (at >= limit || wanted > limit - at) {
        if (at < limit)
          at = limit;  // a frame inside a frame that reaches beyond it
        if (wanted > text.size() - at)
          return seen.substr(0, seen.size() - kFrameHeader);
        limit = at + wanted;
      }
      // The frame is only a buffer; as an opcode, it would count the bytes.
      seen.resize(seen.size() - kFrameHeader);
      continue;
    }
    std::uint64_t width = 0;
    bool is_blob = false;
    switch (info->argument) {
      case Argument::kNone:
        continue;
      case Argument::kLine:
        if (!take_line())
          return seen;
        continue;
      case Argument::kTwoLines:
        if (!take_line() || !take_line())
          return seen;
        continue;
      case Argument::kUnsigned1:
        width = 1;
        break;
      case Argument::kUnsigned2:
        width = 2;
        break;
      case Argument::kUnsigned4:
      case Argument::kSigned4:
        width = 4;
        break;
      case Argument::kUnsigned8:
      case Argument::kFloat8:
        width = 8;
        break;
      case Argument::kBlob1:
        width = 1;
        is_blob = true;
        break;
      case Argument::kBlob4:
      case Argument::kSignedBlob4:
        width = 4;
        is_blob = true;
        break;
      case Argument::kBlob8:
        width = 8;
        is_blob = true;
        break;
    }
    const auto argument = take(width);
    if (!argument || (is_blob && !take(little_endian(*argument))))
      return seen;
  }
}

namespace {

// What torch/_weights_only_unpickler.py reads; other opcodes it refuses.
bool is_weights_only(Opcode code) {
  constexpr std::string_view kOpcodes = "aeGhJKMQXb}])cjr(NRsutqU.";
  switch (code) {
    case Opcode::kProto:
    case Opcode::kNewObj:
    case Opcode::kTuple1:
    case Opcode::kTuple2:
    case Opcode::kTuple3:
    case Opcode::kNewTrue:
    case Opcode::kNewFalse:
    case Opcode::kLong1:
    case Opcode::kEmptySet:
      return true;
    default: {
      const char byte = static_cast<char>(code);
      return kOpcodes.find(byte) != kOpcodes.npos;
    }
  }
}

// The names that it allows without add_safe_globals.
bool is_weights_only(const Global& global) {
  const Global name = renamed(global);
  if (name.module == "collections")
    return name.name == "OrderedDict" || name.name == "Counter";
  if (name.module == "builtins")
    return name.name == "set" || name.name == "bytearray" ||
           name.name == "complex";
  if (name.module == "_codecs")
    return name.name == "encode";
  if (name.module == "torch._utils")
    return judge(name).trust == Trust::kTorch &&
           name.name != "_rebuild_sparse_csr_tensor" &&
           name.name != "_rebuild_nested_tensor" &&
           name.name != "_rebuild_xla_tensor";
  if (name.module == "torch._tensor")
    return name.name == "_rebuild_from_type_v2";
  if (name.module == "torch.serialization")
    return name.name == "_get_layout";
  if (name.module == "torch.nn.parameter")
    return name.name == "Parameter";
  return (name.module == "torch" || name.module == "torch.cuda" ||
          name.module == "torch.sparse" || name.module == "torch.cuda.sparse" ||
          name.module == "torch.storage") &&
         judge(name).trust == Trust::kTorch;
}

std::optional<std::string> weights_only_refusal(
    const Instruction& instruction) {
  if (!is_weights_only(instruction.info->code))
    return fmt::format("it has no {}", instruction.info->name);
  if (instruction.info->code == Opcode::kGlobal &&
      !is_weights_only(Global{instruction.text, instruction.name}))
    return fmt::format("{} is not allowed",
                       dotted_name({instruction.text, instruction.name}));
  return std::nullopt;
}

std::optional<std::string> pickletools_refusal(const Instruction& instruction) {
  const auto is_ascii = [](std::string_view text) {
    return std::ranges::all_of(
        text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  };
  if (instruction.kind == Kind::kGlobal &&
      !(is_ascii(instruction.text) && is_ascii(instruction.name)))
    return "a name is not ASCII";
  return std::nullopt;
}

void add_once(std::string name, std::set<std::string>& met,
              std::vector<std::string>& to) {
  constexpr std::size_t kMost = 10'000;
  if (to.size() < kMost && met.insert(name).second)
    to.push_back(std::move(name));
}

// Runs the machine over what a reader gets, up to its refusal.
Reading reading_of(std::string_view reader, std::string_view title, Bytes bytes,
                   const std::optional<Refusal>& refusal,
                   const Limits& limits) {
  Reading reading{reader, title, false, {}, 0, {}, {}};
  Machine machine(limits);
  const Result<Pickle> loaded = machine.load(
      refusal ? bytes.first(static_cast<std::size_t>(refusal->at)) : bytes);
  // Only the reader in Python takes a name without a newline for one.
  if (!refusal && !loaded && reader != kInPython)
    static_cast<void>(machine.load(machine.seen()));
  reading.refuses = refusal.has_value() || !loaded;
  if (refusal) {
    reading.why = fmt::format("byte {}: {}", refusal->at, refusal->why);
    reading.at = refusal->at;
  } else if (!loaded) {
    reading.why = loaded.error().message();
    reading.at = machine.seen().size();
  } else {
    reading.at = loaded->size;
  }
  std::set<std::string> imported;
  for (const Global* const global : machine.globals())
    add_once(dotted_name(*global), imported, reading.imports);
  std::set<std::string> called;
  const EffectJudge judge(false);
  for (const Object* const object : machine.objects())
    add_once(judge.judge_call(*object).callable, called, reading.calls);
  return reading;
}

}  // namespace

Readings read_as_all(Bytes pickle, const Limits& limits) {
  Frames frames;
  const std::optional<Refusal> framed =
      first_refusal(pickle, limits, [&frames](const Instruction& instruction) {
        return frames.refusal(instruction);
      });
  const std::string old = bytes_behind_frames(pickle);

  Readings all;
  all.differences = scrutinize(pickle).doubts;
  all.readings.push_back(reading_of("c_memory", "CPython in C, loads()", pickle,
                                    std::nullopt, limits));
  all.readings.push_back(
      reading_of("c_file_old", "CPython in C, load() before 3.13.15",
                 framed ? as_bytes(old) : pickle, std::nullopt, limits));
  all.readings.push_back(
      reading_of("c_file", "CPython in C, load()", pickle, framed, limits));
  all.readings.push_back(
      reading_of(kInPython, "CPython in Python", pickle, framed, limits));
  all.readings.push_back(
      reading_of("weights_only", "torch, weights only", pickle,
                 first_refusal(pickle, limits, weights_only_refusal), limits));
  all.readings.push_back(
      reading_of("pickletools", "pickletools, of scanners", pickle,
                 first_refusal(pickle, limits, pickletools_refusal), limits));

  // One that refuses has seen a part, which may not be all that runs.
  const Reading* first = nullptr;
  for (const Reading& reading : all.readings) {
    if (reading.refuses)
      continue;
    if (first == nullptr)
      first = &reading;
    all.differ = all.differ || reading.imports != first->imports ||
                 reading.calls != first->calls;
  }
  return all;
}

}  // namespace postflight
