#include "context/job_keys.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/algorithm/hex.hpp>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "base/log.h"
#include "crypto/pass_phrase.h"
#include "launch/public_values.h"
#include "pullman/status.h"

namespace pullman {
namespace {

using Key = crypto::Secret<32>;

constexpr std::size_t kDigits = 64;
constexpr std::size_t kMaxFileBytes = 4096;
constexpr std::size_t kLeastWordsBytes = 8;

[[noreturn]] void refuse(const std::string& sentence) {
  throw Error(Status::kBadOption, sentence);
}

// What a key file holds, which is wiped.
using FileBytes = crypto::Secret<kMaxFileBytes>;

// A key file, or what a descriptor that the process has inherited stands for (/dev/fd/N): a file
// without a name, or a pipe.
class OpenFile {
 public:
  explicit OpenFile(const std::string& path)
      : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {  // it may be a pipe
    if (descriptor_ < 0) {
      refuse(fmt::format("the key file '{}' cannot be opened ({}): 'pullman-key {}' makes one",
                         path, std::strerror(errno), path));
    }
  }
  ~OpenFile() { close(descriptor_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  struct stat state() const {
    struct stat state {};
    if (fstat(descriptor_, &state) != 0) return {};
    return state;
  }
  std::string_view read_into(FileBytes& bytes) const {
    std::size_t length = 0;
    while (length < kMaxFileBytes) {
      const ssize_t got = read(descriptor_, bytes.bytes().data() + length, kMaxFileBytes - length);
      if (got < 0 && (errno == EINTR || (errno == EAGAIN && wait_for_more()))) continue;
      if (got <= 0) break;
      length += static_cast<std::size_t>(got);
    }
    return {reinterpret_cast<const char*>(bytes.bytes().data()), length};
  }

 private:
  // Waits until a pipe can be read. Returns false if its writer takes too long.
  bool wait_for_more() const {
    constexpr int kPatienceMs = 10'000;
    pollfd pipe{.fd = descriptor_, .events = POLLIN, .revents = 0};
    return ::poll(&pipe, 1, kPatienceMs) > 0;
  }

  int descriptor_;
};

std::optional<Key> parse(std::string_view line) {
  if (line.size() != kDigits) return std::nullopt;
  Key key;
  try {
    boost::algorithm::unhex(line.begin(), line.end(), reinterpret_cast<char*>(key.bytes().data()));
  } catch (const boost::algorithm::hex_decode_error&) {
    return std::nullopt;
  }
  return key;
}

bool is_inherited(const std::string& path) {
  return path.starts_with("/dev/fd/") || path.starts_with("/proc/self/fd/");
}

// Others must not be able to read it, nor to write to it. What the mode of a file without a name
// says that was inherited lets nobody in.
void check_access(const OpenFile& file, const std::string& path) {
  const struct stat state = file.state();
  if (!S_ISREG(state.st_mode) && !S_ISFIFO(state.st_mode)) {
    refuse(fmt::format("the key file '{}' is not a file", path));
  }
  const bool nameless = S_ISREG(state.st_mode) && state.st_nlink == 0 && is_inherited(path);
  if (!nameless && (state.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    refuse(fmt::format("others may read or write the key file '{}': 'chmod 600 {}'", path, path));
  }
  if (state.st_uid != geteuid() && state.st_uid != 0) {
    refuse(fmt::format("the key file '{}' belongs to another user: make one of your own", path));
  }
}

std::vector<Key> read_file(const std::string& path) {
  const OpenFile file(path);
  check_access(file, path);
  FileBytes bytes;
  std::string_view text = file.read_into(bytes);
  std::vector<Key> keys;
  if (text.empty()) {
    refuse(fmt::format(
        "the key file '{}' is empty: 'pullman-key FILE' makes one; a pipe can be read only once",
        path));
  }
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const auto key = parse(text.substr(0, end));
    if (!key) {
      refuse(fmt::format("line {} of the key file '{}' is no key: {} hexadecimal digits", line,
                         path, kDigits));
    }
    keys.push_back(*key);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (keys.size() > Config::kMaxKeys) {
    refuse(fmt::format("the key file '{}' has {} keys: 1 to {}, the newest first", path,
                       keys.size(), Config::kMaxKeys));
  }
  return keys;
}

void check_secret(std::span<const std::byte> value) {
  const std::string why = launch::why_no_secret(value);
  if (why.empty()) return;
  refuse(fmt::format("the key {}: 'pullman-key FILE' makes one for PULLMAN_KEY_FILE", why));
}

}  // namespace

JobKeys find_job_keys(const Config& config) {
  if (config.security == Config::Security::kOff) return {};
  JobKeys found;
  if (!config.keys.empty()) {
    for (const Config::Key& key : config.keys) found.keys.emplace_back(key);
    found.source = "the program";
  } else if (!config.key_file.empty()) {
    found.keys = read_file(config.key_file);
    found.source = fmt::format("the file '{}'", config.key_file);
  } else if (!config.pass_phrase.empty()) {
    if (config.pass_phrase.size() < kLeastWordsBytes) {
      refuse(fmt::format("the pass phrase is too easy to guess: at least {} characters",
                         kLeastWordsBytes));
    }
    check_secret(std::as_bytes(std::span(config.pass_phrase)));
    found.keys.push_back(crypto::key_from(config.pass_phrase));
    found.source = "words";
    log().warn(
        "the key is made of words, which others may read in the environment or on the command "
        "line: good for trying things out. 'pullman-key FILE' makes one for PULLMAN_KEY_FILE");
  }
  for (const Key& key : found.keys) check_secret(key.bytes());
  return found;
}

}  // namespace pullman
