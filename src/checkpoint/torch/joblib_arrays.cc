#include "checkpoint/torch/joblib_arrays.h"

#include <algorithm>

#include "pickle/numpy_dtype.h"

namespace postflight {
namespace {

constexpr std::string_view kWrapperModule = "joblib.numpy_pickle";
constexpr std::string_view kWrapperName = "NumpyArrayWrapper";

bool is_wrapper(const Global& global) {
  return global.module == kWrapperModule && global.name == kWrapperName;
}

struct Skipped {
  std::size_t offset = 0;
  std::uint64_t size = 0;
};

// Finds where the elements lie while a machine reads the pickle.
class Elements {
 public:
  Elements(Bytes pickle, const Limits& limits)
      : pickle_(pickle), objects_machine_(limits) {}

  Result<std::uint64_t> behind(const Object& object, Bytes rest) {
    if (!object.callable.is(Kind::kGlobal) ||
        !is_wrapper(object.callable.global()))
      return 0;
    const std::uint64_t size = TRY(size_of(object, rest));
    skipped.push_back({pickle_.size() - rest.size(), size});
    return size;
  }

  std::vector<Skipped> skipped;
  std::vector<Bytes> objects;

 private:
  Result<std::uint64_t> size_of(const Object& object, Bytes rest) {
    const auto unreadable = [] {
      return fail(ErrorKind::kCorrupt, "joblib would not read this array");
    };
    if (object.state_count != 1 || !object.state.is(Kind::kDict))
      return unreadable();
    const Value* const dtype = object.state.find("dtype");
    const Value* const shape = object.state.find("shape");
    const Value* const alignment =
        object.state.find("numpy_array_alignment_bytes");
    if (dtype == nullptr || !is_numpy_dtype(*dtype) || shape == nullptr ||
        !shape->is(Kind::kTuple))
      return unreadable();
    const auto element = NumpyDtypes().element(dtype->object());
    if (!element || !element->known)
      return unreadable();
    if (element->objects) {
      objects_machine_.reset();
      const Pickle read = TRY(objects_machine_.load(rest));
      objects.push_back(rest.first(read.size));
      return read.size;
    }
    std::uint64_t size = element->size;
    for (const Value& dimension : shape->items()) {
      const auto product =
          dimension.is(Kind::kInteger) && dimension.integer() >= 0
              ? checked_multiply(
                    size, static_cast<std::uint64_t>(dimension.integer()))
              : std::nullopt;
      if (!product)
        return unreadable();
      size = *product;
    }
    // A byte says how many others fill up to the alignment.
    std::uint64_t before = 0;
    if (alignment != nullptr && !alignment->is(Kind::kNone)) {
      if (rest.empty())
        return unreadable();
      before = 1 + static_cast<std::uint64_t>(rest.front());
    }
    if (before > rest.size() || size > rest.size() - before)
      return unreadable();
    return before + size;
  }

  Bytes pickle_;
  Machine objects_machine_;
};

}  // namespace

bool has_joblib_arrays(const Machine& machine) {
  return std::ranges::any_of(machine.globals(), [](const Global* global) {
    return is_wrapper(*global);
  });
}

std::optional<JoblibPickle> read_joblib_pickle(Bytes bytes,
                                               const Limits& limits) {
  Elements elements(bytes, limits);
  Machine machine(limits);
  machine.read_embedded([&elements](const Object& object, Bytes rest) {
    return elements.behind(object, rest);
  });
  const Result<Pickle> read = machine.load(bytes);
  if (!read)
    return std::nullopt;
  JoblibPickle found;
  std::size_t at = 0;
  for (const Skipped& skipped : elements.skipped) {
    found.opcodes += as_text(bytes.subspan(at, skipped.offset - at));
    found.elements += skipped.size;
    at = skipped.offset + skipped.size;
  }
  found.opcodes += as_text(bytes.subspan(at, read->size - at));
  found.objects = std::move(elements.objects);
  return found;
}

bool is_joblib_wrapper(const GlobalUse& use) {
  return is_wrapper({use.module, use.name}) && !use.as_value;
}

bool is_joblib_wrapper(const CallUse& use) {
  return use.making == Making::kNew && use.first.is(Kind::kObject) &&
         use.first.object().callable.is(Kind::kGlobal) &&
         is_wrapper(use.first.object().callable.global());
}

void trust_joblib_arrays(Audit& audit) {
  for (GlobalUse& use : audit.globals)
    if (is_joblib_wrapper(use))
      use.trust = Trust::kPlain;
  for (CallUse& use : audit.calls)
    if (is_joblib_wrapper(use))
      use.trust = Trust::kPlain;
}

}  // namespace postflight
