#include "flight/model/dump_reader.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <utility>

#include "base/file.h"
#include "base/truncation_guard.h"
#include "flight/model/dump_value.h"
#include "flight/model/recorder_dump.h"
#include "json/json_value.h"
#include "pickle/builder.h"
#include "pickle/machine.h"
#include "stream/codec/compression.h"
#include "stream/filter_stream.h"
#include "stream/memory_stream.h"
#include "stream/tar/reader.h"

namespace postflight {
namespace {

bool is_empty_dict(const Value& value) {
  return value.is(Kind::kDict) && value.pairs().empty();
}

// The entries of `list` and the whole ones among those not yet appended to it.
Value whole_entries(const Value& list, std::span<const Value> pending,
                    bool last_is_open, Builder& builder) {
  const Value whole = builder.list(list.items());
  if (last_is_open && !pending.empty())
    pending = pending.first(pending.size() - 1);
  for (const Value& entry : pending)
    if (entry.is(Kind::kDict) && !is_empty_dict(entry))
      builder.append(whole, entry);
  return whole;
}

// Rebuilds a truncated dump as a smaller one: the keys before the truncation,
// and the entries that are whole. `unfinished` is the result of
// Machine::unfinished(). Returns nothing if nothing useful came before the
// truncation.
//
// A pickler writes a dictionary as an empty dictionary, a mark, all keys and
// values, and then the opcode that adds them; lists likewise. So in a truncated
// dump the outer containers are still empty, and their parts are on the stack
// between marks:
//
//   {}  |  'version' '2.10' ... 'entries' []  |  entry entry {}  |  'state' ...
//
// The last entry is whole only if no mark follows it. Old protocols add items
// one by one, without marks, so the parts are in their containers already.
std::optional<Value> salvage(
    const std::vector<std::span<const Value>>& unfinished, Builder& builder) {
  if (unfinished[0].empty() || !unfinished[0][0].is(Kind::kDict))
    return std::nullopt;
  const Value root = builder.dict(unfinished[0][0].pairs());
  // Without marks, keys and values follow the root itself.
  const bool marked = unfinished.size() > 1;
  const std::span<const Value> parts =
      marked ? unfinished[1] : unfinished[0].subspan(1);
  const std::size_t above = marked ? 2 : 1;
  for (std::size_t i = 0; i + 1 < parts.size(); i += 2) {
    const Value& key = parts[i];
    Value value = parts[i + 1];
    const bool last = i + 2 >= parts.size();
    const bool entries = key.is(Kind::kString) && key.text() == "entries" &&
                         value.is(Kind::kList);
    if (entries) {
      const std::span<const Value> pending = last && unfinished.size() > above
                                                 ? unfinished[above]
                                                 : std::span<const Value>();
      value =
          whole_entries(value, pending, unfinished.size() > above + 1, builder);
    } else if (last && unfinished.size() > above) {
      break;  // its parts are still on the stack
    }
    builder.set_item(root, key, value);
    if (entries && !marked)
      break;  // the rest belongs to an unfinished entry
  }
  return root;
}

Result<Dump> damaged(const std::optional<Value>& root, Error error,
                     MemberLists& lists) {
  if (!root || !looks_like_dump(*root))
    return tl::unexpected<Error>(
        std::move(error).in("not a flight-recorder dump"));
  Dump dump = TRY(dump_from_value(*root, lists));
  dump.damage = std::move(error);
  return dump;
}

Result<Dump> read_pickle_dump(Bytes bytes, Machine& machine,
                              MemberLists& lists) {
  if (std::optional<Dump> dump = read_recorder_dump(bytes, lists))
    return *std::move(dump);
  machine.reset();
  Result<Pickle> pickle = machine.load(bytes);
  if (pickle) {
    Dump dump = TRY(dump_from_value(pickle->root, lists));
    if (!machine.globals().empty())
      dump.imports = fmt::format("{}.{}", machine.globals()[0]->module,
                                 machine.globals()[0]->name);
    return dump;
  }
  Builder builder;
  return damaged(salvage(machine.unfinished(), builder),
                 std::move(pickle).error(), lists);
}

Result<Dump> read_json_dump(Bytes bytes, const Limits& limits,
                            MemberLists& lists) {
  Builder builder;
  JsonValue json = read_json_value(as_text(bytes), builder,
                                   {.limits = limits, .share_texts = true});
  Result<Dump> dump = json.damage
                          ? damaged(json.root, *std::move(json.damage), lists)
                          : dump_from_value(*json.root, lists);
  if (dump)
    dump->json = true;
  return dump;
}

// JSON starts with a brace or bracket, possibly after whitespace or a byte
// order mark; no pickle does.
bool is_json(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf"))
    return true;
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != text.npos && (text[begin] == '{' || text[begin] == '[');
}

// Protocols from 2 on start with PROTO. Older ones start with the dictionary,
// or with the list that recorders before version 1 wrote.
bool is_pickle(Bytes bytes) {
  constexpr std::string_view kFirst = "\x80(}]";
  return kFirst.find(as_text(bytes)[0]) != kFirst.npos;
}

class PartReader {
 public:
  PartReader(Machine& machine, const Limits& limits, MemberLists& lists)
      : machine_(machine), limits_(limits), lists_(lists) {
    limits_.max_inflated_bytes =
        std::min(limits_.max_inflated_bytes, limits_.max_dump_bytes);
  }

