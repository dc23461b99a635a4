// pullman-key: makes the file with a job's key (PULLMAN_KEY_FILE), which only its owner can read.
#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <boost/algorithm/hex.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>

#include "crypto/random.h"

namespace {

constexpr std::size_t kKeyBytes = 32;
constexpr std::size_t kLineBytes = 2 * kKeyBytes + 1;

// Text that is wiped when it goes. It has its full length from the beginning, so that no part of it
// is left elsewhere.
struct SecretText {
  ~SecretText() { OPENSSL_cleanse(text.data(), text.size()); }
  std::array<char, 2 * kLineBytes + 1> text{};  // it ends with a zero
  std::size_t length = 0;
};

// Adds a new key as a line. Returns false if the kernel gives no random bytes.
bool add_new_line(SecretText& out) {
  std::array<unsigned char, kKeyBytes> key;
  if (!pullman::crypto::fill_randomly(std::as_writable_bytes(std::span(key)))) return false;
  char* const line = out.text.data() + out.length;
  *boost::algorithm::hex_lower(key.begin(), key.end(), line) = '\n';
  out.length += kLineBytes;
  OPENSSL_cleanse(key.data(), key.size());
  return true;
}

// Adds the first line of the file. Returns false if it cannot be read, or is no key's.
bool add_first_line(const std::string& path, SecretText& out) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  char* const line = out.text.data() + out.length;
  const ssize_t got = read(descriptor, line, kLineBytes);
  close(descriptor);
  errno = EINVAL;
  if (got < static_cast<ssize_t>(kLineBytes - 1) ||
      std::strspn(line, "0123456789abcdefABCDEF") != kLineBytes - 1) {
    return false;
  }
  line[kLineBytes - 1] = '\n';
  out.length += kLineBytes;
  return true;
}

int fail(const std::string& path, const char* what) {
  fmt::print(stderr, "pullman-key: {} cannot be {}: {}\n", path, what, std::strerror(errno));
  return 1;
}

bool write_all(int descriptor, const SecretText& out) {
  return write(descriptor, out.text.data(), out.length) == static_cast<ssize_t>(out.length) &&
         fsync(descriptor) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Makes a file with a job's key, which only its owner can read.");
  std::string path;
  bool rotate = false;
  app.add_option("FILE", path, "the file to make; each process of the job needs a copy")
      ->required();
  app.add_flag("--rotate", rotate,
               "put a new key before the newest of an existing file, which stays valid");
  CLI11_PARSE(app, argc, argv);

  SecretText lines;
  if (!add_new_line(lines)) return fail(path, "filled with random bytes");
  if (rotate && !add_first_line(path, lines)) return fail(path, "read as a key file");
  // What was there is replaced at once or not at all.
  const std::string made = rotate ? path + ".new" : path;
  const int descriptor = open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) return fail(made, "made");
  // Whose key it was keeps it.
  struct stat old {};
  const bool is_owners =
      !rotate || (stat(path.c_str(), &old) == 0 && fchown(descriptor, old.st_uid, old.st_gid) == 0);
  const bool written = is_owners && write_all(descriptor, lines);
  close(descriptor);
  if (!written || (rotate && std::rename(made.c_str(), path.c_str()) != 0)) {
    const int exit_code = fail(made, "written");
    unlink(made.c_str());
    return exit_code;
  }
  return 0;
}
