package host

import (
	"io/fs"
	"strings"
)

// A pod is what a container of Kubernetes knows of itself.
type pod struct {
	in     bool              // weir runs in Kubernetes
	asked  map[string]string // what the container requests and may take, as the chart says; what is missing is not known
	shared bool              // its threads run on processors that other containers may use
}

// readPod returns nil where it is not known. A container does not see what it requests: variables say it
// (deploy/helm/weir).
func readPod(root fs.FS, allowed []int) *pod {
	environ := text(root, "proc/self/environ")
	if environ == "" {
		return nil
	}
	p := pod{asked: map[string]string{}}
	for line := range strings.SplitSeq(environ, "\x00") {
		name, value, _ := strings.Cut(line, "=")
		p.in = p.in || name == "KUBERNETES_SERVICE_HOST"
		if what, ok := strings.CutPrefix(name, "POD_"); ok {
			p.asked[what] = value
		}
	}
	p.shared = len(allowed) >= len(cpuList(text(root, cpuFolder+"/online")))
	return &p
}

func checkPod(o *observed) Finding {
	const guaranteed = "Give the container requests and limits that are equal, in whole processors, as the Helm chart does."
	p := o.pod
	switch {
	case p == nil:
		return unknown(notShown)
	case !p.in:
		return healthy("weir is in none")
	}
	for _, what := range []string{"CPU", "MEMORY"} {
		switch request, limit := p.asked["REQUESTS_"+what], p.asked["LIMITS_"+what]; {
		case limit == "":
			return unknown("the variables POD_REQUESTS_" + what + " and POD_LIMITS_" + what + " do not say what the container requests; the Helm chart sets them")
		case request != limit:
			return bad("not Guaranteed: requests "+request+" and may take "+limit+" ("+strings.ToLower(what)+")", guaranteed)
		}
	}
	cores := p.asked["LIMITS_CPU"]
	switch whole, ok := strings.CutSuffix(cores, "000"); {
	case !ok || whole == "":
		return bad("Guaranteed, with "+cores+" thousandths of a processor", guaranteed)
	case p.shared:
		return warn("Guaranteed, with "+whole+" processors shared with other containers", "Start the node's kubelet with --cpu-manager-policy=static.")
	}
	return healthy("Guaranteed, with processors of its own")
}
