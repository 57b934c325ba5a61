// Package view is what weir shows to people: the pages of runs, of comparisons, searches and
// histories, of drivers, systems and hosts, and the progress of a run. It reads results as they
// were written, computes no statistic and connects to nothing. Package layout writes a page as
// text, Markdown or HTML, package plot draws its charts, and package quantity scales the
// figures, which are in base units everywhere else.
//
// The progress of a run is shown without a setting of the terminal and without hiding the
// cursor, so that a run that is killed leaves a terminal as it was.
package view
