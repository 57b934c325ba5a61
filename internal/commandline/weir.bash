# Completion of weir for bash 3.2 and newer: source <(weir completion bash)

_weir() {
    local line="${COMP_LINE:0:COMP_POINT}" words=() n=-1 i word
    # Bash breaks words at the characters of COMP_WORDBREAKS, = and : among them.
    # Pieces that no blank parts are put together again.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word="${COMP_WORDS[i]}"
        if ((n >= 0)) && [[ "$line" != [[:blank:]]* ]]; then
            [[ "$line" == "$word"* ]] || word="$line"
            words[n]+="$word"
        else
            line="${line#"${line%%[![:blank:]]*}"}"
            [[ "$line" == "$word"* ]] || word="$line"
            words[++n]="$word"
        fi
        line="${line#"$word"}"
    done
    # What it takes for the word is only what follows the last break.
    local cur="${words[n]}" breaks="" done=""
    [[ "$COMP_WORDBREAKS" == *=* ]] && breaks+="="
    [[ "$COMP_WORDBREAKS" == *:* ]] && breaks+=":"
    [[ -n "$breaks" ]] && done="${cur%"${cur##*[$breaks]}"}"

    local weir="${words[0]/#\~/$HOME}" value="$cur" reply file kinds
    [[ "$cur" == --*=* ]] && value="${cur#*=}"
    COMPREPLY=()
    while IFS= read -r reply; do
        case "$reply" in
        :files* | :folders)
            kinds="${reply#:files}"
            _weir_option filenames
            while IFS= read -r file; do
                [[ -d "$file" || "$reply" == :files || "$reply" != :folders && " $kinds " == *" ${file##*.} "* ]] || continue
                file="${cur%"$value"}$file"
                COMPREPLY+=("${file#"$done"}")
            done < <(compgen -f -- "$value")
            ;;
        *)
            reply="${reply%%$'\t'*}"
            COMPREPLY+=("${reply#"$done"}")
            ;;
        esac
    done < <("$weir" internal complete "${words[@]:1}" 2>/dev/null)
    [[ ${#COMPREPLY[@]} -eq 1 && "${COMPREPLY[0]}" == *= ]] && _weir_option nospace
    return 0
}

# Bash 3.2 has no compopt; a blank then follows where none should.
_weir_option() {
    type compopt >/dev/null 2>&1 && compopt -o "$1" 2>/dev/null
}

complete -F _weir weir
