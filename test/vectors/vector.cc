#include "test/vectors/vector.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace slime::vectors {
namespace {

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(make_error(Status::kInvalid, 0, "%s: cannot be read", path.c_str()));
  return std::string{std::istreambuf_iterator<char>(file), {}};
}

bool write_file(const std::string& path, const char* bytes, size_t size) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes, static_cast<std::streamsize>(size));
  return file.good();
}

// "slots 4": one line, one fact.
bool take_line(const std::string& line, Vector* vector) {
  std::istringstream words(line);
  std::string key, address;
  uint32_t number = 0;
  words >> key;
  const auto take_number = [&](uint32_t most) { return (words >> number) && number <= most; };
  const auto take_address = [&](SocketAddress* to) {
    const auto parsed =
        (words >> address) ? SocketAddress::parse(address) : Result<SocketAddress>();
    if (parsed) *to = *parsed;
    return parsed && parsed->port() != 0 && !parsed->is_ipv6();
  };
  net::JobSpec& job = vector->job;
  if (key == "switch") return take_address(&vector->address);
  if (key == "shards") return take_number(sap::kMaxShards) && (vector->shards = number) > 0;
  if (key == "job") return take_number(65535) && ((job.job = static_cast<uint16_t>(number)), true);
  if (key == "generation") {
    return take_number(255) && ((job.generation = static_cast<uint8_t>(number)), true);
  }
  if (key == "token") return take_number(UINT32_MAX) && ((job.token = number), true);
  if (key == "slots") return take_number(65536) && (job.slots = number) > 0;
  if (key == "lanes") return take_number(sap::kMaxLanes) && (job.max_lanes = number) > 0;
  if (key == "formats") return take_number(sap::kKnownFormats) && (job.formats = number) > 0;
  if (key == "child") return take_address(&job.children.emplace_back());
  if (key == "children-are-switches") return job.children_are_switches = true;
  if (key == "parent") {
    net::Parent parent;
    if (!take_address(&parent.address) || !take_number(sap::kMaxChildren - 1)) return false;
    parent.child = static_cast<uint8_t>(number);
    job.parent = parent;
    return true;
  }
  return false;
}

}  // namespace

uint32_t Vector::shard_of(const SocketAddress& end) const {
  SocketAddress base = end;
  base.set_port(address.port());
  const auto shard = static_cast<uint32_t>(end.port()) - address.port();
  return base == address && shard < shards ? shard : shards;
}

std::string print_job(const Vector& vector) {
  const net::JobSpec& job = vector.job;
  std::ostringstream out;
  out << "switch " << vector.address.to_string() << "\nshards " << vector.shards << "\njob "
      << job.job << "\ngeneration " << int{job.generation} << "\ntoken " << job.token << "\nslots "
      << job.slots << "\nlanes " << job.max_lanes << "\nformats " << job.formats << "\n";
  for (const SocketAddress& child : job.children) out << "child " << child.to_string() << "\n";
  if (job.children_are_switches) out << "children-are-switches\n";
  if (job.parent) {
    out << "parent " << job.parent->address.to_string() << " " << int{job.parent->child} << "\n";
  }
  return out.str();
}

Result<Vector> parse_job(const std::string& name, const std::string& text) {
  Vector vector;
  vector.name = name;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (take_line(line, &vector)) continue;
    return fail(make_error(Status::kInvalid, 0, "%s.job:%d: not understood", name.c_str(), number));
  }
  if (vector.address.port() != 0 && vector.job.slots > 0 && vector.job.max_lanes > 0 &&
      !vector.job.children.empty() && vector.job.children.size() <= sap::kMaxChildren) {
    return vector;
  }
  return fail(make_error(Status::kInvalid, 0, "%s.job: something is missing", name.c_str()));
}

Result<Vector> load_vector(const std::string& directory, const std::string& name) {
  const std::string base = directory + "/" + name;
  const auto text = read_file(base + ".job"), capture = read_file(base + ".pcap");
  if (!text) return fail(text.error());
  if (!capture) return fail(capture.error());
  auto vector = parse_job(name, *text);
  if (!vector) return vector;
  auto packets = test::read_pcap(std::as_bytes(std::span(*capture)));
  if (!packets) return fail(std::move(packets.error()));
  vector->packets = std::move(*packets);
  return vector;
}

bool save_vector(const std::string& directory, const Vector& vector) {
  const std::string base = directory + "/" + vector.name, text = print_job(vector);
  const auto capture = test::write_pcap(vector.packets);
  return write_file(base + ".job", text.data(), text.size()) &&
         write_file(base + ".pcap", reinterpret_cast<const char*>(capture.data()), capture.size());
}

std::vector<std::string> vector_names(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (entry.path().extension() == ".pcap") names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace slime::vectors
