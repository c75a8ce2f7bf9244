#include "checkpoint/writing/output.h"

#include <algorithm>
#include <map>
#include <system_error>

#include "base/atomic_folder.h"
#include "checkpoint/tensor/digest.h"
#include "checkpoint/writing/tensor_stream.h"

namespace postflight {
namespace {

std::uint32_t node_at(const Checkpoint& checkpoint, std::span<const Key> path) {
  std::uint32_t at = 0;
  for (const Key& key : path) {
    std::uint32_t next = checkpoint.child(at, key);
    // Only a full list is known to be one.
    if (next == kNoIndex && key.kind == Key::Kind::kIndex)
      next = checkpoint.child(at, Key::integer(key.number));
    if (next == kNoIndex)
      return kNoIndex;
    at = next;
  }
  return at;
}

// Reads back what was written, and compares each tensor with what was read.
class OutputCheck {
 public:
  OutputCheck(const Checkpoint& from, const OutputPlan& plan,
              const OutputOptions& options)
      : from_(from), plan_(plan), options_(options) {}

  Result<std::uint64_t> compare(
      const std::filesystem::path& written,
      const std::map<std::uint32_t, std::string>& known) const {
    const Checkpoint to =
        TRY(Checkpoint::open(written, {.context = from_.context()})
                .in("what was written"));
    std::map<std::uint32_t, std::string> expected = known;
    TRY(add_unknown(expected));
    std::vector<std::uint32_t> nodes;
    for (const WrittenTensor& tensor : plan_.tensors) {
      const std::uint32_t node = node_at(to, tensor.path);
      const Tensor* const made =
          node == kNoIndex ? nullptr : to.tensor_at(node);
      if (made == nullptr || !(made->dtype == tensor.output.dtype) ||
          !std::ranges::equal(made->shape, tensor.output.tensor->shape))
        return differs(tensor.output.name, "it is not there as it should be");
      nodes.push_back(node);
    }
    std::size_t next = 0;
    Result<> same;
    TRY(digest_tensors(
        to, nodes, [&](std::uint32_t, const Result<std::string>& digest) {
          const OutputTensor& output = plan_.tensors[next++].output;
          const auto found = expected.find(output.node);
          if (!same)
            return;
          const auto stated = options_.expected.find(output.node);
          if (!digest)
            same = differs(output.name, digest.error().message());
          else if (stated != options_.expected.end() &&
                   output.dtype == output.tensor->dtype &&
                   !output.tensor->is_slice && stated->second != *digest)
            same = fail(ErrorKind::kCorrupt,
                        "{}: its digest is not what it should be; is the file "
                        "that was read damaged?",
                        output.name);
          else if (found == expected.end() || found->second != *digest)
            same = differs(output.name, "its bytes differ");
          else if (options_.progress)
            options_.progress(output.bytes());
        }));
    TRY(std::move(same));
    return nodes.size();
  }

 private:
  static tl::unexpected<Error> differs(std::string_view name,
                                       std::string_view why) {
    return fail(ErrorKind::kIo,
                "{}: read back after writing, {}; nothing was kept. Is the "
                "disk or the memory faulty?",
                name, why);
  }

  // Of tensors that were not written from front to back, and of those that
  // share their bytes with one that was.
  Result<> add_unknown(std::map<std::uint32_t, std::string>& expected) const {
    std::vector<std::uint32_t> unknown;
    for (const WrittenTensor& tensor : plan_.tensors)
      if (!expected.contains(tensor.output.node)) {
        if (!(tensor.output.dtype == tensor.output.tensor->dtype))
          TRY(add_converted(tensor.output, expected));
        else
          unknown.push_back(tensor.output.node);
      }
    Result<> read;
    TRY(digest_tensors(
        from_, unknown,
        [&](std::uint32_t node, const Result<std::string>& digest) {
          if (digest)
            expected[node] = *digest;
          else if (read)
            read = fail(digest.error().kind(), "{}: {}", from_.path_of(node),
                        digest.error().message());
        },
        options_.reading));
    return read;
  }

  Result<> add_converted(const OutputTensor& output,
                         std::map<std::uint32_t, std::string>& expected) const {
    TensorStream stream(from_, options_);
    TRY(stream.write(output, [](Bytes) -> Result<> { return {}; }));
    expected[output.node] = stream.digests().at(output.node);
    return {};
  }

  const Checkpoint& from_;
  const OutputPlan& plan_;
  const OutputOptions& options_;
};

Result<Written> write_folder(const Checkpoint& checkpoint,
                             const OutputPlan& plan,
                             const std::filesystem::path& target,
                             const OutputOptions& options) {
  AtomicFolder folder = TRY(AtomicFolder::create(target, options.existing));
  TensorStream stream(checkpoint, options);
  const std::string name = target.has_filename()
                               ? target.filename().string()
                               : target.parent_path().filename().string();
  Written written;
  written.files = TRY(
      plan.request.format == OutputFormat::kShards
          ? write_shards(checkpoint, plan, folder.path(), stream)
          : write_distributed(checkpoint, plan, folder.path(), name, stream));
  if (options.verify)
    written.verified = TRY(OutputCheck(checkpoint, plan, options)
                               .compare(folder.path(), stream.digests()));
  TRY(folder.commit());
  return written;
}

Result<Written> write_one_file(const Checkpoint& checkpoint,
                               const OutputPlan& plan,
                               const std::filesystem::path& target,
                               const OutputOptions& options) {
  AtomicFile file = TRY(AtomicFile::create(target, options.existing));
  TensorStream stream(checkpoint, options);
  Written written;
  std::uint64_t bytes = 0;
  const ByteSink sink = [&](Bytes piece) {
    bytes += piece.size();
    return file.write(piece);
  };
  const std::string name = target.filename().string();
  if (plan.request.format == OutputFormat::kTorch)
    TRY(write_torch_file(checkpoint, plan, name, stream, sink));
  else
    TRY(write_safetensors_file(checkpoint, plan.tensors, stream, sink));
  TRY(file.flush());
  written.files.push_back({name, bytes});
  if (options.verify)
    written.verified = TRY(OutputCheck(checkpoint, plan, options)
                               .compare(file.temporary(), stream.digests()));
  TRY(file.commit());
  return written;
}

}  // namespace

Result<Written> write_output(const Checkpoint& checkpoint,
                             const OutputPlan& plan,
                             const std::filesystem::path& target,
                             const OutputOptions& options) {
  Written written =
      TRY(is_folder(plan.request.format)
              ? write_folder(checkpoint, plan, target, options)
              : write_one_file(checkpoint, plan, target, options));
  for (const OutputFile& file : written.files)
    written.bytes += file.bytes;
  return written;
}

}  // namespace postflight
