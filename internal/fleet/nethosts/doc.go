// Package nethosts makes hosts of network namespaces, for tests of a fleet: each
// has an address of its own, and a cable that can be pulled. Only tests import it.
//
// The namespaces have no names. Each lives as long as the test holds it or a
// process is in it, so that a test that is killed leaves nothing behind: processes
// that Start started end with it, and so do the namespaces and all that is in them.
package nethosts
