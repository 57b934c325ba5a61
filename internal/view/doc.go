// Package view renders what weir shows to people: pages of runs, comparisons, searches, histories, drivers,
// systems and hosts, and the progress of a run. It reads results as they were written, computes no
// statistics and connects to nothing. Package layout writes a page as text, Markdown or HTML, package plot
// draws its charts, and package quantity scales the figures, which are in base units everywhere else.
//
// Progress output changes no terminal setting and does not hide the cursor, so that a killed run leaves the
// terminal as it was.
package view
