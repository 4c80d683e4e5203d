# Completion of quipu(1) for fish: quipu itself says which words may stand there.
function __quipu_complete
    set -l words (commandline -opc)
    # The words of a measured command are completed as those of any other.
    if set -l dashes (contains -i -- -- $words)
        set -l rest $words[(math $dashes + 1)..-1] (commandline -ct)
        complete -C "$rest"
        return
    end
    set -l found (command quipu complete -- $words (commandline -ct) 2>/dev/null)
    if test -n "$found"
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c quipu -f -a '(__quipu_complete)'
