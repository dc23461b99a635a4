// Answers every message with the same bytes, in a program whose loop is Boost.Asio's.
//
//   asio_echo                   waits for others, says where it is
//   asio_echo 10.0.0.1:7100     asks there ten times a second, ten times
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdio>
#include <exception>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>

#include "pullman/pullman.h"

namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

constexpr pullman::Tag kQuestion = 1;
constexpr pullman::Tag kAnswer = 2;

// Lets a context move its packets whenever the loop finds that there is something to do.
class Mover {
 public:
  Mover(asio::io_context& loop, pullman::Context& context)
      : context_(context), descriptor_(loop, descriptor_of(context)) {
    move();
  }
  ~Mover() { descriptor_.release(); }  // it is the context's

  // Call it behind calls of the context that were made elsewhere in the loop.
  void move() {
    while (!context_.prepare_wait()) {
    }
    if (std::exchange(waits_, true)) return;
    descriptor_.async_wait(asio::posix::stream_descriptor::wait_read,
                           [this](const boost::system::error_code& error) {
                             waits_ = false;
                             if (!error) move();
                           });
  }

 private:
  static int descriptor_of(const pullman::Context& context) {
    const int descriptor = context.wait_fd();
    if (descriptor < 0) throw std::runtime_error("this NIC cannot wake a program: poll it");
    return descriptor;
  }

  pullman::Context& context_;
  asio::posix::stream_descriptor descriptor_;
  bool waits_ = false;
};

class Server {
 public:
  explicit Server(pullman::Context& context) : context_(context) { listen(); }

 private:
  void listen() { context_.receive(pullman::kAnyPeer, kQuestion, 0, buffer_, question_); }
  void answer() {
    if (question_.status() == pullman::Status::kClosed) return;
    if (question_.status() != pullman::Status::kOk) return listen();  // too long for us
    const auto bytes = std::span(buffer_).first(question_.length());
    context_.send(question_.source(), kAnswer, bytes, answer_);
  }

  pullman::Context& context_;
  std::array<std::byte, 2000> buffer_{};
  pullman::CallbackRequest question_{context_, [this](pullman::CallbackRequest&) { answer(); }};
  pullman::CallbackRequest answer_{context_, [this](pullman::CallbackRequest&) {
                                     if (answer_.status() != pullman::Status::kClosed) listen();
                                   }};
};

class Client {
 public:
  Client(asio::io_context& loop, pullman::Context& context, Mover& mover, const char* server)
      : loop_(loop), context_(context), mover_(mover), server_(context.connect(server)) {
    ask();
  }

 private:
  static constexpr int kQuestions = 10;

  void ask() {
    asked_at_ = Clock::now();
    context_.receive(server_, kAnswer, 0, buffer_, answer_);
    context_.send(server_, kQuestion, buffer_, question_);
    mover_.move();
  }
  void hear() {
    if (answer_.status() != pullman::Status::kOk) {
      std::fprintf(stderr, "%s\n", pullman::to_sentence(answer_.status()));
      return loop_.stop();
    }
    const std::chrono::duration<double, std::micro> taken = Clock::now() - asked_at_;
    std::printf("answer %d after %.1f us\n", ++answers_, taken.count());
    std::fflush(stdout);
    if (answers_ == kQuestions) return loop_.stop();
    timer_.expires_after(std::chrono::milliseconds(100));
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) ask();
    });
  }

  asio::io_context& loop_;
  pullman::Context& context_;
  Mover& mover_;
  pullman::PeerId server_;
  asio::steady_timer timer_{loop_};
  std::array<std::byte, 64> buffer_{};
  Clock::time_point asked_at_;
  int answers_ = 0;
  pullman::Request question_;
  pullman::CallbackRequest answer_{context_, [this](pullman::CallbackRequest&) { hear(); }};
};

}  // namespace

int main(int argc, char** argv) {
  try {
    asio::io_context loop;
    pullman::Context context;  // options: the PULLMAN_* environment variables
    Mover mover(loop, context);
    std::optional<Server> server;
    std::optional<Client> client;
    if (argc == 1) {
      server.emplace(context);
      mover.move();
      std::printf("on the other machine: asio_echo %s\n", context.address().c_str());
      std::fflush(stdout);
    }
    if (argc > 1) client.emplace(loop, context, mover, argv[1]);
    asio::signal_set interrupt(loop, SIGINT);
    interrupt.async_wait([&loop](const boost::system::error_code&, int) { loop.stop(); });
    loop.run();
    context.close();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "asio_echo: %s\n", error.what());
    return 1;
  }
}
