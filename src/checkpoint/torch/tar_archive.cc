// torch.save before 0.1.10: a tar with `sys_info`, `storages`, `tensors` and
// `pickle`, in which tensors and storages are named by numbers.

#include <algorithm>
#include <map>

#include "checkpoint/torch/sources.h"
#include "checkpoint/torch/tree_builder.h"
#include "stream/tar/reader.h"

namespace postflight {
namespace {

using Members = std::map<std::string, Extent, std::less<>>;

// The files of the archive. One that is damaged or truncated further on may
// still have all that is needed.
Result<Members> read_members(Bytes file, const Limits& limits) {
  TarListing listing = list_tar(file, limits);
  Members members;
  for (const TarMember& member : listing.members) {
    std::string_view name = member.path;
    while (name.starts_with("./"))
      name.remove_prefix(2);
    if (member.kind == TarKind::kFile)
      members.try_emplace(std::string(name),
                          Extent{member.offset, member.size});
  }
  for (const std::string_view name : {"storages", "tensors", "pickle"}) {
    if (members.contains(name))
      continue;
    if (listing.damage)
      return tl::unexpected(*std::move(listing.damage));
    return fail(ErrorKind::kUnsupported,
                "a tar without the member '{}', so not one of torch's", name);
  }
  return members;
}

std::string number_text(const Value& value) {
  if (value.is(Kind::kInteger))
    return fmt::format("{}", value.integer());
  if (value.is(Kind::kString) || value.is(Kind::kLegacyString))
    return std::string(value.text());
  return "?";
}

class TarCheckpoint {
 public:
  TarCheckpoint(std::uint32_t file, const SourceContext& context)
      : context_(context),
        tree_(context.checkpoint.tree),
        data_(*context.checkpoint.files[file]),
        file_(file) {}

  Result<> add() {
    const Members members = TRY(read_members(data_.bytes(), context_.limits()));
    TRY(read_storages(members.at("storages")));
    TRY(read_tensors(members.at("tensors")));
    enter(members.at("pickle"));
    const Value object = TRY(next_pickle());
    TreeBuilder builder(
        tree_, [](const Value&, StorageReference&) { return kNoIndex; });
    builder.set_tensor_resolver(
        [this](const Value& id) { return tensor_of(id); });
    return place(builder, object, context_);
  }

 private:
  struct Known {
    std::uint32_t storage = kNoIndex;
    Dtype dtype;
    std::uint64_t offset = 0;  // in elements, of a view
    std::uint64_t bytes = 0;
    std::string_view device;
  };

  void enter(const Extent& member) {
    at_ = member.offset;
    end_ = member.end();
  }

  Result<Value> next_pickle() {
    const Pickle pickle =
        TRY(load_pickle(context_.checkpoint, data_,
                        data_.bytes().subspan(at_, end_ - at_))
                .in(fmt::format("byte {}", at_)));
    at_ += pickle.size;
    return pickle.root;
  }

  template <class T>
  Result<T> next_number() {
    if (end_ - at_ < sizeof(T))
      return fail(ErrorKind::kCorrupt, "a member ends at byte {}", end_);
    const auto number = load_little_endian<T>(data_.bytes().data() + at_);
    at_ += sizeof(T);
    return number;
  }

  Result<std::uint64_t> next_count() {
    const Value count = TRY(next_pickle());
    // Each takes a pickle of at least two bytes.
    if (!count.is(Kind::kInteger) || count.integer() < 0 ||
        static_cast<std::uint64_t>(count.integer()) > (end_ - at_) / 2)
      return fail(ErrorKind::kCorrupt, "byte {}: a count is expected here",
                  at_);
    return static_cast<std::uint64_t>(count.integer());
  }

  Result<> read_storages(const Extent& member) {
    enter(member);
    const std::uint64_t count = TRY(next_count());
    for (std::uint64_t i = 0; i < count; ++i) {
      const Value about = TRY(next_pickle());
      if (!about.is(Kind::kTuple) || about.items().size() != 3 ||
          !about.items()[2].is(Kind::kGlobal))
        return fail(ErrorKind::kCorrupt, "byte {}: a storage is expected here",
                    at_);
      const std::span<const Value> parts = about.items();
      const Dtype* const dtype = dtype_of_storage(parts[2].global().name);
      const auto elements = TRY(next_number<std::uint64_t>());
      const auto bytes =
          dtype ? checked_multiply(elements, std::uint64_t{dtype->size})
                : std::nullopt;
      if (!bytes || *bytes > end_ - at_)
        return fail(ErrorKind::kCorrupt,
                    "storage {} of {} elements reaches beyond its member",
                    number_text(parts[0]), elements);
      Storage& storage = tree_.storages.emplace_back();
      storage.key = tree_.keep(number_text(parts[0]));
      storage.file = file_;
      storage.size = *bytes;
      storage.extent = {at_, *bytes};
      at_ += *bytes;
      storages_[std::string(storage.key)] = {
          static_cast<std::uint32_t>(tree_.storages.size() - 1), *dtype, 0,
          *bytes,
          parts[1].is(Kind::kString) || parts[1].is(Kind::kLegacyString)
              ? parts[1].text()
              : std::string_view("cpu")};
    }
    if (at_ == end_)
      return {};
    return read_views(TRY(next_pickle()));
  }

