#compdef weir
# Completion of weir for zsh: source <(weir completion zsh), or this file as _weir in a folder of $fpath.

_weir() {
    local line word kinds ret=1
    local -a lines args plain open
    args=("${(Q@)words[2,CURRENT-1]}" "${(Q)PREFIX}")
    lines=("${(@f)$("${${(Q)words[1]}/#\~/$HOME}" internal complete "${args[@]}" 2>/dev/null)}")
    for line in "${lines[@]}"; do
        case "$line" in
        '') ;;
        :folders)
            compset -P '--*='
            _files -/ && ret=0
            ;;
        :files*)
            kinds=(${=line#:files})
            compset -P '--*='
            if (($#kinds)); then
                _files -g "*.(${(j:|:)kinds})" && ret=0
            else
                _files && ret=0
            fi
            ;;
        *)
            word="${line%%$'\t'*}"
            word="${word//:/\\:}${${line#*$'\t'}:+:${line#*$'\t'}}"
            if [[ "${line%%$'\t'*}" == *= ]]; then open+=("$word"); else plain+=("$word"); fi
            ;;
        esac
    done
    (($#plain)) && _describe -V weir plain && ret=0
    (($#open)) && _describe -V weir open -S '' && ret=0
    return ret
}

if [[ "$funcstack[1]" == _weir ]]; then
    _weir "$@"
else
    (($+functions[compdef])) || { autoload -Uz compinit && compinit -i; }
    compdef _weir weir
fi
