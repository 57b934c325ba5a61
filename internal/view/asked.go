package view

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/result"
)

// An Asked is a comparison as the user requested it.
type Asked struct {
	Given   []string // the arguments as typed
	By      string   // the key that groups the runs; "": each argument is a side
	Flags   string   // other flags as typed, each preceded by a blank
	Alpha   float64
	Appends func(dir string) bool // whether weir run --append takes a folder
}

// Advice says what would make the sides comparable, given the error that prevents it.
func (a Asked) Advice(sides []compare.Side, err error) (lines []string) {
	single := !slices.ContainsFunc(sides, func(s compare.Side) bool { return len(s.Runs) > 1 })
	few := errors.Is(err, compare.ErrTooFew)
	switch {
	case a.By == "" && single && len(sides) > 2:
		return []string{"each argument is a side; several folders of one side have commas between them (a,b,c,d), or are a pattern in quotes ('results/base-*')"}
	case !few, errors.Is(err, compare.ErrDifferent) && single: // repeats would differ, too
		return nil
	case a.By == "" && single && len(sides) == 2 && len(sides[0].Runs)+len(sides[1].Runs) == 2:
		lines = []string{"each side is a single run; this repeats both in turns, and compares them:"}
		return append(lines, indented(InTurns(sides[0].Runs[0].Dir, sides[1].Runs[0].Dir))...)
	}
	commands, known := a.appending(sides)
	if !known {
		return []string{"weir run FILE --repeat N makes a series of runs, in a folder that is a side; weir run --append DIR --repeat N adds runs to it"}
	}
	lines = append([]string{"this adds runs, and compares again:"}, indented(commands)...)
	if slices.ContainsFunc(sides, func(s compare.Side) bool {
		return slices.ContainsFunc(s.Runs, func(r compare.Run) bool { return r.Result.Verdict.Status == result.Invalid })
	}) {
		lines = append(lines, "INVALID runs do not count: weir doctor shows what on this host disturbs a run")
	}
	return lines
}

func indented(commands []string) []string {
	for i := range commands {
		commands[i] = "  " + commands[i]
	}
	return commands
}

// appending returns the commands that add the missing runs to each folder and compare again; known is false
// where a side is not one folder of several runs.
func (a Asked) appending(sides []compare.Side) (lines []string, known bool) {
	again, more := "weir compare", make([]int, len(a.Given))
	for i, given := range a.Given {
		again += " " + Quoted(given)
		for j, s := range sides {
			if a.By != "" || i == j {
				more[i] = max(more[i], s.Lacks(a.Alpha))
			}
		}
	}
	if a.By != "" {
		if len(a.Given) > 1 { // it is not known which folder lacks runs
			return nil, false
		}
		again += " --by " + Quoted(a.By)
	}
	for i, given := range a.Given {
		if more[i] == 0 {
			continue
		}
		if !a.Appends(given) {
			return nil, false
		}
		lines = append(lines, fmt.Sprintf("weir run --append %s --repeat %d", Quoted(given), more[i]))
	}
	return append(lines, again+a.Flags), true
}

// PartedBy lists the keys that can split the runs of a single side, after a colon; "" if there are none, or
// if there are several sides.
func (a Asked) PartedBy(sides []compare.Side) string {
	if len(sides) != 1 {
		return ""
	}
	command := "weir compare " + Quoted(a.Given[0]) + " --by "
	if key := compare.Apart(sides[0].Runs); key != "" {
		return ": " + command + key
	}
	if keys := compare.Varied(sides[0].Runs); len(keys) > 0 {
		return ": " + command + keys[0] + "; these vary: " + strings.Join(keys, ", ")
	}
	return ""
}
