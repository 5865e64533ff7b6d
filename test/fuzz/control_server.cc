// The switch's end of the control channel, down to the shards: strangers, clients with and without
// the key, requests of any content.
#include <algorithm>
#include <optional>

#include "switch/controller/connection.h"
#include "switch/core/shard.h"
#include "test/fuzz/support/stream.h"

namespace slime::net {

// The least switch that there is: one shard, nobody sends packets.
class OneShard final : public SwitchDriver {
 public:
  SwitchShape shape() const override {
    return {.address = *SocketAddress::parse("127.0.0.1:28880"),
            .shards = 1,
            .max_lanes = 64,
            .slot_bytes = 1 << 16,
            .formats = sap::kKnownFormats};
  }
  Result<void> add_job(const JobSpec& spec) override {
    FUZZ_CHECK(shard_.counters_of(spec.job) == nullptr);
    return shard_.add_job(spec);
  }
  Result<void> remove_job(uint16_t job) override {
    FUZZ_CHECK(shard_.remove_job(job));
    return {};
  }
  Result<void> fence(uint16_t job, uint8_t generation, uint32_t token) override {
    FUZZ_CHECK(shard_.fence(job, generation, token));
    return {};
  }
  Result<JobTotals> totals(uint16_t job) const override {
    JobTotals totals;
    totals.add(*shard_.counters_of(job));
    return totals;
  }
  bool has(uint16_t job) const { return shard_.counters_of(job) != nullptr; }

 private:
  Shard shard_{0, 1};
};

struct EnoughPlaces final : ConnectionPlaces {
  std::optional<std::string> make_place(const Caller&) override { return {}; }
};

class ServerBench {
 public:
  explicit ServerBench(fuzz::Input& input) : input_(input) {
    static const SecretKey key =
        *SecretKey::from_bytes(std::as_bytes(std::span("0123456789abcdef")));
    if (input_.below(2)) options_.keys.common = key;
    connection_.emplace(Accepted{std::move(stream_.theirs), *SocketAddress::parse("127.0.0.1:7")},
                        options_, places_, strangers_, clock_.now_ns());
    if (input_.below(4) > 0) greet();
  }

  bool step() {
    switch (input_.below(8)) {
      case 0:
        stream_.say(input_.bytes(input_.below(200)));
        break;
      case 1:
        clock_.pass(uint64_t{input_.take<uint16_t>()} * 1'000'000);
        controller_.expire(clock_.now_ns());
        break;
      case 2:
        sequence_ += input_.below(3);
        break;
      default:
        request();
    }
    return advance();
  }

 private:
  void greet() {
    control::Hello hello;
    hello.nonce.fill(std::byte{3});
    stream_.say(control::encode(hello, 0));
    (void)advance();
    if (challenge_)
      signer_ = control::Signer(options_.keys.common, {}, hello.nonce, challenge_->nonce);
  }

  // A frame around the fuzzer's payload, or around a request that may well be granted.
  void request() {
    std::vector<std::byte> frame;
    const control::JobRef ref{granted_.id, granted_.job,
                              static_cast<uint8_t>(granted_.generation + input_.below(2))};
    switch (input_.below(8)) {
      case 0:
        frame = control::encode(control::Heartbeat{ref}, ++sequence_);
        break;
      case 1:
        frame = control::encode(control::Fence{ref, input_.below(2) == 1}, ++sequence_);
        break;
      case 2:
        frame = control::encode(control::CloseJob{ref}, ++sequence_);
        break;
      case 3:
        frame = control::encode(control::Report{true}, ++sequence_);
        break;
      case 4:
      case 5:
        frame = control::encode(wanted(), ++sequence_);
        break;
      default: {
        control::Text text{fuzz::text_of(input_.bytes(input_.below(256)))};
        frame = control::encode(text, ++sequence_);
        frame[5] = static_cast<std::byte>(input_.below(16));  // of another type
      }
    }
    if (input_.below(16) != 1) (void)signer_.sign(control::Direction::kRequest, frame);
    stream_.say(frame);
  }
  control::CreateJob wanted() {
    control::CreateJob job{.tenant = std::string(input_.below(40), 'x'),
                           .slots_wanted = input_.below(256),
                           .slots_least = input_.below(8),
                           .lanes_wanted = input_.below(128),
                           .lanes_least = input_.below(64),
                           .formats_wanted = input_.take<uint8_t>(),
                           .formats_least = input_.take<uint8_t>(),
                           .children = {}};
    for (uint32_t i = input_.below(40); i > 0; --i) {
      auto child = *SocketAddress::parse("127.0.0.1:9000");
      child.set_port(static_cast<uint16_t>(input_.below(8) == 0 ? 0 : 9000 + i));
      job.children.push_back(child);
    }
    return job;
  }

  bool advance() {
    const bool going = connection_->advance(controller_);
    FUZZ_CHECK(connection_->late_with() != nullptr);
    hear();
    const Usage usage = controller_.usage();
    FUZZ_CHECK(usage.jobs == controller_.jobs().size());
    FUZZ_CHECK(usage.slot_bytes <= driver_.shape().slot_bytes);
    for (const auto& [number, job] : controller_.jobs()) FUZZ_CHECK(driver_.has(number));
    return going;
  }

  // What the server says is always well formed.
  void hear() {
    std::vector<std::byte> heard = stream_.hear();
    for (std::span<const std::byte> left = heard; !left.empty();) {
      const auto header = control::decode_header(left.first(control::kHeaderBytes), 1 << 20);
      FUZZ_CHECK(header);
      const size_t size = control::kHeaderBytes + header->payload_bytes + control::kMacBytes;
      FUZZ_CHECK(size <= left.size());
      const auto message = control::decode_payload(
          header->type, left.subspan(control::kHeaderBytes, header->payload_bytes));
      FUZZ_CHECK(message && !control::is_request(header->type));
      if (const auto* found = std::get_if<control::Challenge>(&*message)) challenge_ = *found;
      if (const auto* grant = std::get_if<control::JobGrant>(&*message)) granted_ = grant->job;
      left = left.subspan(size);
    }
  }

  fuzz::Input& input_;
  fuzz::ManualClock clock_;
  OneShard driver_;
  Controller controller_{driver_, {.max_jobs = 4, .job_numbers = 6, .seed = 9}, clock_};
  ServerOptions options_;
  fuzz::Stream stream_;
  EnoughPlaces places_;
  StrangerLog strangers_;
  std::optional<Connection> connection_;
  control::Signer signer_;
  std::optional<control::Challenge> challenge_;
  control::JobRef granted_;
  uint32_t sequence_ = 0;
};

SLIME_FUZZ_TARGET(control_server, input) {
  ServerBench bench(input);
  for (int i = 0; i < 200 && !input.empty() && bench.step(); ++i) {
  }
}

}  // namespace slime::net
