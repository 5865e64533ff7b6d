# Sourced by run.sh: from a scenario's file to variables of the shell and of the environment.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154  # variables shared with run.sh and launch.sh

variables=() launcher=local hosts=one scenario_ranks='' scenario_tool=auto needs=''

assign() { # WHERE LINE
  local name=${2%%=*} value=${2#*=}
  [[ $2 == *=* ]] || die 2 "$1: '$2' is neither a comment nor NAME=VALUE"
  case $name in
  ranks) number "$1: ranks" "$value" 2 65536; scenario_ranks=$value ;;
  launcher) [[ $value =~ ^(local|mpirun|srun)$ ]] || die 2 "$1: launcher is local, mpirun or srun"; launcher=$value ;;
  hosts) [[ $value =~ ^(one|many)$ ]] || die 2 "$1: hosts is one or many"; hosts=$value ;;
  tool) scenario_tool=$value ;;
  needs) [[ $value =~ ^(gpu|rails)$ ]] || die 2 "$1: needs is gpu or rails"; needs=$value ;;
  *)
    [[ $name =~ ^(NCCL|UCX|OMPI|CUDA|SLIME)_[A-Z0-9_]+$ ]] ||
      die 2 "$1: '$name' is no variable of NCCL, UCX, Open MPI, CUDA or SLIME"
    export "$name=$value"
    [[ " ${variables[*]} " == *" $name "* ]] || variables+=("$name")
    ;;
  esac
}

read_file() { # FILE
  local line count=0
  while IFS= read -r line || [ -n "$line" ]; do
    count=$((count + 1))
    line=${line%$'\r'}
    case $line in '' | '#'*) continue ;; esac
    assign "${1##*/}:$count" "$line"
  done <"$1"
}

read_scenario() { # NAME or FILE
  local file=$here/$1.conf setting
  [[ $1 == */* || $1 == *.conf ]] && file=$1
  if [ "${file##*/}" = common.conf ] || ! [ -r "$file" ]; then
    die 2 "there is no scenario '$1' ($file cannot be read); --list names them"
  fi
  scenario=$(basename "$file" .conf)
  read_file "$here/common.conf"
  read_file "$file"
  for setting in "${settings[@]}"; do assign --set "$setting"; done
}
