// Package suite holds experiments of articles as data: rows of scenarios, the systems
// that they are run against, and the figures that the article printed. It reads such
// files, makes the scenarios of a suite, and lays out what came of them beside what was
// published. It runs nothing.
package suite
