package hosts

import "strings"

// Answer begins each answer of a script, and of an agent that reads its URL from its input, since the files that
// a login shell reads may print anything.
const Answer = "weir: "

// The scripts contain no single quotes: see remote. They use nothing but what the package comment names.
const (
	// place prints the platform, whether there is gzip, and the first folder in which programs can be
	// executed; or why there is none. $1 is a folder that exists; "": those for caches.
	place = `
umask 077
echo "weir: platform $(uname -s) $(uname -m)"
if command -v gzip >/dev/null 2>&1; then echo "weir: gzip"; fi
if [ -n "$1" ]; then given=1; else set -- "${XDG_CACHE_HOME:+$XDG_CACHE_HOME/weir}" "${HOME:+$HOME/.cache/weir}"; fi
for d in "$@"; do
	if [ -z "$d" ]; then continue; fi
	if [ -z "$given" ]; then
		if e=$(mkdir -p "$d" 2>&1); then :; else echo "weir: no $d: $e"; continue; fi
	fi
	if [ ! -d "$d" ]; then echo "weir: no $d: there is no such folder"; continue; fi
	t=$d/weir-try.$$
	if e=$( (echo "#!/bin/sh" | cat >"$t" && chmod 700 "$t") 2>&1); then
		if "$t" >/dev/null 2>&1; then rm -f "$t"; echo "weir: folder $d"; exit 0; fi
		e="no program may be executed there (noexec)"
	fi
	rm -f "$t"
	echo "weir: no $d: ${e##*: }"
	if [ -z "$given" ]; then ` + tidy + `; fi
done
exit 1
`

	// tidy removes the folder $d if it is empty, and the folder for caches above it.
	tidy = `rmdir "$d" 2>/dev/null && case "$d" in */.cache/weir) rmdir "${d%/weir}" 2>/dev/null;; esac`

	// put prints have where a program is in the folder $1: below its SHA-256, $2. Where it is not, put prints
	// send, and reads the program from its input, compressed if $4 is gzip. $3 is what cksum prints of it.
	put = `
umask 077
d=$1 sha=$2 crc=$3 f=$1/weir-programs/$2/weir t=$1/weir-programs/$2/weir.$$
sum() {
	if command -v sha256sum >/dev/null 2>&1; then sha256sum
	elif command -v shasum >/dev/null 2>&1; then shasum -a 256
	elif command -v openssl >/dev/null 2>&1; then openssl dgst -sha256 -r
	else cksum; fi
}
good() { if [ -f "$1" ]; then case "$(sum <"$1")" in "$sha"*|"$crc") return 0;; esac; fi; return 1; }
if good "$f"; then echo "weir: have"; exit 0; fi
trap "exit 1" HUP INT TERM PIPE
trap "rm -f \"\$t\"; rmdir \"$1/weir-programs/$2\" \"$1/weir-programs\" 2>/dev/null" EXIT
mkdir -p "$d/weir-programs/$sha" || exit 1
echo "weir: send"
if [ "$4" = gzip ]; then gzip -dc >"$t" || exit 1; else cat >"$t" || exit 1; fi
if good "$t"; then :; else echo "the program that arrived is not the one that was sent" >&2; exit 1; fi
chmod 700 "$t" && mv -f "$t" "$f" && echo "weir: have"
`

	// purge removes all programs. $1 is as for place.
	purge = `
if [ -n "$1" ]; then given=1; else set -- "${XDG_CACHE_HOME:+$XDG_CACHE_HOME/weir}" "${HOME:+$HOME/.cache/weir}"; fi
for d in "$@"; do
	if [ -z "$d" ]; then continue; fi
	if [ -d "$d/weir-programs" ]; then rm -rf "$d/weir-programs" || exit 1; fi
	if [ -z "$given" ]; then ` + tidy + `; fi
done
exit 0
`

	// stay keeps the master's session open as long as this process does.
	stay = `echo "weir: reached"; exec cat >/dev/null`
)

// remote is the command of a script with arguments, for any login shell.
func remote(script string, args ...string) string {
	return "exec sh -c " + quote(script) + " " + strings.Join(quoted(append([]string{"weir"}, args...)), " ")
}

// program is the command of a program with arguments.
func program(path string, args ...string) string {
	return "exec " + strings.Join(quoted(append([]string{path}, args...)), " ")
}

func quoted(words []string) []string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = quote(w)
	}
	return all
}

func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
