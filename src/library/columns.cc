#include <cassert>
#include <cmath>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flight/model/operation.h"
#include "library/boundary.h"
#include "library/job.h"
#include "report/flight/entry_fields_json.h"

using namespace postflight;

// The entries of a job as columns. Texts, sizes and stacks are in the tables of
// the job, so a column of them has the places in such a table.
struct postflight_columns {
  std::shared_ptr<const SharedJob> shared;  // which strings point into
  std::vector<postflight_column> columns = {};
  std::unique_ptr<std::uint64_t[]> block = {};  // with the data of all of them
  std::deque<std::vector<postflight_string>> tables = {};
  std::deque<std::string> made = {};  // strings that no table has
};

namespace postflight {
namespace {

class ColumnMaker {
 public:
  explicit ColumnMaker(postflight_columns& to)
      : to_(to),
        job_(to.shared->job()),
        count_(job_.entry_count()),
        words_left_(kMostBlocks * count_) {
    to_.block = std::make_unique_for_overwrite<std::uint64_t[]>(words_left_);
    next_ = to_.block.get();
  }

  void make() {
    numbers();
    calls();
    stacks();
  }

 private:
  // As many columns have data of their own.
  static constexpr std::uint64_t kMostBlocks = 18;

  // One value for each entry.
  template <class T, class Of>
  void column(std::string_view name, postflight_column_type type, Of of,
              std::span<const postflight_string> strings = {}) {
    const std::uint64_t words = (count_ * sizeof(T) + 7) / 8;
    assert(words <= words_left_);
    words_left_ -= words;
    T* const data = reinterpret_cast<T*>(next_);
    T* at = data;
    for (const RankDump& dump : job_.ranks)
      for (std::size_t i = 0; i < dump.entries.size(); ++i)
        *at++ = static_cast<T>(of(dump, i));
    next_ += words;
    to_.columns.push_back({.name = as_string(name),
                           .type = static_cast<std::uint32_t>(type),
                           .reserved = 0,
                           .data = data,
                           .count = count_,
                           .strings = strings.data(),
                           .string_count = strings.size()});
  }

  template <class Field>
  void wide(std::string_view name, Field field) {
    column<std::int64_t>(name, POSTFLIGHT_INT64,
                         [field](const RankDump& dump, std::size_t i) {
                           return field(dump.entries[i]);
                         });
  }

  // The same for a field that need not be read with the others.
  void single(std::string_view name,
              std::int64_t (Entries::*field)(std::size_t) const) {
    column<std::int64_t>(name, POSTFLIGHT_INT64,
                         [field](const RankDump& dump, std::size_t i) {
                           return (dump.entries.*field)(i);
                         });
  }

  void numbers() {
    column<std::int32_t>(
        "rank", POSTFLIGHT_INT32,
        [](const RankDump& dump, std::size_t) { return dump.rank.value; });
    column<std::int32_t>("position", POSTFLIGHT_INT32,
                         [](const RankDump&, std::size_t i) { return i; });
    wide("record_id", [](const Entry& entry) { return entry.record_id; });
    single("sequence", &Entries::sequence);
    single("p2p_sequence", &Entries::p2p_sequence);
    wide("operation_id", [](const Entry& entry) { return entry.operation_id; });
    single("created_ns", &Entries::created);
    single("started_ns", &Entries::started);
    single("completed_ns", &Entries::completed);
    column<double>("duration_ms", POSTFLIGHT_FLOAT64,
                   [](const RankDump& dump, std::size_t i) {
                     const double duration = dump.entries[i].duration_ms;
                     return duration == -1
                                ? std::numeric_limits<double>::quiet_NaN()
                                : duration;
                   });
    std::vector<postflight_string>& states = to_.tables.emplace_back();
    for (const State state : {State::kScheduled, State::kStarted,
                              State::kCompleted, State::kUnknown})
      states.push_back(as_string(state_name(state)));
    column<std::uint32_t>(
        "state", POSTFLIGHT_STRINGS,
        [](const RankDump& dump, std::size_t i) {
          return static_cast<std::uint32_t>(dump.entries.state(i));
        },
        states);
    column<std::uint8_t>("retired", POSTFLIGHT_BOOL,
                         [](const RankDump& dump, std::size_t i) {
                           return dump.entries.retired(i) ? 1 : 0;
                         });
  }

