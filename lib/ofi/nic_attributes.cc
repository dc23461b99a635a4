#include "ofi/nic_attributes.h"

#include <rdma/fi_errno.h>

#include <new>
#include <sstream>
#include <string>
#include <vector>

#include "nic/choice.h"
#include "nic/devices.h"
#include "nic/interfaces.h"
#include "ofi/fids.h"
#include "pullman/status.h"

namespace pullman::ofi {
namespace {

constexpr std::size_t kBitsPerMegabit = 1'000'000;

// libfabric's structs and C strings point to the texts held here. A copy has texts of its own.
class Nic : public fid_nic {
 public:
  Nic(const nic::Device& device, const nic::Interface* interface)
      : fid_nic{},
        name_(device.name),
        driver_(device.driver),
        host_(nic::host_string(device.address)) {
    link_.mtu = interface != nullptr ? interface->mtu : 0;
    link_.speed = device.mbps * kBitsPerMegabit;
    link_.state = device.up ? FI_LINK_UP : FI_LINK_DOWN;
    network_ = device.loopback ? "loopback" : "Ethernet";
    point();
  }
  Nic(const Nic& other)
      : fid_nic{},
        name_(other.name_),
        driver_(other.driver_),
        host_(other.host_),
        network_(other.network_),
        link_(other.link_) {
    point();
  }
  Nic& operator=(const Nic&) = delete;

  std::string text() const;

 private:
  void point();

  std::string name_;
  std::string driver_;
  std::string host_;
  std::string network_;
  fi_device_attr device_{};
  fi_bus_attr bus_{};  // unknown
  fi_link_attr link_{};
};

const Nic& nic_of(const fid* plain) {
  return static_cast<const Nic&>(*reinterpret_cast<const fid_nic*>(plain));
}

int close_nic(fid* plain) {
  delete &nic_of(plain);
  return 0;
}

int control_nic(fid* plain, int command, void* argument) {
  if (command != FI_DUP) return -FI_ENOSYS;
  auto* copy = new (std::nothrow) Nic(nic_of(plain));
  *static_cast<fid_nic**>(argument) = copy;
  return copy != nullptr ? 0 : -FI_ENOMEM;
}

// Appends to the text that is already in `out`.
int write_nic(const fid* plain, char* out, std::size_t room) {
  const std::size_t used = std::char_traits<char>::length(out);
  if (used + 1 >= room) return 0;
  const std::string text = nic_of(plain).text();
  out[used + text.copy(out + used, room - used - 1)] = '\0';
  return 0;
}

void Nic::point() {
  static fi_ops object = [] {
    fi_ops own = table_of({.close = close_nic, .control = control_nic});
    own.tostr = write_nic;
    return own;
  }();
  fid = {.fclass = FI_CLASS_NIC, .context = nullptr, .ops = &object};
  device_.name = name_.data();
  device_.driver = driver_.data();
  link_.address = host_.data();
  link_.network_type = network_.data();
  device_attr = &device_;
  bus_attr = &bus_;
  link_attr = &link_;
}

// Returns it in the format in which fi_info prints that of other providers.
std::string Nic::text() const {
  std::ostringstream out;
  out << "    nic:\n        fi_device_attr:\n            name: " << name_
      << "\n            driver: " << driver_
      << "\n        fi_link_attr:\n            address: " << host_
      << "\n            mtu: " << link_.mtu << "\n            speed: " << link_.speed
      << "\n            state: " << (link_.state == FI_LINK_UP ? "FI_LINK_UP" : "FI_LINK_DOWN")
      << "\n            network_type: " << network_ << '\n';
  return out.str();
}

fid_nic* describe(const Config& config) {
  if (config.driver == "fabric" || !config.provider.empty()) return nullptr;
  const std::string driver = config.driver == "tcp" ? "tcp" : "udp";
  const nic::Choice choice = nic::choose_devices(
      nic::list_devices(driver), config.nics,
      {.nics = config.max_nics, .addresses = 1, .least_packet = Config::kLeastPacketBytes});
  if (choice.chosen.empty()) return nullptr;
  const nic::Device& first = choice.chosen.front();
  const auto interfaces = nic::list_interfaces();
  return new Nic(first, nic::find_interface(interfaces, first.name, first.address));
}

}  // namespace

fid_nic* describe_nic(const RequestedAddress& requested) {
  try {
    return describe(requested.config());
  } catch (const Error&) {
    return nullptr;
  }
}

}  // namespace pullman::ofi