  std::vector<DumpPart> read(const std::string& file, Bytes bytes) && {
    const Compression compression = sniff_compression(bytes);
    MemorySource plain(bytes);
    if (compression == Compression::kNone) {
      if (looks_like_tar(bytes))
        read_archive(file, plain);
      else
        read_one(file, bytes, {});
      return std::move(parts_);
    }
    if (holds_archive(compression, bytes)) {
      Result<std::unique_ptr<Filter>> decoder =
          make_decoder(compression, limits_);
      if (!decoder) {
        skip(file, decoder.error());
        return std::move(parts_);
      }
      FilterSource source(plain, *std::move(decoder));
      read_archive(file, source);
      return std::move(parts_);
    }
    Decompressed decoded = decompress(bytes, limits_);
    read_one(file, as_bytes(decoded.bytes), std::move(decoded.damage));
    return std::move(parts_);
  }

 private:
  bool holds_archive(Compression compression, Bytes bytes) {
    Result<std::unique_ptr<Filter>> decoder =
        make_decoder(compression, limits_);
    if (!decoder)
      return false;
    MemorySource plain(bytes);
    FilterSource source(plain, *std::move(decoder));
    std::array<std::byte, kTarBlock> front;
    const Result<std::size_t> count = read_fully(source, front);
    return count && *count == kTarBlock && looks_like_tar(front);
  }

  void read_archive(const std::string& file, Source& source) {
    TarReader archive(source, limits_);
    for (;;) {
      Result<std::optional<TarMember>> member = archive.next();
      if (!member) {
        skip(file, member.error());
        return;
      }
      if (!*member)
        return;
      if ((*member)->kind != TarKind::kFile)
        continue;
      const std::string name = file + "/" + (*member)->path;
      std::string contents;
      std::optional<Error> damage = read_member(archive, contents);
      if (sniff_compression(as_bytes(contents)) == Compression::kNone) {
        read_one(name, as_bytes(contents), std::move(damage));
        continue;
      }
      Decompressed decoded = decompress(as_bytes(contents), limits_);
      if (!decoded.damage)
        decoded.damage = std::move(damage);
      read_one(name, as_bytes(decoded.bytes), std::move(decoded.damage));
    }
  }

  // Reads to the end of the member; the size in its header is not trusted.
  std::optional<Error> read_member(TarReader& archive, std::string& contents) {
    std::array<std::byte, 64 << 10> piece;
    for (;;) {
      Result<Taken> taken = archive.read(piece);
      if (!taken)
        return std::move(taken).error();
      if (taken->at_end)
        return std::nullopt;
      if (contents.size() + taken->count > limits_.max_dump_bytes)
        return Error(ErrorKind::kRefused,
                     fmt::format("larger than the limit of {} bytes "
                                 "(max_dump_bytes)",
                                 limits_.max_dump_bytes));
      contents += as_text(Bytes(piece).first(taken->count));
    }
  }

  void read_one(const std::string& file, Bytes bytes,
                std::optional<Error> damage) {
    Result<Dump> dump = read_dump(bytes, machine_, limits_, lists_);
    if (!dump) {
      skip(file, damage && bytes.empty() ? *damage : dump.error(),
           bytes.empty() && !damage);
      return;
    }
    if (damage)
      dump->damage = std::move(damage);
    parts_.push_back({file, *std::move(dump), std::nullopt});
  }

  void skip(const std::string& file, const Error& error, bool empty = false) {
    parts_.push_back(
        {file, std::nullopt,
         SkippedFile{file, std::string(error.message()), empty, -1}});
  }

  Machine& machine_;
  Limits limits_;
  MemberLists& lists_;
  std::vector<DumpPart> parts_;
};

// All of a dump is looked at, so without a TruncationGuard it is copied.
Result<MappedFile> open_dump(const std::string& file, const Limits& limits) {
  MappedFile mapped = TRY(MappedFile::open(file, limits));
  if (!TruncationGuard::exists())
    TRY(mapped.copy_in(0, mapped.bytes().size()));
  return mapped;
}

}  // namespace

Result<Dump> read_dump(Bytes bytes, Machine& machine, const Limits& limits,
                       MemberLists& lists) {
  if (bytes.empty())
    return fail(ErrorKind::kCorrupt,
                "the file is empty: the process was probably killed before it "
                "wrote its dump");
  if (is_json(as_text(bytes)))
    return read_json_dump(bytes, limits, lists);
  if (!is_pickle(bytes))
    return fail(ErrorKind::kUnsupported,
                "not a flight-recorder dump: neither pickle nor JSON");
  return read_pickle_dump(bytes, machine, lists);
}

DumpParts read_dump_parts(const std::string& file, Machine& machine,
                          const Limits& limits, MemberLists& lists) {
  DumpParts read;
  const Result<MappedFile> mapped = open_dump(file, limits);
  if (!mapped) {
    read.parts.push_back(
        {file, std::nullopt,
         SkippedFile{file,
                     permission_advice(file).value_or(
                         std::string(mapped.error().message())),
                     false, -1}});
    return read;
  }
  read.bytes = mapped->bytes().size();
  read.parts = PartReader(machine, limits, lists).read(file, mapped->bytes());
  // The part that was cut off meanwhile was read as zeros.
  if (mapped->shrank()) {
    read.parts.clear();
    read.parts.push_back(
        {file, std::nullopt,
         SkippedFile{file,
                     "the file shrank while it was read; is it still being "
                     "written?",
                     false, -1}});
  }
  return read;
}

}  // namespace postflight
