#include "profile/log/folding.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace postflight {
namespace {

// A thread that waits for so large a part of its time, in percent, is idle.
constexpr std::uint64_t kIdle = 95;

enum class Origin : std::uint8_t { kUser, kInternal, kImport, kPlumbing };

// Functions of CPython that only pass a call on.
bool passes_calls_on(std::string_view name) {
  for (const std::string_view prefix : {"_PyEval_",
                                        "PyEval_",
                                        "PyObject_Call",
                                        "_PyObject_Call",
                                        "_PyObject_MakeTpCall",
                                        "PyObject_Vectorcall",
                                        "_PyObject_Vectorcall",
                                        "_PyObject_FastCall",
                                        "_PyFunction_Vectorcall",
                                        "_PyVectorcall",
                                        "PyVectorcall_Call",
                                        "cfunction_",
                                        "method_vectorcall",
                                        "slot_tp_",
                                        "type_call",
                                        "do_call_core",
                                        "Py_BytesMain",
                                        "Py_RunMain",
                                        "pymain_",
                                        "run_mod",
                                        "run_eval_code_obj",
                                        "pyrun_",
                                        "_PyRun_",
                                        "PyRun_",
                                        "__libc_start",
                                        "_start"})
    if (name.starts_with(prefix))
      return true;
  return false;
}

Origin origin_of(const Profile& profile, const ProfileFrame& frame) {
  const std::string_view file = profile.texts[frame.file];
  if (frame.kind == FrameKind::kNative)
    return passes_calls_on(profile.texts[frame.name]) ? Origin::kPlumbing
                                                      : Origin::kUser;
  if (frame.kind != FrameKind::kPython)
    return Origin::kUser;
  // Ours.
  if (file.ends_with("/postflight_phase.py") ||
      file.ends_with("/sitecustomize.py"))
    return Origin::kInternal;
  if (file.starts_with("<frozen importlib"))
    return Origin::kImport;
  if (file.starts_with("<frozen "))
    return Origin::kInternal;
  for (const std::string_view packages : {"/site-packages/", "/dist-packages/"})
    if (const std::size_t at = file.find(packages);
        at != std::string_view::npos)
      return file.substr(at + packages.size()).starts_with("torch/")
                 ? Origin::kInternal
                 : Origin::kUser;
  return file.find("/lib/python3.") != std::string_view::npos
             ? Origin::kInternal
             : Origin::kUser;
}

// "numpy" for "/usr/lib/python3/dist-packages/numpy/__init__.py".
std::string module_name(std::string_view file) {
  constexpr std::string_view kPackage = "/__init__.py";
  if (file.ends_with(kPackage))
    file.remove_suffix(kPackage.size());
  else if (file.ends_with(".py"))
    file.remove_suffix(3);
  return std::string(file.substr(file.rfind('/') + 1));
}

// Where a stack of the profile is in the folded one.
struct Folded {
  std::uint32_t stack = 0;
  bool has_user = false;  // a frame of the user's is on it
  bool imports = false;
  std::uint32_t module = 0;  // text: the file of the outermost one it imports
};

class Folding {
 public:
  explicit Folding(const Profile& from) : from_(from) {
    to_.texts = from.texts;
    to_.frames = from.frames;
    to_.phases = from.phases;
    to_.threads = from.threads;
    to_.processes = from.processes;
    to_.notes = from.notes;
    to_.counters = from.counters;
    to_.findings = from.findings;
    to_.texts.emplace_back(kImportFrame);
    to_.frames.push_back(
        {.kind = FrameKind::kMarker,
         .name = static_cast<std::uint32_t>(to_.texts.size() - 1)});
  }

  FoldedProfile result() && {
    fold_stacks();
    const std::vector<bool> idle = idle_threads();
    FoldedProfile result;
    result.idle_threads =
        static_cast<std::size_t>(std::ranges::count(idle, true));
    std::map<std::uint32_t, std::uint64_t> modules;
    for (ProfileSample sample : from_.samples) {
      if (idle[sample.thread])
        continue;
      const Folded& folded = folded_[sample.stack];
      if (folded.module != 0)
        modules[folded.module] += sample.weight_ns;
      sample.stack = folded.stack;
      to_.samples.push_back(sample);
    }
    for (const auto& [module, ns] : modules)
      result.imports.push_back({module_name(from_.texts[module]), ns});
    std::ranges::stable_sort(result.imports, std::greater<>(), &ImportTime::ns);
    result.profile = std::move(to_);
    return result;
  }

 private:
  std::uint32_t stack(std::uint32_t parent, std::uint32_t frame) {
    const auto [known, fresh] = numbers_.try_emplace(
        {parent, frame}, static_cast<std::uint32_t>(to_.stacks.size()));
    if (fresh)
      to_.stacks.push_back({parent, frame});
    return known->second;
  }

  void fold_stacks() {
    std::vector<Origin> origins;
    for (const ProfileFrame& frame : from_.frames)
      origins.push_back(origin_of(from_, frame));
    folded_.resize(from_.stacks.size());
    const auto import = static_cast<std::uint32_t>(from_.frames.size());
    // A parent comes before its children.
    for (std::size_t i = 1; i < from_.stacks.size(); ++i) {
      const StackNode& node = from_.stacks[i];
      const ProfileFrame& frame = from_.frames[node.frame];
      const Origin origin = origins[node.frame];
      Folded folded = folded_[node.parent];
      if (folded.imports) {
        if (folded.module == 0 && frame.kind == FrameKind::kPython &&
            from_.texts[frame.name] == "<module>")
          folded.module = frame.file;
      } else if (origin == Origin::kImport) {
        folded.imports = true;
        folded.stack = stack(folded.stack, import);
      } else if (origin == Origin::kPlumbing && folded.stack != 0) {
        // Time of its caller.
      } else if (origin == Origin::kUser || !folded.has_user) {
        folded.stack = stack(folded.stack, node.frame);
        folded.has_user = folded.has_user || (origin == Origin::kUser &&
                                              frame.kind == FrameKind::kPython);
      }
      folded_[i] = folded;
    }
  }

  // The main thread of the program, of each rank, is never one of them.
  std::vector<bool> idle_threads() const {
    std::vector<std::uint64_t> all(from_.threads.size());
    std::vector<std::uint64_t> waiting(from_.threads.size());
    for (const ProfileSample& sample : from_.samples) {
      all[sample.thread] += sample.weight_ns;
      if (sample.flags.waiting)
        waiting[sample.thread] += sample.weight_ns;
    }
    const std::vector<bool> main = main_threads(from_);
    std::vector<bool> idle;
    for (std::size_t i = 0; i < from_.threads.size(); ++i)
      idle.push_back(!main[i] && waiting[i] != 0 &&
                     waiting[i] / kIdle >= all[i] / 100);
    return idle;
  }

  const Profile& from_;
  Profile to_;
  std::vector<Folded> folded_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> numbers_;
};

}  // namespace

std::vector<bool> main_threads(const Profile& profile) {
  std::map<std::int32_t, pid_t> programs;
  std::vector<bool> main;
  for (const ProfileThread& thread : profile.threads) {
    // The program is sampled first.
    const pid_t program =
        programs.try_emplace(thread.rank, thread.pid).first->second;
    main.push_back(thread.pid == program && thread.tid == program);
  }
  return main;
}

FoldedProfile fold(const Profile& profile) {
  return Folding(profile).result();
}

}  // namespace postflight
