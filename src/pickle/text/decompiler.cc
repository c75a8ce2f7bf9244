#include "pickle/text/decompiler.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/ascii.h"
#include "pickle/repr.h"
#include "pickle/text/disassembler.h"

namespace postflight {
namespace {

// Longer expressions get a variable, so that nothing is written twice at length
// however often it is used.
constexpr std::size_t kLongestInline = 60;

bool is_identifier(std::string_view text) {
  return !text.empty() && !is_digit(text[0]) &&
         std::ranges::all_of(text, [](char c) {
           return is_letter(c) || is_digit(c) || c == '_';
         });
}

bool is_dotted(std::string_view text) {
  constexpr std::size_t kLongestName = 200;
  if (text.size() > kLongestName)
    return false;
  for (;;) {
    const std::size_t dot = text.find('.');
    if (!is_identifier(text.substr(0, dot)))
      return false;
    if (dot == text.npos)
      return true;
    text = text.substr(dot + 1);
  }
}

struct Item {
  std::string expression;
  std::string text;                // what a short string says; for STACK_GLOBAL
  std::vector<std::string> parts;  // of a short tuple
  bool is_tuple = false;
};

class Decompiler {
 public:
  Decompiler(Bytes pickle, const DecompilerOptions& options,
             const Limits& limits,
             const std::function<void(std::string_view)>& line)
      : disassembler_(pickle, limits), options_(options), line_(line) {}

  Result<> run() {
    for (;;) {
      const std::optional<Instruction> next = TRY(disassembler_.next());
      if (!next)
        return {};
      TRY(step(*next).in(fmt::format("byte {}", next->offset)));
    }
  }

 private:
  void say(std::string_view line) { line_(line); }

  void push(std::string expression) {
    stack_.push_back({std::move(expression), {}, {}, false});
  }

  std::string assign(const std::string& expression) {
    const std::string name = fmt::format("x{}", variables_++);
    say(fmt::format("{} = {}", name, expression));
    return name;
  }

  // Short ones stay as they are.
  std::string compact(std::string expression) {
    return expression.size() <= kLongestInline ? std::move(expression)
                                               : assign(expression);
  }

  std::size_t fence() const { return marks_.empty() ? 0 : marks_.back(); }

  Result<Item> pop() {
    if (stack_.size() <= fence())
      return fail(ErrorKind::kCorrupt, "the stack underflows");
    Item item = std::move(stack_.back());
    stack_.pop_back();
    return item;
  }

  Result<Item*> top() {
    if (stack_.size() <= fence())
      return fail(ErrorKind::kCorrupt, "the stack underflows");
    return &stack_.back();
  }

  Result<std::vector<Item>> pop_mark() {
    if (marks_.empty())
      return fail(ErrorKind::kCorrupt, "there is no MARK");
    std::vector<Item> items(
        std::make_move_iterator(stack_.begin() +
                                static_cast<std::ptrdiff_t>(marks_.back())),
        std::make_move_iterator(stack_.end()));
    stack_.resize(marks_.back());
    marks_.pop_back();
    return items;
  }

  static std::string joined(const std::vector<Item>& items,
                            std::size_t first = 0) {
    std::string all;
    for (std::size_t i = first; i < items.size(); ++i)
      all += (i == first ? "" : ", ") + items[i].expression;
    return all;
  }

  void push_tuple(const std::vector<Item>& items) {
    std::string expression =
        fmt::format("({}{})", joined(items), items.size() == 1 ? "," : "");
    Item item;
    item.is_tuple = expression.size() <= kLongestInline;
    if (item.is_tuple)
      for (const Item& part : items)
        item.parts.push_back(part.expression);
    item.expression = compact(std::move(expression));
    stack_.push_back(std::move(item));
  }

  // f(a, b) of a tuple (a, b) that is in sight, else f(*x).
  static std::string call(const std::string& function, const Item& arguments,
                          std::string_view first = {}) {
    std::string inside(first);
    if (!arguments.is_tuple) {
      inside += (inside.empty() ? "*" : ", *") + arguments.expression;
    } else {
      for (const std::string& part : arguments.parts)
        inside += (inside.empty() ? "" : ", ") + part;
    }
    return fmt::format("{}({})", function, inside);
  }

  std::string name(std::string_view module, std::string_view name) {
    if (is_dotted(module) && is_dotted(name)) {
      if (imported_.insert(std::string(module)).second)
        say(fmt::format("import {}", module));
      return compact(fmt::format("{}.{}", module, name));
    }
    return assign(fmt::format("getattr(__import__({}), {})",
                              shown(repr_string, module),
                              shown(repr_string, name)));
  }

