// The addresses of endpoints: a sockaddr of the first NIC, or a text of it. The other NICs of a
// peer are learned from it.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pullman::ofi {

// An IPv4 or IPv6 address with a port.
class Address {
 public:
  Address() = default;
  static Address any(int family);
  // From a sockaddr of a user; nothing if it is of another family or too short.
  static std::optional<Address> from(const void* bytes, std::size_t length);
  // From "10.0.0.1:7", "[::1]:7", or libfabric's "fi_sockaddr_in://10.0.0.1:7".
  static std::optional<Address> from_text(std::string_view text);
  // From what the system's resolver says, of `family` or AF_UNSPEC. A null node is any address, or
  // with `loopback` the loopback's.
  struct Question {
    const char* node = nullptr;
    const char* service = nullptr;
    int family = AF_UNSPEC;
    bool numeric = false;    // do not ask a name server
    bool listening = false;  // a null node is any address, not the loopback's
  };
  static std::optional<Address> resolve(const Question& question);

  int family() const { return storage_.ss_family; }
  std::uint16_t port() const;
  bool is_any() const;
  void set_port(std::uint16_t port);
  // The address so many further on: 10.0.0.1 and 2 are 10.0.0.3.
  void advance(std::uint32_t by);

  const sockaddr* bytes() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  std::size_t length() const;

  std::string host() const;  // "10.0.0.1", "fe80::1%eth0"
  std::string text() const;  // as Context::connect() takes it: "10.0.0.1:7", "[::1]:7"
  std::string uri() const;   // as libfabric writes it: "fi_sockaddr_in://10.0.0.1:7"

 private:
  const sockaddr_in& v4() const { return reinterpret_cast<const sockaddr_in&>(storage_); }
  const sockaddr_in6& v6() const { return reinterpret_cast<const sockaddr_in6&>(storage_); }
  sockaddr_in& v4() { return reinterpret_cast<sockaddr_in&>(storage_); }
  sockaddr_in6& v6() { return reinterpret_cast<sockaddr_in6&>(storage_); }

  sockaddr_storage storage_{};
};

// The form of an application's addresses (fi_info::addr_format).
class Format {
 public:
  explicit Format(std::uint32_t libfabric_format) : format_(libfabric_format) {}

  // An address in the application's form; nothing if it cannot be read. `length` 0: as long as the
  // form says.
  std::optional<Address> read(const void* bytes, std::size_t length = 0) const;
  // The address in the application's form, cut off after `room`. Returns its whole length.
  std::size_t write(const Address& address, void* out, std::size_t room) const;
  // From one address to the next in an array of them; texts are pointers.
  std::size_t stride() const;

 private:
  std::uint32_t format_;
};

}  // namespace pullman::ofi
