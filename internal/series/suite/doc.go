// Package suite represents experiments of articles as data: rows of scenarios, the systems to run them
// against, and the figures that the article printed. It parses such files, builds a suite's scenarios, and
// compares results with the published figures. It runs nothing.
package suite
