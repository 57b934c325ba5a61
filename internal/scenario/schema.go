package scenario

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/quantity"
)

// An object is part of a JSON Schema.
type object = map[string]any

// Patterns for texts in YAML, which are those of the parsers. The decoder checks what no pattern can
// express, such as that a rate is at most one per nanosecond.
const (
	wholePattern    = `^ *([+-]?[0-9]+|` + quantity.NumberForm + quantity.ThousandsForm + `) *$`
	durationPattern = `^ *(0|` + quantity.DurationForm + `) *$`
	sizePattern     = `^ *` + quantity.SizeForm + ` *$`
	rateForm        = quantity.NumberForm + quantity.ThousandsForm + ` *(([mM](essages?|sgs?)) *)?(/(s|sec|second|m|min|minute|h|hr|hour)|[rq]ps|per (second|minute|hour))?`
	ratePattern     = `^ *` + rateForm + ` *$`
	rampPattern     = `^ *` + rateForm + ` *\.\. *` + rateForm + ` *$`
	listPattern     = `(^|\.\.) *` + quantity.ListForm + ` *($|\.\.)`
	floatPattern    = `^ *\+?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)? *$`
	sharePattern    = `^ *\+?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)? *%? *$`
	namePattern     = `^ *[A-Za-z0-9][A-Za-z0-9_.-]{0,99} *$`
	versionPattern  = `^ *[A-Za-z0-9][A-Za-z0-9.+~:_-]{0,63} *$`
	labelPattern    = `[A-Za-z0-9._-]{1,64}=[A-Za-z0-9._-]{1,64}`
	selectorPattern = `^ *([a-z0-9-]{1,64}|` + labelPattern + `(,` + labelPattern + `)*) *$`
	envPattern      = `^\$\{env:[A-Za-z_][A-Za-z0-9_]*\}$`
)

// JSONSchema returns the JSON Schema (draft 2020-12) of scenario files, for editors: keys with
// descriptions, words and ranges, and the options of each driver. The decoder checks more: which keys
// are compatible, and what the driver supports.
func JSONSchema(drivers *driver.Registry) []byte {
	run := sections(drivers, "")
	top := object{
		"$schema":     "https://json-schema.org/draft/2020-12/schema",
		"title":       "weir scenario",
		"description": "What weir run measures. docs/formats/scenario.md describes it.",
		"type":        "object",
		"required":    []string{"weir"},
		"properties":  run,
	}
	free := object{`^system\.options\..`: object{"type": "array", "minItems": 1}}
	lists := varied(drivers)
	lists[zip] = object{
		"type": "object", "description": "keys that vary together: a mapping of keys to lists of one length", "minProperties": 1,
		"properties": together(lists), "patternProperties": free, "additionalProperties": false,
	}
	matrix := object{
		"type": "object", "description": key("matrix").Help,
		"properties":           lists,
		"patternProperties":    object{`^system\.options\..`: object{"type": "array", "minItems": 1, "uniqueItems": true}},
		"additionalProperties": false,
	}
	item := sections(drivers, "scenarios")
	item["matrix"] = object{"$ref": "#/$defs/matrix"}
	run["matrix"] = object{"$ref": "#/$defs/matrix"}
	run["scenarios"] = object{
		"type": "array", "minItems": 1, "maxItems": maxRuns, "description": key("scenarios").Help,
		"items": object{"type": "object", "properties": item, "additionalProperties": false},
	}
	top["additionalProperties"] = false
	// Only without a list and a matrix is the default driver used if none is named.
	top["if"] = object{"not": object{"anyOf": []any{object{"required": []string{"scenarios"}}, object{"required": []string{"matrix"}}}}}
	top["then"] = object{"properties": object{"system": object{"if": object{"not": object{"required": []string{"driver"}}}, "then": optionsOf(defaultDriver)}}}
	defs := object{"matrix": matrix}
	for _, name := range drivers.Names() {
		def, _ := drivers.Lookup(name) // one of its own names
		defs["options-"+name] = optionSchema(append(driver.Options(def.New()), recipeOptions(def)...))
	}
	top["$defs"] = defs
	b, err := json.MarshalIndent(top, "", "  ")
	if err != nil { // only maps, texts and numbers: cannot fail
		return nil
	}
	return append(b, '\n')
}

