package scenario

import "strings"

// supersede takes out of the file what a flag stands instead of: a flag wins
// over the file also where the two are different keys that exclude one
// another. What excludes one another among the flags, or within the file, stays
// and is reported.
func (d *decoder) supersede(flags []Override) {
	given := map[string]string{}
	for _, o := range flags {
		given[o.Path] = strings.TrimSpace(o.Value)
	}
	has := func(path string) bool { _, ok := given[path]; return ok }
	arrival := d.find("load.arrival")
	traced := arrival != nil && arrival.field("trace") != nil
	switch {
	case has("load.profile"):
		d.remove("load.rate", "measure", "messages")
		if traced {
			d.remove("load.arrival")
		}
	case strings.Contains(given["load.arrival"], "trace"):
		d.remove("load.rate", "load.profile", "measure", "messages")
	case given["load.rate"] == "max":
		d.remove("load.profile", "load.arrival", "load.when_full")
	case has("load.rate"):
		d.remove("load.profile")
		if traced {
			d.remove("load.arrival")
		}
	}
	if has("messages") {
		d.remove("measure")
	}
	if has("measure") {
		d.remove("messages")
	}
	if given["mode"] == modes[1] { // produce
		d.remove("topology.subscriptions", "topology.consumers", "consume.settle", "consume.prefetch")
	}
	if has("topology.names") {
		d.remove("topology.destinations", "topology.partitions", "topology.replication")
	}
	if has("topology.destinations") {
		d.remove("topology.names")
	}
}

// remove takes keys out of the tree.
func (d *decoder) remove(paths ...string) {
	for _, path := range paths {
		n, key := d.root, path
		if section, k, two := strings.Cut(path, "."); two {
			n, key = d.root.field(section), k
		}
		if n == nil || n.shape != mapping {
			continue
		}
		for i, f := range n.fields {
			if f.key == key {
				n.fields = append(n.fields[:i:i], n.fields[i+1:]...)
				break
			}
		}
	}
}
