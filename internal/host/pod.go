package host

import (
	"context"
	"io/fs"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// A pod is what a container of Kubernetes knows of itself.
type pod struct {
	in     bool              // weir runs in Kubernetes
	asked  map[string]string // what the container requests and may take, as the chart says; what is missing is not known
	shared bool              // its threads run on processors that other containers may use
	system []netip.Addr      // of the system, whose name the chart says
}

// resolveLimit bounds the search for the system's addresses.
const resolveLimit = 2 * time.Second

// resolve looks up the system's addresses. Those of a headless Service are its pods', and on the host's network a pod has
// its node's.
func (p *pod) resolve(ctx context.Context) {
	if p == nil || p.asked["SYSTEM"] == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, resolveLimit)
	defer cancel()
	host := p.asked["SYSTEM"]
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	p.system, _ = net.DefaultResolver.LookupNetIP(ctx, "ip", host) // an unknown name shows itself in the run
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

// checkNode says what a pod without rights at the API can know of its neighbours: they are in other namespaces.
func checkNode(o *observed) Finding {
	const away = "Start the agents with the value agents.awayFrom: the labels of the system's pods."
	p := o.pod
	switch {
	case p == nil:
		return unknown(notShown)
	case !p.in:
		return healthy("weir is in no pod")
	}
	if node, err := netip.ParseAddr(p.asked["NODE_IP"]); err == nil && slices.ContainsFunc(p.system, func(a netip.Addr) bool { return a.Unmap() == node.Unmap() }) {
		return warn(p.asked["SYSTEM"]+" is this node's address "+node.String()+": the system, or a port that leads to it, is here", away)
	}
	if labels := p.asked["AWAY_FROM"]; labels != "" {
		return healthy("the scheduler puts no pod with " + labels + " here")
	}
	return unknown("a pod does not see which others share its node; the value agents.awayFrom keeps the system's away")
}
