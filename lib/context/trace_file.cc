#include "context/trace_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>
#include <vector>

#include "nic/trace/pcapng.h"

namespace pullman {
namespace {

namespace fs = std::filesystem;
namespace trace = nic::trace;

[[noreturn]] void fail(const fs::path& path) {
  throw std::system_error(errno, std::generic_category(), path.string());
}

// A new file that only its user may read.
std::unique_ptr<std::FILE, int (*)(std::FILE*)> create(const fs::path& path) {
  unlink(path.c_str());
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) fail(path);
  std::FILE* const file = fdopen(descriptor, "w");
  if (file == nullptr) {
    close(descriptor);
    fail(path);
  }
  return {file, std::fclose};
}

void write_packets(const trace::Ring& ring, Duration behind_1970, trace::PcapngWriter& out) {
  const auto ports = ring.ports();
  std::vector<std::uint64_t> kept(ports.size());
  Instant last{};
  for (std::size_t i = 0; i < ring.kept(); ++i) {
    const trace::Record& record = ring.record(i);
    const nic::Address& here = ports[record.port].address;
    out.write({.interface = record.port,
               .time_ns = (record.at.time_since_epoch() + behind_1970).count(),
               .sent = record.sent,
               .source = record.sent ? &here : nullptr,
               .destination = record.sent ? ring.destination(i) : &here,
               .bytes = record.kept_bytes(),
               .length = record.length});
    ++kept[record.port];
    last = record.at;
  }
  for (std::uint16_t port = 0; port < ports.size(); ++port) {
    out.write({.interface = port,
               .time_ns = (last.time_since_epoch() + behind_1970).count(),
               .received = ring.recorded(port),
               .dropped = ring.recorded(port) - kept[port]});
  }
}

}  // namespace

fs::path trace_path(std::string_view wanted, const TraceOwner& owner, std::string_view cause) {
  const std::string process = owner.context == 1
                                  ? fmt::format("{}", owner.process)
                                  : fmt::format("{}-{}", owner.process, owner.context);
  std::string text;
  bool named = false;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const char next = wanted[i] == '%' && i + 1 < wanted.size() ? wanted[i + 1] : '\0';
    if (next == 'p') text += process;
    if (next == 'h') text += owner.host;
    if (next == '%') text += '%';
    named = named || next == 'p';
    if (next == 'p' || next == 'h' || next == '%') {
      ++i;
    } else {
      text += wanted[i];
    }
  }
  const fs::path path(text);
  std::string name = path.stem().string();
  if (!named) name += "." + process;
  if (!cause.empty()) name += fmt::format(".{}", cause);
  return path.parent_path() / (name + path.extension().string());
}

void write_trace(const trace::Ring& ring, const fs::path& path, std::string_view comment,
                 Duration behind_1970) {
  const fs::path unfinished = fmt::format("{}.{}.tmp", path.string(), getpid());
  try {
    auto file = create(unfinished);
    trace::PcapngWriter out(file.get(), "Pullman", comment);
    for (const trace::TracedPortInfo& port : ring.ports()) {
      out.add_interface({.name = port.name,
                         .description = port.description,
                         .address = port.address,
                         .snap_bytes = trace::Record::kSnapBytes});
    }
    write_packets(ring, behind_1970, out);
    errno = out.finish_file();
    if (errno != 0 || std::rename(unfinished.c_str(), path.c_str()) != 0) fail(path);
  } catch (...) {
    unlink(unfinished.c_str());
    throw;
  }
}

}  // namespace pullman
