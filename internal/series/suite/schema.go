package suite

import "encoding/json"

// JSONSchema returns the JSON Schema (draft 2020-12) of suites, for editors. It does not cover the keys
// below run, which are in scenario.schema.json.
func JSONSchema() []byte {
	type object = map[string]any
	text := func(about string) object {
		return object{"type": []string{"string", "number"}, "description": about}
	}
	list := func(item any, most int, about string) object {
		return object{"type": "array", "minItems": 1, "maxItems": most, "items": item, "description": about}
	}
	of := func(properties object, needed ...string) object {
		return object{"type": "object", "properties": properties, "additionalProperties": false, "required": needed}
	}
	name := object{"type": []string{"string", "number"}, "pattern": nameForm.String(), "description": "part of the names of folders"}
	run := object{"type": "object", "description": "keys of a scenario, as in scenario.md", "propertyNames": object{"not": object{"enum": ours}}}
	published := of(object{
		"system": text("name of a system of the suite"), "figure": text("one of the row's figures"),
		"value": text("as the article has it, with its unit"), "as": text("what the article calls it"),
		"scales": object{"enum": []any{"yes", "no", true, false}, "description": "a time of the run: --scale shortens it, too"},
	}, "system", "figure", "value")
	top := of(object{
		"weir-suite": object{"const": 1, "description": "version of the format"},
		"name":       name, "title": text("of the article"), "source": text("where the article is to be found"),
		"setup": text("what the article ran on"), "run": run,
		"notes": object{"type": "array", "items": text("a sentence on the method")},
		"charts": list(of(object{
			"figure": text("one of the rows' figures"), "over": text("a key of a scenario, the axis; without it a bar is the best row of a system"),
			"title": text("of the chart"), "rows": object{"type": "array", "items": text("name of a row"), "description": "without it all rows with the figure"},
		}, "figure"), mostCharts, "figures over what rows differ in"),
		"chances": of(object{
			"percentiles": list(object{"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 100}, mostChances, "in percent"),
			"requests":    object{"type": "integer", "minimum": 2, "maximum": mostRequests, "description": "of the largest page"},
		}, "percentiles", "requests"),
		"systems": list(of(object{
			"name": name, "driver": text("a driver of weir"), "was": text("what the article ran"), "run": run,
		}, "driver"), mostSystems, "what the rows are run against"),
		"rows": list(of(object{
			"name": name, "about": text("what the row is, in words"), "run": run,
			"systems":   object{"type": "array", "items": text("name of a system of the suite")},
			"figures":   list(text("a figure as objectives name it"), mostFigures, "of ours that stand in the table"),
			"published": object{"type": "array", "items": published},
			"curves":    list(of(object{"of": object{"enum": distributions}, "as": text("what it is, in words")}, "of", "as"), mostCurves, "distributions that are drawn over each other"),
		}, "name", "figures"), mostRows, "the experiments"),
	}, "weir-suite", "name", "title", "source", "systems", "rows")
	top["$schema"], top["title"] = "https://json-schema.org/draft/2020-12/schema", "weir suite"
	top["description"] = "The experiments of an article. docs/formats/suite.md describes it."
	b, err := json.MarshalIndent(top, "", "  ")
	if err != nil { // only maps, texts and numbers
		return nil
	}
	return append(b, '\n')
}
