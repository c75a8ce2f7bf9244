#include "joblog/time.h"

#include <array>
#include <chrono>
#include <cstdlib>

#include "base/ascii.h"
#include "flight/model/entry.h"

namespace postflight {
namespace {

constexpr std::int64_t kDay = 86'400 * kNanosecondsPerSecond;
constexpr int kYearOfNone = 1972;  // a leap year

// Reads a text from the front; each function returns whether it matched.
struct Reader {
  std::string_view rest;

  bool take(std::string_view any_of) {
    if (rest.empty() || any_of.find(rest.front()) == any_of.npos)
      return false;
    rest.remove_prefix(1);
    return true;
  }

  bool number(std::size_t least, std::size_t most, int& value) {
    std::size_t digits = 0;
    int read = 0;
    for (; digits < rest.size() && digits < most && is_digit(rest[digits]);
         ++digits)
      read = read * 10 + (rest[digits] - '0');
    if (digits < least)
      return false;
    rest.remove_prefix(digits);
    value = read;
    return true;
  }

  // One of several three-letter names, counted from 1.
  bool name(std::string_view names, int& value) {
    for (std::size_t i = 0; i + 3 <= names.size(); i += 3)
      if (rest.starts_with(names.substr(i, 3))) {
        rest.remove_prefix(3);
        value = static_cast<int>(i / 3) + 1;
        return true;
      }
    return false;
  }
};

struct Civil {
  int year = kYearOfNone;
  int month = 0;
  int day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;
  std::int64_t fraction = 0;  // nanoseconds

  // Allows a leap second.
  bool valid() const {
    return year >= 1970 && year < 2200 && month >= 1 && month <= 12 &&
           day >= 1 && day <= 31 && hour < 24 && minute < 60 && second <= 60;
  }

  std::int64_t nanoseconds() const {
    const std::chrono::sys_days date =
        std::chrono::year(year) /
        std::chrono::month(static_cast<unsigned>(month)) /
        std::chrono::day(static_cast<unsigned>(day));
    return date.time_since_epoch().count() * kDay +
           ((hour * 60 + minute) * 60 + second) * kNanosecondsPerSecond +
           fraction;
  }
};

bool read_clock(Reader& reader, Civil& time) {
  if (!reader.number(2, 2, time.hour) || !reader.take(":") ||
      !reader.number(2, 2, time.minute) || !reader.take(":") ||
      !reader.number(2, 2, time.second))
    return false;
  if (reader.rest.size() >= 2 &&
      (reader.rest[0] == '.' || reader.rest[0] == ',') &&
      is_digit(reader.rest[1])) {
    reader.rest.remove_prefix(1);
    for (std::int64_t unit = kNanosecondsPerSecond / 10;
         !reader.rest.empty() && is_digit(reader.rest.front());
         unit /= 10, reader.rest.remove_prefix(1))
      time.fraction += unit * (reader.rest.front() - '0');
  }
  return true;
}

void skip_zone(Reader& reader) {
  if (reader.take("Z"))
    return;
  Reader ahead = reader;
  int number = 0;
  if (ahead.take("+-") && ahead.number(2, 2, number)) {
    ahead.take(":");
    if (ahead.number(2, 2, number))
      reader = ahead;
  }
}

// 2026-11-15 13:05:06
bool read_full(Reader& reader, Civil& time) {
  if (!reader.number(4, 4, time.year) || !reader.take("-/") ||
      !reader.number(2, 2, time.month) || !reader.take("-/") ||
      !reader.number(2, 2, time.day) || !reader.take(" T_") ||
      !read_clock(reader, time))
    return false;
  skip_zone(reader);
  return true;
}

// Nov 15 13:05:06, perhaps with the weekday before and the year after
bool read_named(Reader& reader, Civil& time, bool& has_year) {
  int ignored = 0;
  if (reader.name("MonTueWedThuFriSatSun", ignored) && !reader.take(" "))
    return false;
  if (!reader.name("JanFebMarAprMayJunJulAugSepOctNovDec", time.month) ||
      !reader.take(" "))
    return false;
  reader.take(" ");
  if (!reader.number(1, 2, time.day) || !reader.take(" ") ||
      !read_clock(reader, time))
    return false;
  Reader ahead = reader;
  int year = 0;
  if (ahead.take(" ") && ahead.number(4, 4, year) && year >= 1970 &&
      (ahead.rest.empty() || !is_digit(ahead.rest.front()))) {
    time.year = year;
    has_year = true;
    reader = ahead;
  }
  return true;
}

// E1115 13:05:06.123456
bool read_glog(Reader& reader, Civil& time) {
  int date = 0;
  if (!reader.take("IWEFVDC") || !reader.number(3, 4, date) ||
      !reader.take(" ") || !read_clock(reader, time))
    return false;
  time.month = date / 100;
  time.day = date % 100;
  return true;
}

}  // namespace

std::optional<LogTime> take_log_time(std::string_view& text) {
  Reader start{text};
  const bool bracket = start.take("[");
  if (start.rest.size() < 12)
    return std::nullopt;
  Reader reader = start;
  Civil time;
  bool has_year = false;
  bool found = false;
  const char first = start.rest.front();
  if (is_digit(first)) {
    found = read_full(reader, time);
    has_year = found;
  } else if (first >= 'A' && first <= 'Z') {
    found = is_digit(start.rest[1]) ? read_glog(reader, time)
                                    : read_named(reader, time, has_year);
  }
  if (!found || !time.valid())
    return std::nullopt;
  if (bracket)
    reader.take("]");
  reader.take(" ");
  text = reader.rest;
  return LogTime{time.nanoseconds(), has_year};
}

LogTime with_year(LogTime time, LogTime reference) {
  if (time.has_year || !reference.has_year)
    return time;
  using std::chrono::days;
  using std::chrono::sys_days;
  using std::chrono::year_month_day;
  const auto date_of = [](std::int64_t nanoseconds) {
    return year_month_day(sys_days(days(nanoseconds / kDay)));
  };
  const year_month_day date = date_of(time.nanoseconds);
  const std::int64_t clock = time.nanoseconds % kDay;
  LogTime best = time;
  std::int64_t distance = INT64_MAX;
  for (int change = -1; change <= 1; ++change) {
    const sys_days moved =
        (date_of(reference.nanoseconds).year() + std::chrono::years(change)) /
        date.month() / date.day();
    const std::int64_t there = moved.time_since_epoch().count() * kDay + clock;
    const std::int64_t apart = std::abs(there - reference.nanoseconds);
    if (apart < distance) {
      distance = apart;
      best = {there, true};
    }
  }
  return best;
}

}  // namespace postflight
