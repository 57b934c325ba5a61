package redisconn

import "testing"

// TestSlotsAreTheServers uses the examples of the cluster specification.
func TestSlotsAreTheServers(t *testing.T) {
	for key, want := range map[string]int{
		"123456789": 0x31c3, "": 0, "foo": 12182, "{foo}bar": 12182, "a{foo}{bar}": 12182,
	} {
		if got := Slot(key); got != want {
			t.Errorf("Slot(%q) = %d, want %d", key, got, want)
		}
	}
	for _, same := range [][2]string{{"{user1000}.following", "{user1000}.followers"}, {"foo{{bar}}zap", "{bar"}, {"foo{bar}{zap}", "bar"}} {
		if Slot(same[0]) != Slot(same[1]) {
			t.Errorf("%s and %s are in different slots", same[0], same[1])
		}
	}
	if Slot("foo{}{bar}") == Slot("bar") {
		t.Error("an empty tag counts")
	}
}

func TestATagIsInItsRange(t *testing.T) {
	for _, r := range []slotRange{{first: 0, last: 5460}, {first: 5461, last: 10922}, {first: 10923, last: Slots - 1}, {first: 77, last: 77}} {
		if s := Slot("a:{" + tag(r) + "}:b"); s < r.first || s > r.last {
			t.Errorf("the tag of %d to %d is in slot %d", r.first, r.last, s)
		}
	}
}
