# Checks the one-way rule between rooms by the #include lines (CONTRIBUTING.md explains the rule).
# Input: all C++ files, named from the repository root. Prints one message for each violation, and
# exits with 1 if there is any.

BEGIN {
  # may[room] = rooms it may include, besides its own.
  may["include"] = ""
  may["portable"] = ""
  may["base"] = ""
  may["settings"] = "base times"
  may["times"] = "settings"  # a table: the rows of settings.def, and constants
  may["protocol"] = "base times"
  may["rail"] = "base settings times"
  may["registry"] = may["rail"] " rail"
  may["backend"] = may["rail"] " rail"
  may["devices"] = may["registry"] " registry"
  may["link"] = may["devices"] " devices"
  may["message"] = may["link"] " link"
  may["shard"] = "base protocol"
  may["collnet"] = may["message"] " message shard protocol"
  may["plugin"] = "base settings times devices message collnet generated"
  may["rendezvous"] = "base times"
  may["peer"] = may["link"] " link"
  may["c_abi"] = "include generated " may["peer"] " peer"
  may["aggregation"] = "include " may["collnet"] " collnet rendezvous"
  may["p4driver"] = "base times protocol shard"
  may["switch"] = "base times protocol shard p4driver generated"
  may["examples"] = "include"
  may["tools"] = may["aggregation"] " peer c_abi aggregation backend plugin p4driver switch generated"
  may["bench"] = may["tools"] " tools"
  may["test"] = may["tools"] " tools"
  # Part of libc on every supported machine, and without a C++ form.
  posix = "^((sys|net|netinet|arpa)/[a-z0-9_]+|unistd|poll|pthread|netdb|ifaddrs|fcntl)[.]h$"
  for (i = 1; i < ARGC; i++) known[ARGV[i]] = 1
}

function room_of(path) {
  if (path == "slime_version.h" || path ~ /^(bmv2|tofino)\//) return "generated"
  if (path ~ /^include\/slime\/[^\/]+$/) return "include"
  if (path == "settings/times.h") return "times"
  if (path ~ /^transports\/(rail|rail_counters|poller|sleeper|region_table|flush_reads|closing_queue|channel_common|hca_filter)\.(h|cc)$/) return "rail"
  if (path ~ /^transports\/(registry|rail_order)\.(h|cc)$/) return "registry"
  if (path ~ /^transports\/[^\/]+\//) return "backend"
  if (path ~ /^switch\/core\//) return "shard"
  if (path ~ /^switch\/protocol\//) return "protocol"
  if (path ~ /^switch\/p4driver\//) return "p4driver"
  if (path ~ /^(portable|base|settings|devices|link|message|collnet|plugin|peer|c_abi|rendezvous|aggregation|switch|tools|bench|test|examples)\//)
    return substr(path, 1, index(path, "/") - 1)
  return ""
}

function complain(rule, remedy) {
  printf("%s:%d: %s; %s\n", FILENAME, FNR, rule, remedy) > "/dev/stderr"
  bad++
}

# backend_of("transports/tcp/rail.cc") = "tcp"
function backend_of(path, part) { split(path, part, "/"); return part[2] }

function check_system(header) {
  if (header ~ /^slime\//) {
    if (!(("include/" header) in known))
      complain("<" header "> does not exist", "create include/" header " or correct the name")
    else if (room != "include" && index(" " may[room] " ", " include ") == 0)
      complain(room " includes an installed header", "installed headers are for users; include the room that implements it")
    return
  }
  if (header in known)
    complain("<" header "> is a file of a room", "write #include \"" header "\"")
  if (room == "include" && header !~ /^([a-z_]+|stddef[.]h|stdint[.]h)$/)
    complain("installed headers use only the C or C++ library, not <" header ">", \
             "move what needs it to the room that implements the header")
  if (room == "base" && FILENAME ~ /[.]h$/ && header !~ /^[a-z_]+$/ && header !~ posix && header != "tl/expected.hpp")
    complain("headers of base/ use only the C++ and POSIX libraries and <tl/expected.hpp>, not <" header ">", \
             "include it in the .cc, or move the header to the room that uses it")
  if (header ~ /(^|\/)nccl[^\/]*\.h$/ && room !~ /^(plugin|tools|test|bench)$/)
    complain("only plugin/ knows NCCL", "use our own types and translate in plugin/")
}

function check_local(header, target) {
  target = room_of(header)
  if (header ~ /^slime\// || header ~ /^include\//) {
    sub(/^include\//, "", header)
    complain("installed headers are included with angle brackets", "write #include <" header ">")
    return
  }
  if (target != "generated" && !(header in known)) {
    complain("\"" header "\" does not exist", "write the path from the repository root, as \"room/file.h\"")
    return
  }
  if (target == "test" && room != "test" && !(room == "bench" && header ~ /^test\/support\//)) {
    complain("nothing includes test/, but bench/ test/support", "move what is shared out of test/")
    return
  }
  if (target == "test") return
  if (target == "") return  # the file itself is reported as being in no room
  if (target == room && (room != "backend" || backend_of(header) == backend_of(FILENAME))) return
  if (FILENAME == "transports/registry.cc" && target == "backend") return
  if (target == "backend" && room == "backend")
    complain("backend " backend_of(FILENAME) " includes backend " backend_of(header), \
             "share through base/ or transports/rail.h")
  else if (target == "backend" && room !~ /^(tools|bench|test)$/)
    complain(room " includes a backend (" header ")", "reach it through transports/registry.h; only registry.cc names backends")
  else if (index(" " may[room] " ", " " target " ") == 0)
    complain(room " may include only: " may[room] " " (room == "backend" ? "and itself" : room) \
             "; not " target " (" header ")", "turn the dependency round, or move the shared part down to base/")
}

FNR == 1 {
  room = room_of(FILENAME)
  if (room == "")
    complain(FILENAME " is in no known room", "move it to a room, or add the room to mk/layers.awk and CONTRIBUTING.md")
  in_comment = 0
}

room == "" { next }

/^[ \t]*#[ \t]*include/ {
  line = $0
  sub(/^[ \t]*#[ \t]*include[ \t]*/, "", line)
  if (match(line, /^<[^>]+>/)) check_system(substr(line, 2, RLENGTH - 2))
  else if (match(line, /^"[^"]+"/)) check_local(substr(line, 2, RLENGTH - 2))
  else complain("#include of a macro cannot be checked", "name the file")
  next
}

room !~ /^(plugin|tools|test|bench)$/ {
  line = $0
  gsub(/"([^"\\]|\\.)*"/, "", line)
  sub(/\/\/.*/, "", line)
  if (match(line, /(^|[^A-Za-z0-9_])nccl[A-Z][A-Za-z0-9_]*_t([^A-Za-z0-9_]|$)/))
    complain("only plugin/ knows NCCL's types", "use our own types and translate in plugin/")
}

END {
  if (bad) {
    printf("layers: %d violation(s) of the one-way rule\n", bad) > "/dev/stderr"
    exit 1
  }
}
