#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/reader.h"
#include "library/boundary.h"
#include "library/checkpoint.h"
#include "report/checkpoint/report.h"

using namespace postflight;

struct postflight_plan {
  std::shared_ptr<const SharedCheckpoint> shared;
  std::optional<Template> wanted = {};  // which the plan points into
  ReadPlan plan = {};
};

namespace postflight {
namespace {

Result<const PlannedTensor*> planned_at(const postflight_plan& plan,
                                        std::size_t place) {
  if (place >= plan.plan.tensors.size())
    return fail(ErrorKind::kUsage, "there is no planned tensor {}: it has {}",
                place, plan.plan.tensors.size());
  return &plan.plan.tensors[place];
}

Result<ReadRequest> request_of(const postflight_plan_options& options,
                               std::optional<Template>& wanted) {
  if (options.wanted != nullptr && options.key_count > 0)
    return fail(ErrorKind::kUsage,
                "a template says which keys are wanted; give either");
  ReadRequest request{.slice = text_or_empty(options.slice),
                      .skip_unreadable = options.skip_unreadable != 0};
  request.map_location =
      TRY(MapLocation::parse(text_or_empty(options.map_location)));
  if (options.wanted != nullptr) {
    wanted = TRY(parse_template(as_bytes(options.wanted)));
    request.wanted = &*wanted;
  } else {
    const std::vector<std::string> globs(options.keys,
                                         options.keys + options.key_count);
    request.filter = TRY(KeyFilter::make(globs, {}));
  }
  return request;
}

}  // namespace
}  // namespace postflight

postflight_status postflight_plan_new(const postflight_checkpoint* checkpoint,
                                      const postflight_plan_options* options,
                                      postflight_plan** plan,
                                      postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    if (options->size != sizeof(*options))
      return fail(ErrorKind::kUsage,
                  "postflight_plan_options has {} bytes instead of {}; begin "
                  "with POSTFLIGHT_SIZED",
                  options->size, sizeof(*options));
    auto made = from_members<postflight_plan>(checkpoint->shared);
    const ReadRequest request = TRY(request_of(*options, made->wanted));
    made->plan = TRY(CheckpointReader(made->shared->checkpoint).plan(request));
    hand_out(std::move(made), plan);
    return {};
  });
}

void postflight_plan_free(postflight_plan* plan) {
  delete plan;
}

size_t postflight_plan_count(const postflight_plan* plan) {
  return plan->plan.tensors.size();
}

postflight_status postflight_plan_at(const postflight_plan* plan, size_t place,
                                     postflight_planned* planned,
                                     postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    const PlannedTensor& found = *TRY(planned_at(*plan, place));
    const Tensor& tensor = found.tensor();
    const bool has_bytes = found.has_bytes() && found.device != "meta";
    *planned = {.node = found.node,
                .index = plan->shared->checkpoint.nodes()[found.node].index,
                .device = as_string(found.device),
                .shape = tensor.shape.data(),
                .dimensions = static_cast<uint32_t>(tensor.shape.size()),
                .has_bytes = has_bytes ? 1U : 0U,
                .bytes = has_bytes ? tensor.bytes() : 0};
    return {};
  });
}

const uint32_t* postflight_plan_values(const postflight_plan* plan,
                                       size_t* count) {
  const std::vector<std::uint32_t>& values = plan->plan.selection.values;
  *count = values.size();
  return values.data();
}

postflight_status postflight_plan_json(const postflight_plan* plan,
                                       postflight_text** json,
                                       postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    hand_out(written([&](Output& out) {
               write_read_json(plan->shared->name, plan->shared->checkpoint,
                               plan->plan, out);
             }),
             json);
    return {};
  });
}

postflight_status postflight_plan_read(const postflight_plan* plan,
                                       void* const* to, size_t count,
                                       uint32_t flags,
                                       postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    const std::vector<PlannedTensor>& tensors = plan->plan.tensors;
    if (count != tensors.size())
      return fail(ErrorKind::kUsage,
                  "memory for {} tensors was given, but {} are planned", count,
                  tensors.size());
    std::vector<TensorTarget> targets;
    for (std::size_t i = 0; i < count; ++i) {
      const PlannedTensor& planned = tensors[i];
      if (!planned.has_bytes() || planned.device == "meta" ||
          planned.tensor().bytes() == 0)
        continue;
      if (to[i] == nullptr)
        return fail(ErrorKind::kUsage, "no memory was given for {}",
                    plan->shared->checkpoint.path_of(planned.node));
      targets.push_back(
          {&planned.tensor(),
           {static_cast<std::byte*>(to[i]), planned.tensor().bytes()}});
    }
    return interruptible(*plan->shared->context, [&] {
      return plan->shared->reader(flags).read_all(targets);
    });
  });
}
