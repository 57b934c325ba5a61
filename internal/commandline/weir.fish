# Completion of weir for fish: weir completion fish | source

function __weir_complete
    set -l words (commandline -opc)
    set -l cur (commandline -ct)
    set -l before ""
    set -l value "$cur"
    if string match -q -- '--*=*' "$cur"
        set before (string replace -r -- '=.*' '=' "$cur")
        set value (string replace -r -- '^[^=]*=' '' "$cur")
    end
    for line in ($words[1] internal complete $words[2..-1] "$cur" 2>/dev/null)
        switch "$line"
            case ':folders'
                for path in (__fish_complete_directories "$value" '')
                    echo -- "$before$path"
                end
            case ':files*'
                set -l kinds (string match -ra -- '\S+' (string replace ':files' '' -- "$line"))
                for path in (__fish_complete_path "$value")
                    set -l name (string split -f 1 \t -- "$path")
                    if test (count $kinds) -eq 0; or string match -q -- '*/' "$name"; or contains -- (string replace -r -- '.*\.' '' "$name") $kinds
                        echo -- "$before$path"
                    end
                end
            case '*'
                echo -- "$line"
        end
    end
end

complete -c weir -f -k -a '(__weir_complete)'
