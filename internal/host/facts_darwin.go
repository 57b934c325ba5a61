package host

import (
	"strings"

	"golang.org/x/sys/unix"
)

func platformFacts(f *Facts) {
	if v, err := unix.Sysctl("kern.osproductversion"); err == nil {
		f.Distribution = "macOS " + v
	}
	if v, err := unix.Sysctl("machdep.cpu.brand_string"); err == nil {
		f.CPUModel = strings.TrimSpace(v)
	}
	if v, err := unix.SysctlUint64("hw.memsize"); err == nil {
		f.MemoryBytes = v
	}
	if v, err := unix.Sysctl("hw.model"); err == nil {
		f.Product = v
	}
	if v, err := unix.SysctlUint32("kern.hv_vmm_present"); err == nil {
		virtual := v != 0
		f.Virtual = &virtual
	}
}
