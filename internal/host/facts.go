package host

import (
	"context"
	"os"
	"runtime"

	"github.com/weirmq/weir/internal/pace"
)

// Facts describes a host; it is part of environment.json. A field that is empty, zero or nil is absent
// from the file and was not reported by the host; no field is guessed from another.
type Facts struct {
	Agent string `json:"agent,omitempty"` // name of the fleet's agent on this host; set by the coordinator

	Hostname     string `json:"hostname,omitempty"`
	OS           string `json:"os"`                     // GOOS
	Distribution string `json:"distribution,omitempty"` // "Debian GNU/Linux 12 (bookworm)", "macOS 15.1"
	Kernel       string `json:"kernel,omitempty"`       // release
	Arch         string `json:"arch"`                   // GOARCH
	BootID       string `json:"boot_id,omitempty"`

	CPUModel    string `json:"cpu_model,omitempty"`
	Cores       int    `json:"cores"`                  // logical cores that the process may run on
	GOMAXPROCS  int    `json:"gomaxprocs"`             // at the time of the query
	CPUGovernor string `json:"cpu_governor,omitempty"` // frequency governor; several are joined by commas
	MemoryBytes uint64 `json:"memory_bytes,omitempty"` // total as seen by the kernel

	ClockSource          string `json:"clock_source,omitempty"`           // tsc, kvm-clock, …
	TransparentHugePages string `json:"transparent_huge_pages,omitempty"` // always, madvise, never

	// The tightest limits of the process's control groups; nil if there is none.
	CgroupCores       *float64 `json:"cgroup_cores,omitempty"` // processor quota
	CgroupMemoryBytes *uint64  `json:"cgroup_memory_bytes,omitempty"`

	OpenFiles     *uint64 `json:"open_files,omitempty"`      // soft limit of RLIMIT_NOFILE
	OpenFilesHard *uint64 `json:"open_files_hard,omitempty"` // hard limit; the largest number means unlimited

	Virtual   *bool  `json:"virtual,omitempty"`   // whether the processor reports a hypervisor
	Product   string `json:"product,omitempty"`   // firmware's vendor and product: "Amazon EC2 m6i.large"
	Container string `json:"container,omitempty"` // docker, podman, …, detected by the marker it leaves

	GoVersion string `json:"go_version"` // Go version weir was built with
}

// Environment collects the facts of the host. It reads a few dozen small files, in well under 10 ms.
// Once ctx has ended, it leaves out what it has not read.
func Environment(ctx context.Context) Facts {
	f := Facts{
		OS:         runtime.GOOS,
		Arch:       runtime.GOARCH,
		Cores:      runtime.NumCPU(),
		GOMAXPROCS: runtime.GOMAXPROCS(0),
		GoVersion:  runtime.Version(),
	}
	for _, ask := range []func(*Facts){names, osFacts, platformFacts} {
		if ctx.Err() != nil {
			break
		}
		ask(&f)
	}
	return f
}

func names(f *Facts) {
	f.BootID = pace.BootID()
	if name, err := os.Hostname(); err == nil {
		f.Hostname = name
	}
}
