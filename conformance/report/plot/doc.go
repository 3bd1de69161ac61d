// Package plot draws what a comparison found, a figure for each layer and position or
// for each place in a table, and how often figures were in which range, as SVG or PNG:
// it is the only importer of gonum's plotting library.
//
// It takes plain numbers and judges nothing; what is no number is left out of a line and
// marked in a map. Colours and layout are its own and no contract.
package plot
