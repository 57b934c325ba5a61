package settings

import (
	"maps"
	"testing"
)

func TestValues(t *testing.T) {
	v := Values{}
	for _, value := range []string{"on", "off", "on"} {
		v.Add("fsync", value)
	}
	v.Add("version", "3")
	got := map[string]string{"fsync": "unknown", "user": "weir"}
	v.Into(got)
	if want := map[string]string{"fsync": "off, on", "version": "3", "user": "weir"}; !maps.Equal(got, want) {
		t.Errorf("%v; want %v", got, want)
	}
	if none := v.Of("none"); none != "" {
		t.Errorf("a setting without a value is %q", none)
	}
}
