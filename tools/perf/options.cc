#include "tools/perf/options.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <tuple>

#include "tools/common/bytes.h"
#include "tools/common/command_line.h"

namespace slime::perf {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{1} << 40;
constexpr uint64_t kMaxSizes = 100000;
constexpr const auto& kCollectives = kNames<Collective>;

constexpr const char* kFooter =
    "Ranks: with --ranks N, N processes on this host; else as started by mpirun, srun or torchrun\n"
    "(OMPI_COMM_WORLD_*, PMI_*, SLURM_*, RANK/WORLD_SIZE/LOCAL_RANK); else two local processes.\n"
    "Local processes use the loopback interface unless NCCL_SLIME_IFNAME or NCCL_SOCKET_IFNAME "
    "names\n"
    "others.\n"
    "Honoured: NCCL_NET_PLUGIN, NCCL_NET, NCCL_PROTO, NCCL_BUFFSIZE, NCCL_LL_BUFFSIZE,\n"
    "NCCL_LL128_BUFFSIZE, NCCL_P2P_NET_CHUNKSIZE, NCCL_DEBUG, and what the plugin reads.\n"
    "Exit code: 0 all right, 1 wrong results, 2 usage, 3 plugin, network or a rank failed,\n"
    "130 interrupted.";

const CLI::Validator kBytesCheck(
    [](std::string& text) {
      const auto bytes = tools::parse_bytes(text);
      if (!bytes) return bytes.error().what;
      text = std::to_string(*bytes);
      return std::string();
    },
    "SIZE");

bool refuse(const std::string& why) {
  fprintf(stderr, "slime-perf: %s\n", displayed(why).c_str());
  return false;
}

// "all" or a comma-separated list of names.
template <typename Word>
bool read_words(const std::string& text, const char* option, std::vector<Word>* words) {
  const auto& names = kNames<Word>;
  words->clear();
  for (const std::string& part : CLI::detail::split(text, ',')) {
    const auto word = find_word<Word>(part);
    if (word && part == name_of(*word)) {  // these in lower case only
      words->push_back(*word);
      continue;
    }
    std::string known;
    for (size_t i = 0; i < names.size(); ++i) {
      if (part == "all") words->push_back(static_cast<Word>(i));
      known += std::string(" ") + names[i];
    }
    if (part == "all") continue;
    std::string why = option;
    why.append(": '").append(part).append("' is none of: all").append(known);
    return refuse(why);
  }
  return !words->empty();
}

// Options of nccl-tests that mean threads and GPUs of a process.
const CLI::Validator kNotHere(
    [](std::string&) {
      return std::string(
          "-g and -t are nccl-tests' (GPUs and threads of a process); each rank is a process here: "
          "give --ranks N");
    },
    "");
const CLI::Validator kFactorCheck(
    [](std::string& text) {
      int64_t factor = 0;
      if (CLI::detail::lexical_cast(text, factor) && factor >= 2 && factor <= 1 << 20) return "";
      return "a factor is 2 to 1048576 (1 would never get beyond -b); or give -i BYTES to add";
    },
    "FACTOR");

struct Texts {
  std::string collective, algorithm = "ring", type = "float", op = "sum", protocol = "auto",
                          version;
  bool staged = false;
};

void add_workload(CLI::App& app, Options* o, Texts* texts) {
  app.add_option("collective", texts->collective, "What to run")
      ->required()
      ->check(CLI::IsMember(std::vector<std::string>(kCollectives.begin(), kCollectives.end())));
  app.add_option("-b,--minbytes", o->min_bytes, "Smallest size")->transform(kBytesCheck);
  app.add_option("-e,--maxbytes", o->max_bytes, "Largest size")->transform(kBytesCheck);
  auto* factor = app.add_option("-f,--stepfactor", o->step_factor, "Multiply the size by")
                     ->check(kFactorCheck);
  app.add_option("-i,--stepbytes", o->step_bytes, "Add to the size instead")
      ->transform(kBytesCheck)
      ->excludes(factor);
  app.add_option("-n,--iters", o->iterations, "Timed operations per size")
      ->check(CLI::Range(0, 10000000));
  app.add_option("-w,--warmup_iters", o->warmups, "Operations before the timed ones")
      ->check(CLI::Range(0, 10000000));
  app.add_option("-c,--check", o->checks, "Checked runs per size; 0: do not check")
      ->check(CLI::Range(0, 10000));
  app.add_option(
         "--duration", o->duration_s,
         "Seconds for each row, half of them in place: -n and -c again and again. SIGINT or "
         "SIGTERM then ends the run well, with what is going on; another one at once")
      ->default_str("")
      ->check(CLI::Range(1.0, 1e6, "SECONDS"));
  app.add_option("-d,--datatype", texts->type, "Data types: a list, or all");
  app.add_option("-o,--op", texts->op, "Reductions: sum, prod, max, min, avg, a list, or all");
  app.add_option("-r,--root", o->root, "Root of a broadcast; -1: every rank in turn")
      ->check(CLI::Range(-1, 65535));
}

void add_set_up(CLI::App& app, Options* o, Texts* texts) {
  app.add_option("-g,--ngpus", texts->version, "")->group("")->check(kNotHere);
  app.add_option("-t,--nthreads", texts->version, "")->group("")->check(kNotHere);
  app.add_option("--ranks", o->ranks, "Start this many processes on this host")
      ->check(CLI::Range(2, 1024));
  app.add_option("--rails", o->rails, "Set NCCL_SLIME_RAILS_PER_IF where it is not set")
      ->check(CLI::Range(1, 16));
  app.add_option("--algo", texts->algorithm,
                 "Who computes all_reduce: the ranks in a ring, or a switch (NCCL_SLIME_SWITCH)")
      ->check(CLI::IsMember({"ring", "collnet"}, CLI::ignore_case));
  app.add_option("--channels", o->channels, "Connections to each neighbour (default: chosen)")
      ->check(CLI::Range(1, 64));
  app.add_option("--proto", texts->protocol, "Message pattern")
      ->check(CLI::IsMember({"auto", "simple", "ll", "ll128"}, CLI::ignore_case));
  auto* staged = app.add_flag("--staged", texts->staged,
                              "Through NCCL's FIFO buffers (default; NCCL without registration)");
  app.add_flag("--direct", o->direct,
               "From and into the user's buffers (NCCL with registered buffers)")
      ->excludes(staged);
  app.add_option("--api", o->max_api, "Highest version of the plugin's table to use")
      ->check(CLI::Range(6, 12));
  app.add_option("--plugin", o->plugin,
                 "Like NCCL_NET_PLUGIN, which it overrides (default: libnet-slime.so in ../lib)");
  app.add_option("--net-dev", o->devices, "Devices to use, channel by channel")
      ->delimiter(',')
      ->check(CLI::NonNegativeNumber);
  app.add_option(
      "--rendezvous", o->rendezvous,
      "HOST:PORT where rank 0 listens (default: MASTER_ADDR and MASTER_PORT, under torchrun "
      "MASTER_PORT + 1, as its own store has MASTER_PORT; or the first host of the Slurm "
      "step)");
  app.add_option("--timeout", o->timeout_s,
                 "Seconds for all ranks to come, and without progress afterwards, before giving up")
      ->check(CLI::Range(1, 1000000));
}

void add_output(CLI::App& app, Options* o) {
  app.add_option("--json", o->json_path,
                 "Also write everything here as JSON; -: stdout (the table goes to stderr then)");
  app.add_flag("--quiet", o->quiet, "Only errors and the JSON");
  app.add_flag("--inject-error", o->inject_error,
               "Self-test: flip one bit of every checked result on the last rank");
  app.add_flag("--wild-tails", o->wild_tails,
               "Self-test of --algo collnet: leave numbers of all sizes behind the user's in the "
               "FIFOs, not only NaN and infinities");
}

// What NCCL does not do over CollNet.
bool check_algorithm(const Options& options) {
  if (options.algorithm == Algorithm::kRing) return true;
  if (options.devices.size() > 1) {
    return refuse("--algo collnet uses one device: name one with --net-dev");
  }
  if (options.protocol.value_or(Protocol::kSimple) != Protocol::kSimple) {
    return refuse("--algo collnet has no protocol but simple");
  }
  if (options.collective == Collective::kAllReduce) return true;
  return refuse("--algo collnet is for all_reduce only");
}

bool check_sizes(const Options& options) {
  const auto& [least, most, step] =
      std::tie(options.min_bytes, options.max_bytes, options.step_bytes);
  const auto text = [](uint64_t bytes) { return tools::format_bytes(bytes); };
  if (least > most) return refuse("-b " + text(least) + " is more than -e " + text(most));
  if (most > kMaxBytes) return refuse("-e takes at most " + text(kMaxBytes));
  if (options.duration_s > 0 && options.iterations == 0 && options.checks == 0) {
    return refuse("--duration with -n 0 and -c 0 has nothing to repeat");
  }
  if (step == 0 || (most - least) / step < kMaxSizes) return true;
  return refuse("-i " + std::to_string(step) + " makes more than " + std::to_string(kMaxSizes) +
                " sizes");
}

bool interpret(const Texts& texts, Options* options) {
  // CLI11 has checked the names. The protocol may also be "auto", which is not in the table.
  options->collective = find_word<Collective>(texts.collective).value();
  options->algorithm = find_word<Algorithm>(texts.algorithm).value();
  options->protocol = find_word<Protocol>(texts.protocol);
  return check_algorithm(*options) && read_words(texts.type, "-d", &options->types) &&
         read_words(texts.op, "-o", &options->ops) && check_sizes(*options);
}

// The value of an option that is unknown would be taken for the collective, and blamed.
bool complain_of_unknown_option(const CLI::App& app, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool is_long = word.starts_with("--");
    if (word.size() < 2 || word[0] != '-' || (!is_long && isalpha(word[1]) == 0)) continue;
    const std::string name = is_long ? word.substr(0, word.find('=')) : word.substr(0, 2);
    if (name == "--" || name == "-h" || app.get_option_no_throw(name) != nullptr) continue;
    return !refuse("there is no option " + name + "; --help lists them");
  }
  return false;
}

