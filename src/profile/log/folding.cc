#include "profile/log/folding.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

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

// A part of torch.compile, or none.
enum class Stage : std::uint8_t { kNone, kDynamo, kAot, kInductor };

// Where a stack enters torch.compile, or another part of it. Dynamo's helpers
// wrap functions of the others, so only its entrance counts.
Stage stage_entered(const Profile& profile, const ProfileFrame& frame) {
  const std::string_view file = profile.texts[frame.file];
  const auto is_in = [file](std::string_view part) {
    return file.find(part) != std::string_view::npos;
  };
  if (frame.kind != FrameKind::kPython || !is_in("/torch/"))
    return Stage::kNone;
  if (file.ends_with("/torch/_dynamo/convert_frame.py"))
    return Stage::kDynamo;
  if (is_in("/torch/_functorch/"))
    return Stage::kAot;
  return is_in("/torch/_inductor/") ? Stage::kInductor : Stage::kNone;
}

// The other parts run the compiled program, too; they compile inside Dynamo, in
// worker processes, and a backward graph when it is first needed.
bool begins_compilation(const Profile& profile, const ProfileFrame& frame,
                        Stage stage) {
  if (stage != Stage::kInductor)
    return stage == Stage::kDynamo;
  const std::string_view file = profile.texts[frame.file];
  const std::string_view name = profile.texts[frame.name];
  return file.ends_with("/async_compile.py") ||
         file.ends_with("/compile_tasks.py") ||
         (file.ends_with("/compile_fx.py") &&
          (name == "bw_compiler" || name.starts_with("compile_fx")));
}

// A program that compiles, or one that it runs.
enum class Compiler : std::uint8_t { kNone, kDriver, kPart };

Compiler compiler_of(std::string_view command) {
  std::string_view program = command.substr(0, command.find(' '));
  program.remove_prefix(program.rfind('/') + 1);
  constexpr std::string_view kTarget = "-linux-gnu-";
  if (const std::size_t at = program.find(kTarget);
      at != std::string_view::npos)
    program.remove_prefix(at + kTarget.size());
  // A version may follow: "g++-12".
  const auto is = [program](std::string_view known) {
    return program == known ||
           (program.starts_with(known) && program[known.size()] == '-');
  };
  constexpr std::array<std::string_view, 10> kDrivers = {
      "g++",     "gcc",  "c++",   "cc",   "clang",
      "clang++", "nvcc", "hipcc", "icpx", "ptxas"};
  constexpr std::array<std::string_view, 7> kParts = {
      "cc1plus", "cc1", "as", "ld", "collect2", "cicc", "ld.lld"};
  return std::ranges::any_of(kDrivers, is) ? Compiler::kDriver
         : std::ranges::any_of(kParts, is) ? Compiler::kPart
                                           : Compiler::kNone;
}

// How often a frame was compiled before: 1 for "0/1", or "0/1_2".
std::size_t earlier_compilations(std::string_view frame_id) {
  std::size_t count = 0;
  const std::size_t slash = frame_id.rfind('/');
  if (slash != std::string_view::npos)
    std::from_chars(frame_id.data() + slash + 1,
                    frame_id.data() + frame_id.size(), count);
  return count;
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
  Stage stage = Stage::kNone;  // of the compilation it is part of
  std::uint32_t module = 0;    // text: the file of the outermost one it imports
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
      if (folded.stage != Stage::kNone || is_compiler(sample))
        sample.stack = compilation(sample, folded);
      else
        sample.stack = folded.stack;
      to_.samples.push_back(sample);
    }
    for (const auto& [module, ns] : modules)
      result.imports.push_back({module_name(from_.texts[module]), ns});
    std::ranges::stable_sort(result.imports, std::greater<>(), &ImportTime::ns);
    // The phase of a child process may lag behind that of its parent.
    for (const auto& [process, functions] : drivers_)
      ++compilations_
            .at(std::ranges::max_element(
                    functions, {}, [](const auto& one) { return one.second; })
                    ->first)
            .time.compilers;
    for (auto& [function, compiled] : compilations_) {
      for (const auto& [frame, count] : compiled.recompiles)
        compiled.time.recompiles += count;
      result.compilations.push_back(std::move(compiled.time));
    }
    std::ranges::stable_sort(result.compilations, std::greater<>(),
                             &CompileTime::ns);
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

  // What is compiled in a phase; 0: not known.
  std::uint32_t compiled_in(std::uint32_t phase) const {
    std::uint32_t place = 0;
    for (; phase != 0; phase = from_.phases[phase].parent) {
      if (from_.phases[phase].frame_id != 0)
        return place;
      place = from_.phases[phase].name;
    }
    return 0;
  }

  // Compilers may be used for other things, too.
  bool is_compiler(const ProfileSample& sample) const {
    return compiled_in(sample.phase) != 0 &&
           compiler_of(from_.texts[from_.threads[sample.thread].process]) !=
               Compiler::kNone;
  }

  // Counts a sample of torch.compile; returns its stack.
  std::uint32_t compilation(const ProfileSample& sample, const Folded& folded) {
    const std::uint32_t function = compiled_in(sample.phase);
    const auto [known, fresh] = compilations_.try_emplace(function);
    Compilation& compiled = known->second;
    CompileTime& time = compiled.time;
    if (fresh) {
      time.function = from_.texts[function];
      to_.texts.push_back(
          time.function.empty()
              ? kCompileFrame
              : fmt::format("{} {}", kCompileFrame, time.function));
      compiled.frame = static_cast<std::uint32_t>(to_.frames.size());
      to_.frames.push_back(
          {.kind = FrameKind::kMarker,
           .name = static_cast<std::uint32_t>(to_.texts.size() - 1)});
    }
    time.ns += sample.weight_ns;
    const std::string frame_id = from_.phase_frame_id(sample.phase);
    std::size_t& recompiles =
        compiled.recompiles[frame_id.substr(0, frame_id.rfind('/'))];
    recompiles = std::max(recompiles, earlier_compilations(frame_id));
    const ProfileThread& thread = from_.threads[sample.thread];
    if (is_compiler(sample)) {
      time.compilers_ns += sample.weight_ns;
      if (compiler_of(from_.texts[thread.process]) == Compiler::kDriver)
        drivers_[{thread.rank, thread.pid}][function] += sample.weight_ns;
      return stack(0, compiled.frame);
    }
    (folded.stage == Stage::kDynamo ? time.dynamo_ns
     : folded.stage == Stage::kAot  ? time.aot_ns
                                    : time.inductor_ns) += sample.weight_ns;
    return stack(folded.stack, compiled.frame);
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
      const Stage stage = stage_entered(from_, frame);
      if (folded.stage != Stage::kNone) {
        if (stage != Stage::kNone)
          folded.stage = stage;
      } else if (!folded.imports && begins_compilation(from_, frame, stage)) {
        folded.stage = stage;
      } else if (folded.imports) {
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
  struct Compilation {
    CompileTime time = {};
    std::uint32_t frame = 0;
    std::map<std::string, std::size_t> recompiles = {};  // of each frame
  };
  std::map<std::uint32_t, Compilation> compilations_;  // by function
  // What each compiler that was started has spent for each function.
  std::map<std::pair<std::int32_t, pid_t>,
           std::map<std::uint32_t, std::uint64_t>>
      drivers_;
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