  std::string shown(std::string (*repr)(std::string_view),
                    std::string_view text) const {
    if (options_.text == 0 || text.size() <= options_.text)
      return repr(text);
    std::size_t end = options_.text;
    while (end > 0 && (text[end] & 0xc0) == 0x80)  // not inside a character
      --end;
    return fmt::format("{} + ...  # {} bytes", repr(text.substr(0, end)),
                       text.size());
  }

  void push_text(const Instruction& instruction,
                 std::string (*repr)(std::string_view)) {
    Item item;
    std::string literal = shown(repr, instruction.text);
    if (instruction.kind == Kind::kByteArray)
      literal = fmt::format(
          "bytearray({})",
          repr_bytes(instruction.text.substr(
              0, options_.text == 0 ? std::string::npos : options_.text)));
    if (instruction.text.size() <= kLongestInline)
      item.text = instruction.text;
    item.expression = compact(std::move(literal));
    stack_.push_back(std::move(item));
  }

  Result<> step(const Instruction& instruction) {
    switch (instruction.info->code) {
      case Opcode::kProto:
      case Opcode::kFrame:
        return {};
      case Opcode::kMark:
        marks_.push_back(stack_.size());
        return {};
      case Opcode::kStop:
        say("result = " + TRY(pop()).expression);
        return {};
      case Opcode::kPop:
        if (!marks_.empty() && stack_.size() == marks_.back())
          marks_.pop_back();
        else
          TRY(pop());
        return {};
      case Opcode::kPopMark:
        TRY(pop_mark());
        return {};
      case Opcode::kDup: {
        Item item = *TRY(top());
        stack_.push_back(std::move(item));
        return {};
      }
      case Opcode::kNone:
        push("None");
        return {};
      case Opcode::kNewTrue:
        push("True");
        return {};
      case Opcode::kNewFalse:
        push("False");
        return {};
      case Opcode::kEmptyTuple:
        push_tuple({});
        return {};
      case Opcode::kEmptyList:
        push(assign("[]"));
        return {};
      case Opcode::kEmptyDict:
        push(assign("{}"));
        return {};
      case Opcode::kEmptySet:
        push(assign("set()"));
        return {};
      case Opcode::kTuple1:
      case Opcode::kTuple2:
      case Opcode::kTuple3: {
        const std::size_t count =
            static_cast<std::size_t>(instruction.info->code) - 0x84;
        std::vector<Item> items(count);
        for (std::size_t i = count; i-- > 0;)
          items[i] = TRY(pop());
        push_tuple(items);
        return {};
      }
      case Opcode::kTuple:
        push_tuple(TRY(pop_mark()));
        return {};
      case Opcode::kList:
        push(assign(fmt::format("[{}]", joined(TRY(pop_mark())))));
        return {};
      case Opcode::kFrozenSet:
        push(assign(fmt::format("frozenset([{}])", joined(TRY(pop_mark())))));
        return {};
      case Opcode::kDict: {
        const std::vector<Item> items = TRY(pop_mark());
        push(assign(fmt::format("{{{}}}", paired(items))));
        return {};
      }
      case Opcode::kAppend: {
        const Item item = TRY(pop());
        say(fmt::format("{}.append({})", TRY(top())->expression,
                        item.expression));
        return {};
      }
      case Opcode::kAppends:
      case Opcode::kAddItems: {
        const std::vector<Item> items = TRY(pop_mark());
        say(fmt::format(
            "{}.{}([{}])", TRY(top())->expression,
            instruction.info->code == Opcode::kAppends ? "extend" : "update",
            joined(items)));
        return {};
      }
      case Opcode::kSetItem: {
        const Item value = TRY(pop());
        const Item key = TRY(pop());
        say(fmt::format("{}[{}] = {}", TRY(top())->expression, key.expression,
                        value.expression));
        return {};
      }
      case Opcode::kSetItems: {
        const std::vector<Item> items = TRY(pop_mark());
        const std::string target = TRY(top())->expression;
        for (std::size_t i = 0; i + 1 < items.size(); i += 2)
          say(fmt::format("{}[{}] = {}", target, items[i].expression,
                          items[i + 1].expression));
        return {};
      }
      case Opcode::kGlobal:
        push(name(instruction.text, instruction.name));
        return {};
      case Opcode::kStackGlobal: {
        const Item wanted = TRY(pop());
        const Item module = TRY(pop());
        if (!wanted.text.empty() && !module.text.empty())
          push(name(module.text, wanted.text));
        else
          push(assign(fmt::format("getattr(__import__({}), {})",
                                  module.expression, wanted.expression)));
        return {};
      }
      case Opcode::kReduce: {
        const Item arguments = TRY(pop());
        const Item function = TRY(pop());
        push(assign(call(function.expression, arguments)));
        return {};
      }
      case Opcode::kNewObj: {
        const Item arguments = TRY(pop());
        const Item type = TRY(pop());
        push(assign(
            call(type.expression + ".__new__", arguments, type.expression)));
        return {};
      }
      case Opcode::kNewObjEx: {
        const Item keywords = TRY(pop());
        const Item arguments = TRY(pop());
        const Item type = TRY(pop());
        std::string made =
            call(type.expression + ".__new__", arguments, type.expression);
        made.insert(made.size() - 1, ", **" + keywords.expression);
        push(assign(made));
        return {};
      }
      case Opcode::kInst: {
        const std::vector<Item> items = TRY(pop_mark());
        const std::string type = name(instruction.text, instruction.name);
        push(assign(fmt::format("{}({})", type, joined(items))));
        return {};
      }
      case Opcode::kObj: {
        const std::vector<Item> items = TRY(pop_mark());
        if (items.empty())
          return fail(ErrorKind::kCorrupt, "OBJ has no class");
        push(assign(
            fmt::format("{}({})", items[0].expression, joined(items, 1))));
        return {};
      }
      case Opcode::kBuild: {
        const Item state = TRY(pop());
        say(fmt::format("{}.__setstate__({})", TRY(top())->expression,
                        state.expression));
        return {};
      }
      case Opcode::kPersId:
        push(assign(fmt::format("persistent_load({})",
                                shown(repr_string, instruction.text))));
        return {};
      case Opcode::kBinPersId: {
        const Item id = TRY(pop());
        push(assign(fmt::format("persistent_load({})", id.expression)));
        return {};
      }
      case Opcode::kExt1:
      case Opcode::kExt2:
      case Opcode::kExt4:
        push(fmt::format("get_extension({})", instruction.number));
        return {};
      case Opcode::kNextBuffer:
        push(assign("next(buffers)"));
        return {};
      case Opcode::kReadOnlyBuffer: {
        Item* const buffer = TRY(top());
        buffer->expression = assign(
            fmt::format("memoryview({}).toreadonly()", buffer->expression));
        return {};
      }
      case Opcode::kPut:
      case Opcode::kBinPut:
      case Opcode::kLongBinPut:
        memo_[key_of(instruction)] = *TRY(top());
        return {};
      case Opcode::kMemoize:
        memo_[memo_.size()] = *TRY(top());
        return {};
      case Opcode::kGet:
      case Opcode::kBinGet:
      case Opcode::kLongBinGet: {
        const auto found = memo_.find(key_of(instruction));
        if (found == memo_.end())
          return fail(ErrorKind::kCorrupt, "there is no such memo entry");
        Item item = found->second;
        stack_.push_back(std::move(item));
        return {};
      }
      default:
        return push_literal(instruction);
    }
  }

