/*
 * quipu.hpp - CPU performance counters for C++17, on quipu.h. Only this header is needed beside it.
 *
 * Nothing throws by itself: what can fail returns a Result, which has a value or an Error. value() of one that has an error throws
 * it, or ends the program where exceptions are off; operator bool asks first. Classes close what they have opened.
 *
 *     auto measured = quipu::measure("page-faults,instructions:u", [] { work(); });
 *     if (!measured) return complain(measured.error());
 *     for (const auto &event : *measured) std::cout << event.name() << ": " << event.count() << '\n';
 */

#ifndef QUIPU_HPP
#define QUIPU_HPP

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <quipu.h>

namespace quipu {

/** Why something could not be done. */
class Error : public std::exception {
  public:
    /** Takes the calling thread's last failure, which had this status. */
    static Error last(int status) {
        quipu_error error;
        QUIPU_INIT(error);
        if (quipu_last_error(&error) != QUIPU_OK || error.status != status)
            return Error(status, quipu_strerror(status));
        return Error(error);
    }

    explicit Error(const quipu_error &error)
        : status_(error.status), errno_(error.os_errno), message_(error.message), hint_(error.hint ? error.hint : "") {}

    Error(int status, std::string message) : status_(status), message_(std::move(message)) {}

    /** Returns the kind of failure, a quipu_status. */
    int status() const noexcept { return status_; }
    /** Returns the operating system's error number, or 0. */
    int os_errno() const noexcept { return errno_; }
    /** Returns what was attempted and why it failed, in one sentence. */
    const char *what() const noexcept override { return message_.c_str(); }
    /** Returns advice for a person on this machine; empty where there is none. */
    const std::string &hint() const noexcept { return hint_; }

  private:
    int status_ = QUIPU_OK;
    int errno_ = 0;
    std::string message_;
    std::string hint_;
};

/** A value or an Error, as std::expected of C++23. */
template <class T> class [[nodiscard]] Result {
  public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

    bool has_value() const noexcept { return state_.index() == 0; }
    explicit operator bool() const noexcept { return has_value(); }

    /** Returns the value; throws the error where there is none. */
    T &value() & { return checked(), *std::get_if<0>(&state_); }
    const T &value() const & { return checked(), *std::get_if<0>(&state_); }
    T &&value() && { return checked(), std::move(*std::get_if<0>(&state_)); }

    T &operator*() & { return value(); }
    const T &operator*() const & { return value(); }
    T &&operator*() && { return std::move(*this).value(); }
    T *operator->() { return &value(); }
    const T *operator->() const { return &value(); }

    /** Returns the value, or another one where there is none. */
    T value_or(T other) const & { return has_value() ? *std::get_if<0>(&state_) : std::move(other); }

    /** Returns the error; one with the status QUIPU_OK where there is none. */
    Error error() const {
        const Error *error = std::get_if<1>(&state_);
        return error ? *error : Error(QUIPU_OK, "");
    }

  private:
    void checked() const {
        if (has_value())
            return;
#if defined(__cpp_exceptions)
        throw *std::get_if<1>(&state_);
#else
        std::abort();
#endif
    }

    std::variant<T, Error> state_;
};

/** Nothing, or an Error. */
using Status = Result<std::monostate>;

namespace detail {
inline Status done(int status) {
    return status == QUIPU_OK ? Status(std::monostate()) : Status(Error::last(status));
}
} // namespace detail

/** The kind of a count. */
enum class Kind : std::uint32_t {
    not_read = QUIPU_NOT_READ,       /**< could not be opened or read: there is no value */
    not_counted = QUIPU_NOT_COUNTED, /**< never had a counter: there is no value */
    exact = QUIPU_EXACT,             /**< counted all the time */
    estimated = QUIPU_ESTIMATED,     /**< counted a part of the time, and scaled */
    partial = QUIPU_PARTIAL,         /**< parts of the target have no value; it covers the others */
    at_least = QUIPU_AT_LEAST,       /**< a lower bound */
};

/** A count, with what it is. */
class Count {
  public:
    Count() noexcept : count_{} {}
    explicit Count(const quipu_count &count) noexcept : count_(count) {}

    Kind kind() const noexcept { return static_cast<Kind>(count_.state); }
    bool is_exact() const noexcept { return kind() == Kind::exact; }
    bool has_value() const noexcept { return kind() != Kind::not_read && kind() != Kind::not_counted; }

    /** Returns the value if it is a fact. */
    std::optional<std::uint64_t> exact() const noexcept {
        return is_exact() ? std::optional<std::uint64_t>(count_.value) : std::nullopt;
    }
    /** Returns the value of any kind, if there is one. */
    std::optional<std::uint64_t> value() const noexcept {
        return has_value() ? std::optional<std::uint64_t>(count_.value) : std::nullopt;
    }
    /** Returns all of it: times, and the number of parts without a value. */
    const quipu_count &raw() const noexcept { return count_; }

    /** Writes the value as `quipu stat` does: ~ before an estimate, (at least) behind a lower bound. */
    friend std::ostream &operator<<(std::ostream &out, const Count &count) { return out << count.text(); }