  // Of one string for each call of the job. All such columns share their
  // places.
  template <class Text>
  void call_texts(std::string_view name, Text text) {
    std::vector<postflight_string>& strings = to_.tables.emplace_back();
    for (std::uint32_t i = 0; i < job_.tables.call_count(); ++i)
      strings.push_back(as_string(text(job_.tables.call({i}))));
    if (calls_.data != nullptr) {
      to_.columns.push_back(calls_);
      to_.columns.back().name = as_string(name);
      to_.columns.back().strings = strings.data();
      return;
    }
    column<std::uint32_t>(
        name, POSTFLIGHT_STRINGS,
        [](const RankDump& dump, std::size_t i) {
          return dump.entries.call(i).value;
        },
        strings);
    calls_ = to_.columns.back();
  }

  // Of one number for each call.
  template <class Number>
  void call_numbers(std::string_view name, Number number) {
    std::vector<std::int64_t> numbers;
    for (std::uint32_t i = 0; i < job_.tables.call_count(); ++i)
      numbers.push_back(number(job_.tables.call({i})));
    column<std::int64_t>(name, POSTFLIGHT_INT64,
                         [&numbers](const RankDump& dump, std::size_t i) {
                           return numbers[dump.entries.call(i).value];
                         });
  }

  std::string_view kept(std::string text) {
    return to_.made.emplace_back(std::move(text));
  }

  std::string_view sizes(SizesId id) {
    return kept(json_text([&](JsonWriter& json) {
      json.array();
      for (const std::span<const std::int64_t> shape : job_.tables.shapes(id)) {
        json.array();
        for (const std::int64_t size : shape)
          json.value(size);
        json.end();
      }
      json.end();
    }));
  }

  std::string_view dtypes(DtypesId id) {
    return kept(json_text([&](JsonWriter& json) {
      json.array();
      for (const TextId name : job_.tables.dtypes(id))
        json.value(job_.text(name));
      json.end();
    }));
  }

  void calls() {
    call_texts("name",
               [this](const Call& call) { return job_.text(call.name); });
    call_texts("operation",
               [this](const Call& call) { return job_.operation(call).name; });
    call_texts("backend", [this](const Call& call) {
      return job_.operation(call).backend;
    });
    call_texts("group",
               [this](const Call& call) { return job_.text(call.group_name); });
    call_texts("group_description", [this](const Call& call) {
      return job_.text(call.group_description);
    });
    call_texts("input_sizes",
               [this](const Call& call) { return sizes(call.inputs); });
    call_texts("input_dtypes",
               [this](const Call& call) { return dtypes(call.input_dtypes); });
    call_texts("output_sizes",
               [this](const Call& call) { return sizes(call.outputs); });
    call_texts("output_dtypes",
               [this](const Call& call) { return dtypes(call.output_dtypes); });
    call_numbers("group_id", [](const Call& call) { return call.group.value; });
    call_numbers("local_group",
                 [](const Call& call) { return call.local_group; });
    call_numbers("timeout_ms",
                 [](const Call& call) { return call.timeout_ms; });
    column<std::uint8_t>(
        "point_to_point", POSTFLIGHT_BOOL,
        [this](const RankDump& dump, std::size_t i) {
          return job_.tables.call(dump.entries.call(i)).point_to_point != 0 ? 1
                                                                            : 0;
        });
  }

  void stacks() {
    std::vector<postflight_string>& strings = to_.tables.emplace_back();
    for (std::uint32_t i = 0; i < job_.tables.stack_count(); ++i)
      strings.push_back(as_string(kept(json_text([&](JsonWriter& json) {
        json.object();
        write_stack(job_, {i}, json);
        json.end();
      }))));
    column<std::uint32_t>(
        "stack", POSTFLIGHT_STRINGS,
        [](const RankDump& dump, std::size_t i) {
          return dump.entries[i].stack.value;
        },
        strings);
  }

  postflight_columns& to_;
  const Job& job_;
  const std::uint64_t count_;
  std::uint64_t words_left_;
  std::uint64_t* next_ = nullptr;
  postflight_column calls_ = {};  // the first column of texts of calls
};

}  // namespace
}  // namespace postflight

postflight_status postflight_job_entries(const postflight_job* job,
                                         postflight_columns** columns,
                                         postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    auto made = from_members<postflight_columns>(job->shared);
    ColumnMaker(*made).make();
    hand_out(std::move(made), columns);
    return {};
  });
}

void postflight_columns_free(postflight_columns* columns) {
  delete columns;
}

size_t postflight_columns_count(const postflight_columns* columns) {
  return columns->columns.size();
}

const postflight_column* postflight_columns_data(
    const postflight_columns* columns) {
  return columns->columns.data();
}

postflight_status postflight_columns_at(const postflight_columns* columns,
                                        size_t place, postflight_column* column,
                                        postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    if (place >= columns->columns.size())
      return fail(ErrorKind::kUsage, "column {} does not exist: there are {}",
                  place, columns->columns.size());
    *column = columns->columns[place];
    return {};
  });
}
