// Package page is the HTML page of a report: what package report calls HTML. Templates,
// styles and script are embedded; the page loads nothing.
//
// A page answers in this order: what is the verdict and where is the fault, what was
// judged and what can't be seen, where along the depth and on which prompts, what does
// each check say, what judged what.
package page