    std::string text() const {
        if (!has_value())
            return kind() == Kind::not_read ? "<not read>" : "<not counted>";
        std::string digits = std::to_string(count_.value);
        for (std::size_t at = digits.size(); at > 3; at -= 3)
            digits.insert(at - 3, 1, ',');
        if (kind() == Kind::estimated || (count_.flags & QUIPU_COUNT_ESTIMATE))
            digits.insert(0, 1, '~');
        if (kind() == Kind::at_least)
            digits += " (at least)";
        if (kind() == Kind::partial)
            digits += " (" + std::to_string(count_.missing) + " parts missing)";
        return digits;
    }

  private:
    quipu_count count_;
};

/** What was counted of each event of a set, in the order of the request. */
class Reading {
  public:
    /** An event with its count. */
    class Event {
      public:
        const std::string &name() const noexcept { return reading_.names()[at_]; }
        const Count &count() const noexcept { return reading_.counts_[at_]; }

      private:
        friend class Reading;
        Event(const Reading &reading, std::size_t at) noexcept : reading_(reading), at_(at) {}
        const Reading &reading_;
        std::size_t at_;
    };

    class Iterator {
      public:
        Event operator*() const noexcept { return Event(*reading_, at_); }
        Iterator &operator++() noexcept { return ++at_, *this; }
        bool operator!=(const Iterator &other) const noexcept { return at_ != other.at_; }
        bool operator==(const Iterator &other) const noexcept { return at_ == other.at_; }

      private:
        friend class Reading;
        Iterator(const Reading *reading, std::size_t at) noexcept : reading_(reading), at_(at) {}
        const Reading *reading_;
        std::size_t at_;
    };

    std::size_t size() const noexcept { return names().size(); }
    Iterator begin() const noexcept { return Iterator(this, 0); }
    Iterator end() const noexcept { return Iterator(this, size()); }

    /** Returns the names of the events, as they were asked for. */
    const std::vector<std::string> &names() const noexcept { return *names_; }

    /** Returns the count of an event by its position; one that was not read where there is no such event. */
    Count operator[](std::size_t at) const noexcept { return at < size() ? counts_[at] : Count(); }

    /** Returns the count of an event by the name it was asked for; one that was not read where it was not. */
    Count operator[](std::string_view name) const noexcept {
        for (std::size_t at = 0; at < size(); at++) {
            if (names()[at] == name)
                return counts_[at];
        }
        return Count();
    }

  private:
    friend class EventSet;
    std::shared_ptr<const std::vector<std::string>> names_ = std::make_shared<const std::vector<std::string>>();
    std::vector<Count> counts_;
};

/** What a set counts, and how. Everything as it is: the calling thread, user mode alone where more is not permitted. */
struct Options {
    /** Sum of quipu_set_flag: QUIPU_INHERIT counts threads that are started later. */
    std::uint32_t flags = QUIPU_USER_FALLBACK;
    /** A quipu_target, with `id` as the thread, process or CPU. */
    std::uint32_t target = QUIPU_THIS_THREAD;
    int id = 0;
    /** The backends to use, with commas between them; empty for those of this machine. */
    std::string backends;
    /** The simulated PMU to count on. */
    quipu_sim *sim = nullptr;
};

/** Events that are counted together. It is used by one thread at a time, and closed in the end. */
class EventSet {
  public:
    /** Opens events, as `quipu stat -e` takes them. One that cannot be counted keeps its error (error()), if another one can. */
    static Result<EventSet> open(const std::string &events, const Options &options = Options()) {
        return opened(events, options, quipu_set_open);
    }

    /** Opens events if each of them can be counted. */
    static Result<EventSet> open_all(const std::string &events, const Options &options = Options()) {
        return opened(events, options, quipu_set_open_all);
    }

    EventSet(EventSet &&other) noexcept
        : set_(std::exchange(other.set_, nullptr)), names_(other.names_), read_(std::move(other.read_)) {}
    EventSet &operator=(EventSet &&other) noexcept {
        std::swap(set_, other.set_);
        std::swap(names_, other.names_);
        std::swap(read_, other.read_);
        return *this;
    }
    EventSet(const EventSet &) = delete;
    EventSet &operator=(const EventSet &) = delete;
    ~EventSet() { quipu_set_close(set_); }

    Status start() { return detail::done(quipu_set_start(set_)); }
    Status stop() { return detail::done(quipu_set_stop(set_)); }
    Status reset() { return detail::done(quipu_set_reset(set_)); }

    /** Returns what was counted since the last reset. */
    Result<Reading> read() {
        Reading reading;
        Status status = read_into(reading);
        if (!status)
            return status.error();
        return reading;
    }

    /** Reads into what was read before, which allocates nothing where that was of this set. */
    Status read_into(Reading &reading) {
        const int status = quipu_set_read(set_, read_.data(), read_.size());
        if (status != QUIPU_OK)
            return Error::last(status);
        reading.names_ = names_;
        reading.counts_.resize(read_.size());
        for (std::size_t at = 0; at < read_.size(); at++)
            reading.counts_[at] = Count(read_[at]);
        return std::monostate();
    }

