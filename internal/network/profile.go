package network

import (
	"slices"
	"time"
)

// A Profile is a named set of conditions, with the source of its figures.
type Profile struct {
	Name         string
	About        string // in a few words
	To, From     Conditions
	Source, Note string // a web page; what weir changed
}

// Sources of profiles.
const (
	webPageTest = "https://github.com/catchpoint/WebPageTest/blob/master/www/settings/connectivity.ini.sample"
	comcast     = "https://github.com/tylertreat/comcast#network-condition-profiles"
	dean        = "https://static.googleusercontent.com/media/research.google.com/en//people/jeff/stanford-295-talk.pdf"
)

// access is an access line to the internet. The source has round-trip times: each way gets half of one
// as latency.
func access(name, about string, up, down int64, roundTrip int) Profile {
	each := time.Duration(roundTrip) * time.Millisecond / 2
	return Profile{
		Name: name, About: about, Source: webPageTest, Note: "half of the round trip each way",
		To: Conditions{Latency: each, Bandwidth: up * 1000}, From: Conditions{Latency: each, Bandwidth: down * 1000},
	}
}

// lossy is a lossy line. The source has what its tool does to outgoing packets: each way gets half of
// that latency, and the full loss and bandwidth.
func lossy(name, about string, latency int, kbit int64, loss float64) Profile {
	c := Conditions{Latency: time.Duration(latency) * time.Millisecond / 2, Bandwidth: kbit * 1000, Loss: loss}
	return Profile{Name: name, About: about, To: c, From: c, Source: comcast, Note: "half of the latency each way"}
}

// far is a long distance with unlimited bandwidth.
func far(name, about string, roundTrip time.Duration) Profile {
	c := Conditions{Latency: roundTrip / 2}
	return Profile{Name: name, About: about, To: c, From: c, Source: dean, Note: "half of the round trip each way"}
}

// Profiles returns all profiles.
func Profiles() []Profile {
	return []Profile{
		far("datacenter", "within a data centre", 500*time.Microsecond),
		far("cross-region", "California to the Netherlands", 150*time.Millisecond),
		access("dial-up", "56K modem", 30, 49, 120),
		access("2g", "mobile", 256, 280, 800),
		access("edge", "mobile", 200, 240, 840),
		access("3g-slow", "mobile", 400, 400, 400),
		access("3g", "mobile", 768, 1600, 300),
		access("3g-fast", "mobile", 768, 1600, 150),
		access("4g", "mobile", 9000, 9000, 170),
		access("lte", "mobile", 12000, 12000, 70),
		access("dsl", "home", 384, 1500, 50),
		access("cable", "home", 1000, 5000, 28),
		lossy("dsl-poor", "home, with loss", 70, 2000, 0.02),
		lossy("wifi", "home, with little loss", 40, 30000, 0.002),
		lossy("3g-lossy", "mobile, with loss", 250, 750, 0.015),
		lossy("satellite", "with little loss", 1500, 0, 0.002),
	}
}

// ProfileNames returns the names of all profiles.
func ProfileNames() []string {
	var names []string
	for _, p := range Profiles() {
		names = append(names, p.Name)
	}
	return names
}

// ProfileNamed returns the profile with that name; false if there is none.
func ProfileNamed(name string) (Profile, bool) {
	all := Profiles()
	i := slices.IndexFunc(all, func(p Profile) bool { return p.Name == name })
	if i < 0 {
		return Profile{}, false
	}
	return all[i], true
}
