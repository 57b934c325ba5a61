// Package report shows results to people. It reads results as they were written, computes no
// statistic and connects to nothing. Package quantity scales the figures, which are in base
// units everywhere else.
package report