// optionsOf ties options to a driver.
func optionsOf(name string) object {
	return object{"properties": object{"options": object{"$ref": "#/$defs/options-" + name}}}
}

// sections returns the properties of a run.
func sections(drivers *driver.Registry, in string) object {
	out := object{}
	for _, k := range Keys() {
		if k.Path == "scenarios" || k.Path == "matrix" || k.Path == "weir" && in != "" {
			continue
		}
		at, key := out, k.Path
		if section, inner, two := strings.Cut(k.Path, "."); two {
			if out[section] == nil {
				out[section] = object{"type": "object", "properties": object{}, "additionalProperties": false}
			}
			at, key = out[section].(object)["properties"].(object), inner
		}
		at[key] = k.schema(drivers)
	}
	system := out["system"].(object)
	var cases []any
	for _, name := range drivers.Names() {
		cases = append(cases, object{
			"if":   object{"required": []string{"driver"}, "properties": object{"driver": object{"const": name}}},
			"then": optionsOf(name),
		})
	}
	if len(cases) > 0 {
		system["allOf"] = cases
	}
	return out
}

// varied returns the properties of a matrix: lists of each key's values.
func varied(drivers *driver.Registry) object {
	out := object{}
	for _, k := range Keys() {
		if !k.FileOnly && k.Path != "name" {
			out[k.Path] = object{"type": "array", "minItems": 1, "uniqueItems": true, "items": k.schema(drivers)}
		}
	}
	return out
}

// together returns the same for keys that vary together, whose lists may have duplicates.
func together(lists object) object {
	out := object{}
	for path := range lists {
		out[path] = object{"type": "array", "minItems": 1, "items": object{"$ref": "#/$defs/matrix/properties/" + path + "/items"}}
	}
	return out
}

// schema returns the schema of the key's value.
func (k Key) schema(drivers *driver.Registry) object {
	s := maps.Clone(k.value.schema)
	if k.Path == "system.driver" {
		s = object{"enum": drivers.Known()}
	}
	s["description"] = k.Help
	if k.Default != "" && !k.FileOnly {
		s["description"] = k.Help + "; default: " + k.Default
	}
	return s
}

func texts(pattern string) object { return object{"type": "string", "pattern": pattern} }

// amounts are texts that match a pattern and are not a number that may be a list.
func amounts(pattern string) object {
	t := texts(pattern)
	t["not"] = object{"pattern": listPattern}
	return t
}

func anyText() object { return object{"type": []string{"string", "number", "boolean"}} }

func either(of ...any) object { return object{"anyOf": of} }

func listOf(item object, most int) object {
	return object{"type": "array", "minItems": 1, "maxItems": most, "items": item}
}

// one is a mapping of a single key.
func one(key string, value object) object { return mapped(key, value) }

// mapped is a mapping with exactly the given keys, each followed by its schema.
func mapped(pairs ...any) object {
	properties, names := object{}, []string{}
	for i := 0; i < len(pairs); i += 2 {
		properties[pairs[i].(string)] = pairs[i+1]
		names = append(names, pairs[i].(string))
	}
	return object{"type": "object", "properties": properties, "required": names, "additionalProperties": false}
}

// wholeNumber is an integer, possibly quoted.
func wholeNumber(lo, hi uint64) object {
	n := object{"type": "integer", "minimum": lo}
	if hi < math.MaxUint64 {
		n["maximum"] = hi
	}
	return either(n, amounts(wholePattern))
}

func decimal(lo, hi float64) object {
	return either(object{"type": "number", "minimum": lo, "maximum": hi}, texts(floatPattern))
}

