// Package report shows results to people. It reads results as they were
// written, computes no statistic and connects to nothing.
//
// Inside weir all figures are in base units; here, and only here, they are
// scaled: times to three significant digits in the unit that fits, counts with
// thousands separated.
package report