std::vector<uint64_t> sizes_of(const Options& options) {
  std::vector<uint64_t> sizes;
  for (uint64_t size = options.min_bytes; size <= options.max_bytes;) {
    sizes.push_back(size);
    const uint64_t next =
        options.step_bytes > 0 ? size + options.step_bytes : size * options.step_factor;
    if (next <= size) break;  // a size of 0: one row
    size = next;
  }
  return sizes;
}

}  // namespace

std::variant<Options, int> parse_options(int argc, char** argv) {
  CLI::App app("Measures and checks collectives over an NCCL network plugin, without NCCL or a GPU",
               "slime-perf");
  app.footer(kFooter);
  app.option_defaults()->always_capture_default();
  Options options;
  Texts texts;
  add_workload(app, &options, &texts);
  add_set_up(app, &options, &texts);
  add_output(app, &options);
  const auto explain = [&] { return complain_of_unknown_option(app, argc, argv); };
  if (const auto code = tools::parse(&app, argc, argv, kExitFailure, explain)) return *code;
  if (!interpret(texts, &options)) return static_cast<int>(kExitUsage);
  return options;
}

std::string common_arguments(const Options& options) {
  std::string text(name_of(options.collective));
  const auto add = [&text](const char* flag, const auto& value, bool given = true) {
    if (given) text += std::string(" ") + flag + " " + std::to_string(value);
  };
  const auto add_names = [&text](const char* flag, const auto& words) {
    text += std::string(" ") + flag;
    for (const auto word : words) text += std::string(" ") + name_of(word);
  };
  add("-b", options.min_bytes);
  add("-e", options.max_bytes);
  add("-i", options.step_bytes, options.step_bytes > 0);
  add("-f", options.step_factor, options.step_bytes == 0);
  add("-n", options.iterations);
  add("-w", options.warmups);
  add("-c", options.checks);
  add("--duration", options.duration_s, options.duration_s > 0);
  add("-r", options.root);
  add("--channels", options.channels);
  add_names("--algo", std::array{options.algorithm});
  add_names("-d", options.types);
  add_names("-o", options.ops);
  if (options.protocol) add_names("--proto", std::array{*options.protocol});
  return text + (options.direct ? " --direct" : "");
}

std::vector<Case> cases_of(const Options& options, int ranks) {
  std::vector<RedOp> ops = {RedOp::kNone};
  if (reduces(options.collective)) ops = options.ops;
  std::vector<int> roots = {-1};
  if (options.collective == Collective::kBroadcast) {
    roots = {options.root};
    if (options.root < 0) {
      roots.resize(static_cast<size_t>(ranks));
      std::iota(roots.begin(), roots.end(), 0);
    }
  }
  std::vector<Case> cases;
  for (const DataType type : options.types) {
    for (const RedOp op : ops) {
      for (const int root : roots) {
        for (const uint64_t bytes : sizes_of(options)) cases.push_back({type, op, root, bytes});
      }
    }
  }
  return cases;
}

}  // namespace slime::perf
