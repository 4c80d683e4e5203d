#compdef quipu
# Completion of quipu(1) for zsh: quipu itself says which words may stand there.
_quipu() {
    local dashes=${words[(i)--]}
    # The words of a measured command are completed as those of any other.
    if (( dashes < CURRENT )); then
        shift $dashes words
        (( CURRENT -= dashes ))
        _normal
        return
    fi
    local line word
    local -a done_words done_lines open_words open_lines
    for line in "${(@f)$(quipu complete -- "${(@Q)words[1,CURRENT]}" 2>/dev/null)}"; do
        word=${line%%$'\t'*}
        [[ -z $word ]] && continue
        line=${line/$'\t'/  -- }
        # A word that goes on gets no blank.
        if [[ $word == *[:=/_] ]]; then
            open_words+=("$word") open_lines+=("${line%  -- }")
        else
            done_words+=("$word") done_lines+=("${line%  -- }")
        fi
    done
    if (( ! $#done_words && ! $#open_words )); then
        _files
        return
    fi
    (( $#open_words )) && compadd -S '' -l -d open_lines -a open_words
    (( $#done_words )) && compadd -l -d done_lines -a done_words
    return 0
}
# As a file of fpath it is the function itself; sourced, it has to be made known.
if [[ ${funcstack[1]-} == _quipu ]]; then
    _quipu "$@"
else
    compdef _quipu quipu
fi