func duration() object { return either(object{"const": 0}, texts(durationPattern)) }

func size(lo, hi uint64) object {
	return either(object{"type": "integer", "minimum": lo, "maximum": hi}, amounts(sizePattern))
}

// optionSchema returns the schema of a driver's options, by name and, for names with dots, also as
// nested mappings.
func optionSchema(options []driver.Option) object {
	leaves := object{}
	for _, o := range options {
		leaves[o.Name] = optionValue(o)
	}
	return nested(leaves)
}

// recipeOptions returns the settings of a driver's recipes as options. A name in two recipes accepts
// what either accepts.
func recipeOptions(def driver.Definition) []driver.Option {
	var out []driver.Option
	own := driver.Options(def.New())
	recipes, _ := broker.Recipes(def) // an unreadable recipe fails a test, not an editor
	for _, r := range recipes {
		for _, name := range slices.Sorted(maps.Keys(r.Settings)) {
			s := r.Settings[name]
			o := driver.Option{Name: driver.ServerPrefix + name, Type: "text", Default: s.Default, Allowed: s.Allowed, Help: s.Help}
			if slices.ContainsFunc(own, func(x driver.Option) bool { return x.Name == o.Name }) {
				continue
			}
			if i := slices.IndexFunc(out, func(x driver.Option) bool { return x.Name == o.Name }); i >= 0 {
				if len(out[i].Allowed) == 0 || len(o.Allowed) == 0 {
					out[i].Allowed = nil
				} else {
					out[i].Allowed = slices.Compact(slices.Sorted(slices.Values(slices.Concat(out[i].Allowed, o.Allowed))))
				}
				continue
			}
			out = append(out, o)
		}
	}
	return out
}

func nested(leaves object) object {
	properties, inner := object{}, map[string]object{}
	for name, leaf := range leaves {
		properties[name] = leaf
		for i, r := range name {
			if r != '.' {
				continue
			}
			if inner[name[:i]] == nil {
				inner[name[:i]] = object{}
			}
			inner[name[:i]][name[i+1:]] = leaf
		}
	}
	for name, below := range inner {
		properties[name] = nested(below)
	}
	return object{"type": "object", "properties": properties, "additionalProperties": false}
}

// numberOf returns the schema of a whole number within bounds. An additional 0 or a unit is only in
// the description.
func numberOf(b *driver.Bounds) object {
	n := object{"type": "integer"}
	switch {
	case b == nil || b.Zero:
		return n
	case b.Min != math.MinInt64:
		n["minimum"] = b.Min
	}
	if b.Max != math.MaxInt64 {
		n["maximum"] = b.Max
	}
	return n
}

// optionValue returns the schema of an option: its value, a variable, or a file.
func optionValue(o driver.Option) object {
	forms := []any{texts(envPattern), one("file", anyText())}
	switch o.Type {
	case "secret":
	case "list":
		forms = append(forms, anyText(), object{"type": "array", "minItems": 1, "items": anyText()})
	case "yes/no":
		forms = append(forms, object{"type": "boolean"}, texts(`^(yes|no|true|false|1|0|t|f|T|F|TRUE|FALSE|True|False)$`), object{"enum": []int{0, 1}})
	case "number":
		forms = append(forms, numberOf(o.Bounds), texts(`^[+-]?[0-9]+$`))
	case "duration":
		forms = append(forms, object{"const": 0}, texts(durationPattern))
	case "size":
		forms = append(forms, object{"type": "integer", "minimum": 0}, amounts(sizePattern))
	default:
		if len(o.Allowed) > 0 {
			forms = append(forms, object{"enum": o.Allowed})
		} else {
			forms = append(forms, anyText())
		}
	}
	description := fmt.Sprintf("%s (%s)", strings.TrimSuffix(o.Help, "."), o.Type)
	if o.Default != "" && o.Type != "secret" {
		description += "; default: " + o.Default
	}
	return object{"anyOf": forms, "description": description}
}
