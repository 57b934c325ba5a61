// Package driverpage tells all about a driver, from its definition: for a terminal, as
// Markdown for docs/drivers, and as a value that is written as JSON.
package driverpage
