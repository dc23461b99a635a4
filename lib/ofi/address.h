// The addresses of endpoints: a sockaddr of the first NIC, or its text. A peer's other NICs are
// learned from its first.
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
  // Reads a user's sockaddr; nothing if it is of another family or too short.
  static std::optional<Address> from(const void* bytes, std::size_t length);
  // Reads "10.0.0.1:7", "[::1]:7", or libfabric's "fi_sockaddr_in://10.0.0.1:7".
  static std::optional<Address> from_text(std::string_view text);
  // Asks the system's resolver for an address of `family` or AF_UNSPEC. A null node means the
  // loopback address or, with `listening`, any address.
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
  // Adds `by` to the address: 10.0.0.1 and 2 give 10.0.0.3.
  void advance(std::uint32_t by);

  const sockaddr* bytes() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  std::size_t length() const;

  std::string host() const;  // "10.0.0.1", "fe80::1%eth0"
  std::string text() const;  // in the form that Context::connect() takes: "10.0.0.1:7", "[::1]:7"
  std::string uri() const;   // in libfabric's form: "fi_sockaddr_in://10.0.0.1:7"

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

  // Reads an address in the application's form; nothing if it is invalid. `length` 0: as long as
  // the form requires.
  std::optional<Address> read(const void* bytes, std::size_t length = 0) const;
  // Writes the address in the application's form, cut off after `room` bytes. Returns its whole
  // length.
  std::size_t write(const Address& address, void* out, std::size_t room) const;
  // Returns the distance between addresses in an array of them; texts are pointers.
  std::size_t stride() const;

 private:
  std::uint32_t format_;
};

}  // namespace pullman::ofi
