# What the scripts that compare programs in turns share; sourced by them. `work` is a folder of theirs.

# Appends the microseconds a command takes to a file; the clock is bash's own, to fork nothing else.
clock() { # FILE COMMAND...
    local file=$1 start end
    shift
    start=${EPOCHREALTIME/./}
    "$@" >/dev/null 2>&1
    end=${EPOCHREALTIME/./}
    echo $((end - start)) >>"$work/$file"
}

# Prints the median of a file.
median() { # FILE
    sort -n "$work/$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}
