# Completion of quipu(1) for bash 4: quipu itself says which words may stand there.
_quipu() {
    local line=${COMP_LINE:0:COMP_POINT} cur i word
    # The words of a measured command are completed as those of any other.
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} == -- ]]; then
            if declare -F _comp_command_offset >/dev/null; then
                _comp_command_offset $((i + 1))
            elif declare -F _command_offset >/dev/null; then
                _command_offset $((i + 1))
            fi
            return
        fi
    done
    # COMP_WORDS are split at colons and equals signs too.
    local -a words
    read -ra words <<<"$line"
    [[ $line == *[[:blank:]] ]] && words+=("")
    cur=${words[${#words[@]} - 1]}
    cur=${cur#[\"\']}
    words[${#words[@]} - 1]=$cur
    # What is replaced begins after the last of the characters that split words.
    local before=
    [[ $cur == *[:=]* ]] && before=${cur%"${cur##*[:=]}"}
    COMPREPLY=()
    while IFS=$'\t' read -r word _; do
        COMPREPLY+=("${word#"$before"}")
    done < <("${words[0]/#\~/$HOME}" complete -- "${words[@]}" 2>/dev/null)
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[:=/_] ]] && compopt -o nospace
}
complete -o default -o nosort -F _quipu quipu
