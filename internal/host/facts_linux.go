package host

import "os"

func platformFacts(f *Facts) { linuxFacts(os.DirFS("/"), f) }