    /** Returns the plain values, if each event was counted all the time; else the error of the first that was not. */
    Result<std::vector<std::uint64_t>> values() {
        std::vector<std::uint64_t> values(read_.size());
        const int status = quipu_set_values(set_, values.data(), values.size());
        if (status != QUIPU_OK)
            return Error::last(status);
        return values;
    }

    /** Returns the names of the events, as they were asked for. */
    const std::vector<std::string> &names() const noexcept { return *names_; }

    /** Returns why an event could not be opened; none if it is open, or there is no such event. */
    std::optional<Error> error(std::size_t event) const {
        quipu_error error;
        QUIPU_INIT(error);
        if (quipu_set_event_error(set_, event, &error) != QUIPU_OK || error.status == QUIPU_OK)
            return std::nullopt;
        return Error(error);
    }

    /** Returns the handle, for all other functions of quipu.h. It stays this object's. */
    quipu_set *handle() const noexcept { return set_; }

  private:
    explicit EventSet(quipu_set *set) noexcept : set_(set) {}

    static Result<EventSet> opened(const std::string &events, const Options &options,
                                   quipu_status (*open)(quipu_set *)) {
        quipu_config config;
        QUIPU_INIT(config);
        config.target = options.target;
        config.flags = options.flags;
        config.id = options.id;
        config.backends = options.backends.empty() ? nullptr : options.backends.c_str();
        config.sim = options.sim;
        quipu_set *handle = nullptr;
        int status = quipu_set_create(&config, &handle);
        if (status != QUIPU_OK)
            return Error::last(status);
        EventSet set(handle);
        status = quipu_set_add(handle, events.c_str());
        if (status == QUIPU_OK)
            status = open(handle);
        std::size_t size = 0;
        if (status == QUIPU_OK)
            status = quipu_set_size(handle, &size, nullptr);
        if (status != QUIPU_OK)
            return Error::last(status);
        std::vector<std::string> names(size);
        for (std::size_t event = 0; event < size; event++) {
            quipu_event_info info;
            QUIPU_INIT(info);
            if (quipu_set_event_info(handle, event, &info) == QUIPU_OK && info.name)
                names[event] = info.name;
        }
        set.names_ = std::make_shared<const std::vector<std::string>>(std::move(names));
        set.read_.resize(size);
        return set;
    }

    quipu_set *set_ = nullptr;
    std::shared_ptr<const std::vector<std::string>> names_ = std::make_shared<const std::vector<std::string>>();
    std::vector<quipu_count> read_;
};

/** Counts events in the calling thread while a function runs. */
template <class Function>
Result<Reading> measure(const std::string &events, Function &&function, const Options &options = Options()) {
    Result<EventSet> set = EventSet::open(events, options);
    if (!set)
        return set.error();
    Status status = set->start();
    if (!status)
        return status.error();
    std::forward<Function>(function)();
    status = set->stop();
    if (!status)
        return status.error();
    return set->read();
}

/** A part of the program with a name, from here to the end of the block: see docs/regions.md. QUIPU_REGIONS asks for the report. */
class Region {
  public:
    /** Enters the region of a name, which is looked up each time; QUIPU_REGION() does so once. */
    explicit Region(const char *name) : Region(quipu_region_if_on(name)) {}

    /** Enters a region by its number (quipu_region()). */
    explicit Region(std::uint32_t number) : number_(number) {
        if (number_ != QUIPU_REGION_OFF && quipu_region_enter(number_) != QUIPU_OK)
            number_ = QUIPU_REGION_OFF;
    }

    Region(const Region &) = delete;
    Region &operator=(const Region &) = delete;
    ~Region() {
        if (number_ != QUIPU_REGION_OFF)
            (void)quipu_region_leave(number_);
    }

  private:
    std::uint32_t number_;
};

/** Returns what was counted in regions so far, as a quipu_region_format. */
inline Result<std::string> region_report(std::uint32_t format = QUIPU_REGION_TABLE) {
    std::string text;
    std::size_t needed = 0;
    for (;;) {
        const int status = quipu_region_report(format, text.data(), text.size(), &needed);
        if (status == QUIPU_OK) {
            text.resize(needed > 0 ? needed - 1 : 0);
            return text;
        }
        if (needed <= text.size())
            return Error::last(status);
        text.resize(needed);
    }
}

} // namespace quipu

/** Enters a region until the end of the block. The name is looked up once for each place, and has to be the same each time. */
#ifdef QUIPU_NO_REGIONS
#define QUIPU_REGION(name) static_cast<void>(0)
#else
#define QUIPU_REGION_PASTE_(one, other) one##other
#define QUIPU_REGION_NAME_(one, other) QUIPU_REGION_PASTE_(one, other)
#define QUIPU_REGION(name)                                                                                                      \
    static const std::uint32_t QUIPU_REGION_NAME_(quipu_place_, __LINE__) = quipu_region_if_on(name);                          \
    const ::quipu::Region QUIPU_REGION_NAME_(quipu_region_, __LINE__)(QUIPU_REGION_NAME_(quipu_place_, __LINE__))
#endif

#endif