  static std::uint64_t key_of(const Instruction& instruction) {
    // Keys beyond 63 bits share an entry, which no reader gets to.
    return static_cast<std::uint64_t>(instruction.number);
  }

  static std::string paired(const std::vector<Item>& items) {
    std::string all;
    for (std::size_t i = 0; i + 1 < items.size(); i += 2)
      all += fmt::format("{}{}: {}", i == 0 ? "" : ", ", items[i].expression,
                         items[i + 1].expression);
    return all;
  }

  Result<> push_literal(const Instruction& instruction) {
    switch (instruction.kind) {
      case Kind::kString:
        push_text(instruction, repr_string);
        return {};
      case Kind::kBytes:
      case Kind::kByteArray:
      case Kind::kLegacyString:
        push_text(instruction, repr_bytes);
        return {};
      case Kind::kBoolean:
      case Kind::kInteger:
      case Kind::kBigInteger:
        push(compact(argument_text(instruction)));
        return {};
      case Kind::kFloat: {
        const std::string text = argument_text(instruction);
        push(is_letter(text.back()) ? fmt::format("float('{}')", text) : text);
        return {};
      }
      default:
        return fail(ErrorKind::kUnsupported, "{} is not read",
                    instruction.info->name);
    }
  }

  Disassembler disassembler_;
  DecompilerOptions options_;
  const std::function<void(std::string_view)>& line_;
  std::vector<Item> stack_;
  std::vector<std::size_t> marks_;
  std::map<std::uint64_t, Item> memo_;
  std::set<std::string> imported_;
  std::uint64_t variables_ = 0;
};

}  // namespace

Result<> decompile(Bytes pickle, const DecompilerOptions& options,
                   const Limits& limits,
                   const std::function<void(std::string_view)>& line) {
  return Decompiler(pickle, options, limits, line).run();
}

}  // namespace postflight