  // (key, key of the whole, offset, count)
  Result<> read_views(const Value& views) {
    if (!views.is(Kind::kList))
      return {};
    for (const Value& view : views.items()) {
      if (!view.is(Kind::kTuple) || view.items().size() != 4)
        return fail(ErrorKind::kCorrupt,
                    "a view of a storage is not a tuple of four");
      const std::span<const Value> parts = view.items();
      const auto whole = storages_.find(number_text(parts[1]));
      if (whole == storages_.end() || !parts[2].is(Kind::kInteger) ||
          !parts[3].is(Kind::kInteger) || parts[2].integer() < 0 ||
          parts[3].integer() < 0)
        return fail(ErrorKind::kCorrupt, "a view of an unknown storage");
      Known known = whole->second;
      known.offset = static_cast<std::uint64_t>(parts[2].integer());
      const auto end = checked_add(
          known.offset, static_cast<std::uint64_t>(parts[3].integer()));
      const auto bytes =
          end ? checked_multiply(*end, std::uint64_t{known.dtype.size})
              : std::nullopt;
      if (!bytes || *bytes > known.bytes)
        return fail(ErrorKind::kCorrupt, "a view reaches beyond its storage");
      known.bytes = *bytes;
      storages_[number_text(parts[0])] = known;
    }
    return {};
  }

  Result<> read_tensors(const Extent& member) {
    enter(member);
    const std::uint64_t count = TRY(next_count());
    for (std::uint64_t i = 0; i < count; ++i) {
      const Value about = TRY(next_pickle());
      if (!about.is(Kind::kTuple) || about.items().size() != 3)
        return fail(ErrorKind::kCorrupt, "byte {}: a tensor is expected here",
                    at_);
      const auto dimensions = TRY(next_number<std::uint32_t>());
      TRY(next_number<std::uint32_t>());
      if (dimensions > (end_ - at_) / 16)
        return fail(ErrorKind::kCorrupt,
                    "a tensor of {} dimensions reaches beyond its member",
                    dimensions);
      std::vector<std::int64_t> shape(dimensions);
      std::vector<std::int64_t> stride(dimensions);
      for (std::int64_t& size : shape)
        size = TRY(next_number<std::int64_t>());
      for (std::int64_t& step : stride)
        step = TRY(next_number<std::int64_t>());
      const auto offset = TRY(next_number<std::int64_t>());
      const auto known = storages_.find(number_text(about.items()[1]));
      Tensor tensor;
      tensor.shape = tree_.keep(shape);
      tensor.stride = tree_.keep(stride);
      if (known == storages_.end() || offset < 0) {
        tensor.problem = "its storage is not in the file";
      } else {
        tensor.dtype = known->second.dtype;
        tensor.device = known->second.device;
        tensor.storage = known->second.storage;
        const auto at = checked_add(static_cast<std::uint64_t>(offset),
                                    known->second.offset);
        tensor.offset = at.value_or(0);
        tensor.problem =
            tree_.keep(at ? check_bounds(tensor, known->second.bytes)
                          : std::string("its offset is beyond 64 bits"));
      }
      tree_.tensors.push_back(tensor);
      tensors_[number_text(about.items()[0])] =
          static_cast<std::uint32_t>(tree_.tensors.size() - 1);
    }
    return {};
  }

  std::uint32_t tensor_of(const Value& id) {
    const std::string key = number_text(id);
    if (const auto known = tensors_.find(key); known != tensors_.end())
      return known->second;
    const auto storage = storages_.find(key);
    if (storage == storages_.end())
      return kNoIndex;
    const Known& known = storage->second;
    const auto count = static_cast<std::int64_t>(
        known.bytes / known.dtype.size - known.offset);
    const std::uint32_t made = tree_.add_plain_tensor(
        known.dtype, std::span(&count, 1), known.storage);
    tree_.tensors[made].offset = known.offset;
    tree_.tensors[made].type = "Storage";
    tensors_[key] = made;
    return made;
  }

  const SourceContext& context_;
  Tree& tree_;
  DataFile& data_;
  const std::uint32_t file_;
  std::uint64_t at_ = 0;
  std::uint64_t end_ = 0;
  std::map<std::string, Known> storages_;
  std::map<std::string, std::uint32_t> tensors_;
};

}  // namespace

bool is_tar(Bytes file) {
  return looks_like_tar(file) ||
         (file.size() >= kTarBlock && as_text(file).substr(257, 5) == "ustar");
}

Result<> add_tar(std::uint32_t file, const SourceContext& context) {
  return TarCheckpoint(file, context).add();
}

}  // namespace postflight
