package scenario

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
)

// variablesOf returns a lookup for NAME=value settings.
func variablesOf(settings ...string) func(string) (string, bool) {
	m := map[string]string{}
	for _, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		m[name] = value
	}
	return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
}

// within returns inputs with the given variables.
func within(t testing.TB, file string, variables []string, overrides ...Override) Inputs {
	in := inputs(t, file, overrides...)
	in.Environ = Variables(variablesOf(variables...), in.Drivers)
	return in
}

func TestVariablesSetKeys(t *testing.T) {
	t.Parallel()
	got := Variables(variablesOf("WEIR_RATE=5/s", "WEIR_LOAD_IN_FLIGHT=7", "WEIR_SYSTEM_OPTIONS_TLS_CA=x", "WEIR_ADDRESS=h:1", "WEIR_SEED=", "WEIR_WEIR=1", "WEIR_MATRIX={}", "RATE=6/s"), registry(t))
	want := []Override{
		{"WEIR_ADDRESS", "system.options.address", "h:1"},
		{"WEIR_SYSTEM_OPTIONS_TLS_CA", "system.options.tls.ca", "x"},
		{"WEIR_RATE", "load.rate", "5/s"},
		{"WEIR_LOAD_IN_FLIGHT", "load.in_flight", "7"},
	}
	golden.Equal(t, want, got, "Variables")
}

func TestEveryVariableSetsOneKey(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, v := range variables(real(t)) {
		if other, twice := seen[v.name]; twice && other != v.path {
			t.Errorf("%s sets %s and %s", v.name, other, v.path)
		}
		seen[v.name] = v.path
	}
	for _, k := range Keys() {
		if !k.FileOnly && seen[VariableOf(k.Path)] != k.Path {
			t.Errorf("%s: %s sets %q", k.Path, VariableOf(k.Path), seen[VariableOf(k.Path)])
		}
	}
}

func TestFlagVariableFileDefaultPrecedence(t *testing.T) {
	t.Parallel()
	const file = "weir: 1\nload: {rate: 1/s}\n"
	for name, tt := range map[string]struct {
		in   Inputs
		want []string
		not  string
	}{
		"a variable over a default":               {within(t, "", []string{"WEIR_LOAD_RATE=2/s"}), []string{"rate: 2/s"}, ""},
		"a variable over the file":                {within(t, file, []string{"WEIR_RATE=2/s"}), []string{"rate: 2/s"}, ""},
		"a flag over a variable":                  {within(t, file, []string{"WEIR_RATE=2/s"}, flags("load.rate=3/s")...), []string{"rate: 3/s"}, ""},
		"a variable that excludes what is filed":  {within(t, "weir: 1\nmeasure: 5s\n", []string{"WEIR_MESSAGES=7"}), []string{"messages: 7"}, "measure:"},
		"a flag that excludes a variable":         {within(t, "", []string{"WEIR_MESSAGES=7", "WEIR_ARRIVAL=poisson"}, flags("measure=5s", "load.rate=max")...), []string{"measure: 5s", "rate: max"}, "messages:"},
		"a variable instead of a matrix's values": {within(t, "weir: 1\nmatrix: {load.rate: [5/s, 6/s]}\n", []string{"WEIR_RATE=2/s"}), []string{"rate: 2/s"}, ""},
		"both forms with one value":               {within(t, "", []string{"WEIR_LOAD_RATE=2/s", "WEIR_RATE= 2/s"}), []string{"rate: 2/s"}, ""},
		"a list":                                  {within(t, "", []string{"WEIR_MODE=produce", "WEIR_TOPOLOGY_NAMES=a,b"}), []string{"names: [a, b]"}, ""},
		"a file, in the working folder":           {within(t, "", []string{"WEIR_PAYLOAD={file: one.json}"}), []string{"payload: {file: /at/dir/one.json}"}, ""},
		"a secret's reference":                    {within(t, "", []string{"WEIR_SYSTEM_OPTIONS_PASSWORD=${env:PASSWORD}"}), []string{`password: "${env:PASSWORD}"`}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := must.Get(only(tt.in))(t)
			text := string(s.YAML())
			for _, w := range tt.want {
				if !strings.Contains(text, "\n"+w) && !strings.Contains(text, " "+w) {
					t.Errorf("%q is missing:\n%s", w, text)
				}
			}
			if tt.not != "" && strings.Contains(text, "\n"+tt.not) {
				t.Errorf("%q is still there:\n%s", tt.not, text)
			}
		})
	}
}

func TestFaultsOfVariables(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		in   Inputs
		want string
	}{
		"both forms":             {within(t, "", []string{"WEIR_LOAD_RATE=2/s", "WEIR_RATE=3/s"}), "WEIR_RATE: differs from WEIR_LOAD_RATE, which sets the same (one of them)"},
		"both forms, and a flag": {within(t, "", []string{"WEIR_LOAD_RATE=2/s", "WEIR_RATE=3/s"}, flags("load.rate=5/s")...), "WEIR_RATE: differs from WEIR_LOAD_RATE, which sets the same (one of them)"},
		"a wrong value":          {within(t, "", []string{"WEIR_RATE=fast"}), `WEIR_RATE: "fast": a rate is a number of messages per second, minute or hour, such as 20000/s, 10k/s, 0.5/s, 100/m or 3/h`},
		"no text":                {within(t, "", []string{"WEIR_SYSTEM_OPTIONS_USER=a\xff"}), "WEIR_SYSTEM_OPTIONS_USER: holds what is not text (UTF-8 without control characters)"},
		"a secret written out":   {within(t, "", []string{"WEIR_SYSTEM_OPTIONS_PASSWORD=canary"}), "WEIR_SYSTEM_OPTIONS_PASSWORD: is a secret, and others can read files and command lines: give a reference to it (${env:NAME} or {file: PATH})"},
		"another driver's option": {func() Inputs {
			in := within(t, "", nil)
			in.Environ = []Override{{"WEIR_SYSTEM_OPTIONS_ACKS", "system.options.acks", "all"}}
			return in
		}(), "WEIR_SYSTEM_OPTIONS_ACKS: unknown option (address, password, server.sync, storage, timeout, tls.ca, user)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Resolve(tt.in)
			if err == nil || err.Error() != tt.want {
				t.Errorf("%v; want %s", err, tt.want)
			}
		})
	}
}

func TestMisspelledVariablesAreReported(t *testing.T) {
	t.Parallel()
	got := Misspelt([]string{
		"PATH=/bin", "WEIR_RATE=5/s", "WEIR_RAET=5/s", "WEIR_LOAD_IN_FLIGT=7", "WEIR_SYSTEM_OPTIONS_STORGE=canary", "WEIR_OUT=x", "WEIR_QUITE=1", "WEIR_SOMETHING_ELSE=1", "WEIR_SEDE=", "WEIRD=1", "no assignment",
	}, registry(t), "WEIR_OUT", "WEIR_QUIET")
	want := []string{
		"WEIR_LOAD_IN_FLIGT sets nothing, did you mean WEIR_LOAD_IN_FLIGHT?",
		"WEIR_QUITE sets nothing, did you mean WEIR_QUIET?",
		"WEIR_RAET sets nothing, did you mean WEIR_RATE?",
		"WEIR_SYSTEM_OPTIONS_STORGE sets nothing, did you mean WEIR_SYSTEM_OPTIONS_STORAGE?",
	}
	golden.Equal(t, want, got, "Misspelt")
}
